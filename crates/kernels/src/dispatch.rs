//! Compiling one generic loop for several instruction sets.
//!
//! Loops that stream through memory are written once, in portable Rust that the compiler vectorises. [`dispatch`] has one
//! copy of such a [`Loop`] per instruction set and calls the best that the caller allows. All that a loop does must be
//! inlined into the copy: implement [`Loop::run`], and what it calls, with `#[inline(always)]` and without closures that
//! are too large to be inlined.

#![expect(
    unsafe_code,
    reason = "calls functions compiled for instruction sets that `Isas` found to be available"
)]

use crate::isa::{Isa, Isas};

/// A loop that [`dispatch`] compiles for each instruction set.
pub(crate) trait Loop {
    /// What the loop computes besides what it writes.
    type Output;

    /// Runs the loop. `FMA` says whether `f32::mul_add` is an instruction (elsewhere it is a slow library call).
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Runs the copy of `body` for the best allowed instruction set.
#[inline]
pub(crate) fn dispatch<L: Loop>(isas: Isas, body: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if isas.has(Isa::Avx512) {
            // SAFETY: `isas` holds only instruction sets that this machine has.
            return unsafe { avx512(body) };
        }
        if isas.has(Isa::Avx2) {
            // SAFETY: `isas` holds only instruction sets that this machine has.
            return unsafe { avx2(body) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        if isas.has(Isa::Neon) {
            return body.run::<true>();
        }
    }
    let _ = Isa::Scalar;
    scalar(isas, body)
}

#[inline(never)]
fn scalar<L: Loop>(_: Isas, body: L) -> L::Output {
    body.run::<false>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<L: Loop>(body: L) -> L::Output {
    body.run::<true>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
fn avx512<L: Loop>(body: L) -> L::Output {
    body.run::<true>()
}

/// `a * b + c`, in one instruction where there is one.
#[inline(always)]
pub(crate) fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Every set of instruction sets that selects another copy, for tests.
#[cfg(test)]
pub(crate) fn variants() -> Vec<Isas> {
    let mut variants = vec![Isas::scalar()];
    for isa in Isa::ALL {
        if isa.is_available() && isa != Isa::Scalar {
            variants.push(Isas::only(&[isa]));
        }
    }
    variants
}
