//! Depthwise tile kernels for Advanced SIMD: up to 7 pixels.

#![expect(unsafe_code, reason = "instantiates the tile kernels for an instruction set")]

use super::table::{Entry, Fast, FastTile, any_table, fast_table};
use super::tile::{Tile, any, border, inner};
use crate::isa::Isa;
use crate::simd::neon::F32x4;

#[target_feature(enable = "neon")]
unsafe fn depthwise_f32_7_neon<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { inner::<F32x4, KW, S, T>(tile) }
}

#[target_feature(enable = "neon")]
unsafe fn border_depthwise_f32_7_neon<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { border::<F32x4, KW, S, T>(tile) }
}

#[target_feature(enable = "neon")]
unsafe fn any_depthwise_f32_8_neon<const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { any::<F32x4, T>(tile) }
}

static FAST: [Fast; 4] = fast_table!(depthwise_f32_7_neon, border_depthwise_f32_7_neon; 7 4 2 1);

pub(super) static ENTRY: Entry = Entry {
    name: "depthwise_f32_7_neon",
    any_name: "any_depthwise_f32_8_neon",
    isa: Isa::Neon,
    lanes: 4,
    has_masks: false,
    fast: &FAST,
    any: &any_table!(any_depthwise_f32_8_neon),
};
