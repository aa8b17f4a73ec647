//! Depthwise convolutions of 8-bit numbers: each channel for itself.
//!
//! Taps outside of the image are left out, which is what padding with the zero point comes to. So the weights that the
//! input's zero point meets differ at the borders: their sums are made per row of the output, and per pixel where the kernel
//! reaches over the left or right border.

#![expect(unsafe_code, reason = "finishes tiles of the output that a task owns")]

use std::ops::Range;

use crate::conv::ConvShape;
use crate::dispatch::{Loop, dispatch};
use crate::gemm_int8::Int8Slice;
use crate::gemm_int8::epilogue::{Finisher, Prepared};
use crate::gemm_int8::tile::{MOST_COLUMNS, MOST_ROWS, Sums};
use crate::isa::Isas;
use crate::threads::Team;

#[cfg(target_arch = "x86_64")]
use super::depthwise_avx512vnni::QuadWeights;

/// The weights of a depthwise convolution.
#[derive(Debug, Clone)]
pub(super) struct DepthwiseWeights {
    channels: usize,
    /// For each tap, the weights less their zero points of all channels.
    taps: Vec<i16>,
    /// For each channel, a zero: what is subtracted for the input's zero point is not the epilogue's business.
    no_sums: Vec<i32>,
    #[cfg(target_arch = "x86_64")]
    quads: Option<QuadWeights>,
}

impl DepthwiseWeights {
    /// Packs the weights; `read` gives that of a tap and a channel, `zero_points` has one, or one per channel.
    pub(super) fn pack(
        isas: Isas,
        kernel: (usize, usize),
        channels: usize,
        read: impl Fn(usize, usize) -> i8,
        zero_points: &[i32],
    ) -> Self {
        let zero =
            |channel: usize| if zero_points.len() == 1 { zero_points[0] } else { zero_points[channel] };
        let value = |tap: usize, channel: usize| i32::from(read(tap, channel)) - zero(channel);
        let place = |index: usize| (index / channels, index % channels);
        let all: Vec<i16> = (0..kernel.0 * kernel.1 * channels)
            .map(place)
            .map(|(tap, channel)| value(tap, channel) as i16)
            .collect();
        #[cfg(not(target_arch = "x86_64"))]
        let _ = isas;
        Self {
            channels,
            #[cfg(target_arch = "x86_64")]
            quads: QuadWeights::pack(isas, kernel, channels, &all),
            taps: all,
            no_sums: vec![0; channels],
        }
    }

    pub(super) fn no_sums(&self) -> &[i32] {
        &self.no_sums
    }

    pub(super) fn bytes(&self) -> usize {
        let bytes = self.taps.len() * 2 + self.no_sums.len() * 4;
        #[cfg(target_arch = "x86_64")]
        let bytes = bytes + self.quads.as_ref().map_or(0, QuadWeights::bytes);
        bytes
    }

    pub(super) fn kernel(&self) -> &'static str {
        #[cfg(target_arch = "x86_64")]
        if self.quads.is_some() {
            return "depthwise_i8_avx512vnni";
        }
        "depthwise_i8"
    }
}

/// One run.
pub(super) struct DepthwiseRun<'a> {
    pub(super) isas: Isas,
    pub(super) shape: &'a ConvShape,
    pub(super) weights: &'a DepthwiseWeights,
    pub(super) x: Int8Slice<'a>,
    pub(super) zero_point: i32,
    /// Bytes from one input pixel to the next.
    pub(super) pitch: usize,
    pub(super) finisher: &'a Finisher<'a>,
}

/// The taps along one axis that lie inside of the image.
fn inside(
    output: usize,
    stride: usize,
    before: usize,
    dilation: usize,
    kernel: usize,
    input: usize,
) -> Range<usize> {
    let start = output * stride;
    let first = before.saturating_sub(start).div_ceil(dilation).min(kernel);
    let end = (before + input).saturating_sub(start).div_ceil(dilation).min(kernel);
    first..end.max(first)
}

/// The pixels all of whose columns of the kernel are inside of the image.
fn interior(shape: &ConvShape) -> Range<usize> {
    let reach = (shape.kernel_w - 1) * shape.dilation_w + 1;
    let first = shape.pad_left.div_ceil(shape.stride_w);
    let end = (shape.pad_left + shape.in_w).checked_sub(reach).map_or(0, |last| last / shape.stride_w + 1);
    first..end.max(first)
}

/// One row of output pixels of a few channels.
pub(super) struct Line<'a> {
    pub(super) shape: &'a ConvShape,
    /// The input from the image's first byte and the first channel on.
    pub(super) x: &'a [u8],
    pub(super) is_signed: bool,
    pub(super) zero_point: i32,
    pub(super) pitch: usize,
    pub(super) out_y: usize,
    /// Rows of the kernel inside of the image.
    pub(super) rows: Range<usize>,
    /// Pixels all of whose columns of the kernel are inside of the image.
    pub(super) interior: Range<usize>,
}

impl Line<'_> {
    /// Columns of the kernel inside of the image.
    #[inline(always)]
    pub(super) fn columns(&self, out_x: usize) -> Range<usize> {
        let shape = self.shape;
        if self.interior.contains(&out_x) {
            return 0..shape.kernel_w;
        }
        inside(out_x, shape.stride_w, shape.pad_left, shape.dilation_w, shape.kernel_w, shape.in_w)
    }

    /// The byte of a tap that lies inside of the image.
    pub(super) fn place(&self, out_x: usize, row: usize, column: usize) -> usize {
        let shape = self.shape;
        let y = self.out_y * shape.stride_h + row * shape.dilation_h - shape.pad_top;
        let x = out_x * shape.stride_w + column * shape.dilation_w - shape.pad_left;
        (y * shape.in_w + x) * self.pitch
    }
}

