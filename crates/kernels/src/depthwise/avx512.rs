//! Depthwise tile kernels for AVX-512: up to 14 pixels.

#![expect(unsafe_code, reason = "instantiates the tile kernels for an instruction set")]

use super::table::{Entry, Fast, FastTile, any_table, fast_table};
use super::tile::{Tile, any, border, inner};
use crate::isa::Isa;
use crate::simd::avx512::F32x16;

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
unsafe fn depthwise_f32_14_avx512<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { inner::<F32x16, KW, S, T>(tile) }
}

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
unsafe fn border_depthwise_f32_14_avx512<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { border::<F32x16, KW, S, T>(tile) }
}

#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512cd")]
unsafe fn any_depthwise_f32_8_avx512<const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { any::<F32x16, T>(tile) }
}

static FAST: [Fast; 4] = fast_table!(depthwise_f32_14_avx512, border_depthwise_f32_14_avx512; 14 7 4 2 1);

pub(super) static ENTRY: Entry = Entry {
    name: "depthwise_f32_14_avx512",
    any_name: "any_depthwise_f32_8_avx512",
    isa: Isa::Avx512,
    lanes: 16,
    has_masks: true,
    fast: &FAST,
    any: &any_table!(any_depthwise_f32_8_avx512),
};
