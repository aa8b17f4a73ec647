//! Maximum and average over windows of pictures, channels first or last.
//!
//! The caller states the output's size, so that every rounding of ONNX and TFLite is expressible; windows may reach beyond
//! the picture on all sides. Elements outside of the picture never win a maximum and add nothing to an average; whether they
//! count in its divisor is the caller's choice. Pooling over whole pictures is a [reduction](crate::reduce).

#![expect(unsafe_code, reason = "rows of the output are handed to tasks")]

mod indices;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::dispatch::{Loop, dispatch};
use crate::elementwise::Number;
use crate::isa::Isas;
use crate::layout::ChannelOrder;
use crate::threads::{DisjointMut, Team};

/// Elements read worth a task of their own.
const GRAIN: usize = 16 * 1024;
/// Channels done together where they are innermost.
const LANES: usize = 32;

/// Windows over pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Pool2d {
    pub batch: usize,
    pub channels: usize,
    pub in_h: usize,
    pub in_w: usize,
    pub out_h: usize,
    pub out_w: usize,
    pub kernel_h: usize,
    pub kernel_w: usize,
    pub stride_h: usize,
    pub stride_w: usize,
    pub dilation_h: usize,
    pub dilation_w: usize,
    pub pad_top: usize,
    pub pad_left: usize,
    pub pad_bottom: usize,
    pub pad_right: usize,
    pub order: ChannelOrder,
}

/// The windows along one axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    before: usize,
    after: usize,
}

impl Axis {
    /// The taps of window `output` that lie inside of the picture.
    #[inline]
    fn taps(self, output: usize) -> Range<usize> {
        self.taps_between(output, self.before, self.before + self.input)
    }

    /// How many taps of window `output` lie inside of the padded picture.
    fn padded_count(self, output: usize) -> usize {
        self.taps_between(output, 0, self.before + self.input + self.after).len()
    }

    /// The taps in `low..high`, counted from the begin of the padding.
    #[inline]
    fn taps_between(self, output: usize, low: usize, high: usize) -> Range<usize> {
        let start = output * self.stride;
        let first = low.saturating_sub(start).div_ceil(self.dilation).min(self.kernel);
        let end = high.saturating_sub(start).div_ceil(self.dilation).min(self.kernel);
        first..end.max(first)
    }

    /// The input index of a tap that lies inside of the picture.
    #[inline]
    fn index(self, output: usize, tap: usize) -> usize {
        output * self.stride + tap * self.dilation - self.before
    }

    /// The taps that lie inside of the picture in any of this many windows; a window can be much longer than the picture.
    fn taps_of_all(self, outputs: usize) -> Range<usize> {
        self.taps(outputs.saturating_sub(1)).start..self.taps(0).end
    }

    /// The windows whose tap `tap` lies inside of the picture.
    fn windows(self, tap: usize, outputs: usize) -> Range<usize> {
        let place = tap * self.dilation;
        let first = self.before.saturating_sub(place).div_ceil(self.stride);
        let end = (self.before + self.input).saturating_sub(place).div_ceil(self.stride).min(outputs);
        first.min(end)..end
    }
}

/// How a window's elements become one.
trait Window<T>: Copy + Sync {
    fn neutral(self) -> T;
    fn join(self, a: T, b: T) -> T;
    fn finish(self, value: T, y: usize, x: usize) -> T;
}

#[derive(Clone, Copy)]
struct Largest<T>(T);

impl<T: Number> Window<T> for Largest<T> {
    #[inline(always)]
    fn neutral(self) -> T {
        self.0
    }
    #[inline(always)]
    fn join(self, a: T, b: T) -> T {
        a.maximum(b)
    }
    #[inline(always)]
    fn finish(self, value: T, _: usize, _: usize) -> T {
        value
    }
}

#[derive(Clone, Copy)]
struct Average {
    vertical: Axis,
    horizontal: Axis,
    count_include_pad: bool,
}

impl Window<f32> for Average {
    #[inline(always)]
    fn neutral(self) -> f32 {
        0.0
    }
    #[inline(always)]
    fn join(self, a: f32, b: f32) -> f32 {
        a + b
    }
    #[inline(always)]
    fn finish(self, sum: f32, y: usize, x: usize) -> f32 {
        let count = if self.count_include_pad {
            self.vertical.padded_count(y) * self.horizontal.padded_count(x)
        } else {
            self.vertical.taps(y).len() * self.horizontal.taps(x).len()
        };
        sum / count as f32
    }
}

impl Pool2d {
    fn vertical(&self) -> Axis {
        Axis {
            input: self.in_h,
            kernel: self.kernel_h,
            stride: self.stride_h,
            dilation: self.dilation_h,
            before: self.pad_top,
            after: self.pad_bottom,
        }
    }

    fn horizontal(&self) -> Axis {
        Axis {
            input: self.in_w,
            kernel: self.kernel_w,
            stride: self.stride_w,
            dilation: self.dilation_w,
            before: self.pad_left,
            after: self.pad_right,
        }
    }

    /// The largest element of each window; `lowest` where a window holds none.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply, or a stride or dilation is zero.
    pub fn max<T: Number>(&self, isas: Isas, team: &Team, lowest: T, x: &[T], y: &mut [T]) {
        self.run(isas, team, Largest(lowest), x, y);
    }

