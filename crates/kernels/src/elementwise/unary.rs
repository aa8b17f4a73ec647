//! Functions of one `f32`, and the few of other numbers.

#![expect(unsafe_code, reason = "blocks of the output are handed to tasks")]

use super::broadcast::BLOCK;
use super::math;
use super::number::Number;
use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// A function of one `f32`; the names are those of ONNX.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "the ONNX operators of these names, with their attributes in the order of ONNX"
)]
pub enum Unary {
    Identity,
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Celu { alpha: f32 },
    Clip { min: f32, max: f32 },
    Cos,
    Cosh,
    Elu { alpha: f32 },
    Erf,
    Exp,
    Floor,
    Gelu,
    GeluTanh,
    HardSigmoid { alpha: f32, beta: f32 },
    HardSwish,
    LeakyRelu { alpha: f32 },
    Log,
    Mish,
    Neg,
    QuickGelu { alpha: f32 },
    Reciprocal,
    Relu,
    Round,
    Rsqrt,
    Selu { alpha: f32, gamma: f32 },
    Shrink { bias: f32, lambd: f32 },
    Sigmoid,
    Sign,
    Silu,
    Sin,
    Sinh,
    Softplus,
    Softsign,
    Sqrt,
    Square,
    Tan,
    Tanh,
    ThresholdedRelu { alpha: f32 },
}

/// `y[i] = function(x[i])`.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn unary(isas: Isas, team: &Team, function: Unary, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    let output = DisjointMut::new(y);
    team.parallel_ranges(x.len(), grain(function), 16, &|start, end| {
        // SAFETY: tasks have ranges that do not meet.
        let y = unsafe { output.slice_mut(start, end - start) };
        block(isas, function, &x[start..end], y);
    });
}

/// `y[i] = function(y[i])`.
pub fn unary_in_place(isas: Isas, team: &Team, function: Unary, y: &mut [f32]) {
    let length = y.len();
    let output = DisjointMut::new(y);
    team.parallel_ranges(length, grain(function), 16, &|start, end| {
        let mut buffer = [0.0; BLOCK];
        for from in (start..end).step_by(BLOCK) {
            // SAFETY: tasks have ranges that do not meet.
            let y = unsafe { output.slice_mut(from, BLOCK.min(end - from)) };
            let x = &mut buffer[..y.len()];
            x.copy_from_slice(y);
            block(isas, function, x, y);
        }
    });
}

/// Elements worth a task of their own.
fn grain(function: Unary) -> usize {
    match function {
        Unary::Identity | Unary::Abs | Unary::Neg | Unary::Relu | Unary::Clip { .. } | Unary::Square => {
            16 * 1024
        }
        _ => 4 * 1024,
    }
}

/// One stretch of elements on the calling thread.
pub(crate) fn block(isas: Isas, function: Unary, x: &[f32], y: &mut [f32]) {
    // Arguments whose reduction needs more than double precision are rare; the library handles them.
    let library: Option<fn(f32) -> f32> = match function {
        Unary::Sin => Some(f32::sin),
        Unary::Cos => Some(f32::cos),
        Unary::Tan => Some(f32::tan),
        _ => None,
    };
    if let Some(library) = library
        && !dispatch(isas, WithinReduction(x))
    {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = library(x));
        return;
    }
    dispatch(isas, UnaryLoop { function, x, y });
}

/// Whether all magnitudes are at most [`math::REDUCTION_LIMIT`].
struct WithinReduction<'a>(&'a [f32]);

impl Loop for WithinReduction<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> bool {
        self.0.iter().fold(0_u32, |outside, x| outside | u32::from(x.abs() > math::REDUCTION_LIMIT)) == 0
    }
}

