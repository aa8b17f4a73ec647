//! Sixteen floats in an AVX-512 register.

#![expect(unsafe_code, reason = "instruction set intrinsics")]

use super::{Operation, Vector};
use std::arch::x86_64::{
    __m512, __mmask16, _CMP_LT_OQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm512_abs_ps,
    _mm512_add_ps, _mm512_and_ps, _mm512_castsi512_ps, _mm512_cmp_ps_mask, _mm512_div_ps, _mm512_fmadd_ps,
    _mm512_fnmadd_ps, _mm512_getexp_ps, _mm512_getmant_ps, _mm512_loadu_ps, _mm512_mask_blend_ps,
    _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_or_ps,
    _mm512_rcp14_ps, _mm512_roundscale_ps, _mm512_scalef_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_storeu_ps, _mm512_sub_ps, _mm512_xor_ps,
};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Sixteen floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32x16(pub(crate) __m512);

/// Run `operation` compiled for AVX-512.
///
/// # Safety
/// The machine has [`crate::isa::Isa::Avx512`].
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
pub(super) unsafe fn run<O: Operation>(operation: O) -> O::Output {
    // SAFETY: as promised by the caller.
    unsafe { operation.run::<F32x16>() }
}

/// The first `count` lanes.
#[inline(always)]
pub(crate) fn first(count: usize) -> __mmask16 {
    debug_assert!(count <= 16);
    ((1_u32 << count) - 1) as __mmask16
}

impl Add for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_add_ps(self.0, other.0) })
    }
}

impl Sub for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
}

impl Mul for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
}

impl Div for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_div_ps(self.0, other.0) })
    }
}

impl Neg for F32x16 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_xor_ps(self.0, _mm512_set1_ps(-0.0)) })
    }
}

// SAFETY: masked loads and stores touch only the lanes of their mask; the rest is arithmetic.
unsafe impl Vector for F32x16 {
    const LANES: usize = 16;
    const HAS_MASKS: bool = true;
    type Mask = __mmask16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller vouches for AVX-512.
        F32x16(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for AVX-512 and for 16 floats.
        F32x16(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const f32, count: usize) -> Self {
        // SAFETY: the caller vouches for AVX-512 and for `count` floats.
        F32x16(unsafe { _mm512_maskz_loadu_ps(first(count), from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for 16 floats.
        unsafe { _mm512_storeu_ps(to, self.0) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, count: usize) {
        // SAFETY: the caller vouches for `count` floats.
        unsafe { _mm512_mask_storeu_ps(to, first(count), self.0) };
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_fmadd_ps(self.0, factor.0, addend.0) })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // The instruction returns its second operand when either is not a number.
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_max_ps(other.0, self.0) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_min_ps(other.0, self.0) })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_abs_ps(self.0) })
    }

    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe {
            let sign_bit = _mm512_castsi512_ps(_mm512_set1_epi32(i32::MIN));
            _mm512_or_ps(_mm512_abs_ps(self.0), _mm512_and_ps(sign.0, sign_bit))
        })
    }

    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }

    #[inline(always)]
    fn reciprocal(self) -> Self {
        // One Newton step takes the 14-bit estimate to the full precision.
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe {
            let estimate = _mm512_rcp14_ps(self.0);
            let error = _mm512_fnmadd_ps(self.0, estimate, _mm512_set1_ps(1.0));
            _mm512_fmadd_ps(estimate, error, estimate)
        })
    }

    #[inline(always)]
    fn scale(self, exponent: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_scalef_ps(self.0, exponent.0) })
    }

    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        unsafe {
            let exponent = _mm512_add_ps(_mm512_getexp_ps(self.0), _mm512_set1_ps(1.0));
            // Interval [0.5, 1), sign of the source.
            (F32x16(exponent), F32x16(_mm512_getmant_ps::<2, 0>(self.0)))
        }
    }

    #[inline(always)]
    fn less(self, other: Self) -> __mmask16 {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn select(mask: __mmask16, yes: Self, no: Self) -> Self {
        // SAFETY: an F32x16 only exists where AVX-512 does.
        F32x16(unsafe { _mm512_mask_blend_ps(mask, no.0, yes.0) })
    }
}
