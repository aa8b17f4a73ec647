//! Two-dimensional convolutions of 32-bit floats, channels last, finished by an epilogue.
//!
//! [`Convolution::new`] chooses an algorithm for the sizes, packs the weights for it and plans the run. Packed weights are
//! shared: [`Convolution::replan`] makes the plan for another batch or image size from them. A run allocates nothing; its
//! scratch memory comes from the caller. Results do not depend on the number of threads.
//!
//! The rows of the output matrix that an [`Epilogue`] speaks of are the pixels of all images.
//!
//! Contract: functions panic when slices are shorter than the shape says. Between pixels of a larger pitch nothing is
//! touched.

#![expect(unsafe_code, reason = "hands checked slices to the algorithms")]

mod panels;
#[cfg(test)]
pub(crate) mod reference;
mod shape;
#[cfg(test)]
mod tests;

pub use shape::{ConvError, ConvOptions, ConvShape, InputLayout};

use crate::depthwise::{Depthwise, DepthwiseWeights};
use crate::epilogue::{Epilogue, Finisher, check_matrix};
use crate::isa::Isas;
use crate::threads::Team;
use panels::{GroupedPanels, Indirect, Order, Strip};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The most channels of a channels-first input, and of any input that is copied into strips.
const MOST_STRIP_CHANNELS: usize = 16;

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// As a matrix product of the pixels.
    Pointwise,
    /// As a matrix product of pixels found by lists of pointers.
    Indirect,
    /// As a matrix product of padded copies of a few rows.
    Strip,
    /// Each channel for itself.
    Depthwise,
}

