//! Four floats in an Advanced SIMD register.

#![expect(unsafe_code, reason = "instruction set intrinsics")]

use super::{Operation, Vector};
use std::arch::aarch64::{
    float32x4_t, uint32x4_t, vabsq_f32, vaddq_f32, vaddq_s32, vandq_u32, vbslq_f32, vcltq_f32,
    vcvtnq_s32_f32, vcvtq_f32_s32, vdivq_f32, vdupq_n_f32, vdupq_n_s32, vdupq_n_u32, vfmaq_f32, vld1q_f32,
    vmaxq_f32, vminq_f32, vmulq_f32, vnegq_f32, vorrq_u32, vreinterpretq_f32_s32, vreinterpretq_f32_u32,
    vreinterpretq_s32_u32, vreinterpretq_u32_f32, vrndnq_f32, vshlq_n_s32, vshrq_n_s32, vshrq_n_u32,
    vst1q_f32, vsubq_f32, vsubq_s32,
};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Four floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32x4(pub(crate) float32x4_t);

/// Run `operation` compiled for Advanced SIMD.
///
/// # Safety
/// The machine has [`crate::isa::Isa::Neon`].
#[target_feature(enable = "neon")]
pub(super) unsafe fn run<O: Operation>(operation: O) -> O::Output {
    // SAFETY: as promised by the caller.
    unsafe { operation.run::<F32x4>() }
}

impl Add for F32x4 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vaddq_f32(self.0, other.0) })
    }
}

impl Sub for F32x4 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vsubq_f32(self.0, other.0) })
    }
}

impl Mul for F32x4 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vmulq_f32(self.0, other.0) })
    }
}

impl Div for F32x4 {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vdivq_f32(self.0, other.0) })
    }
}

impl Neg for F32x4 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vnegq_f32(self.0) })
    }
}

// SAFETY: partial loads and stores go through an array and copy `count` floats; the rest is arithmetic.
unsafe impl Vector for F32x4 {
    const LANES: usize = 4;
    const HAS_MASKS: bool = false;
    type Mask = uint32x4_t;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller vouches for Advanced SIMD.
        F32x4(unsafe { vdupq_n_f32(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for Advanced SIMD and for 4 floats.
        F32x4(unsafe { vld1q_f32(from) })
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const f32, count: usize) -> Self {
        let mut lanes = [0.0_f32; 4];
        // SAFETY: the caller vouches for Advanced SIMD and for `count` floats; the array has four.
        unsafe {
            for lane in 0..count.min(4) {
                lanes[lane] = from.add(lane).read();
            }
            F32x4(vld1q_f32(lanes.as_ptr()))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for 4 floats.
        unsafe { vst1q_f32(to, self.0) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, count: usize) {
        let mut lanes = [0.0_f32; 4];
        // SAFETY: the array has four floats, and the caller vouches for `count` floats.
        unsafe {
            vst1q_f32(lanes.as_mut_ptr(), self.0);
            for (lane, value) in lanes.iter().enumerate().take(count) {
                to.add(lane).write(*value);
            }
        }
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vfmaq_f32(addend.0, self.0, factor.0) })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vmaxq_f32(self.0, other.0) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vminq_f32(self.0, other.0) })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vabsq_f32(self.0) })
    }

    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vbslq_f32(vdupq_n_u32(0x8000_0000), sign.0, self.0) })
    }

    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vrndnq_f32(self.0) })
    }

    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.constant(1.0) / self
    }

    #[inline(always)]
    fn scale(self, exponent: Self) -> Self {
        // In two halves, so that neither factor leaves the range of normal numbers.
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe {
            let bias = vdupq_n_s32(127);
            let exponent = vcvtnq_s32_f32(exponent.0);
            let half = vshrq_n_s32::<1>(exponent);
            let rest = vsubq_s32(exponent, half);
            let first = vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(half, bias)));
            let second = vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(rest, bias)));
            vmulq_f32(vmulq_f32(self.0, first), second)
        })
    }

    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        unsafe {
            let bits = vreinterpretq_u32_f32(self.0);
            let exponent = vsubq_s32(vreinterpretq_s32_u32(vshrq_n_u32::<23>(bits)), vdupq_n_s32(126));
            let fraction = vandq_u32(bits, vdupq_n_u32(0x007f_ffff));
            let mantissa = vorrq_u32(fraction, vdupq_n_u32(0x3f00_0000));
            (F32x4(vcvtq_f32_s32(exponent)), F32x4(vreinterpretq_f32_u32(mantissa)))
        }
    }

    #[inline(always)]
    fn less(self, other: Self) -> uint32x4_t {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        unsafe { vcltq_f32(self.0, other.0) }
    }

    #[inline(always)]
    fn select(mask: uint32x4_t, yes: Self, no: Self) -> Self {
        // SAFETY: an F32x4 only exists where Advanced SIMD does.
        F32x4(unsafe { vbslq_f32(mask, yes.0, no.0) })
    }
}
