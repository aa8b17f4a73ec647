//! 8-bit tile kernels for AVX2: up to 4 rows by 16 columns.
//!
//! The one instruction that multiplies bytes saturates its 16-bit sums, so bytes are widened: those at even and at odd
//! places are 16-bit pairs, whose products are added in 32 bits.

#![expect(unsafe_code, reason = "instruction set intrinsics on addresses of the caller")]

use std::arch::x86_64::{
    _MM_HINT_T1, _mm_prefetch, _mm256_add_epi32, _mm256_and_si256, _mm256_load_si256, _mm256_madd_epi16,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_slli_epi16, _mm256_srai_epi16,
    _mm256_srli_epi16, _mm256_storeu_si256,
};

use super::table::Entry;
use super::tile::{Tile, TileKernel, for_quads, kernel_table, load_partial_quad, load_quad, unrolled};
use crate::isa::Isa;

#[inline(always)]
fn fetch(line: *const i8) {
    // SAFETY: fetching ahead is allowed at any address.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(line) };
}

#[target_feature(enable = "avx2")]
unsafe fn gemm_u8i8i32_4x16k4_avx2<const R: usize, const NV: usize>(tile: &Tile) {
    let mut sums = [[_mm256_setzero_si256(); NV]; R];
    let low_bytes = _mm256_set1_epi16(0xff);
    // SAFETY: as promised by the caller; panels begin at multiples of 64 bytes and groups are whole vectors.
    unsafe {
        for_quads!(tile, b += NV * 32, row => {
            let (mut even, mut odd) = ([_mm256_setzero_si256(); NV], [_mm256_setzero_si256(); NV]);
            for vector in 0..NV {
                let columns = _mm256_load_si256(b.add(vector * 32).cast());
                even[vector] = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(columns));
                odd[vector] = _mm256_srai_epi16::<8>(columns);
            }
            unrolled!(R, ROW => {
                let a = _mm256_set1_epi32(row(ROW));
                let (a_even, a_odd) = (_mm256_and_si256(a, low_bytes), _mm256_srli_epi16::<8>(a));
                for vector in 0..NV {
                    let products = _mm256_add_epi32(
                        _mm256_madd_epi16(a_even, even[vector]),
                        _mm256_madd_epi16(a_odd, odd[vector]),
                    );
                    sums[ROW][vector] = _mm256_add_epi32(sums[ROW][vector], products);
                }
            });
        });
        unrolled!(R, ROW => {
            for vector in 0..NV {
                _mm256_storeu_si256(tile.sums.add((ROW * NV + vector) * 8).cast(), sums[ROW][vector]);
            }
        });
    }
}

static KERNELS: [&[TileKernel]; 4] = kernel_table!(gemm_u8i8i32_4x16k4_avx2; 1 2 3 4; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_u8i8i32_4x16k4_avx2",
    isa: Isa::Avx2,
    is_a_signed: false,
    lanes: 8,
    vectors: 2,
    kernels: &KERNELS,
};