impl DepthwiseRun<'_> {
    pub(super) fn run(&self, team: &Team) {
        let shape = self.shape;
        let (out_h, out_w, channels) = (shape.out_h(), shape.out_w(), shape.in_c);
        if shape.out_pixels() == 0 {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        let width = if self.weights.quads.is_some() { 2 * MOST_COLUMNS } else { MOST_COLUMNS };
        #[cfg(not(target_arch = "x86_64"))]
        let width = MOST_COLUMNS;
        let blocks = channels.div_ceil(width);
        let rows = shape.batch * out_h;
        let grain = (16 * 1024_usize).div_ceil(out_w * width.min(channels) * shape.taps());
        let prepare = |channel: usize, half: usize| {
            let column = (channel + half * MOST_COLUMNS).min(channels);
            self.finisher.prepare(column, MOST_COLUMNS.min(channels - column))
        };
        // Wide images go row by row through all channels, small ones through all rows of a few channels.
        let is_wide = out_w * channels >= 16 * 1024;
        team.parallel_ranges(rows * blocks, grain, 1, &|start, end| {
            let mut prepared_for = usize::MAX;
            let mut prepared = [prepare(0, 0), prepare(0, 1)];
            for item in start..end {
                let (row, block) =
                    if is_wide { (item / blocks, item % blocks) } else { (item % rows, item / rows) };
                let channel = block * width;
                if prepared_for != channel {
                    prepared_for = channel;
                    prepared = [prepare(channel, 0), prepare(channel, 1)];
                }
                self.line(row, channel, width.min(channels - channel), &prepared);
            }
        });
    }

    fn line(&self, row: usize, channel: usize, channels: usize, prepared: &[Prepared; 2]) {
        let shape = self.shape;
        let (out_h, out_w) = (shape.out_h(), shape.out_w());
        let (image, out_y) = (row / out_h, row % out_h);
        let line = Line {
            shape,
            x: &self.x.bytes()[image * shape.in_h * shape.in_w * self.pitch + channel..],
            is_signed: self.x.is_signed(),
            zero_point: self.zero_point,
            pitch: self.pitch,
            out_y,
            rows: inside(out_y, shape.stride_h, shape.pad_top, shape.dilation_h, shape.kernel_h, shape.in_h),
            interior: interior(shape),
        };
        let mut sums = [Sums([0; _]), Sums([0; _])];
        for first in (0..out_w).step_by(MOST_ROWS) {
            let pixels = first..out_w.min(first + MOST_ROWS);
            self.sums(&line, pixels.clone(), channel, channels, &mut sums);
            for (half, (sums, prepared)) in sums.iter().zip(prepared).enumerate() {
                if half * MOST_COLUMNS < channels {
                    let rows = (row * out_w + first, pixels.len());
                    // SAFETY: the pixels of a row and a block of channels belong to one item.
                    unsafe { self.finisher.finish(prepared, sums, MOST_COLUMNS, &[], rows) };
                }
            }
        }
    }

    fn sums(
        &self,
        line: &Line<'_>,
        pixels: Range<usize>,
        channel: usize,
        channels: usize,
        sums: &mut [Sums; 2],
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(quads) = &self.weights.quads {
            quads.sums(line, pixels, channel, channels, sums);
            return;
        }
        let all = self.weights.channels;
        let taps = &self.weights.taps[channel..];
        dispatch(self.isas, Portable { line, taps, all, channels, pixels, sums: &mut sums[0] });
    }
}

/// Sums of a few pixels of up to [`MOST_COLUMNS`] channels.
struct Portable<'a> {
    line: &'a Line<'a>,
    /// Weights from the first channel on.
    taps: &'a [i16],
    /// Weights from one tap to the next.
    all: usize,
    channels: usize,
    pixels: Range<usize>,
    sums: &'a mut Sums,
}

impl Loop for Portable<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { line, taps, all, channels, pixels, sums } = self;
        let zero = line.zero_point as i16;
        let rows = sums.0.chunks_exact_mut(MOST_COLUMNS);
        for (out_x, sums) in pixels.zip(rows) {
            let columns = line.columns(out_x);
            let mut lanes = [0_i32; MOST_COLUMNS];
            for row in line.rows.clone() {
                for column in columns.clone() {
                    let x = &line.x[line.place(out_x, row, column)..][..channels];
                    let weights = &taps[(row * line.shape.kernel_w + column) * all..][..channels];
                    let (whole_x, whole_weights) =
                        (x.first_chunk::<MOST_COLUMNS>(), weights.first_chunk::<MOST_COLUMNS>());
                    if let (Some(x), Some(weights)) = (whole_x, whole_weights) {
                        add(&mut lanes, x, weights, zero, line.is_signed);
                    } else {
                        add(&mut lanes[..channels], x, weights, zero, line.is_signed);
                    }
                }
            }
            sums.copy_from_slice(&lanes);
        }
    }
}

#[inline(always)]
fn add(sums: &mut [i32], x: &[u8], weights: &[i16], zero: i16, is_signed: bool) {
    let places = sums.iter_mut().zip(x).zip(weights);
    if is_signed {
        for ((sum, &x), &weight) in places {
            *sum += i32::from(i16::from(x as i8).wrapping_sub(zero)) * i32::from(weight);
        }
    } else {
        for ((sum, &x), &weight) in places {
            *sum += i32::from(i16::from(x).wrapping_sub(zero)) * i32::from(weight);
        }
    }
}
