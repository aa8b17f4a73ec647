//! Normalisation by mean and variance, or by root mean square, with a scale and a bias.
//!
//! * [`layer_norm`] and [`rms_norm`]: over contiguous rows, scale and bias per element of a row;
//! * [`GroupNorm`]: over the spatial elements of groups of channels (one channel per group is instance normalisation), scale
//!   and bias per channel, for channels first and channels last;
//! * [`scale_shift`]: a scale and a shift per channel, which is batch normalisation in inference.
//!
//! Means and variances are taken in two passes, so a large mean does not cancel the variance.

#![expect(unsafe_code, reason = "parts of the output are handed to tasks")]

#[cfg(test)]
mod tests;

use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::isa::Isas;
use crate::lanes::{self, Sum, SumOfSquares};
use crate::layout::ChannelOrder;
use crate::threads::{DisjointMut, Team};

/// Elements worth a task of their own.
const GRAIN: usize = 8 * 1024;
/// Channels done together where they are innermost.
const COLUMNS: usize = 64;
/// Rows added in single precision before the sum moves to double precision.
const STRETCH: usize = 64;

/// `y = (x - mean) / sqrt(variance + epsilon) * scale + bias` for each row of `scale.len()` elements.
///
/// # Panics
/// When `x` is not rows of that length, or another slice differs in length.
pub fn layer_norm(
    isas: Isas,
    team: &Team,
    x: &[f32],
    scale: &[f32],
    bias: Option<&[f32]>,
    epsilon: f32,
    y: &mut [f32],
) {
    rows(isas, team, x, scale, bias, epsilon, true, y);
}

/// `y = x / sqrt(mean of squares + epsilon) * scale` for each row of `scale.len()` elements.
///
/// # Panics
/// When `x` is not rows of that length, or another slice differs in length.
pub fn rms_norm(isas: Isas, team: &Team, x: &[f32], scale: &[f32], epsilon: f32, y: &mut [f32]) {
    rows(isas, team, x, scale, None, epsilon, false, y);
}

fn rows(
    isas: Isas,
    team: &Team,
    x: &[f32],
    scale: &[f32],
    bias: Option<&[f32]>,
    epsilon: f32,
    is_centred: bool,
    y: &mut [f32],
) {
    let row = scale.len();
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    assert!(bias.is_none_or(|bias| bias.len() == row), "scale and bias differ in length");
    if x.is_empty() {
        return;
    }
    assert!(row > 0 && x.len().is_multiple_of(row), "the input is not rows of the scale's length");
    let output = DisjointMut::new(y);
    team.parallel_ranges(x.len() / row, GRAIN.div_ceil(row.max(1)), 1, &|start, end| {
        // SAFETY: tasks have rows that do not meet.
        let y = unsafe { output.slice_mut(start * row, (end - start) * row) };
        dispatch(isas, Rows { x: &x[start * row..end * row], scale, bias, epsilon, is_centred, y });
    });
}

struct Rows<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    bias: Option<&'a [f32]>,
    epsilon: f32,
    is_centred: bool,
    y: &'a mut [f32],
}

impl Loop for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let row = self.scale.len();
        for (x, y) in self.x.chunks_exact(row).zip(self.y.chunks_exact_mut(row)) {
            let mean =
                if self.is_centred { (lanes::fold::<_, FMA>(Sum, x) / row as f64) as f32 } else { 0.0 };
            let variance = lanes::fold::<_, FMA>(SumOfSquares { center: mean }, x) / row as f64;
            let factor = (1.0 / (variance + f64::from(self.epsilon)).sqrt()) as f32;
            match self.bias {
                None => {
                    for ((y, &x), &scale) in y.iter_mut().zip(x).zip(self.scale) {
                        *y = (x - mean) * factor * scale;
                    }
                }
                Some(bias) => {
                    for (((y, &x), &scale), &bias) in y.iter_mut().zip(x).zip(self.scale).zip(bias) {
                        *y = multiply_add::<FMA>((x - mean) * factor, scale, bias);
                    }
                }
            }
        }
    }
}

/// ONNX `GroupNormalization` and `InstanceNormalization`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupNorm {
    /// Pictures in the batch.
    pub batch: usize,
    /// Channels; a multiple of `groups`.
    pub channels: usize,
    /// Elements of one channel of one picture.
    pub spatial: usize,
    /// Groups of channels with one mean and variance each.
    pub groups: usize,
    /// Added to the variance.
    pub epsilon: f32,
    /// Where channels are in memory.
    pub order: ChannelOrder,
}

