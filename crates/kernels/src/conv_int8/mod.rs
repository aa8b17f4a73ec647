//! Two-dimensional convolutions of 8-bit numbers, channels last, exact in 32-bit integers, finished by an epilogue.
//!
//! All but depthwise convolutions are matrix products whose rows are pixels found by pointers. Where there is padding, or the
//! input's sign is not the kernel's, each image is copied into scratch memory first, with its sign bits flipped if need be
//! and its zero point all around; then every tap is at a fixed distance, and a row of the kernel is one run of bytes, so that
//! inputs of few channels waste little. Padding stands for zero, that is the input's zero point.
//!
//! [`PackedConvInt8`] has the weights; [`ConvInt8`] plans a run with them, and can be made again for other image sizes. The
//! rows of the output that an [`Int8Epilogue`] speaks of are pixels, its columns output channels.
//!
//! Contract: functions panic when slices are shorter than the shape says. A run allocates nothing.

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

mod copy;
mod depthwise;
#[cfg(target_arch = "x86_64")]
mod depthwise_avx512vnni;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::conv::{ConvError, ConvShape};
use crate::dispatch::dispatch;
use crate::gemm_int8::driver::Product;
use crate::gemm_int8::epilogue::{Columns, Finisher};
use crate::gemm_int8::pack::{PackedPanels, Panels};
use crate::gemm_int8::table::Kernel;
use crate::gemm_int8::{
    Int8Epilogue, Int8Error, Int8Output, Int8Slice, MOST_DEPTH, SumBytes, signed_zero_points, zero_point_for,
};
use crate::isa::Isas;
use crate::threads::Team;
use copy::PaddedCopy;
use depthwise::{DepthwiseRun, DepthwiseWeights};

/// Why an 8-bit convolution cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvInt8Error {
    /// The sizes make no sense.
    #[error(transparent)]
    Shape(#[from] ConvError),
    /// The weights or their zero points do not fit.
    #[error(transparent)]
    Weights(#[from] Int8Error),
}

/// What may be chosen about an 8-bit convolution besides its sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConvInt8Options {
    /// Whether the input is signed.
    pub is_input_signed: bool,
    /// Elements from one input pixel to the next, when more than the channels.
    pub input_pitch: Option<usize>,
    /// Elements from one output pixel to the next, when more than the channels.
    pub output_pitch: Option<usize>,
}

/// What of a shape must stay for packed weights to be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WeightsKey {
    in_c: usize,
    out_c: usize,
    kernel: (usize, usize),
    dilation_w: usize,
    groups: usize,
}

impl WeightsKey {
    fn new(shape: &ConvShape) -> Self {
        Self {
            in_c: shape.in_c,
            out_c: shape.out_c,
            kernel: (shape.kernel_h, shape.kernel_w),
            dilation_w: shape.dilation_w,
            groups: shape.groups,
        }
    }
}

#[derive(Debug, Clone)]
enum Weights {
    /// As a matrix product.
    Panels {
        packed: PackedPanels,
        /// Whether a tap is a row of the kernel instead of one place of it.
        has_row_taps: bool,
    },
    /// Each channel for itself.
    Depthwise(DepthwiseWeights),
}

/// The weights of an 8-bit convolution, packed for the best kernel of some instruction sets.
#[derive(Debug, Clone)]
pub struct PackedConvInt8 {
    isas: Isas,
    key: WeightsKey,
    weights: Weights,
}

impl PackedConvInt8 {
    /// Packs weights in the order output channel, input channel of the group, kernel row, kernel column. There are no zero
    /// points, one, or one per output channel.
    pub fn pack(
        isas: Isas,
        shape: &ConvShape,
        weights: Int8Slice<'_>,
        zero_points: &[i32],
    ) -> Result<Self, ConvInt8Error> {
        shape.check()?;
        if weights.len() != shape.weights_len() {
            return Err(Int8Error::Length { expected: shape.weights_len(), found: weights.len() }.into());
        }
        let (taps, group_in_c) = (shape.taps(), shape.group_in_c());
        if taps * group_in_c > MOST_DEPTH {
            return Err(Int8Error::Depth { depth: taps * group_in_c }.into());
        }
        let zero_points = signed_zero_points(zero_points, shape.out_c, weights.is_signed())?;
        let key = WeightsKey::new(shape);
        if shape.is_depthwise() {
            let read = |tap: usize, channel: usize| weights.signed(channel * taps + tap);
            let weights =
                Weights::Depthwise(DepthwiseWeights::pack(isas, key.kernel, shape.in_c, read, &zero_points));
            return Ok(Self { isas, key, weights });
        }
        let has_row_taps = shape.groups == 1 && shape.dilation_w == 1;
        let (taps_of_panel, depth) =
            if has_row_taps { (shape.kernel_h, shape.kernel_w * shape.in_c) } else { (taps, group_in_c) };
        let panels =
            Panels { kernel: Kernel::choose(isas), taps: taps_of_panel, depth, columns: shape.group_out_c() };
        let read = |tap: usize, depth: usize, column: usize| {
            let (tap, channel) = if has_row_taps {
                (tap * shape.kernel_w + depth / shape.in_c, depth % shape.in_c)
            } else {
                (tap, depth)
            };
            weights.signed((column * group_in_c + channel) * taps + tap)
        };
        let packed = PackedPanels::pack(panels, shape.groups, read, &zero_points);
        Ok(Self { isas, key, weights: Weights::Panels { packed, has_row_taps } })
    }

