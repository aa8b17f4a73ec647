//! Convolutions in obvious loops, in `f64`.

use super::shape::{ConvOptions, ConvShape, InputLayout};
use crate::epilogue::Epilogue;
use crate::gemm::reference::finish;

/// The convolution of `x` with `weights` (output channel, input channel of the group, row, column), finished, into `y`.
pub(crate) fn convolution(
    shape: &ConvShape,
    options: &ConvOptions,
    weights: &[f32],
    x: &[f32],
    y: &mut [f32],
    epilogue: &Epilogue<'_>,
) {
    let in_pitch = options.input_pitch.unwrap_or(shape.in_c);
    let out_pitch = options.output_pitch.unwrap_or(shape.out_c);
    let (in_c, out_c) = (shape.in_c / shape.groups, shape.out_c / shape.groups);
    for image in 0..shape.batch {
        for oy in 0..shape.out_h() {
            for ox in 0..shape.out_w() {
                let pixel = (image * shape.out_h() + oy) * shape.out_w() + ox;
                for channel in 0..shape.out_c {
                    let first = channel / out_c * in_c;
                    let mut sum = 0.0;
                    for ky in 0..shape.kernel_h {
                        for kx in 0..shape.kernel_w {
                            let iy =
                                (oy * shape.stride_h + ky * shape.dilation_h).wrapping_sub(shape.pad_top);
                            let ix =
                                (ox * shape.stride_w + kx * shape.dilation_w).wrapping_sub(shape.pad_left);
                            if iy >= shape.in_h || ix >= shape.in_w {
                                continue;
                            }
                            for c in 0..in_c {
                                let at = match options.input_layout {
                                    InputLayout::ChannelsLast => {
                                        ((image * shape.in_h + iy) * shape.in_w + ix) * in_pitch + first + c
                                    }
                                    InputLayout::ChannelsFirst => {
                                        ((image * shape.in_c + first + c) * shape.in_h + iy) * shape.in_w + ix
                                    }
                                };
                                let weight =
                                    ((channel * in_c + c) * shape.kernel_h + ky) * shape.kernel_w + kx;
                                sum += f64::from(x[at]) * f64::from(weights[weight]);
                            }
                        }
                    }
                    let to = &mut y[pixel * out_pitch + channel];
                    *to = finish(epilogue, sum, pixel, channel, *to) as f32;
                }
            }
        }
    }
}