impl GroupNorm {
    /// Normalises `x` into `y`, with a scale and a bias per channel.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply, or the channels are not whole groups.
    pub fn run(&self, isas: Isas, team: &Team, x: &[f32], scale: &[f32], bias: &[f32], y: &mut [f32]) {
        let Self { batch, channels, spatial, groups, .. } = *self;
        assert!(groups > 0 && channels.is_multiple_of(groups), "the channels are not whole groups");
        assert_eq!(x.len(), batch * channels * spatial, "the input's length differs from its shape's");
        assert_eq!(y.len(), x.len(), "input and output differ in length");
        assert!(scale.len() == channels && bias.len() == channels, "scale and bias are not one per channel");
        if x.is_empty() {
            return;
        }
        let width = channels / groups;
        let output = DisjointMut::new(y);
        // Narrow groups of channels-last pictures are normalised many at a time.
        let is_narrow = self.order == ChannelOrder::Last && width <= COLUMNS / 2;
        let group_width = width;
        let width = if is_narrow { (COLUMNS / width * width).min(channels) } else { width };
        let items = channels.div_ceil(width);
        team.parallel_ranges(batch * items, GRAIN.div_ceil((width * spatial).max(1)), 1, &|start, end| {
            for item in start..end {
                let channel = item % items * width;
                let width = width.min(channels - channel);
                let (first, stride, rows) = match self.order {
                    ChannelOrder::First => ((item / items * channels + channel) * spatial, spatial, width),
                    ChannelOrder::Last => (item / items * channels * spatial + channel, channels, spatial),
                };
                let group = Group {
                    epsilon: self.epsilon,
                    first,
                    stride,
                    rows,
                    x,
                    scale: &scale[channel..channel + width],
                    bias: &bias[channel..channel + width],
                    y: &output,
                };
                match (self.order, is_narrow) {
                    (ChannelOrder::First, _) => dispatch(isas, ChannelsFirst(group)),
                    (ChannelOrder::Last, false) => dispatch(isas, ChannelsLast(group)),
                    (ChannelOrder::Last, true) => dispatch(isas, NarrowLast(group, group_width)),
                }
            }
        });
    }
}

/// The channels that are normalised together, as rows in memory.
struct Group<'a, 'b> {
    epsilon: f32,
    /// Index of the first element.
    first: usize,
    /// Elements from row to row.
    stride: usize,
    rows: usize,
    x: &'a [f32],
    scale: &'a [f32],
    bias: &'a [f32],
    y: &'a DisjointMut<'b, f32>,
}

impl<'a> Group<'a, '_> {
    #[inline(always)]
    fn input(&self, row: usize, length: usize) -> &'a [f32] {
        &self.x[self.first + row * self.stride..][..length]
    }

    #[inline(always)]
    fn output(&self, row: usize, length: usize) -> &'a mut [f32] {
        // SAFETY: groups do not share rows, and the loops below have one row of the output at a time.
        unsafe { self.y.slice_mut(self.first + row * self.stride, length) }
    }

    /// Mean and reciprocal deviation over all rows.
    #[inline(always)]
    fn statistics<const FMA: bool>(&self, length: usize) -> (f32, f32) {
        let count = (self.rows * length) as f64;
        let (mut sum, mut squares) = (0.0, 0.0);
        for row in 0..self.rows {
            sum += lanes::fold::<_, FMA>(Sum, self.input(row, length));
        }
        let mean = (sum / count) as f32;
        for row in 0..self.rows {
            squares += lanes::fold::<_, FMA>(SumOfSquares { center: mean }, self.input(row, length));
        }
        (mean, (1.0 / (squares / count + f64::from(self.epsilon)).sqrt()) as f32)
    }
}

/// A row is a channel.
struct ChannelsFirst<'a, 'b>(Group<'a, 'b>);

impl Loop for ChannelsFirst<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let group = self.0;
        let (mean, factor) = group.statistics::<FMA>(group.stride);
        for row in 0..group.rows {
            let factor = factor * group.scale[row];
            let shift = group.bias[row];
            for (y, &x) in group.output(row, group.stride).iter_mut().zip(group.input(row, group.stride)) {
                *y = multiply_add::<FMA>(x - mean, factor, shift);
            }
        }
    }
}

/// A row is one element of each channel of the group.
struct ChannelsLast<'a, 'b>(Group<'a, 'b>);

