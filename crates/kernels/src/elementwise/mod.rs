//! Functions of each element: arithmetic, comparisons, choices, casts, and chains of them.
//!
//! Functions of two and three tensors take a [`Broadcast`], built once from the shapes. Nothing here allocates but the
//! constructors of [`Broadcast`] and [`Chain`]. Booleans are bytes of one and zero. Floats follow IEEE 754 with NaN passed
//! on; transcendental functions are within a few units in the last place (the tests state the bound).
//!
//! Contract: functions panic if slices do not have the lengths that the shapes imply.

mod binary;
mod broadcast;
mod cast;
mod chain;
pub(crate) mod math;
mod number;
#[cfg(test)]
mod tests;
mod unary;

pub use binary::{Binary, Bits, Comparison, binary, bits, compare, complement, not, select};
pub use broadcast::Broadcast;
pub(crate) use broadcast::{Buffer, Operand};
pub use cast::{CastTo, cast, cast_to_bool};
pub use chain::{Chain, ChainError, Source, Step};
pub use number::{Integer, Number};
pub(crate) use unary::block;
pub use unary::{NumberUnary, Unary, unary, unary_in_place, unary_number};
