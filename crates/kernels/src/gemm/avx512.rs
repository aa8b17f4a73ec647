//! Tile kernels for AVX-512: up to 14 rows by 32 columns.

#![expect(unsafe_code, reason = "instantiates the tile kernels for an instruction set")]

use super::table::Entry;
use super::tile::{Tile, TileKernel, indirect, kernel_table, strided};
use crate::isa::Isa;
use crate::simd::avx512::F32x16;

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
unsafe fn gemm_f32_14x32_avx512<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { strided::<F32x16, R, NV>(tile) }
}

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
unsafe fn indirect_gemm_f32_14x32_avx512<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { indirect::<F32x16, R, NV>(tile) }
}

static STRIDED: [&[TileKernel]; 14] =
    kernel_table!(gemm_f32_14x32_avx512; 1 2 3 4 5 6 7 8 9 10 11 12 13 14; (1 2));
static INDIRECT: [&[TileKernel]; 14] =
    kernel_table!(indirect_gemm_f32_14x32_avx512; 1 2 3 4 5 6 7 8 9 10 11 12 13 14; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_f32_14x32_avx512",
    indirect_name: "indirect_gemm_f32_14x32_avx512",
    isa: Isa::Avx512,
    lanes: 16,
    vectors: 2,
    strided: &STRIDED,
    indirect: &INDIRECT,
};