    /// The memory that the packed weights take.
    pub fn bytes(&self) -> usize {
        match &self.weights {
            Weights::Panels { packed, .. } => packed.bytes(),
            Weights::Depthwise(weights) => weights.bytes(),
        }
    }

    /// The name of the kernel.
    pub fn kernel(&self) -> &'static str {
        match &self.weights {
            Weights::Panels { packed, .. } => packed.panels.kernel.entry().name,
            Weights::Depthwise(weights) => weights.kernel(),
        }
    }
}

/// An 8-bit convolution that is ready to run.
#[derive(Debug, Clone)]
pub struct ConvInt8 {
    shape: ConvShape,
    options: ConvInt8Options,
    packed: Arc<PackedConvInt8>,
    /// How each image is copied, if it is.
    copy: Option<PaddedCopy>,
    /// For each tap, bytes from the first one.
    offsets: Vec<usize>,
    input_pitch: usize,
    output_pitch: usize,
}

impl ConvInt8 {
    /// Packs the weights (output channel, input channel of the group, kernel row, kernel column) and plans the run.
    pub fn new(
        isas: Isas,
        shape: &ConvShape,
        weights: Int8Slice<'_>,
        zero_points: &[i32],
        options: ConvInt8Options,
    ) -> Result<Self, ConvInt8Error> {
        let packed = PackedConvInt8::pack(isas, shape, weights, zero_points)?;
        Self::from_packed(Arc::new(packed), shape, options)
    }

    /// Plans a run with weights that were packed before, for a shape that differs in its images and strides only.
    pub fn from_packed(
        packed: Arc<PackedConvInt8>,
        shape: &ConvShape,
        options: ConvInt8Options,
    ) -> Result<Self, ConvInt8Error> {
        shape.check()?;
        if packed.key != WeightsKey::new(shape) {
            return Err(ConvError::OtherWeights.into());
        }
        let pitch = |pitch: Option<usize>, channels: usize| {
            let pitch = pitch.unwrap_or(channels);
            if pitch < channels { Err(ConvError::Pitch { channels, pitch }) } else { Ok(pitch) }
        };
        let input_pitch = pitch(options.input_pitch, shape.in_c)?;
        let output_pitch = pitch(options.output_pitch, shape.out_c)?;
        let mut plan = Self {
            shape: *shape,
            options,
            packed,
            copy: None,
            offsets: Vec::new(),
            input_pitch,
            output_pitch,
        };
        plan.plan_panels();
        Ok(plan)
    }

    fn plan_panels(&mut self) {
        let Weights::Panels { packed, has_row_taps } = &self.packed.weights else { return };
        let shape = &self.shape;
        let is_kernel_signed = packed.panels.kernel.entry().is_a_signed;
        let has_padding =
            [shape.pad_top, shape.pad_left, shape.pad_bottom, shape.pad_right].iter().any(|&pad| pad > 0);
        // A run of bytes over neighbouring pixels needs them to lie side by side.
        let has_gaps = *has_row_taps && shape.kernel_w > 1 && self.input_pitch != shape.in_c;
        if has_padding || has_gaps || self.options.is_input_signed != is_kernel_signed {
            self.copy = Some(PaddedCopy {
                in_h: shape.in_h,
                in_w: shape.in_w,
                channels: shape.in_c,
                pitch: self.input_pitch,
                top: shape.pad_top,
                left: shape.pad_left,
                bottom: shape.pad_bottom,
                right: shape.pad_right,
                flips: self.options.is_input_signed != is_kernel_signed,
            });
        }
        let (row, pixel) = self.distances();
        for y in 0..shape.kernel_h {
            for x in 0..if *has_row_taps { 1 } else { shape.kernel_w } {
                self.offsets.push(y * shape.dilation_h * row + x * shape.dilation_w * pixel);
            }
        }
    }

    /// Bytes from one row of the image to the next, and from one pixel to the next, after copying.
    fn distances(&self) -> (usize, usize) {
        match &self.copy {
            Some(copy) => (copy.row(), copy.channels),
            None => (self.shape.in_w * self.input_pitch, self.input_pitch),
        }
    }

    /// The sizes.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// The packed weights, to plan for other sizes.
    pub fn packed(&self) -> &Arc<PackedConvInt8> {
        &self.packed
    }

    /// Bytes of scratch memory that a run needs.
    pub fn scratch_length(&self) -> usize {
        self.copy.as_ref().map_or(0, PaddedCopy::room)
    }

