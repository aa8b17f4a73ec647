//! Every algorithm and kernel, over many shapes, against the reference.

use super::{Algorithm, ConvError, ConvOptions, ConvShape, Convolution, InputLayout, reference};
use crate::epilogue::{Epilogue, Residual, ResidualSource};
use crate::gemm::tests::{Random, activations, close, each_isas};
use crate::isa::Isas;
use crate::threads::Team;

fn shape(in_hw: (usize, usize), in_c: usize, out_c: usize, kernel: (usize, usize)) -> ConvShape {
    ConvShape::new(in_hw, in_c, out_c, kernel)
}

/// The shape with the same stride and padding on all sides.
fn with(shape: ConvShape, stride: usize, pad: usize, groups: usize) -> ConvShape {
    ConvShape {
        stride_h: stride,
        stride_w: stride,
        pad_top: pad,
        pad_left: pad,
        pad_bottom: pad,
        pad_right: pad,
        groups,
        ..shape
    }
}

/// Run on every instruction set and compare with the reference; returns the algorithm's name.
fn check(shape: &ConvShape, options: ConvOptions, threads: usize, seed: usize) -> &'static str {
    let mut random = Random::new(seed as u64 + 1);
    let weights = random.floats(shape.weights_len());
    let planned = Convolution::new(Isas::detect(), shape, &weights, options).expect("a right shape");
    let x = random.floats(planned.input_len());
    let before = random.floats(planned.output_len());
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
    let mut expected = before.clone();
    reference::convolution(shape, &options, &weights, &x, &mut expected, &epilogue);
    let team = Team::new(threads);
    for isas in each_isas() {
        let convolution = Convolution::new(isas, shape, &weights, options).expect("a right shape");
        let mut scratch = vec![f32::NAN; convolution.scratch_len(threads)];
        let mut found = before.clone();
        convolution.run(&team, &x, &mut found, &epilogue, &mut scratch);
        let terms = shape.taps() * shape.group_in_c();
        close(&found, &expected, terms, &|| {
            format!("{isas} {} {shape:?} {options:?} seed {seed} {epilogue:?}", convolution.kernel_name())
        });
    }
    planned.algorithm_name()
}

#[test]
fn pointwise_is_right() {
    let mut seed = 0;
    for (pixels, in_c, out_c) in
        [((1, 1), 7, 5), ((5, 7), 16, 24), ((9, 9), 3, 33), ((14, 14), 40, 64), ((3, 5), 70, 17)]
    {
        for (groups, pitch) in [(1, 0), (1, 3)] {
            seed += 1;
            let shape = ConvShape { batch: 1 + seed % 2, groups, ..shape(pixels, in_c, out_c, (1, 1)) };
            let options = ConvOptions {
                input_pitch: (pitch > 0).then_some(in_c + pitch),
                output_pitch: (pitch > 0).then_some(out_c + 2 * pitch),
                ..ConvOptions::default()
            };
            assert_eq!(check(&shape, options, 1 + seed % 3, seed), "pointwise");
        }
    }
    let grouped = ConvShape { groups: 3, ..shape((6, 7), 12, 21, (1, 1)) };
    assert_eq!(check(&grouped, ConvOptions::default(), 2, 7), "pointwise");
}

#[test]
fn indirect_is_right() {
    let mut seed = 0;
    for (size, in_c, out_c) in [((7, 7), 20, 40), ((14, 9), 24, 33), ((1, 30), 32, 16), ((5, 3), 17, 9)] {
        for (kernel, stride, pad) in
            [((3, 3), 1, 1), ((3, 3), 2, 1), ((1, 1), 2, 0), ((5, 3), 1, 2), ((1, 7), 3, 3), ((2, 2), 2, 0)]
        {
            seed += 1;
            let shape =
                ConvShape { batch: 1 + seed % 3, ..with(shape(size, in_c, out_c, kernel), stride, pad, 1) };
            assert_eq!(check(&shape, ConvOptions::default(), 1 + seed % 3, seed), "indirect", "{shape:?}");
        }
    }
}

