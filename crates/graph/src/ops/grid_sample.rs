//! Sampling at given places.

use armet_tensor::{ElementType, strides};
use smallvec::SmallVec;

use super::support::{broadcast::filled, typing};
use super::{movement, numbers};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Value, ValueType,
};

/// Sampling at given places: inputs are data `[N,C,D1..Dk]` and a grid `[N,O1..Ok,k]` of places, the last axis of the
/// data first, each in -1..1 for the extent of that axis.
#[derive(Debug, Clone, PartialEq)]
pub struct GridSample {
    /// How a value between elements is found.
    pub mode: GridMode,
    /// What lies outside of the data.
    pub padding: GridPadding,
    /// -1 and 1 are the centres of the outermost elements, rather than their outer edges.
    pub align_corners: bool,
}

/// How a value between elements is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridMode {
    /// The nearest element, of two equally near ones the even one.
    Nearest,
    /// Linear interpolation along each axis.
    Linear,
    /// Cubic interpolation along each axis, with coefficient -0.75.
    Cubic,
}

/// What lies outside of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridPadding {
    /// Zeros.
    Zeros,
    /// The outermost elements.
    Border,
    /// The data mirrored.
    Reflection,
}

/// An element along one axis, if it is there, and its share.
type Tap = (Option<usize>, f64);

/// Mirrors a place at the edges of the data until it is between them.
fn reflect(at: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 {
        return low;
    }
    let turned = (at - low).abs() % (2.0 * range);
    low + if turned > range { 2.0 * range - turned } else { turned }
}

/// Shares of the four elements around a place that lies `t` behind the second.
fn cubic(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

impl GridSample {
    /// The edges of an axis of this length, between which elements are mirrored.
    fn edges(&self, len: usize) -> (f64, f64) {
        let len = len as f64;
        if self.align_corners { (0.0, len - 1.0) } else { (-0.5, len - 0.5) }
    }

    /// The element that stands at this index, which may lie outside.
    fn element(&self, index: f64, len: usize) -> Option<usize> {
        let last = len.checked_sub(1)?;
        let inside = match self.padding {
            GridPadding::Zeros => index,
            GridPadding::Border => index.clamp(0.0, last as f64),
            GridPadding::Reflection => {
                let (low, high) = self.edges(len);
                reflect(index, low, high).trunc().clamp(0.0, last as f64)
            }
        };
        (0.0..=last as f64).contains(&inside).then_some(inside as usize)
    }

    /// The elements of an axis that a place in the grid is made of.
    fn taps(&self, place: f64, len: usize) -> SmallVec<[Tap; 4]> {
        let length = len as f64;
        let mut at = if self.align_corners {
            (place + 1.0) * (length - 1.0) / 2.0
        } else {
            ((place + 1.0) * length - 1.0) / 2.0
        };
        if self.mode == GridMode::Nearest {
            at = at.round_ties_even();
        }
        let (low, high) = self.edges(len);
        if at < low || at > high {
            match self.padding {
                GridPadding::Zeros => {}
                GridPadding::Border => at = at.clamp(0.0, (length - 1.0).max(0.0)),
                GridPadding::Reflection => at = reflect(at, low, high),
            }
        }
        let first = at.floor();
        let part = at - first;
        match self.mode {
            GridMode::Nearest => SmallVec::from_iter([(self.element(at.trunc(), len), 1.0)]),
            GridMode::Linear => [(0.0, 1.0 - part), (1.0, part)]
                .into_iter()
                .map(|(step, share)| (self.element(first + step, len), share))
                .collect(),
            GridMode::Cubic => cubic(part)
                .into_iter()
                .zip([-1.0, 0.0, 1.0, 2.0])
                .map(|(share, step)| (self.element(first + step, len), share))
                .collect(),
        }
    }
}

impl GridMode {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::Linear => "linear",
            Self::Cubic => "cubic",
        }
    }
}

impl GridPadding {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Border => "border",
            Self::Reflection => "reflection",
        }
    }
}

