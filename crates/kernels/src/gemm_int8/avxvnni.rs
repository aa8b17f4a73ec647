//! 8-bit tile kernels for AVX-VNNI: up to 6 rows by 16 columns.

#![expect(unsafe_code, reason = "instruction set intrinsics on addresses of the caller")]

use std::arch::x86_64::{
    _MM_HINT_T1, _mm_prefetch, _mm256_dpbusd_avx_epi32, _mm256_load_si256, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::table::Entry;
use super::tile::{Tile, TileKernel, for_quads, kernel_table, load_partial_quad, load_quad, unrolled};
use crate::isa::Isa;

#[inline(always)]
fn fetch(line: *const i8) {
    // SAFETY: fetching ahead is allowed at any address.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(line) };
}

#[target_feature(enable = "avx2,avxvnni")]
unsafe fn gemm_u8i8i32_6x16k4_avxvnni<const R: usize, const NV: usize>(tile: &Tile) {
    let mut sums = [[_mm256_setzero_si256(); NV]; R];
    // SAFETY: as promised by the caller; panels begin at multiples of 64 bytes and groups are whole vectors.
    unsafe {
        for_quads!(tile, b += NV * 32, row => {
            let mut columns = [_mm256_setzero_si256(); NV];
            for (vector, columns) in columns.iter_mut().enumerate() {
                *columns = _mm256_load_si256(b.add(vector * 32).cast());
            }
            unrolled!(R, ROW => {
                let a = _mm256_set1_epi32(row(ROW));
                for vector in 0..NV {
                    sums[ROW][vector] = _mm256_dpbusd_avx_epi32(sums[ROW][vector], a, columns[vector]);
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

static KERNELS: [&[TileKernel]; 6] = kernel_table!(gemm_u8i8i32_6x16k4_avxvnni; 1 2 3 4 5 6; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_u8i8i32_6x16k4_avxvnni",
    isa: Isa::AvxVnni,
    is_a_signed: false,
    lanes: 8,
    vectors: 2,
    kernels: &KERNELS,
};