#[test]
fn grouped_and_dilated_and_lopsided_is_right() {
    let mut seed = 100;
    for (in_c, out_c, groups) in [(24, 24, 3), (8, 16, 8), (32, 8, 4), (6, 6, 2), (40, 60, 20)] {
        for (pad_top, pad_left, pad_bottom, pad_right) in [(0, 0, 0, 0), (1, 0, 0, 2), (2, 3, 1, 0)] {
            for dilation in [1, 2] {
                seed += 1;
                let shape = ConvShape {
                    pad_top,
                    pad_left,
                    pad_bottom,
                    pad_right,
                    groups,
                    dilation_h: dilation,
                    dilation_w: 3 - dilation,
                    stride_h: 1 + seed % 2,
                    stride_w: 1 + seed % 3,
                    ..shape((9, 11), in_c, out_c, (3, 2))
                };
                check(&shape, ConvOptions::default(), 1 + seed % 2, seed);
                let pitches = ConvOptions {
                    input_pitch: Some(in_c + 5),
                    output_pitch: Some(out_c + 1),
                    ..ConvOptions::default()
                };
                check(&shape, pitches, 2, seed + 1);
            }
        }
    }
}

#[test]
fn strips_are_right_in_both_layouts() {
    let mut seed = 200;
    for in_c in [1, 3, 4, 16] {
        for (kernel, stride, pad, out_c) in [
            ((3, 3), 2, 1, 32),
            ((7, 7), 2, 3, 64),
            ((3, 3), 1, 1, 20),
            ((5, 1), 1, 2, 7),
            ((1, 5), 4, 2, 48),
            ((6, 6), 2, 2, 16),
        ] {
            for input_layout in [InputLayout::ChannelsFirst, InputLayout::ChannelsLast] {
                seed += 1;
                let mut shape = with(shape((23, 29), in_c, out_c, kernel), stride, pad, 1);
                shape.batch = 1 + seed % 2;
                if seed % 5 == 0 {
                    (shape.pad_left, shape.pad_bottom, shape.dilation_w) = (0, pad + 1, 2);
                }
                if seed % 7 == 0 {
                    (shape.dilation_h, shape.pad_top) = (2, 5);
                }
                let options = ConvOptions { input_layout, ..ConvOptions::default() };
                let name = check(&shape, options, 1 + seed % 3, seed);
                if input_layout == InputLayout::ChannelsFirst || shape.out_w() >= 8 {
                    assert_eq!(name, "strip", "{shape:?}");
                }
                if input_layout == InputLayout::ChannelsLast {
                    let pitch = ConvOptions { input_pitch: Some(in_c + 2), ..options };
                    check(&shape, pitch, 1, seed);
                }
            }
        }
    }
}

#[test]
fn depthwise_is_right() {
    let mut seed = 300;
    for channels in [1, 3, 4, 8, 12, 16, 17, 24, 32, 40, 72, 100] {
        for kernel in [(3, 3), (5, 5), (3, 5), (1, 3), (7, 7), (2, 2)] {
            for stride in [1, 2, 3] {
                for width in [5, 14, 31] {
                    seed += 1;
                    let mut shape =
                        with(shape((9, width), channels, channels, kernel), stride, kernel.1 / 2, channels);
                    shape.batch = 1 + seed % 2;
                    if seed % 6 == 0 {
                        (shape.dilation_h, shape.dilation_w) = (2, 1 + seed % 4 / 2);
                    }
                    if seed % 5 == 0 {
                        (shape.pad_top, shape.pad_right) = (0, shape.pad_right + 3);
                    }
                    if shape.out_pixels() == 0 {
                        continue;
                    }
                    let pitch = (seed % 4 == 1).then_some(channels + 3);
                    let options =
                        ConvOptions { input_pitch: pitch, output_pitch: pitch, ..ConvOptions::default() };
                    assert_eq!(check(&shape, options, 1 + seed % 3, seed), "depthwise");
                }
            }
        }
    }
}

#[test]
fn padding_beyond_the_kernel_gives_rows_of_bias() {
    for groups in [1, 6] {
        let shape = with(shape((3, 3), 6, 6, (3, 3)), 1, 4, groups);
        check(&shape, ConvOptions::default(), 1, 3);
        check(&shape, ConvOptions::default(), 2, 11);
    }
    let first = ConvOptions { input_layout: InputLayout::ChannelsFirst, ..ConvOptions::default() };
    check(&with(shape((3, 3), 6, 6, (3, 3)), 1, 4, 1), first, 1, 7);
}

