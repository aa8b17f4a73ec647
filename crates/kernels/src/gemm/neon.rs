//! Tile kernels for Advanced SIMD: up to 8 rows by 8 columns.

#![expect(unsafe_code, reason = "instantiates the tile kernels for an instruction set")]

use super::table::Entry;
use super::tile::{Tile, TileKernel, indirect, kernel_table, strided};
use crate::isa::Isa;
use crate::simd::neon::F32x4;

#[target_feature(enable = "neon")]
unsafe fn gemm_f32_8x8_neon<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { strided::<F32x4, R, NV>(tile) }
}

#[target_feature(enable = "neon")]
unsafe fn indirect_gemm_f32_8x8_neon<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { indirect::<F32x4, R, NV>(tile) }
}

static STRIDED: [&[TileKernel]; 8] = kernel_table!(gemm_f32_8x8_neon; 1 2 3 4 5 6 7 8; (1 2));
static INDIRECT: [&[TileKernel]; 8] = kernel_table!(indirect_gemm_f32_8x8_neon; 1 2 3 4 5 6 7 8; (1 2));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_f32_8x8_neon",
    indirect_name: "indirect_gemm_f32_8x8_neon",
    isa: Isa::Neon,
    lanes: 4,
    vectors: 2,
    strided: &STRIDED,
    indirect: &INDIRECT,
};
