//! 8-bit tile kernels for AVX-512 VNNI: up to 14 rows by 32 columns.

#![expect(unsafe_code, reason = "instruction set intrinsics on addresses of the caller")]

use std::arch::x86_64::{
    _MM_HINT_T1, _mm_prefetch, _mm512_dpbusd_epi32, _mm512_load_si512, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_storeu_si512,
};

use super::table::Entry;
use super::tile::{Tile, TileKernel, for_quads, kernel_table, load_partial_quad, load_quad, unrolled};
use crate::isa::Isa;

#[inline(always)]
fn fetch(line: *const i8) {
    // SAFETY: fetching ahead is allowed at any address.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(line) };
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn gemm_u8i8i32_14x32k4_avx512vnni<const R: usize, const NV: usize>(tile: &Tile) {
    let mut sums = [[_mm512_setzero_si512(); NV]; R];
    // SAFETY: as promised by the caller; panels begin at multiples of 64 bytes and groups are whole vectors.
    unsafe {
        for_quads!(tile, b += NV * 64, row => {
            let mut columns = [_mm512_setzero_si512(); NV];
            for (vector, columns) in columns.iter_mut().enumerate() {
                *columns = _mm512_load_si512(b.add(vector * 64).cast());
            }
            unrolled!(R, ROW => {
                let a = _mm512_set1_epi32(row(ROW));
                for vector in 0..NV {
                    sums[ROW][vector] = _mm512_dpbusd_epi32(sums[ROW][vector], a, columns[vector]);
                }
            });
        });
        unrolled!(R, ROW => {
            for vector in 0..NV {
                _mm512_storeu_si512(tile.sums.add((ROW * NV + vector) * 16).cast(), sums[ROW][vector]);
            }
        });
    }
}

static KERNELS: [&[TileKernel]; 14] =
    kernel_table!(gemm_u8i8i32_14x32k4_avx512vnni; 1 2 3 4 5 6 7 8 9 10 11 12 13 14; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_u8i8i32_14x32k4_avx512vnni",
    isa: Isa::Avx512Vnni,
    is_a_signed: false,
    lanes: 16,
    vectors: 2,
    kernels: &KERNELS,
};
