//! Eight floats in an AVX register, with FMA.

#![expect(unsafe_code, reason = "instruction set intrinsics")]

use super::{Operation, Vector};
use std::arch::x86_64::{
    __m256, __m256i, _CMP_LT_OQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm256_add_epi32,
    _mm256_add_ps, _mm256_and_ps, _mm256_and_si256, _mm256_andnot_ps, _mm256_blendv_ps, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_cmp_ps, _mm256_cmpgt_epi32, _mm256_cvtepi32_ps, _mm256_cvtps_epi32,
    _mm256_div_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_max_ps,
    _mm256_min_ps, _mm256_mul_ps, _mm256_or_ps, _mm256_or_si256, _mm256_round_ps, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setr_epi32, _mm256_slli_epi32, _mm256_srai_epi32, _mm256_srli_epi32,
    _mm256_storeu_ps, _mm256_sub_epi32, _mm256_sub_ps, _mm256_xor_ps,
};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Eight floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32x8(pub(crate) __m256);

/// Run `operation` compiled for AVX2 and FMA.
///
/// # Safety
/// The machine has [`crate::isa::Isa::Avx2`].
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn run<O: Operation>(operation: O) -> O::Output {
    // SAFETY: as promised by the caller.
    unsafe { operation.run::<F32x8>() }
}

/// A mask of the first `count` lanes.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn first(count: usize) -> __m256i {
    // SAFETY: the caller vouches for AVX2.
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
}

impl Add for F32x8 {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_add_ps(self.0, other.0) })
    }
}

impl Sub for F32x8 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_sub_ps(self.0, other.0) })
    }
}

impl Mul for F32x8 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_mul_ps(self.0, other.0) })
    }
}

impl Div for F32x8 {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_div_ps(self.0, other.0) })
    }
}

impl Neg for F32x8 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_xor_ps(self.0, _mm256_set1_ps(-0.0)) })
    }
}

// SAFETY: masked loads and stores touch only the lanes of their mask; the rest is arithmetic.
unsafe impl Vector for F32x8 {
    const LANES: usize = 8;
    const HAS_MASKS: bool = false;
    type Mask = __m256;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the caller vouches for AVX2.
        F32x8(unsafe { _mm256_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for AVX2 and for 8 floats.
        F32x8(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const f32, count: usize) -> Self {
        // SAFETY: the caller vouches for AVX2 and for `count` floats.
        F32x8(unsafe { _mm256_maskload_ps(from, first(count)) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for 8 floats.
        unsafe { _mm256_storeu_ps(to, self.0) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, count: usize) {
        // SAFETY: the caller vouches for `count` floats.
        unsafe { _mm256_maskstore_ps(to, first(count), self.0) };
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 and FMA do.
        F32x8(unsafe { _mm256_fmadd_ps(self.0, factor.0, addend.0) })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // The instruction returns its second operand when either is not a number.
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_max_ps(other.0, self.0) })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_min_ps(other.0, self.0) })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0) })
    }

    #[inline(always)]
    fn copy_sign(self, sign: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe {
            let sign_bit = _mm256_set1_ps(-0.0);
            _mm256_or_ps(_mm256_andnot_ps(sign_bit, self.0), _mm256_and_ps(sign_bit, sign.0))
        })
    }

    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }

    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.constant(1.0) / self
    }

    #[inline(always)]
    fn scale(self, exponent: Self) -> Self {
        // In two halves, so that neither factor leaves the range of normal numbers.
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe {
            let bias = _mm256_set1_epi32(127);
            let exponent = _mm256_cvtps_epi32(exponent.0);
            let half = _mm256_srai_epi32::<1>(exponent);
            let rest = _mm256_sub_epi32(exponent, half);
            let first = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias)));
            let second = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(rest, bias)));
            _mm256_mul_ps(_mm256_mul_ps(self.0, first), second)
        })
    }

    #[inline(always)]
    fn split_exponent(self) -> (Self, Self) {
        // SAFETY: an F32x8 only exists where AVX2 does.
        unsafe {
            let bits = _mm256_castps_si256(self.0);
            let exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(126));
            let fraction = _mm256_and_si256(bits, _mm256_set1_epi32(0x007f_ffff));
            let mantissa = _mm256_or_si256(fraction, _mm256_set1_epi32(0x3f00_0000));
            (F32x8(_mm256_cvtepi32_ps(exponent)), F32x8(_mm256_castsi256_ps(mantissa)))
        }
    }

    #[inline(always)]
    fn less(self, other: Self) -> __m256 {
        // SAFETY: an F32x8 only exists where AVX2 does.
        unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0) }
    }

    #[inline(always)]
    fn select(mask: __m256, yes: Self, no: Self) -> Self {
        // SAFETY: an F32x8 only exists where AVX2 does.
        F32x8(unsafe { _mm256_blendv_ps(no.0, yes.0, mask) })
    }
}
