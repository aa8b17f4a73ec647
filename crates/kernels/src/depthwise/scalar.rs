//! Depthwise tile kernels in portable code: up to 4 pixels.

#![expect(unsafe_code, reason = "instantiates the tile kernels")]

use super::table::{Entry, Fast, any_table, fast_table};
use super::tile::{Tile, any, border, inner};
use crate::isa::Isa;
use crate::simd::scalar::F32x1;

unsafe fn depthwise_f32_4_scalar<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { inner::<F32x1, KW, S, T>(tile) }
}

unsafe fn border_depthwise_f32_4_scalar<const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { border::<F32x1, KW, S, T>(tile) }
}

unsafe fn any_depthwise_f32_8_scalar<const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { any::<F32x1, T>(tile) }
}

static FAST: [Fast; 4] = fast_table!(depthwise_f32_4_scalar, border_depthwise_f32_4_scalar; 1 2 3 4);

pub(super) static ENTRY: Entry = Entry {
    name: "depthwise_f32_4_scalar",
    any_name: "any_depthwise_f32_8_scalar",
    isa: Isa::Scalar,
    lanes: 1,
    has_masks: true,
    fast: &FAST,
    any: &any_table!(any_depthwise_f32_8_scalar),
};