impl Algorithm {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Pointwise => "pointwise",
            Algorithm::Indirect => "indirect",
            Algorithm::Strip => "strip",
            Algorithm::Depthwise => "depthwise",
        }
    }

    /// The algorithm for a convolution of this shape.
    pub fn choose(shape: &ConvShape, options: &ConvOptions) -> Result<Algorithm, ConvError> {
        shape.check()?;
        if options.input_layout == InputLayout::ChannelsFirst {
            return if shape.groups == 1 && shape.in_c <= MOST_STRIP_CHANNELS {
                Ok(Algorithm::Strip)
            } else {
                Err(ConvError::ChannelsFirst { most: MOST_STRIP_CHANNELS })
            };
        }
        Ok(if shape.is_depthwise() {
            Algorithm::Depthwise
        } else if shape.is_pointwise() {
            Algorithm::Pointwise
        } else if shape.groups == 1
            && shape.in_c <= MOST_STRIP_CHANNELS
            && shape.taps() > 1
            && shape.out_w() >= 8
        {
            Algorithm::Strip
        } else {
            Algorithm::Indirect
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What of a shape must stay for packed weights to be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WeightsKey {
    in_c: usize,
    out_c: usize,
    kernel: (usize, usize),
    groups: usize,
    layout: InputLayout,
}

impl WeightsKey {
    fn new(shape: &ConvShape, options: &ConvOptions) -> WeightsKey {
        WeightsKey {
            in_c: shape.in_c,
            out_c: shape.out_c,
            kernel: (shape.kernel_h, shape.kernel_w),
            groups: shape.groups,
            layout: options.input_layout,
        }
    }
}

#[derive(Debug)]
enum Weights {
    Panels(GroupedPanels),
    Depthwise(DepthwiseWeights),
}

/// The weights of a convolution, packed for one algorithm and the best kernel of some instruction sets.
#[derive(Debug)]
pub struct PackedConvolution {
    isas: Isas,
    algorithm: Algorithm,
    key: WeightsKey,
    weights: Weights,
}

impl PackedConvolution {
    /// Pack weights in the order output channel, input channel of the group, kernel row, kernel column.
    pub fn pack(
        isas: Isas,
        algorithm: Algorithm,
        shape: &ConvShape,
        options: &ConvOptions,
        weights: &[f32],
    ) -> Result<PackedConvolution, ConvError> {
        shape.check()?;
        if weights.len() != shape.weights_len() {
            return Err(ConvError::Weights { expected: shape.weights_len(), found: weights.len() });
        }
        let order = match options.input_layout {
            InputLayout::ChannelsFirst => Order::ChannelsFirst,
            InputLayout::ChannelsLast => Order::ChannelsLast,
        };
        let packed = match algorithm {
            Algorithm::Depthwise => Weights::Depthwise(DepthwiseWeights::pack(isas, shape, weights)),
            Algorithm::Pointwise | Algorithm::Indirect | Algorithm::Strip => {
                Weights::Panels(GroupedPanels::pack(isas, shape, order, weights))
            }
        };
        Ok(PackedConvolution { isas, algorithm, key: WeightsKey::new(shape, options), weights: packed })
    }

    /// How the convolution is computed.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The memory that the packed weights take.
    pub fn bytes(&self) -> usize {
        match &self.weights {
            Weights::Panels(panels) => panels.bytes(),
            Weights::Depthwise(weights) => weights.bytes(),
        }
    }
}

#[derive(Debug)]
enum Plan {
    Pointwise,
    Indirect(Indirect),
    Strip(Strip),
    Depthwise(Depthwise),
}

/// A convolution that is ready to run.
#[derive(Clone, Debug)]
pub struct Convolution {
    shape: ConvShape,
    options: ConvOptions,
    packed: Arc<PackedConvolution>,
    plan: Arc<Plan>,
}

impl Convolution {
    /// Choose an algorithm, pack the weights (output channel, input channel of the group, kernel row, kernel column) and
    /// plan the run.
    pub fn new(
        isas: Isas,
        shape: &ConvShape,
        weights: &[f32],
        options: ConvOptions,
    ) -> Result<Convolution, ConvError> {
        let algorithm = Algorithm::choose(shape, &options)?;
        let packed = PackedConvolution::pack(isas, algorithm, shape, &options, weights)?;
        Convolution::from_packed(Arc::new(packed), shape, options)
    }

    /// Plan a run with weights that were packed before.
    pub fn from_packed(
        packed: Arc<PackedConvolution>,
        shape: &ConvShape,
        options: ConvOptions,
    ) -> Result<Convolution, ConvError> {
        shape.check()?;
        let fits = match packed.algorithm {
            Algorithm::Pointwise => shape.is_pointwise(),
            Algorithm::Depthwise => shape.is_depthwise(),
            Algorithm::Strip => shape.groups == 1,
            Algorithm::Indirect => true,
        };
        let is_first = options.input_layout == InputLayout::ChannelsFirst;
        if packed.key != WeightsKey::new(shape, &options)
            || !fits
            || is_first && packed.algorithm != Algorithm::Strip
        {
            return Err(ConvError::OtherWeights);
        }
        for (channels, pitch) in [(shape.in_c, options.input_pitch), (shape.out_c, options.output_pitch)] {
            if let Some(pitch) = pitch.filter(|&pitch| pitch < channels) {
                return Err(ConvError::Pitch { channels, pitch });
            }
        }
        let in_pitch = options.input_pitch.unwrap_or(shape.in_c);
        let plan = match (&packed.weights, packed.algorithm) {
            (Weights::Depthwise(_), _) => Plan::Depthwise(Depthwise::new(shape)),
            (Weights::Panels(_), Algorithm::Pointwise) => Plan::Pointwise,
            (Weights::Panels(panels), Algorithm::Strip) => Plan::Strip(Strip::new(shape, panels.order())),
            (Weights::Panels(_), _) => Plan::Indirect(Indirect::new(shape, in_pitch)),
        };
        Ok(Convolution { shape: *shape, options, packed, plan: Arc::new(plan) })
    }

    /// The same convolution of images of another size or number, with the same packed weights.
    ///
    /// The algorithm stays, though [`Algorithm::choose`] might prefer another one for the new size.
    pub fn replan(&self, shape: &ConvShape) -> Result<Convolution, ConvError> {
        Convolution::from_packed(Arc::clone(&self.packed), shape, self.options)
    }

    /// The sizes.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// What was chosen besides the sizes.
    pub fn options(&self) -> &ConvOptions {
        &self.options
    }

    /// The packed weights.
    pub fn packed(&self) -> &Arc<PackedConvolution> {
        &self.packed
    }

    /// The memory that the packed weights take.
    pub fn packed_bytes(&self) -> usize {
        self.packed.bytes()
    }

    /// How it is computed.
    pub fn algorithm_name(&self) -> &'static str {
        self.packed.algorithm.name()
    }

    /// The kernel that runs.
    pub fn kernel_name(&self) -> &'static str {
        match &self.packed.weights {
            Weights::Depthwise(weights) => weights.kernel_name(&self.shape),
            Weights::Panels(panels) => match self.packed.algorithm {
                Algorithm::Indirect => panels.kernel().entry().indirect_name,
                _ => panels.kernel().entry().name,
            },
        }
    }

    /// The floats of scratch memory that a run on so many threads wants.
    pub fn scratch_len(&self, threads: usize) -> usize {
        match (&*self.plan, &self.packed.weights) {
            (Plan::Indirect(indirect), Weights::Panels(panels)) => {
                indirect.scratch_len(panels, &self.shape, threads)
            }
            (Plan::Strip(strip), _) => strip.scratch_len(threads),
            (Plan::Depthwise(_), _) => Depthwise::scratch_len(&self.shape, threads),
            _ => 0,
        }
    }

    /// Elements that the input has at least.
    pub fn input_len(&self) -> usize {
        match self.options.input_pitch {
            Some(pitch) if self.options.input_layout == InputLayout::ChannelsLast => {
                matrix_len(self.shape.in_pixels(), self.shape.in_c, pitch)
            }
            _ => self.shape.in_pixels() * self.shape.in_c,
        }
    }

    /// Elements that the output has at least.
    pub fn output_len(&self) -> usize {
        matrix_len(self.shape.out_pixels(), self.shape.out_c, self.out_pitch())
    }

    fn out_pitch(&self) -> usize {
        self.options.output_pitch.unwrap_or(self.shape.out_c)
    }

    /// Compute `y`, the convolution of `x`.
    ///
    /// # Panics
    /// When `x`, `y` or `scratch` is too short, or the epilogue does not fit.
    pub fn run(&self, team: &Team, x: &[f32], y: &mut [f32], epilogue: &Epilogue<'_>, scratch: &mut [f32]) {
        let shape = &self.shape;
        assert!(x.len() >= self.input_len(), "the whole input");
        assert!(scratch.len() >= self.scratch_len(team.threads()), "scratch memory for every thread");
        let pixels = shape.out_pixels();
        let pitch = self.out_pitch();
        check_matrix(y.len(), pixels, shape.out_c, pitch);
        if pixels == 0 {
            return;
        }
        let start = y.as_mut_ptr();
        let finisher = Finisher::new(self.packed.isas, epilogue, pixels, shape.out_c, start, pitch);
        let output = Output::new(start, pitch, finisher);
        let input = Input { data: x, pitch: self.options.input_pitch.unwrap_or(shape.in_c) };
        // SAFETY: plan and weights were made for this shape, whose tensors were checked above.
        unsafe {
            match (&*self.plan, &self.packed.weights) {
                (Plan::Pointwise, Weights::Panels(panels)) => {
                    panels.run_pointwise(team, shape, input, &output);
                }
                (Plan::Indirect(indirect), Weights::Panels(panels)) => {
                    indirect.run(team, panels, shape, input, &output, scratch);
                }
                (Plan::Strip(strip), Weights::Panels(panels)) => {
                    strip.run(team, panels, shape, self.options.input_layout, input, &output, scratch);
                }
                (Plan::Depthwise(depthwise), Weights::Depthwise(weights)) => {
                    depthwise.run(team, weights, shape, input, &output, scratch);
                }
                (Plan::Depthwise(_), Weights::Panels(_)) | (_, Weights::Depthwise(_)) => {
                    unreachable!("plans are made for the kind of weights they have")
                }
            }
        }
    }
}

/// The elements from the first to the last of a matrix.
fn matrix_len(rows: usize, columns: usize, pitch: usize) -> usize {
    if rows == 0 { 0 } else { (rows - 1) * pitch + columns }
}

/// A checked input: all pixels that the shape has are within `data`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) data: &'a [f32],
    /// Floats from one pixel to the next.
    pub(crate) pitch: usize,
}

/// A checked output: all pixels that the shape has are writable from `start` on.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    start: *mut f32,
    /// Floats from one pixel to the next.
    pub(crate) pitch: usize,
    pub(crate) finisher: Finisher<'a>,
    lifetime: PhantomData<&'a mut [f32]>,
}

// SAFETY: the output is exclusively borrowed while this lives, and each of its elements is used by one task.
unsafe impl Sync for Output<'_> {}

impl<'a> Output<'a> {
    /// The output at `start`, whose pixels the finisher was checked against and nobody else uses.
    pub(crate) fn new(start: *mut f32, pitch: usize, finisher: Finisher<'a>) -> Output<'a> {
        Output { start, pitch, finisher, lifetime: PhantomData }
    }

    /// The address of a channel of a pixel.
    pub(crate) fn at(&self, pixel: usize, channel: usize) -> *mut f32 {
        self.start.wrapping_add(pixel * self.pitch + channel)
    }
}
