//! Functions of one float, on slices: exponentials, the activations of neural networks, and their like.
//!
//! Results are within a few units in the last place of the exact value (where a function subtracts nearly equal
//! numbers by its definition, as GELU does far below zero, of the numbers it subtracts). What is not a number stays so.
//! Lengths are arbitrary, and source and destination may be the same slice.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

pub(crate) mod functions;
#[cfg(test)]
mod tests;

use crate::isa::Isas;
use crate::simd::{Operation, Vector, dispatch};

/// A function of one float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// `e^x`.
    Exp,
    /// `e^x - 1`.
    ExpMinusOne,
    /// The natural logarithm.
    Ln,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `x sigmoid(x)`.
    Silu,
    /// The hyperbolic tangent.
    Tanh,
    /// The error function.
    Erf,
    /// `x (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// GELU's approximation by the hyperbolic tangent.
    GeluTanh,
    /// `ln(1 + e^x)`.
    Softplus,
    /// `x tanh(softplus(x))`.
    Mish,
    /// `x` above zero, otherwise `alpha (e^x - 1)`.
    Elu {
        /// The factor below zero.
        alpha: f32,
    },
    /// `max(0, min(1, alpha x + beta))`.
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at zero.
        beta: f32,
    },
    /// `x max(0, min(1, x / 6 + 1 / 2))`.
    HardSwish,
    /// `x` above zero, otherwise `slope x`.
    LeakyRelu {
        /// The factor below zero.
        slope: f32,
    },
    /// `max(min, x)`, then `min(max, x)`.
    Clip {
        /// The least result.
        min: f32,
        /// The greatest result.
        max: f32,
    },
}

/// A function of one vector, with its parameters.
pub(crate) trait Pointwise: Copy {
    /// The function's value. Must be `#[inline(always)]`.
    fn value<V: Vector>(self, x: V) -> V;
}

macro_rules! pointwise {
    ($($name:ident $({ $($field:ident),+ })? => |$x:ident| $body:expr;)+) => {
        $(
            #[derive(Clone, Copy, Debug)]
            struct $name { $($($field: f32),+)? }
            impl Pointwise for $name {
                #[inline(always)]
                fn value<V: Vector>(self, $x: V) -> V {
                    $(let $name { $($field),+ } = self;)?
                    $body
                }
            }
        )+
    };
}

pointwise! {
    Exp => |x| functions::exp(x);
    ExpMinusOne => |x| functions::exp_minus_one(x);
    Ln => |x| functions::ln(x);
    Sigmoid => |x| functions::sigmoid(x);
    Silu => |x| functions::silu(x);
    Tanh => |x| functions::tanh(x);
    Erf => |x| functions::erf(x);
    Gelu => |x| functions::gelu(x);
    GeluTanh => |x| functions::gelu_tanh(x);
    Softplus => |x| functions::softplus(x);
    Mish => |x| functions::mish(x);
    Elu { alpha } => |x| functions::elu(x, alpha);
    HardSigmoid { alpha, beta } => |x| functions::hard_sigmoid(x, alpha, beta);
    HardSwish => |x| functions::hard_swish(x);
    LeakyRelu { slope } => |x| functions::leaky_relu(x, x.constant(slope));
    Clip { min, max } => |x| x.max(x.constant(min)).min(x.constant(max));
}

/// What can be done with any [`Pointwise`]: the receiving end of [`Function::with`].
pub(crate) trait WithPointwise {
    /// Do it with this function.
    fn with<P: Pointwise>(self, function: P);
}

impl Function {
    /// Hand the function to `receiver` as a type, so that loops are compiled for it.
    #[inline]
    pub(crate) fn with<R: WithPointwise>(self, receiver: R) {
        match self {
            Function::Exp => receiver.with(Exp {}),
            Function::ExpMinusOne => receiver.with(ExpMinusOne {}),
            Function::Ln => receiver.with(Ln {}),
            Function::Sigmoid => receiver.with(Sigmoid {}),
            Function::Silu => receiver.with(Silu {}),
            Function::Tanh => receiver.with(Tanh {}),
            Function::Erf => receiver.with(Erf {}),
            Function::Gelu => receiver.with(Gelu {}),
            Function::GeluTanh => receiver.with(GeluTanh {}),
            Function::Softplus => receiver.with(Softplus {}),
            Function::Mish => receiver.with(Mish {}),
            Function::Elu { alpha } => receiver.with(Elu { alpha }),
            Function::HardSigmoid { alpha, beta } => receiver.with(HardSigmoid { alpha, beta }),
            Function::HardSwish => receiver.with(HardSwish {}),
            Function::LeakyRelu { slope } => receiver.with(LeakyRelu { slope }),
            Function::Clip { min, max } => receiver.with(Clip { min, max }),
        }
    }
}