    /// The mean of each window; NaN where a window holds nothing that counts.
    ///
    /// # Panics
    /// As [`Pool2d::max`].
    pub fn average(&self, isas: Isas, team: &Team, count_include_pad: bool, x: &[f32], y: &mut [f32]) {
        let (vertical, horizontal) = (self.vertical(), self.horizontal());
        self.run(isas, team, Average { vertical, horizontal, count_include_pad }, x, y);
    }

    fn run<T: Number, W: Window<T>>(&self, isas: Isas, team: &Team, window: W, x: &[T], y: &mut [T]) {
        let plane = self.in_h * self.in_w;
        assert_eq!(
            x.len(),
            self.batch * self.channels * plane,
            "the input's length differs from its shape's"
        );
        assert_eq!(
            y.len(),
            self.batch * self.channels * self.out_h * self.out_w,
            "the output's length differs from its shape's"
        );
        let steps = [self.stride_h, self.stride_w, self.dilation_h, self.dilation_w];
        assert!(steps.iter().all(|&step| step > 0), "a stride or dilation is zero");
        if y.is_empty() {
            return;
        }
        // A row of output, and the picture that it is taken from.
        let (row, rows, picture) = match self.order {
            ChannelOrder::First => (self.out_w, self.batch * self.channels * self.out_h, plane),
            ChannelOrder::Last => {
                (self.out_w * self.channels, self.batch * self.out_h, plane * self.channels)
            }
        };
        let output = DisjointMut::new(y);
        let grain = GRAIN.div_ceil(row.saturating_mul(self.kernel_h).saturating_mul(self.kernel_w).max(1));
        team.parallel_ranges(rows, grain, 1, &|start, end| {
            for index in start..end {
                // SAFETY: every row is written by the one task that has its index.
                let y = unsafe { output.slice_mut(index * row, row) };
                let (item, line) = (index / self.out_h, index % self.out_h);
                let x = &x[item * picture..(item + 1) * picture];
                match self.order {
                    ChannelOrder::First => dispatch(isas, ChannelsFirst { pool: self, window, line, x, y }),
                    ChannelOrder::Last => dispatch(isas, ChannelsLast { pool: self, window, line, x, y }),
                }
            }
        });
    }
}

/// One row of outputs, each of all channels.
struct ChannelsLast<'a, T, W> {
    pool: &'a Pool2d,
    window: W,
    line: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Number, W: Window<T>> Loop for ChannelsLast<'_, T, W> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { pool, window, line, x, y } = self;
        let (vertical, horizontal, channels) = (pool.vertical(), pool.horizontal(), pool.channels);
        let rows = vertical.taps(line);
        for (place, y) in y.chunks_exact_mut(channels).enumerate() {
            let columns = horizontal.taps(place);
            let (blocks, rest) = y.as_chunks_mut::<LANES>();
            let first_of_rest = blocks.len() * LANES;
            for (block, y) in blocks.iter_mut().enumerate() {
                let mut lanes = [window.neutral(); LANES];
                for row in rows.clone() {
                    let from = vertical.index(line, row) * pool.in_w * channels + block * LANES;
                    for column in columns.clone() {
                        let from = from + horizontal.index(place, column) * channels;
                        if let Some(x) = x[from..].first_chunk::<LANES>() {
                            for lane in 0..LANES {
                                lanes[lane] = window.join(lanes[lane], x[lane]);
                            }
                        }
                    }
                }
                for lane in 0..LANES {
                    y[lane] = window.finish(lanes[lane], line, place);
                }
            }
            rest.fill(window.neutral());
            for row in rows.clone() {
                let from = vertical.index(line, row) * pool.in_w * channels + first_of_rest;
                for column in columns.clone() {
                    let x = &x[from + horizontal.index(place, column) * channels..][..rest.len()];
                    rest.iter_mut().zip(x).for_each(|(y, &x)| *y = window.join(*y, x));
                }
            }
            for y in rest {
                *y = window.finish(*y, line, place);
            }
        }
    }
}

/// One row of outputs of one channel.
struct ChannelsFirst<'a, T, W> {
    pool: &'a Pool2d,
    window: W,
    line: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Number, W: Window<T>> Loop for ChannelsFirst<'_, T, W> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { pool, window, line, x, y } = self;
        let (vertical, horizontal) = (pool.vertical(), pool.horizontal());
        y.fill(window.neutral());
        for row in vertical.taps(line) {
            let x = &x[vertical.index(line, row) * pool.in_w..][..pool.in_w];
            for tap in horizontal.taps_of_all(pool.out_w) {
                let places = horizontal.windows(tap, pool.out_w);
                if places.is_empty() {
                    continue;
                }
                let x = &x[horizontal.index(places.start, tap)..];
                let y = &mut y[places];
                match pool.stride_w {
                    1 => y.iter_mut().zip(x).for_each(|(y, &x)| *y = window.join(*y, x)),
                    2 => y.iter_mut().zip(x.chunks(2)).for_each(|(y, x)| *y = window.join(*y, x[0])),
                    stride => {
                        y.iter_mut().zip(x.chunks(stride)).for_each(|(y, x)| *y = window.join(*y, x[0]));
                    }
                }
            }
        }
        for (place, y) in y.iter_mut().enumerate() {
            *y = window.finish(*y, line, place);
        }
    }
}
