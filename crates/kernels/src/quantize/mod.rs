//! Between floats and quantised integers, and arithmetic of quantised bytes.
//!
//! A quantised number `q` with scale `s` and zero point `z` stands for `s (q - z)`. Everything is computed in single
//! precision, rounded with halves to even and saturated, as onnxruntime does.
//!
//! Contract: functions panic if slices do not have the lengths that the sizes imply.

#![expect(unsafe_code, reason = "parts of the output are handed to tasks")]

mod arithmetic;
mod average;
#[cfg(test)]
mod tests;

pub use arithmetic::{
    QuantizedBinary, QuantizedOperand, lookup, quantized_binary, requantize_table, table_of,
};
pub use average::{GlobalAverage, pooled_average};

use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::lanes::{self, Fold, Largest};
use crate::threads::{DisjointMut, Team};

/// Elements worth a task of their own.
const GRAIN: usize = 16 * 1024;

/// Adding and subtracting this rounds a small number to an integer, halves to even.
pub(crate) const ROUNDING: f32 = 12582912.0;

/// A type of quantised numbers.
pub trait Quantized: Copy + Send + Sync + Default + PartialEq + std::fmt::Debug + 'static {
    /// The least number.
    const MIN: i32;
    /// The greatest number.
    const MAX: i32;
    /// The number as a wide one.
    fn wide(self) -> i32;
    /// The low bits of a wide number.
    fn narrow(wide: i32) -> Self;
}

macro_rules! quantized {
    ($($integer:ty),*) => { $(
        impl Quantized for $integer {
            const MIN: i32 = <$integer>::MIN as i32;
            const MAX: i32 = <$integer>::MAX as i32;
            #[inline(always)]
            fn wide(self) -> i32 {
                i32::from(self)
            }
            #[inline(always)]
            fn narrow(wide: i32) -> Self {
                wide as Self
            }
        }
    )* };
}

quantized!(u8, i8, u16, i16);

impl Quantized for i32 {
    const MIN: i32 = i32::MIN;
    const MAX: i32 = i32::MAX;
    #[inline(always)]
    fn wide(self) -> i32 {
        self
    }
    #[inline(always)]
    fn narrow(wide: i32) -> Self {
        wide
    }
}

/// Rounds `value`, halves to even, moves it by the zero point and saturates it, for types of up to 16 bits.
#[inline(always)]
pub(crate) fn round_to<T: Quantized>(value: f32, zero_point: i32) -> T {
    let (low, high) = ((T::MIN - zero_point) as f32, (T::MAX - zero_point) as f32);
    // What is not a number becomes the least one.
    let value = if value > low { value } else { low };
    let value = if value < high { value } else { high };
    let rounded = ((value + ROUNDING).to_bits() as i32).wrapping_sub(ROUNDING.to_bits() as i32);
    T::narrow(rounded.wrapping_add(zero_point))
}

/// Scales and zero points of a tensor: one for all, or one per channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantization<'a, T> {
    /// The scales.
    pub scale: &'a [f32],
    /// The zero points: none (they are zero), or as many as scales.
    pub zero_point: &'a [T],
}

impl<T: Quantized> Quantization<'_, T> {
    fn check(&self) {
        let (scales, zeros) = (self.scale.len(), self.zero_point.len());
        assert!(zeros == 0 || zeros == scales, "there is not one zero point per scale");
    }

    #[inline]
    fn channel(&self, channel: usize) -> (f32, i32) {
        (self.scale[channel], self.zero_point.get(channel).map_or(0, |zero| zero.wide()))
    }
}

/// Runs `body` on runs of elements that share a channel, of a tensor of `outer` by channels by `inner` elements: the
/// channel, where the run begins, and its length. One channel: runs are as long as tasks.
fn for_channels(
    team: &Team,
    (outer, channels, inner): (usize, usize, usize),
    body: &(dyn Fn(usize, usize, usize) + Sync),
) {
    if channels == 1 {
        team.parallel_ranges(outer * inner, GRAIN, 64, &|start, end| body(0, start, end - start));
        return;
    }
    team.parallel_ranges(outer * channels, GRAIN.div_ceil(inner.max(1)), 1, &|start, end| {
        for row in start..end {
            body(row % channels, row * inner, inner);
        }
    });
}

/// ONNX `QuantizeLinear` of a tensor of `outer` by channels by `inner` elements, to up to 16 bits.
pub fn quantize_linear<T: Quantized>(
    isas: Isas,
    team: &Team,
    (outer, inner): (usize, usize),
    quantization: Quantization<'_, T>,
    x: &[f32],
    y: &mut [T],
) {
    const { assert!(size_of::<T>() <= 2, "rounding in single precision is exact for up to 16 bits") };
    quantization.check();
    let channels = quantization.scale.len();
    assert_eq!(x.len(), outer * channels * inner, "the input's length differs from its shape's");
    assert_eq!(y.len(), x.len(), "input and output differ in length");
    let output = DisjointMut::new(y);
    if inner == 1 && channels > 1 {
        team.parallel_ranges(outer, GRAIN.div_ceil(channels.max(1)), 1, &|start, end| {
            for row in start..end {
                // SAFETY: every row is written by the one task that has its index.
                let y = unsafe { output.slice_mut(row * channels, channels) };
                dispatch(isas, QuantizeRow { quantization, x: &x[row * channels..(row + 1) * channels], y });
            }
        });
        return;
    }
    for_channels(team, (outer, channels, inner), &|channel, start, length| {
        // SAFETY: runs do not meet.
        let y = unsafe { output.slice_mut(start, length) };
        let (scale, zero_point) = quantization.channel(channel);
        dispatch(isas, Quantize { scale, zero_point, x: &x[start..start + length], y });
    });
}

