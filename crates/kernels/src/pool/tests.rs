use proptest::prelude::{prop_assert, proptest};

use super::Pool2d;
use crate::dispatch::variants;
use crate::layout::ChannelOrder;
use crate::threads::Team;

/// One window, by the definition: its elements, and how many places of it lie in the padded picture.
fn window(pool: &Pool2d, x: &[f32], n: usize, c: usize, out: (usize, usize)) -> (Vec<f32>, usize) {
    let (mut elements, mut places) = (Vec::new(), 0);
    for ky in 0..pool.kernel_h {
        for kx in 0..pool.kernel_w {
            let iy = (out.0 * pool.stride_h + ky * pool.dilation_h) as isize - pool.pad_top as isize;
            let ix = (out.1 * pool.stride_w + kx * pool.dilation_w) as isize - pool.pad_left as isize;
            let (h, w) = (pool.in_h as isize, pool.in_w as isize);
            if iy < h + pool.pad_bottom as isize && ix < w + pool.pad_right as isize {
                places += 1;
            }
            if (0..h).contains(&iy) && (0..w).contains(&ix) {
                let (iy, ix) = (iy as usize, ix as usize);
                elements.push(match pool.order {
                    ChannelOrder::First => x[((n * pool.channels + c) * pool.in_h + iy) * pool.in_w + ix],
                    ChannelOrder::Last => x[((n * pool.in_h + iy) * pool.in_w + ix) * pool.channels + c],
                });
            }
        }
    }
    (elements, places)
}

fn output_size(
    input: usize,
    before: usize,
    after: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    ceil: bool,
) -> usize {
    let reach = dilation * (kernel - 1) + 1;
    let free = (input + before + after).saturating_sub(reach);
    if ceil { free.div_ceil(stride) + 1 } else { free / stride + 1 }
}

proptest! {
    #[test]
    fn pools_equal_their_definition(
        (batch, channels, in_h, in_w) in (1_usize..3, 1_usize..70, 1_usize..10, 1_usize..12),
        (kernel_h, kernel_w, stride_h, stride_w) in (1_usize..4, 1_usize..5, 1_usize..4, 1_usize..4),
        (dilation_h, dilation_w) in (1_usize..3, 1_usize..3),
        (pad_top, pad_left, pad_bottom, pad_right) in (0_usize..3, 0_usize..3, 0_usize..3, 0_usize..3),
        ceil: bool, first: bool, count_include_pad: bool,
    ) {
        let out_h = output_size(in_h, pad_top, pad_bottom, kernel_h, stride_h, dilation_h, ceil);
        let out_w = output_size(in_w, pad_left, pad_right, kernel_w, stride_w, dilation_w, ceil);
        let pool = Pool2d {
            batch, channels, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w,
            pad_top, pad_left, pad_bottom, pad_right,
            order: if first { ChannelOrder::First } else { ChannelOrder::Last },
        };
        let x: Vec<f32> =
            (0..batch * channels * in_h * in_w).map(|index| ((index * 7919) % 401) as f32 / 10.0 - 20.0).collect();
        let bytes: Vec<u8> = x.iter().map(|&x| (x + 100.0) as u8).collect();
        let mut largest = vec![0.0; batch * channels * out_h * out_w];
        let mut largest_bytes = vec![0; largest.len()];
        let mut average = largest.clone();
        for isas in variants() {
            let team = Team::new(2);
            pool.max(isas, &team, f32::NEG_INFINITY, &x, &mut largest);
            pool.max(isas, &team, 0, &bytes, &mut largest_bytes);
            pool.average(isas, &team, count_include_pad, &x, &mut average);
            for index in 0..largest.len() {
                let (n, c, oy, ox) = match pool.order {
                    ChannelOrder::First => {
                        let plane = index / (out_h * out_w);
                        (plane / channels, plane % channels, index / out_w % out_h, index % out_w)
                    }
                    ChannelOrder::Last => {
                        let place = index / channels;
                        (place / (out_h * out_w), index % channels, place / out_w % out_h, place % out_w)
                    }
                };
                let (elements, places) = window(&pool, &x, n, c, (oy, ox));
                let expected = elements.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                prop_assert!(largest[index] == expected);
                prop_assert!(elements.is_empty() || largest_bytes[index] == (expected + 100.0) as u8);
                let count = if count_include_pad { places } else { elements.len() };
                let expected = elements.iter().sum::<f32>() / count as f32;
                let is_close = (average[index] - expected).abs() < 1e-4 || (average[index].is_nan() && expected.is_nan());
                prop_assert!(is_close, "{} and {expected} at {n} {c} {oy} {ox}", average[index]);
            }
        }
    }
}