impl Loop for ChannelsLast<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let group = self.0;
        let width = group.scale.len();
        let (mean, factor) = group.statistics::<FMA>(width);
        for row in 0..group.rows {
            let places = group.output(row, width).iter_mut().zip(group.input(row, width));
            for (((y, &x), &scale), &bias) in places.zip(group.scale).zip(group.bias) {
                *y = multiply_add::<FMA>((x - mean) * factor, scale, bias);
            }
        }
    }
}

/// A row is one element of each channel of several groups, which are this many channels wide.
struct NarrowLast<'a, 'b>(Group<'a, 'b>, usize);

impl Loop for NarrowLast<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(group, group_width) = self;
        let width = group.scale.len();
        let count = (group.rows * group_width) as f64;
        let (mut means, mut factors) = ([0.0_f32; COLUMNS], [0.0_f32; COLUMNS]);
        let (means, factors) = (&mut means[..width], &mut factors[..width]);
        for is_second in [false, true] {
            let (mut narrow, mut wide) = ([0.0_f32; COLUMNS], [0.0_f64; COLUMNS]);
            let (narrow, wide) = (&mut narrow[..width], &mut wide[..width]);
            for start in (0..group.rows).step_by(STRETCH) {
                narrow.fill(0.0);
                for row in start..group.rows.min(start + STRETCH) {
                    for ((sum, &x), &mean) in narrow.iter_mut().zip(group.input(row, width)).zip(&*means) {
                        let distance = x - mean;
                        *sum += if is_second { distance * distance } else { x };
                    }
                }
                wide.iter_mut().zip(&*narrow).for_each(|(wide, &narrow)| *wide += f64::from(narrow));
            }
            let groups = means.chunks_mut(group_width).zip(factors.chunks_mut(group_width));
            for ((means, factors), sums) in groups.zip(wide.chunks(group_width)) {
                let sum = sums.iter().sum::<f64>();
                if is_second {
                    factors.fill((1.0 / (sum / count + f64::from(group.epsilon)).sqrt()) as f32);
                } else {
                    means.fill((sum / count) as f32);
                }
            }
        }
        factors.iter_mut().zip(group.scale).for_each(|(factor, &scale)| *factor *= scale);
        for row in 0..group.rows {
            let places = group.output(row, width).iter_mut().zip(group.input(row, width));
            for ((((y, &x), &mean), &factor), &bias) in places.zip(&*means).zip(&*factors).zip(group.bias) {
                *y = multiply_add::<FMA>(x - mean, factor, bias);
            }
        }
    }
}

/// `y = x * scale[channel] + shift[channel]` for a tensor of `outer` by channels by `inner` elements.
///
/// # Panics
/// When a slice does not have the length that the sizes imply.
pub fn scale_shift(
    isas: Isas,
    team: &Team,
    (outer, inner): (usize, usize),
    x: &[f32],
    scale: &[f32],
    shift: &[f32],
    y: &mut [f32],
) {
    let channels = scale.len();
    assert_eq!(shift.len(), channels, "scale and shift differ in length");
    assert_eq!(x.len(), outer * channels * inner, "the input's length differs from its shape's");
    assert_eq!(y.len(), x.len(), "input and output differ in length");
    if x.is_empty() {
        return;
    }
    let output = DisjointMut::new(y);
    let row = if inner == 1 { channels } else { inner };
    team.parallel_ranges(x.len() / row, GRAIN.div_ceil(row.max(1)), 1, &|start, end| {
        // SAFETY: tasks have rows that do not meet.
        let y = unsafe { output.slice_mut(start * row, (end - start) * row) };
        dispatch(isas, ScaleShift { inner, first: start, x: &x[start * row..end * row], scale, shift, y });
    });
}

struct ScaleShift<'a> {
    inner: usize,
    /// Index of the first row.
    first: usize,
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for ScaleShift<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let channels = self.scale.len();
        if self.inner == 1 {
            for (x, y) in self.x.chunks_exact(channels).zip(self.y.chunks_exact_mut(channels)) {
                for (((y, &x), &scale), &shift) in y.iter_mut().zip(x).zip(self.scale).zip(self.shift) {
                    *y = multiply_add::<FMA>(x, scale, shift);
                }
            }
            return;
        }
        let rows = self.x.chunks_exact(self.inner).zip(self.y.chunks_exact_mut(self.inner));
        for (row, (x, y)) in rows.enumerate() {
            let channel = (self.first + row) % channels;
            let (scale, shift) = (self.scale[channel], self.shift[channel]);
            for (y, &x) in y.iter_mut().zip(x) {
                *y = multiply_add::<FMA>(x, scale, shift);
            }
        }
    }
}