impl Operator for GridSample {
    fn name(&self) -> &'static str {
        "GridSample"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("mode", self.mode.name())
            .with("padding_mode", self.padding.name())
            .with("align_corners", self.align_corners)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), typing::is_number)?;
        typing::element(inputs, 1, self.name(), ElementType::is_float)?;
        let (x, grid) = (inputs.dims(0)?, inputs.dims(1)?);
        let fault = || {
            let (x, grid) = (movement::show(x), movement::show(grid));
            InferError::Mismatch(format!("GridSample of {x} with a grid of {grid}"))
        };
        let rank = x.len();
        if rank < 3 || grid.len() != rank || grid[rank - 1].fixed().is_some_and(|k| k != rank - 2) {
            return Err(fault());
        }
        let batch = movement::unify(&x[0], &grid[0]).ok_or_else(fault)?;
        let places = grid[1..rank - 1].iter().cloned();
        Ok(typing::one(element, [batch, x[1].clone()].into_iter().chain(places)))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (x, grid) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let lengths = &x.shape()[2..];
        let steps = strides(lengths);
        let axes = lengths.len();
        let plane: usize = lengths.iter().product();
        let places: usize = shape[2..].iter().product();
        let (data, grid) = (numbers::to_f64(x)?, numbers::to_f64(grid)?);
        let mut out = filled(&shape, 0.0)?;
        if out.is_empty() {
            return Ok(vec![numbers::from_f64(element, shape, &out)?.into()]);
        }
        let channels = shape[1];
        for item in 0..shape[0] {
            for place in 0..places {
                let wanted = &grid[(item * places + place) * axes..][..axes];
                let taps: Vec<SmallVec<[Tap; 4]>> = lengths
                    .iter()
                    .zip(wanted.iter().rev())
                    .map(|(&len, &place)| self.taps(place, len))
                    .collect();
                let counts: SmallVec<[usize; 6]> = taps.iter().map(SmallVec::len).collect();
                for at in movement::coordinates(&counts) {
                    let chosen = || at.iter().zip(&taps).map(|(&i, taps)| taps[i]);
                    let offset: Option<usize> =
                        chosen().zip(&steps).map(|((index, _), step)| Some(index? * step)).sum();
                    let Some(offset) = offset else { continue };
                    let share: f64 = chosen().map(|(_, share)| share).product();
                    for channel in 0..channels {
                        let row = item * channels + channel;
                        out[row * places + place] += share * data[row * plane + offset];
                    }
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        let rank = inputs.first().copied().flatten().and_then(|ty| ty.tensor()?.rank()).unwrap_or(2);
        let taps: u64 = match self.mode {
            GridMode::Nearest => 1,
            GridMode::Linear => 2,
            GridMode::Cubic => 4,
        };
        let axes = u32::try_from(rank.saturating_sub(2)).unwrap_or(u32::MAX);
        movement::element_count(outputs).saturating_mul(taps.saturating_pow(axes)).saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        use ElementType::F32;
        use GridMode::{Cubic, Linear, Nearest};
        use GridPadding::{Border, Reflection, Zeros};
        let mut numbers = Numbers::new(73);
        let mut case = |name: &str, (mode, padding, align_corners), x: &[usize], grid: &[usize]| {
            let op = Self { mode, padding, align_corners };
            Case::new(name, op, [numbers.tensor(F32, x), numbers.floats(grid, -1.4, 1.4)])
        };
        vec![
            case("linear", (Linear, Zeros, false), &[2, 3, 5, 4], &[2, 6, 7, 2]),
            case("linear aligned", (Linear, Border, true), &[1, 17, 4, 6], &[1, 3, 5, 2]),
            case("linear mirrored", (Linear, Reflection, false), &[1, 2, 3, 4], &[1, 4, 4, 2]),
            case("linear mirrored aligned", (Linear, Reflection, true), &[1, 2, 3, 1], &[1, 4, 4, 2]),
            case("nearest", (Nearest, Zeros, false), &[2, 3, 5, 4], &[2, 3, 3, 2]),
            case("nearest aligned", (Nearest, Reflection, true), &[1, 2, 3, 5], &[1, 5, 3, 2]),
            case("cubic", (Cubic, Zeros, false), &[1, 2, 5, 4], &[1, 3, 9, 2]),
            case("cubic aligned", (Cubic, Border, true), &[1, 1, 5, 4], &[1, 3, 3, 2]),
            case("cubic mirrored", (Cubic, Reflection, false), &[2, 1, 2, 3], &[2, 4, 2, 2]),
            case("volume", (Linear, Zeros, true), &[1, 2, 3, 4, 5], &[1, 2, 3, 2, 3]),
            case("volume nearest", (Nearest, Border, false), &[1, 2, 3, 2, 4], &[1, 2, 3, 2, 3]),
            case("signal", (Linear, Zeros, false), &[2, 2, 6], &[2, 5, 1]),
            case("no places", (Linear, Zeros, false), &[1, 2, 3, 4], &[1, 0, 3, 2]),
            case("no data", (Linear, Border, false), &[1, 2, 0, 4], &[1, 2, 3, 2]),
        ]
    }
}