#[test]
fn another_size_uses_the_same_weights() {
    let mut random = Random::new(5);
    for (small, large) in [
        (with(shape((9, 9), 20, 12, (3, 3)), 1, 1, 1), with(shape((12, 31), 20, 12, (3, 3)), 1, 1, 1)),
        (with(shape((9, 9), 24, 24, (3, 3)), 2, 1, 24), with(shape((40, 8), 24, 24, (3, 3)), 2, 1, 24)),
        (with(shape((9, 9), 3, 24, (3, 3)), 2, 1, 1), with(shape((40, 8), 3, 24, (3, 3)), 2, 1, 1)),
        (shape((4, 4), 3, 24, (1, 1)), ConvShape { batch: 4, ..shape((5, 5), 3, 24, (1, 1)) }),
    ] {
        let weights = random.floats(small.weights_len());
        let options = ConvOptions::default();
        let first = Convolution::new(Isas::detect(), &small, &weights, options).expect("a right shape");
        let second = first.replan(&large).expect("the same convolution");
        assert!(std::sync::Arc::ptr_eq(first.packed(), second.packed()));
        let x = random.floats(second.input_len());
        let (mut found, mut expected) = (vec![0.0; second.output_len()], vec![0.0; second.output_len()]);
        let mut scratch = vec![f32::NAN; second.scratch_len(1)];
        second.run(&Team::single(), &x, &mut found, &Epilogue::default(), &mut scratch);
        reference::convolution(&large, &options, &weights, &x, &mut expected, &Epilogue::default());
        close(&found, &expected, 200, &|| format!("{large:?}"));
        let other =
            ConvShape { out_c: large.out_c * 2, in_c: large.in_c * 2, groups: large.groups * 2, ..large };
        assert_eq!(first.replan(&other).expect_err("another convolution"), ConvError::OtherWeights);
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let good = shape((8, 8), 6, 4, (3, 3));
    let error = |shape: ConvShape, options: ConvOptions| {
        let weights = vec![0.0; if shape.groups == 0 { 0 } else { good.weights_len() }];
        Convolution::new(Isas::detect(), &shape, &weights, options).expect_err("a wrong shape")
    };
    let plain = ConvOptions::default();
    assert_eq!(error(ConvShape { groups: 0, ..good }, plain), ConvError::Zero { what: "groups" });
    assert_eq!(
        error(ConvShape { stride_w: 0, ..good }, plain),
        ConvError::Zero { what: "horizontal stride" }
    );
    assert_eq!(
        error(ConvShape { groups: 3, ..good }, plain),
        ConvError::Groups { groups: 3, in_c: 6, out_c: 4 }
    );
    assert_eq!(error(ConvShape { in_h: usize::MAX / 2, ..good }, plain), ConvError::TooLarge);
    assert_eq!(
        error(ConvShape { kernel_w: 1, ..good }, plain),
        ConvError::Weights { expected: 72, found: 216 }
    );
    let pitch = ConvOptions { output_pitch: Some(3), ..plain };
    assert_eq!(error(good, pitch), ConvError::Pitch { channels: 4, pitch: 3 });
    let first = ConvOptions { input_layout: InputLayout::ChannelsFirst, ..plain };
    assert_eq!(error(ConvShape { in_c: 64, ..good }, first), ConvError::ChannelsFirst { most: 16 });
    assert_eq!(error(ConvShape { groups: 2, ..good }, first), ConvError::ChannelsFirst { most: 16 });
    assert_eq!(Algorithm::choose(&good, &first), Ok(Algorithm::Strip));
    let empty = Convolution::new(Isas::detect(), &shape((2, 2), 6, 4, (3, 3)), &[0.0; 216], plain)
        .expect("no pixels");
    assert_eq!(empty.output_len(), 0);
    empty.run(
        &Team::single(),
        &[0.0; 24],
        &mut [],
        &Epilogue::default(),
        &mut vec![0.0; empty.scratch_len(1)],
    );
}

#[test]
fn results_do_not_depend_on_the_team() {
    let mut random = Random::new(8);
    for shape in [
        with(shape((20, 20), 32, 70, (3, 3)), 1, 1, 1),
        with(shape((20, 20), 36, 36, (3, 3)), 1, 1, 36),
        with(shape((40, 40), 3, 36, (3, 3)), 2, 1, 1),
        with(shape((20, 20), 36, 72, (3, 3)), 2, 1, 6),
    ] {
        let weights = random.floats(shape.weights_len());
        let convolution = Convolution::new(Isas::detect(), &shape, &weights, ConvOptions::default())
            .expect("a right shape");
        let x = random.floats(convolution.input_len());
        let run = |threads| {
            let mut y = vec![0.0; convolution.output_len()];
            let mut scratch = vec![f32::NAN; convolution.scratch_len(threads)];
            convolution.run(&Team::new(threads), &x, &mut y, &Epilogue::default(), &mut scratch);
            y
        };
        assert_eq!(run(1), run(4), "{shape:?}");
    }
}
