//! Depthwise tile kernels in portable code: up to 8 pixels.

#![expect(unsafe_code, reason = "instantiates the tile kernels")]

use super::table::{Entry, any_table};
use super::tile::{Tile, any};
use crate::isa::Isa;
use crate::simd::scalar::F32x1;

unsafe fn any_depthwise_f32_8_scalar<const T: usize>(tile: &Tile) {
    // SAFETY: as promised by the caller.
    unsafe { any::<F32x1, T>(tile) }
}

pub(super) static ENTRY: Entry = Entry {
    name: "any_depthwise_f32_8_scalar",
    any_name: "any_depthwise_f32_8_scalar",
    isa: Isa::Scalar,
    lanes: 1,
    has_masks: true,
    fast: &[],
    any: &any_table!(any_depthwise_f32_8_scalar),
};
