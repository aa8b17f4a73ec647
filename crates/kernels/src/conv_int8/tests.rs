use std::sync::Arc;

use proptest::prelude::{prop_assume, proptest};

use super::{ConvInt8, ConvInt8Error, ConvInt8Options};
use crate::conv::{ConvError, ConvShape};
use crate::dispatch::variants;
use crate::gemm_int8::tests::{bytes, quantized, signed};
use crate::gemm_int8::{Int8Epilogue, Int8Error, Int8Output, Int8Slice, Stage};
use crate::isa::Isas;
use crate::threads::Team;

/// All sums, by the definition, of pixels that lie `pitch` bytes apart.
fn sums(
    shape: &ConvShape,
    x: impl Fn(usize) -> i32,
    pitch: usize,
    weight: impl Fn(usize) -> i32,
    zeros: (i32, impl Fn(usize) -> i32),
) -> Vec<i32> {
    let mut sums = Vec::new();
    for n in 0..shape.batch {
        for oy in 0..shape.out_h() {
            for ox in 0..shape.out_w() {
                for oc in 0..shape.out_c {
                    let mut sum = 0;
                    for ic in 0..shape.group_in_c() {
                        let channel = oc / shape.group_out_c() * shape.group_in_c() + ic;
                        for ky in 0..shape.kernel_h {
                            for kx in 0..shape.kernel_w {
                                let iy =
                                    (oy * shape.stride_h + ky * shape.dilation_h).wrapping_sub(shape.pad_top);
                                let ix = (ox * shape.stride_w + kx * shape.dilation_w)
                                    .wrapping_sub(shape.pad_left);
                                if iy < shape.in_h && ix < shape.in_w {
                                    let pixel = (n * shape.in_h + iy) * shape.in_w + ix;
                                    let at = ((oc * shape.group_in_c() + ic) * shape.kernel_h + ky)
                                        * shape.kernel_w
                                        + kx;
                                    sum +=
                                        (x(pixel * pitch + channel) - zeros.0) * (weight(at) - zeros.1(oc));
                                }
                            }
                        }
                    }
                    sums.push(sum);
                }
            }
        }
    }
    sums
}

fn check(
    shape: &ConvShape,
    is_x_signed: bool,
    are_weights_signed: bool,
    weight_zeros: &[i32],
    gap: usize,
    isas: Isas,
) {
    let team = Team::new(2);
    let (in_pitch, out_pitch) = (shape.in_c + gap, shape.out_c + gap);
    let (x, weights) = (bytes(shape.in_pixels() * in_pitch, 1), bytes(shape.weights_len(), 2));
    let (x_i8, weights_i8) = (signed(&x), signed(&weights));
    let x_zero = if is_x_signed { -9 } else { 117 };
    let value = |bytes: &[u8], is_signed: bool, at: usize| {
        if is_signed { i32::from(bytes[at] as i8) } else { i32::from(bytes[at]) }
    };
    let weight_zero = |channel: usize| match weight_zeros {
        [] => 0,
        [one] => *one,
        all => all[channel],
    };
    let expected = sums(
        shape,
        |at| value(&x, is_x_signed, at),
        in_pitch,
        |at| value(&weights, are_weights_signed, at),
        (x_zero, weight_zero),
    );
    let weights = if are_weights_signed { Int8Slice::I8(&weights_i8) } else { Int8Slice::U8(&weights) };
    let options = ConvInt8Options {
        is_input_signed: is_x_signed,
        input_pitch: Some(in_pitch),
        output_pitch: Some(out_pitch),
    };
    let conv = ConvInt8::new(isas, shape, weights, weight_zeros, options).unwrap();
    let what = format!("{shape:?} {is_x_signed} {are_weights_signed} on {isas} ({})", conv.packed().kernel());
    let x = if is_x_signed { Int8Slice::I8(&x_i8) } else { Int8Slice::U8(&x) };
    let mut scratch = vec![0x55; conv.scratch_length()];
    let pixels = shape.out_pixels();

    let mut y = vec![77; pixels * out_pitch];
    let raw = Int8Epilogue { bias: &[], stage: Stage::Raw };
    conv.run(&team, (x, x_zero), &raw, Int8Output::I32(&mut y), &mut scratch);
    for (pixel, y) in y.chunks(out_pitch).enumerate() {
        assert_eq!(
            &y[..shape.out_c],
            &expected[pixel * shape.out_c..(pixel + 1) * shape.out_c],
            "{what}, pixel {pixel}"
        );
        assert!(y[shape.out_c..].iter().all(|&y| y == 77), "{what} wrote between pixels");
    }
    let bias: Vec<i32> = (0..shape.out_c as i32).map(|channel| channel * 11 - 30).collect();
    let multiplier: Vec<f32> = (0..shape.out_c).map(|channel| 0.003 + channel as f32 * 1e-5).collect();
    let stage = Stage::Quantized { multiplier: &multiplier, zero_point: 100, min: 0, max: 240 };
    let mut y = vec![0_u8; pixels * out_pitch];
    conv.run(&team, (x, x_zero), &Int8Epilogue { bias: &bias, stage }, Int8Output::U8(&mut y), &mut scratch);
    for pixel in 0..pixels {
        for channel in 0..shape.out_c {
            let sum = expected[pixel * shape.out_c + channel] + bias[channel];
            let expected = quantized(sum, multiplier[channel], 100, 0, 240);
            assert_eq!(
                i32::from(y[pixel * out_pitch + channel]),
                expected,
                "{what}, pixel {pixel}, channel {channel}"
            );
        }
    }
}

