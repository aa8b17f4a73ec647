//! Transposed convolutions over many shapes against obvious loops.

use super::{ConvTranspose, ConvTransposeOptions, ConvTransposeShape};
use crate::conv::ConvError;
use crate::epilogue::{Epilogue, Residual, ResidualSource};
use crate::gemm::reference::finish;
use crate::gemm::tests::{Random, activations, close, each_isas};
use crate::isa::Isas;
use crate::threads::Team;

/// Scatter every input element, then finish.
fn reference(
    shape: &ConvTransposeShape,
    (in_pitch, out_pitch): (usize, usize),
    weights: &[f32],
    x: &[f32],
    y: &mut [f32],
    epilogue: &Epilogue<'_>,
) {
    let (in_c, out_c) = (shape.in_c / shape.groups, shape.out_c / shape.groups);
    let mut sums = vec![0.0_f64; shape.out_pixels() * shape.out_c];
    for pixel in 0..shape.in_pixels() {
        let (ix, iy, image) =
            (pixel % shape.in_w, pixel / shape.in_w % shape.in_h, pixel / shape.in_w / shape.in_h);
        for channel in 0..shape.in_c {
            let group = channel / in_c;
            for out in 0..out_c {
                for ky in 0..shape.kernel_h {
                    for kx in 0..shape.kernel_w {
                        let oy = (iy * shape.stride_h + ky * shape.dilation_h).wrapping_sub(shape.pad_top);
                        let ox = (ix * shape.stride_w + kx * shape.dilation_w).wrapping_sub(shape.pad_left);
                        if oy < shape.out_h() && ox < shape.out_w() {
                            let to = (image * shape.out_h() + oy) * shape.out_w() + ox;
                            let weight =
                                ((channel * out_c + out) * shape.kernel_h + ky) * shape.kernel_w + kx;
                            sums[to * shape.out_c + group * out_c + out] +=
                                f64::from(x[pixel * in_pitch + channel]) * f64::from(weights[weight]);
                        }
                    }
                }
            }
        }
    }
    for (index, sum) in sums.into_iter().enumerate() {
        let (pixel, channel) = (index / shape.out_c, index % shape.out_c);
        let to = &mut y[pixel * out_pitch + channel];
        *to = finish(epilogue, sum, pixel, channel, *to) as f32;
    }
}

fn check(shape: &ConvTransposeShape, extra: usize, threads: usize, seed: usize) {
    let mut random = Random::new(seed as u64 + 900);
    let options = ConvTransposeOptions {
        input_pitch: (extra > 0).then_some(shape.in_c + extra),
        output_pitch: (extra > 0).then_some(shape.out_c + 2 * extra),
    };
    let pitches = (shape.in_c + extra, shape.out_c + 2 * extra);
    let weights = random.floats(shape.weights_len());
    let bias = random.floats(shape.out_c);
    let slopes = random.floats(shape.out_c);
    let residual = random.floats(shape.out_pixels() * shape.out_c);
    let all = activations(&slopes);
    let matrix = ResidualSource::Matrix { data: &residual, row_stride: shape.out_c };
    let epilogue = Epilogue {
        bias: (!seed.is_multiple_of(3)).then_some(&bias),
        activation: all[seed % all.len()],
        residual: match seed % 4 {
            0 => Some(Residual { source: matrix, after_activation: false }),
            1 => Some(Residual { source: matrix, after_activation: true }),
            2 => Some(Residual { source: ResidualSource::Output, after_activation: false }),
            _ => None,
        },
    };
    let team = Team::new(threads);
    for isas in each_isas() {
        let transpose = ConvTranspose::new(isas, shape, &weights, options).expect("a right shape");
        let x = random.floats(transpose.input_len());
        let before = random.floats(transpose.output_len());
        let mut expected = before.clone();
        reference(shape, pitches, &weights, &x, &mut expected, &epilogue);
        let mut found = before;
        let mut scratch = vec![f32::NAN; transpose.scratch_len(threads)];
        transpose.run(&team, &x, &mut found, &epilogue, &mut scratch);
        let terms = shape.kernel_h * shape.kernel_w * shape.group_in_c();
        close(&found, &expected, terms, &|| format!("{isas} {shape:?} seed {seed} {epilogue:?}"));
        if seed.is_multiple_of(5) {
            let larger = ConvTransposeShape { in_w: shape.in_w + 3, ..*shape };
            let replanned = transpose.replan(&larger).expect("the same transposed convolution");
            assert!(std::sync::Arc::ptr_eq(replanned.packed(), transpose.packed()));
            assert!(replanned.packed_bytes() >= weights.len() * 4);
        }
    }
}

