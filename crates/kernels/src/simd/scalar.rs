//! One float as a vector: the portable form.
//!
//! No fused multiply-add, which without hardware support is a slow call.

#![expect(unsafe_code, reason = "the vector trait reads and writes through pointers")]

use super::Vector;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// One float.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32x1(f32);

impl Add for F32x1 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        F32x1(self.0 + other.0)
    }
}

impl Sub for F32x1 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        F32x1(self.0 - other.0)
    }
}

impl Mul for F32x1 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        F32x1(self.0 * other.0)
    }
}

impl Div for F32x1 {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        F32x1(self.0 / other.0)
    }
}

impl Neg for F32x1 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        F32x1(-self.0)
    }
}

/// Two to the power `exponent`, for whole numbers from -126 to 127.
#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

// SAFETY: reads and writes exactly the floats that the trait's functions name.
unsafe impl Vector for F32x1 {
    const LANES: usize = 1;
    const HAS_MASKS: bool = true;
    type Mask = bool;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        F32x1(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for one float.
        F32x1(unsafe { from.read() })
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const f32, count: usize) -> Self {
        // SAFETY: the caller vouches for `count` floats.
        if count == 0 { F32x1(0.0) } else { F32x1(unsafe { from.read() }) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for one float.
        unsafe { to.write(self.0) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, count: usize) {
        if count > 0 {
            // SAFETY: the caller vouches for `count` floats.
            unsafe { to.write(self.0) };
        }
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        F32x1(self.0 * factor.0 + addend.0)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if other.0 < self.0 { other } else { self }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        F32x1(self.0.abs())
    }

    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        F32x1(self.0.copysign(sign.0))
    }

    #[inline(always)]
    fn round(self) -> Self {
        // Adding and taking away 2^23 leaves the nearest whole number; greater numbers are whole already.
        let whole = 8_388_608.0_f32;
        let rounded = (self.0.abs() + whole) - whole;
        F32x1(if self.0.abs() < whole { rounded.copysign(self.0) } else { self.0 })
    }

    #[inline(always)]
    fn reciprocal(self) -> Self {
        F32x1(1.0 / self.0)
    }

    #[inline(always)]
    fn scale(self, exponent: Self) -> Self {
        let exponent = exponent.0 as i32;
        let half = exponent >> 1;
        F32x1(self.0 * power_of_two(half) * power_of_two(exponent - half))
    }

    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        let bits = self.0.to_bits();
        let exponent = (bits >> 23) as i32 - 126;
        let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
        (F32x1(exponent as f32), F32x1(mantissa))
    }

    #[inline(always)]
    fn less(self, other: Self) -> bool {
        self.0 < other.0
    }

    #[inline(always)]
    fn select(mask: bool, yes: Self, no: Self) -> Self {
        if mask { yes } else { no }
    }
}