    /// Computes all images.
    ///
    /// # Panics
    /// When the input's sign is not the planned one, a slice is shorter than the shape and the pitches say, the scratch
    /// memory is too short, or the epilogue does not fit the output.
    pub fn run(
        &self,
        team: &Team,
        (x, x_zero_point): (Int8Slice<'_>, i32),
        epilogue: &Int8Epilogue<'_>,
        y: Int8Output<'_>,
        scratch: &mut [u8],
    ) {
        let shape = &self.shape;
        assert_eq!(x.is_signed(), self.options.is_input_signed, "the input's sign is not the planned one");
        if shape.in_pixels() > 0 {
            let needed = (shape.in_pixels() - 1) * self.input_pitch + shape.in_c;
            assert!(x.len() >= needed, "the input holds {} of {needed} bytes", x.len());
        }
        assert!(scratch.len() >= self.scratch_length(), "the scratch memory is too short");
        let output = (shape.out_pixels(), shape.out_c);
        match &self.packed.weights {
            Weights::Depthwise(weights) => {
                let columns = Columns { a_zero_point: 0, column_sums: weights.no_sums(), zero_points: &[] };
                let finisher =
                    Finisher::new(self.packed.isas, columns, epilogue, y, output, self.output_pitch);
                let run = DepthwiseRun {
                    isas: self.packed.isas,
                    shape,
                    weights,
                    x,
                    zero_point: x_zero_point,
                    pitch: self.input_pitch,
                    finisher: &finisher,
                };
                run.run(team);
            }
            Weights::Panels { packed, .. } => {
                let is_kernel_signed = packed.panels.kernel.entry().is_a_signed;
                let zero_point = zero_point_for(is_kernel_signed, x.is_signed(), x_zero_point);
                let columns = Columns {
                    a_zero_point: zero_point,
                    column_sums: &packed.column_sums,
                    zero_points: &packed.zero_points,
                };
                let finisher =
                    Finisher::new(self.packed.isas, columns, epilogue, y, output, self.output_pitch);
                if output.0 == 0 {
                    return;
                }
                let out_pixels = shape.out_h() * shape.out_w();
                let image = shape.in_h * shape.in_w * self.input_pitch;
                let Some(copy) = &self.copy else {
                    self.run_images(team, packed, x.bytes(), image, (0, shape.batch), &finisher);
                    return;
                };
                let scratch = &mut scratch[..copy.room()];
                for index in 0..shape.batch {
                    let to = &mut scratch[..copy.length()];
                    copy.run(self.packed.isas, team, &x.bytes()[index * image..], zero_point as u8, to);
                    self.run_images(team, packed, scratch, 0, (index * out_pixels, 1), &finisher);
                }
            }
        }
    }

    /// Computes `images` images that lie `image` bytes apart, into the output from row `first_row` on.
    fn run_images(
        &self,
        team: &Team,
        packed: &PackedPanels,
        x: &[u8],
        image: usize,
        (first_row, images): (usize, usize),
        finisher: &Finisher<'_>,
    ) {
        /// A pointer that tasks may share.
        struct Shared(*const u8);
        // SAFETY: what it points to is only read.
        unsafe impl Sync for Shared {}

        let shape = &self.shape;
        let (row, pixel) = self.distances();
        let (down, right) = (shape.stride_h * row, shape.stride_w * pixel);
        let (out_h, out_w) = (shape.out_h(), shape.out_w());
        let shared = &Shared(x.as_ptr());
        let isas = self.packed.isas;
        for group in 0..shape.groups {
            let channel = group * shape.group_in_c();
            let place = |index: usize| {
                let (line, column) = (index / out_w, index % out_w);
                line / out_h * image + line % out_h * down + column * right + channel
            };
            let product = Product {
                packed,
                group,
                offsets: &self.offsets,
                m: images * out_h * out_w,
                first_row,
                rows: &|first, pointers| {
                    let mut index = first;
                    let mut rest: &mut [*const u8] = pointers;
                    while !rest.is_empty() {
                        let count = (out_w - index % out_w).min(rest.len());
                        let (line, after) = rest.split_at_mut(count);
                        let start = shared.0.wrapping_add(place(index));
                        for (step, pointer) in line.iter_mut().enumerate() {
                            *pointer = start.wrapping_add(step * right);
                        }
                        index += count;
                        rest = after;
                    }
                },
                end: x.as_ptr_range().end,
                row_sums: &|index| {
                    let start = place(index);
                    let is_signed = packed.panels.kernel.entry().is_a_signed;
                    let tap = |&offset: &usize| &x[start + offset..][..packed.panels.depth];
                    self.offsets
                        .iter()
                        .map(|offset| dispatch(isas, SumBytes { x: tap(offset), is_signed }))
                        .sum()
                },
                finisher,
            };
            // SAFETY: every pixel that an output pixel sees lies in the copied image, or, as there is no padding then, in the
            // input, whose length `run` has checked; the finisher borrows the output.
            unsafe { product.run(team) };
        }
    }
}