fn shape(
    size: (usize, usize),
    in_c: usize,
    out_c: usize,
    kernel: usize,
    stride: usize,
    pad: usize,
    groups: usize,
) -> ConvShape {
    ConvShape {
        stride_h: stride,
        stride_w: stride,
        pad_top: pad,
        pad_left: pad,
        pad_bottom: pad,
        pad_right: pad,
        groups,
        ..ConvShape::new(size, in_c, out_c, (kernel, kernel))
    }
}

#[test]
fn convolutions_equal_their_definition_on_all_instruction_sets() {
    let shapes = [
        shape((7, 9), 16, 40, 1, 1, 0, 1),
        shape((8, 8), 20, 33, 1, 2, 0, 1),
        shape((7, 7), 24, 32, 3, 1, 1, 1),
        shape((12, 15), 3, 16, 3, 2, 1, 1),
        shape((20, 21), 3, 17, 7, 2, 3, 1),
        shape((9, 9), 13, 6, 3, 1, 0, 1),
        shape((6, 7), 24, 36, 3, 1, 1, 4),
        ConvShape { dilation_h: 2, dilation_w: 2, ..shape((11, 10), 5, 8, 3, 1, 2, 1) },
        ConvShape { batch: 3, ..shape((5, 4), 8, 9, 3, 1, 1, 1) },
        shape((9, 30), 70, 70, 3, 1, 1, 70),
        shape((11, 8), 130, 130, 3, 2, 1, 130),
        shape((9, 9), 24, 24, 5, 1, 2, 24),
        ConvShape { batch: 2, dilation_h: 2, dilation_w: 3, ..shape((14, 15), 33, 33, 3, 1, 2, 33) },
        shape((6, 6), 4, 8, 3, 1, 1, 4),
    ];
    for isas in variants() {
        for shape in &shapes {
            for (is_x_signed, are_weights_signed) in
                [(false, true), (true, true), (false, false), (true, false)]
            {
                let zeros: Vec<i32> = (0..shape.out_c as i32).map(|channel| channel % 5 - 2).collect();
                check(shape, is_x_signed, are_weights_signed, &[], 0, isas);
                check(shape, is_x_signed, are_weights_signed, &zeros, 3, isas);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_shape(
        size in (1_usize..12, 1_usize..12), in_c in 1_usize..20, out_c in 1_usize..20,
        kernel_h in 1_usize..4, kernel_w in 1_usize..4, stride in 1_usize..3, dilation in 1_usize..3, pad in 0_usize..3,
        is_depthwise: bool, is_x_signed: bool, are_weights_signed: bool, gap in 0_usize..3,
    ) {
        let (out_c, groups) = if is_depthwise { (in_c, in_c) } else { (out_c, 1) };
        let shape = ConvShape {
            kernel_h, kernel_w, stride_h: stride, dilation_w: dilation, pad_left: pad, pad_bottom: pad, groups,
            ..ConvShape::new(size, in_c, out_c, (1, 1))
        };
        prop_assume!(shape.out_pixels() > 0);
        for isas in variants() {
            check(&shape, is_x_signed, are_weights_signed, &[if are_weights_signed { 0 } else { 128 }], gap, isas);
        }
    }
}

#[test]
fn weights_serve_other_sizes() {
    let first = shape((6, 6), 8, 8, 3, 1, 1, 1);
    let weights = signed(&bytes(first.weights_len(), 3));
    let conv =
        ConvInt8::new(Isas::detect(), &first, Int8Slice::I8(&weights), &[], ConvInt8Options::default())
            .unwrap();
    let second = ConvShape { batch: 2, in_h: 9, ..first };
    let again =
        ConvInt8::from_packed(Arc::clone(conv.packed()), &second, ConvInt8Options::default()).unwrap();
    let whole =
        ConvInt8::new(Isas::detect(), &second, Int8Slice::I8(&weights), &[], ConvInt8Options::default())
            .unwrap();
    let x = bytes(second.in_pixels() * 8, 4);
    let raw = Int8Epilogue { bias: &[], stage: Stage::Raw };
    let results = [again, whole].map(|conv| {
        let mut y = vec![0; second.out_pixels() * 8];
        let mut scratch = vec![0; conv.scratch_length()];
        conv.run(&Team::single(), (Int8Slice::U8(&x), 4), &raw, Int8Output::I32(&mut y), &mut scratch);
        y
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn what_is_not_a_convolution_is_refused() {
    let good = shape((6, 6), 8, 8, 3, 1, 1, 1);
    let weights = signed(&bytes(good.weights_len(), 3));
    let plan = |shape: &ConvShape, weights: &[i8], zeros: &[i32], options| {
        ConvInt8::new(Isas::detect(), shape, Int8Slice::I8(weights), zeros, options).err()
    };
    let options = ConvInt8Options::default();
    let short = plan(&good, &weights[1..], &[], options);
    assert!(matches!(short, Some(ConvInt8Error::Weights(Int8Error::Length { expected: 576, found: 575 }))));
    let zeros = plan(&good, &weights, &[1, 2], options);
    assert!(matches!(zeros, Some(ConvInt8Error::Weights(Int8Error::ZeroPoints { columns: 8, found: 2 }))));
    let grouped = plan(&ConvShape { groups: 3, ..good }, &weights, &[], options);
    assert!(matches!(grouped, Some(ConvInt8Error::Shape(ConvError::Groups { .. }))));
    let narrow = plan(&good, &weights, &[], ConvInt8Options { output_pitch: Some(7), ..options });
    assert!(matches!(narrow, Some(ConvInt8Error::Shape(ConvError::Pitch { channels: 8, pitch: 7 }))));
    let conv = ConvInt8::new(Isas::detect(), &good, Int8Slice::I8(&weights), &[], options).unwrap();
    let other = ConvInt8::from_packed(Arc::clone(conv.packed()), &ConvShape { out_c: 9, ..good }, options);
    assert_eq!(other.err(), Some(ConvInt8Error::Shape(ConvError::OtherWeights)));
}
