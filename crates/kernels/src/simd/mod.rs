//! Vectors of 32-bit floats: one trait, one file per instruction set, and the dispatch between them.
//!
//! An algorithm is written once against [`Vector`] and put in an [`Operation`]; [`dispatch`] runs it compiled for the
//! best of the allowed instruction sets. A vector can only be made by `unsafe` functions whose caller promises that
//! the machine has the instruction set; whoever holds one may compute with it safely.

#![expect(unsafe_code, reason = "instruction set intrinsics behind one dispatch")]

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod scalar;
#[cfg(test)]
mod tests;

use crate::isa::{Isa, Isas};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A vector of 32-bit floats in registers.
///
/// # Safety
/// An implementation may use the instructions of one instruction set in every function, and must do what the
/// functions say within the memory that their callers vouch for.
pub(crate) unsafe trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// How many floats it holds.
    const LANES: usize;
    /// Whether partial loads and stores are as fast as whole ones.
    const HAS_MASKS: bool;
    /// One truth value per lane.
    type Mask: Copy;

    /// All lanes equal.
    ///
    /// # Safety
    /// The machine has the instruction set of this type.
    unsafe fn splat(value: f32) -> Self;

    /// Read `LANES` floats at any alignment.
    ///
    /// # Safety
    /// As [`Vector::splat`], and `from` is readable for `LANES` floats.
    unsafe fn load(from: *const f32) -> Self;

    /// Read `count` floats, at most `LANES`; the other lanes are zero.
    ///
    /// # Safety
    /// As [`Vector::splat`], and `from` is readable for `count` floats.
    unsafe fn load_partial(from: *const f32, count: usize) -> Self;

    /// Write `LANES` floats at any alignment.
    ///
    /// # Safety
    /// `to` is writable for `LANES` floats.
    unsafe fn store(self, to: *mut f32);

    /// Write the first `count` lanes, at most `LANES`.
    ///
    /// # Safety
    /// `to` is writable for `count` floats.
    unsafe fn store_partial(self, to: *mut f32, count: usize);

    /// All lanes equal: [`Vector::splat`] for those who have a vector already.
    #[inline(always)]
    fn constant(self, value: f32) -> Self {
        // SAFETY: that `self` exists shows that the machine has the instruction set.
        unsafe { Self::splat(value) }
    }

    /// `self * factor + addend`, rounded once (twice where the instruction set has no such instruction).
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The greater; a lane that is not a number in `self` stays so.
    fn max(self, other: Self) -> Self;
    /// The lesser; a lane that is not a number in `self` stays so.
    fn min(self, other: Self) -> Self;
    /// Without the sign.
    fn abs(self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copy_sign(self, sign: Self) -> Self;
    /// To the nearest whole number, halves to the even one.
    fn round(self) -> Self;
    /// `1 / self` within 2 units in the last place, for finite results and `self` not near the ends of the range.
    fn reciprocal(self) -> Self;
    /// `self` times two to the power `exponent`, a vector of whole numbers from -252 to 254.
    fn scale(self, exponent: Self) -> Self;
    /// For positive normal numbers: the exponent and the mantissa in `[0.5, 1)`, so that `self` is
    /// `mantissa * 2^exponent`.
    fn split_exponent(self) -> (Self, Self);
    /// Where `self < other`; false where either is not a number.
    fn less(self, other: Self) -> Self::Mask;
    /// `yes` where `mask` holds, otherwise `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
}

/// An algorithm over any [`Vector`], with its arguments.
pub(crate) trait Operation {
    /// What it returns.
    type Output;

    /// Run it. Must be `#[inline(always)]`, and so must what it calls with vectors, to be compiled for the
    /// instruction set.
    ///
    /// # Safety
    /// The machine has the instruction set of `V`.
    unsafe fn run<V: Vector>(self) -> Self::Output;
}

/// Run `operation` with the widest vectors among the allowed instruction sets.
#[inline]
pub(crate) fn dispatch<O: Operation>(isas: Isas, operation: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if isas.has(Isa::Avx512) {
            // SAFETY: an `Isas` only has what the machine has.
            return unsafe { avx512::run(operation) };
        }
        if isas.has(Isa::Avx2) {
            // SAFETY: an `Isas` only has what the machine has.
            return unsafe { avx2::run(operation) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    if isas.has(Isa::Neon) {
        // SAFETY: an `Isas` only has what the machine has.
        return unsafe { neon::run(operation) };
    }
    // SAFETY: every machine has scalar code.
    unsafe { operation.run::<scalar::F32x1>() }
}