struct UnaryLoop<'a> {
    function: Unary,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for UnaryLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { function, x: inputs, y: outputs } = self;
        // Not a function with a closure: the compiler may leave large closures out of line, without vectors.
        macro_rules! map {
            ($x:ident => $value:expr) => {
                for (output, &$x) in outputs.iter_mut().zip(inputs) {
                    *output = $value;
                }
            };
        }
        match function {
            Unary::Identity => outputs.copy_from_slice(inputs),
            Unary::Abs => map!(x => x.abs()),
            Unary::Acos => map!(x => x.acos()),
            Unary::Acosh => map!(x => f64::from(x).acosh() as f32),
            Unary::Asin => map!(x => x.asin()),
            Unary::Asinh => map!(x => f64::from(x).asinh() as f32),
            Unary::Atan => map!(x => x.atan()),
            Unary::Atanh => map!(x => f64::from(x).atanh() as f32),
            Unary::Ceil => map!(x => x.ceil()),
            Unary::Celu { alpha } => {
                let inverse = 1.0 / alpha;
                map!(x => if x > 0.0 { x } else { alpha * (math::exp::<FMA>(x * inverse) - 1.0) });
            }
            Unary::Clip { min, max } => map!(x => clip(x, min, max)),
            Unary::Cos => map!(x => math::cos::<FMA>(x)),
            Unary::Cosh => map!(x => x.cosh()),
            Unary::Elu { alpha } => {
                map!(x => if x > 0.0 { x } else { alpha * (math::exp::<FMA>(x) - 1.0) });
            }
            Unary::Erf => map!(x => math::erf::<FMA>(x)),
            Unary::Exp => map!(x => math::exp::<FMA>(x)),
            Unary::Floor => map!(x => x.floor()),
            Unary::Gelu => map!(x => math::gelu::<FMA>(x)),
            Unary::GeluTanh => map!(x => math::gelu_tanh::<FMA>(x)),
            Unary::HardSigmoid { alpha, beta } => map!(x => clip(alpha * x + beta, 0.0, 1.0)),
            Unary::HardSwish => map!(x => x * clip(x * (1.0 / 6.0) + 0.5, 0.0, 1.0)),
            Unary::LeakyRelu { alpha } => map!(x => if x < 0.0 { alpha * x } else { x }),
            Unary::Log => map!(x => math::log::<FMA>(x)),
            Unary::Mish => map!(x => math::mish::<FMA>(x)),
            Unary::Neg => map!(x => -x),
            Unary::QuickGelu { alpha } => map!(x => x * math::sigmoid::<FMA>(alpha * x)),
            Unary::Reciprocal => map!(x => 1.0 / x),
            Unary::Relu => map!(x => if x < 0.0 { 0.0 } else { x }),
            Unary::Round => map!(x => x.round_ties_even()),
            Unary::Rsqrt => map!(x => 1.0 / x.sqrt()),
            Unary::Selu { alpha, gamma } => {
                map!(x => gamma * if x > 0.0 { x } else { alpha * (math::exp::<FMA>(x) - 1.0) });
            }
            Unary::Shrink { bias, lambd } => map!(x => {
                let positive = if x > lambd { x - bias } else { 0.0 };
                if x < -lambd { x + bias } else { positive }
            }),
            Unary::Sigmoid => map!(x => math::sigmoid::<FMA>(x)),
            Unary::Sign => map!(x => Number::signum(x)),
            Unary::Silu => map!(x => x * math::sigmoid::<FMA>(x)),
            Unary::Sin => map!(x => math::sin::<FMA>(x)),
            Unary::Sinh => map!(x => x.sinh()),
            Unary::Softplus => map!(x => math::softplus::<FMA>(x)),
            Unary::Softsign => map!(x => x / (1.0 + x.abs())),
            Unary::Sqrt => map!(x => x.sqrt()),
            Unary::Square => map!(x => x * x),
            Unary::Tan => map!(x => math::tan::<FMA>(x)),
            Unary::Tanh => map!(x => math::tanh::<FMA>(x)),
            Unary::ThresholdedRelu { alpha } => map!(x => if x > alpha { x } else { 0.0 }),
        }
    }
}

#[inline(always)]
fn clip(x: f32, min: f32, max: f32) -> f32 {
    // The comparisons keep NaN.
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

/// A function of one number of any type.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum NumberUnary<T> {
    /// The magnitude.
    Abs,
    /// The number with its sign exchanged.
    Neg,
    /// One, zero or minus one.
    Sign,
    /// The nearest number of an interval.
    Clip {
        /// The interval's lower end.
        min: T,
        /// The interval's upper end.
        max: T,
    },
}

/// `y[i] = function(x[i])` for any type of number.
///
/// # Panics
/// When `x` and `y` differ in length.
pub fn unary_number<T: Number>(isas: Isas, team: &Team, function: NumberUnary<T>, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "input and output differ in length");
    let output = DisjointMut::new(y);
    team.parallel_ranges(x.len(), 16 * 1024, 16, &|start, end| {
        // SAFETY: tasks have ranges that do not meet.
        let y = unsafe { output.slice_mut(start, end - start) };
        dispatch(isas, NumberLoop { function, x: &x[start..end], y });
    });
}

struct NumberLoop<'a, T> {
    function: NumberUnary<T>,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Number> Loop for NumberLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let pairs = self.y.iter_mut().zip(self.x);
        match self.function {
            NumberUnary::Abs => pairs.for_each(|(y, &x)| *y = x.magnitude()),
            NumberUnary::Neg => pairs.for_each(|(y, &x)| *y = x.negate()),
            NumberUnary::Sign => pairs.for_each(|(y, &x)| *y = x.signum()),
            NumberUnary::Clip { min, max } => pairs.for_each(|(y, &x)| *y = x.maximum(min).minimum(max)),
        }
    }
}
