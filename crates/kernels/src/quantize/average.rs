//! Averages of quantised bytes: over whole pictures and over windows.

#![expect(unsafe_code, reason = "parts of the output are handed to tasks")]

use super::{Quantized, QuantizedOperand, round_to};
use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::layout::ChannelOrder;
use crate::threads::{DisjointMut, Team};

/// Channels summed together where they are innermost.
const COLUMNS: usize = 64;

/// The mean of each channel of each picture: onnxruntime's `QLinearGlobalAveragePool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalAverage {
    /// Pictures.
    pub batch: usize,
    /// Channels of each.
    pub channels: usize,
    /// Elements of each channel.
    pub spatial: usize,
    /// Where channels are in memory.
    pub order: ChannelOrder,
}

impl GlobalAverage {
    /// Writes one element per channel of each picture.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply, or a channel has more than eight million elements.
    pub fn run<T: Quantized>(
        &self,
        isas: Isas,
        team: &Team,
        (x, x_kind): (&[T], QuantizedOperand<T>),
        (y, y_kind): (&mut [T], QuantizedOperand<T>),
    ) {
        const { assert!(size_of::<T>() == 1, "sums of bytes fit 32 bits") };
        let Self { batch, channels, spatial, order } = *self;
        assert_eq!(x.len(), batch * channels * spatial, "the input's length differs from its shape's");
        assert_eq!(y.len(), batch * channels, "the output's length differs from its shape's");
        assert!(spatial <= 1 << 23, "sums of so many bytes might not fit 32 bits");
        let mean = |sum: i32| pooled_average(sum, spatial, x_kind, y_kind);
        let output = DisjointMut::new(y);
        match order {
            ChannelOrder::First => {
                team.parallel_ranges(
                    batch * channels,
                    (32 * 1024_usize).div_ceil(spatial.max(1)),
                    1,
                    &|start, end| {
                        for channel in start..end {
                            let sum = dispatch(isas, Sum(&x[channel * spatial..(channel + 1) * spatial]));
                            // SAFETY: every output is written by the one task that has its index.
                            let y = unsafe { output.slice_mut(channel, 1) };
                            y.fill(mean(sum));
                        }
                    },
                );
            }
            ChannelOrder::Last => {
                let blocks = channels.div_ceil(COLUMNS);
                let grain = (32 * 1024_usize).div_ceil(COLUMNS.min(channels.max(1)) * spatial.max(1));
                team.parallel_ranges(batch * blocks, grain, 1, &|start, end| {
                    for item in start..end {
                        let (picture, column) = (item / blocks, item % blocks * COLUMNS);
                        let count = COLUMNS.min(channels - column);
                        let mut sums = [0; COLUMNS];
                        let x = &x[picture * spatial * channels..(picture + 1) * spatial * channels];
                        dispatch(isas, SumColumns { x, channels, column, sums: &mut sums[..count] });
                        // SAFETY: every output is written by the one task that has its block.
                        let y = unsafe { output.slice_mut(picture * channels + column, count) };
                        y.iter_mut().zip(&sums).for_each(|(y, &sum)| *y = mean(sum));
                    }
                });
            }
        }
    }
}

/// The quantised mean of `count` bytes of which the sum is known.
pub fn pooled_average<T: Quantized>(
    sum: i32,
    count: usize,
    x: QuantizedOperand<T>,
    y: QuantizedOperand<T>,
) -> T {
    let sum = sum - x.zero_point.wide() * count as i32;
    round_to(sum as f32 * (x.scale / (y.scale * count as f32)), y.zero_point.wide())
}

struct Sum<'a, T>(&'a [T]);

impl<T: Quantized> Loop for Sum<'_, T> {
    type Output = i32;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> i32 {
        self.0.iter().fold(0_i32, |sum, x| sum.wrapping_add(x.wide()))
    }
}

struct SumColumns<'a, T> {
    x: &'a [T],
    channels: usize,
    column: usize,
    sums: &'a mut [i32],
}

impl<T: Quantized> Loop for SumColumns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for row in self.x.chunks_exact(self.channels) {
            for (sum, x) in self.sums.iter_mut().zip(&row[self.column..]) {
                *sum = sum.wrapping_add(x.wide());
            }
        }
    }
}
