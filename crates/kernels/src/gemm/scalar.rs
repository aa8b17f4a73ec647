//! Tile kernels in portable code: up to 4 rows by 4 columns.

#![expect(unsafe_code, reason = "instantiates the tile kernels")]

use super::table::Entry;
use super::tile::{Tile, TileKernel, indirect, kernel_table, strided};
use crate::isa::Isa;
use crate::simd::scalar::F32x1;

unsafe fn gemm_f32_4x4_scalar<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { strided::<F32x1, R, NV>(tile) }
}

unsafe fn indirect_gemm_f32_4x4_scalar<const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { indirect::<F32x1, R, NV>(tile) }
}

static STRIDED: [&[TileKernel]; 4] = kernel_table!(gemm_f32_4x4_scalar; 1 2 3 4; (1 2 3 4));
static INDIRECT: [&[TileKernel]; 4] = kernel_table!(indirect_gemm_f32_4x4_scalar; 1 2 3 4; (1 2 3 4));

pub(super) const ENTRY: Entry = Entry {
    name: "gemm_f32_4x4_scalar",
    indirect_name: "indirect_gemm_f32_4x4_scalar",
    isa: Isa::Scalar,
    lanes: 1,
    vectors: 4,
    strided: &STRIDED,
    indirect: &INDIRECT,
};