#[test]
fn every_stride_kernel_and_padding_is_right() {
    let mut seed = 0;
    for stride in 1..=4 {
        for kernel in 1..=5 {
            for (in_c, out_c, groups) in [(5, 7, 1), (16, 32, 1), (12, 6, 3), (4, 4, 4), (33, 40, 1)] {
                seed += 1;
                let shape = ConvTransposeShape {
                    batch: 1 + seed % 2,
                    stride_h: stride,
                    stride_w: 1 + (stride + seed) % 3,
                    pad_top: seed % kernel,
                    pad_left: seed / 2 % kernel,
                    pad_bottom: seed % 2,
                    pad_right: seed / 3 % 2,
                    output_padding_h: seed % stride,
                    dilation_h: 1 + seed % 2,
                    dilation_w: 1 + seed / 2 % 3,
                    groups,
                    ..ConvTransposeShape::new((4, 9), in_c, out_c, (kernel, 1 + (kernel + seed) % 4))
                };
                check(&shape, seed % 3, 1 + seed % 3, seed);
            }
        }
    }
}

#[test]
fn wide_rows_are_right() {
    for seed in 0..4 {
        let shape = ConvTransposeShape {
            stride_h: 2,
            stride_w: 2,
            pad_top: seed % 2,
            pad_left: seed % 2,
            output_padding_w: seed / 2,
            ..ConvTransposeShape::new((3, 150), 20, 24, (2 + seed, 2 + seed))
        };
        check(&shape, 0, 2, seed);
    }
}

#[test]
fn sizes_follow_the_onnx_formula() {
    let shape = ConvTransposeShape {
        stride_h: 2,
        stride_w: 2,
        pad_top: 1,
        pad_left: 1,
        pad_bottom: 1,
        pad_right: 1,
        output_padding_h: 1,
        output_padding_w: 1,
        ..ConvTransposeShape::new((10, 20), 8, 8, (3, 3))
    };
    assert_eq!((shape.out_h(), shape.out_w()), (20, 40));
    assert_eq!(ConvTransposeShape::new((0, 20), 8, 8, (3, 3)).out_h(), 0);
}

#[test]
fn wrong_sizes_are_refused() {
    let good = ConvTransposeShape::new((4, 4), 6, 4, (2, 2));
    let error = |shape: ConvTransposeShape, options| {
        ConvTranspose::new(Isas::detect(), &shape, &[0.0; 96], options).expect_err("a wrong shape")
    };
    let plain = ConvTransposeOptions::default();
    assert!(ConvTranspose::new(Isas::detect(), &good, &[0.0; 96], plain).is_ok());
    assert_eq!(
        error(ConvTransposeShape { stride_h: 0, ..good }, plain),
        ConvError::Zero { what: "vertical stride" }
    );
    assert_eq!(
        error(ConvTransposeShape { kernel_h: 3, ..good }, plain),
        ConvError::Weights { expected: 144, found: 96 }
    );
    assert_eq!(error(ConvTransposeShape { stride_w: usize::MAX, ..good }, plain), ConvError::TooLarge);
    let pitch = ConvTransposeOptions { output_pitch: Some(3), ..plain };
    assert_eq!(error(good, pitch), ConvError::Pitch { channels: 4, pitch: 3 });
}