/// Write the function of each element of `x` to the same place of `y`.
///
/// # Panics
/// When the lengths differ.
pub fn apply(isas: Isas, function: Function, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "as many results as arguments");
    // SAFETY: both slices have this many elements.
    function.with(Rows { isas, from: x.as_ptr(), to: y.as_mut_ptr(), count: 1, columns: y.len(), pitch: 0 });
}

/// Replace each element by the function of it.
pub fn apply_in_place(isas: Isas, function: Function, data: &mut [f32]) {
    let to = data.as_mut_ptr();
    // SAFETY: the slice has this many elements.
    function.with(Rows { isas, from: to.cast_const(), to, count: 1, columns: data.len(), pitch: 0 });
}

macro_rules! by_name {
    ($($(#[$documentation:meta])* $name:ident = $function:ident;)+) => {
        $(
            $(#[$documentation])*
            ///
            /// # Panics
            /// When the lengths differ.
            pub fn $name(isas: Isas, x: &[f32], y: &mut [f32]) {
                apply(isas, Function::$function, x, y);
            }
        )+
    };
}

by_name! {
    /// `e^x` of each element.
    exp = Exp;
    /// The natural logarithm of each element.
    ln = Ln;
    /// `1 / (1 + e^-x)` of each element.
    sigmoid = Sigmoid;
    /// `x sigmoid(x)` of each element.
    silu = Silu;
    /// The hyperbolic tangent of each element.
    tanh = Tanh;
    /// The error function of each element.
    erf = Erf;
    /// `x (1 + erf(x / sqrt 2)) / 2` of each element.
    gelu = Gelu;
}

/// Rows of floats to map, with `pitch` floats from the start of one row to the start of the next; source and
/// destination have the same shape.
///
/// Whoever makes one promises that `count` rows of `columns` floats are readable from `from` and writable at `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) isas: Isas,
    pub(crate) from: *const f32,
    pub(crate) to: *mut f32,
    pub(crate) count: usize,
    pub(crate) columns: usize,
    pub(crate) pitch: usize,
}

impl WithPointwise for Rows {
    #[inline]
    fn with<P: Pointwise>(self, function: P) {
        dispatch(self.isas, MapRows { rows: self, function });
    }
}

struct MapRows<P> {
    rows: Rows,
    function: P,
}

impl<P: Pointwise> Operation for MapRows<P> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Rows { from, to, count, columns, pitch, .. } = self.rows;
        // One copy of the function for whole and partial vectors: without masks, a partial one goes through this buffer.
        let mut buffer = [0.0_f32; 16];
        for row in 0..count {
            let start = row * pitch;
            let mut column = 0;
            while column < columns {
                let lanes = V::LANES.min(columns - column);
                let from = from.wrapping_add(start + column);
                let to = to.wrapping_add(start + column);
                // SAFETY: `Rows` vouches for the rows, and every access to them stays below `columns`; the buffer is as long
                // as the longest vector.
                unsafe {
                    if V::HAS_MASKS {
                        self.function.value(V::load_partial(from, lanes)).store_partial(to, lanes);
                    } else {
                        let is_whole = lanes == V::LANES;
                        if !is_whole {
                            from.copy_to_nonoverlapping(buffer.as_mut_ptr(), lanes);
                        }
                        let value =
                            self.function.value(V::load(if is_whole { from } else { buffer.as_ptr() }));
                        value.store(if is_whole { to } else { buffer.as_mut_ptr() });
                        if !is_whole {
                            to.copy_from_nonoverlapping(buffer.as_ptr(), lanes);
                        }
                    }
                }
                column += V::LANES;
            }
        }
    }
}
