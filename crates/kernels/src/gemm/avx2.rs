//! Tile kernels for AVX2 and FMA: up to 6 rows by 16 columns.

#![expect(unsafe_code, reason = "instantiates the tile kernels for an instruction set")]

use super::table::Entry;
use super::tile::{Tile, TileKernel, indirect, kernel_table, strided};
use crate::isa::Isa;
use crate::simd::avx2::F32x8;

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn gemm_f32_6x16_avx2<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { strided::<F32x8, R, NV>(tile) }
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn indirect_gemm_f32_6x16_avx2<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { indirect::<F32x8, R, NV>(tile) }
}

static STRIDED: [&[TileKernel]; 6] = kernel_table!(gemm_f32_6x16_avx2; 1 2 3 4 5 6; (1 2));
static INDIRECT: [&[TileKernel]; 6] = kernel_table!(indirect_gemm_f32_6x16_avx2; 1 2 3 4 5 6; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_f32_6x16_avx2",
    indirect_name: "indirect_gemm_f32_6x16_avx2",
    isa: Isa::Avx2,
    lanes: 8,
    vectors: 2,
    strided: &STRIDED,
    indirect: &INDIRECT,
};
