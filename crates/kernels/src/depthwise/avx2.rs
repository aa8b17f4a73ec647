//! Depthwise tile kernels for AVX2 and FMA: up to 7 pixels.

#![expect(unsafe_code, reason = "instantiates the tile kernels for an instruction set")]

use super::table::{Entry, Fast, FastTile, any_table, fast_table};
use super::tile::{Tile, any, border, inner};
use crate::isa::Isa;
use crate::simd::avx2::F32x8;

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn depthwise_f32_7_avx2<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { inner::<F32x8, KW, S, T>(tile) }
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn border_depthwise_f32_7_avx2<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { border::<F32x8, KW, S, T>(tile) }
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn any_depthwise_f32_8_avx2<const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { any::<F32x8, T>(tile) }
}

static FAST: [Fast; 4] = fast_table!(depthwise_f32_7_avx2, border_depthwise_f32_7_avx2; 7 4 2 1);

pub(super) static ENTRY: Entry = Entry {
    name: "depthwise_f32_7_avx2",
    any_name: "any_depthwise_f32_8_avx2",
    isa: Isa::Avx2,
    lanes: 8,
    has_masks: false,
    fast: &FAST,
    any: &any_table!(any_depthwise_f32_8_avx2),
};