struct Quantize<'a, T> {
    scale: f32,
    zero_point: i32,
    x: &'a [f32],
    y: &'a mut [T],
}

impl<T: Quantized> Loop for Quantize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = round_to(x / self.scale, self.zero_point);
        }
    }
}

/// A row of one element per channel.
struct QuantizeRow<'a, T> {
    quantization: Quantization<'a, T>,
    x: &'a [f32],
    y: &'a mut [T],
}

impl<T: Quantized> Loop for QuantizeRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let places = self.y.iter_mut().zip(self.x).zip(self.quantization.scale);
        if self.quantization.zero_point.is_empty() {
            places.for_each(|((y, &x), &scale)| *y = round_to(x / scale, 0));
        } else {
            for (((y, &x), &scale), zero) in places.zip(self.quantization.zero_point) {
                *y = round_to(x / scale, zero.wide());
            }
        }
    }
}

/// ONNX `DequantizeLinear` of a tensor of `outer` by channels by `inner` elements.
pub fn dequantize_linear<T: Quantized>(
    isas: Isas,
    team: &Team,
    (outer, inner): (usize, usize),
    quantization: Quantization<'_, T>,
    x: &[T],
    y: &mut [f32],
) {
    quantization.check();
    let channels = quantization.scale.len();
    assert_eq!(x.len(), outer * channels * inner, "the input's length differs from its shape's");
    assert_eq!(y.len(), x.len(), "input and output differ in length");
    let output = DisjointMut::new(y);
    if inner == 1 && channels > 1 {
        team.parallel_ranges(outer, GRAIN.div_ceil(channels.max(1)), 1, &|start, end| {
            for row in start..end {
                // SAFETY: every row is written by the one task that has its index.
                let y = unsafe { output.slice_mut(row * channels, channels) };
                dispatch(
                    isas,
                    DequantizeRow { quantization, x: &x[row * channels..(row + 1) * channels], y },
                );
            }
        });
        return;
    }
    for_channels(team, (outer, channels, inner), &|channel, start, length| {
        // SAFETY: runs do not meet.
        let y = unsafe { output.slice_mut(start, length) };
        let (scale, zero_point) = quantization.channel(channel);
        dispatch(isas, Dequantize { scale, zero_point, x: &x[start..start + length], y });
    });
}

struct Dequantize<'a, T> {
    scale: f32,
    zero_point: i32,
    x: &'a [T],
    y: &'a mut [f32],
}

impl<T: Quantized> Loop for Dequantize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (y, &x) in self.y.iter_mut().zip(self.x) {
            *y = x.wide().wrapping_sub(self.zero_point) as f32 * self.scale;
        }
    }
}

/// A row of one element per channel.
struct DequantizeRow<'a, T> {
    quantization: Quantization<'a, T>,
    x: &'a [T],
    y: &'a mut [f32],
}

impl<T: Quantized> Loop for DequantizeRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let places = self.y.iter_mut().zip(self.x).zip(self.quantization.scale);
        if self.quantization.zero_point.is_empty() {
            places.for_each(|((y, x), &scale)| *y = x.wide() as f32 * scale);
        } else {
            for (((y, x), &scale), zero) in places.zip(self.quantization.zero_point) {
                *y = x.wide().wrapping_sub(zero.wide()) as f32 * scale;
            }
        }
    }
}

/// ONNX `DynamicQuantizeLinear`: writes the quantised elements, and returns scale and zero point.
pub fn dynamic_quantize_linear(isas: Isas, team: &Team, x: &[f32], y: &mut [u8]) -> (f32, u8) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    let (scale, zero_point) = dynamic_quantization(dispatch(isas, Range(x)));
    let quantization = Quantization { scale: &[scale], zero_point: &[zero_point] };
    quantize_linear(isas, team, (1, x.len()), quantization, x, y);
    (scale, zero_point)
}

/// Scale and zero point of unsigned bytes for a range of floats.
fn dynamic_quantization((least, greatest): (f32, f32)) -> (f32, u8) {
    let (least, greatest) = (least.min(0.0), greatest.max(0.0));
    let scale = if greatest == least { 1.0 } else { (greatest - least) / 255.0 };
    (scale, round_to::<u8>((0.0 - least / scale).clamp(0.0, 255.0), 0))
}

/// The least and the greatest element.
struct Range<'a>(&'a [f32]);

impl Loop for Range<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<const FMA: bool>(self) -> (f32, f32) {
        let greatest = lanes::fold::<_, FMA>(Largest, self.0) as f32;
        let least = -lanes::fold::<_, FMA>(LargestNegated, self.0) as f32;
        (least, greatest)
    }
}

#[derive(Clone, Copy)]
struct LargestNegated;

impl Fold for LargestNegated {
    const NEUTRAL: f32 = f32::NEG_INFINITY;
    const IS_SUM: bool = false;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        -x
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        Largest::join(a, b)
    }
}
