//! The depthwise tile kernels, best first.

use super::tile::TileKernel;
use crate::isa::{Isa, Isas};

/// Kernels for one width and horizontal stride, without horizontal dilation.
#[derive(Debug)]
pub(super) struct Fast {
    pub(super) kernel_w: usize,
    pub(super) stride_w: usize,
    /// Kernels for some numbers of pixels, the most first, one pixel last.
    pub(super) tiles: &'static [FastTile],
}

/// The kernels for one number of pixels.
#[derive(Debug)]
pub(super) struct FastTile {
    pub(super) pixels: usize,
    /// For tiles whose taps are all inside the input.
    pub(super) inner: TileKernel,
    /// For tiles with a pointer per input pixel.
    pub(super) border: TileKernel,
}

impl Fast {
    /// The largest tile of at most so many pixels.
    pub(super) fn tile(&self, most: usize) -> &'static FastTile {
        self.tiles.iter().find(|tile| tile.pixels <= most).expect("there are tiles of one pixel")
    }
}

/// The depthwise tile kernels of one instruction set.
#[derive(Debug)]
pub(super) struct Entry {
    /// Name of the kernels for certain widths and strides.
    pub(super) name: &'static str,
    /// Name of the kernels for all others.
    pub(super) any_name: &'static str,
    pub(super) isa: Isa,
    /// Floats of one vector.
    pub(super) lanes: usize,
    /// Whether the fast kernels take parts of vectors.
    pub(super) has_masks: bool,
    pub(super) fast: &'static [Fast],
    /// For any tap of any pixel a pointer: `any[pixels - 1]`.
    pub(super) any: &'static [TileKernel],
}

/// Tables of the kernels for the widths 3 and 5 and the strides 1 and 2.
macro_rules! fast_table {
    ($inner:ident, $border:ident; $($pixels:literal)+) => {
        [
            fast_table!(@ $inner, $border; 3, 1; $($pixels)+),
            fast_table!(@ $inner, $border; 3, 2; $($pixels)+),
            fast_table!(@ $inner, $border; 5, 1; $($pixels)+),
            fast_table!(@ $inner, $border; 5, 2; $($pixels)+),
        ]
    };
    (@ $inner:ident, $border:ident; $width:literal, $stride:literal; $($pixels:literal)+) => {
        Fast {
            kernel_w: $width,
            stride_w: $stride,
            tiles: &[$(FastTile {
                pixels: $pixels,
                inner: $inner::<$width, $stride, $pixels>,
                border: $border::<$width, $stride, $pixels>,
            }),+],
        }
    };
}
pub(super) use fast_table;

/// The table of the kernels for anything.
macro_rules! any_table {
    ($kernel:ident) => {
        [
            $kernel::<1>,
            $kernel::<2>,
            $kernel::<3>,
            $kernel::<4>,
            $kernel::<5>,
            $kernel::<6>,
            $kernel::<7>,
            $kernel::<8>,
        ]
    };
}
pub(super) use any_table;

/// The tile kernels, best first. The last one is for every machine.
static DEPTHWISE_F32: &[&Entry] = &[
    #[cfg(target_arch = "x86_64")]
    &super::avx512::ENTRY,
    #[cfg(target_arch = "x86_64")]
    &super::avx2::ENTRY,
    #[cfg(target_arch = "aarch64")]
    &super::neon::ENTRY,
    &super::scalar::ENTRY,
];

/// The best entry that `isas` allows.
pub(super) fn choose(isas: Isas) -> &'static Entry {
    DEPTHWISE_F32.iter().find(|entry| isas.has(entry.isa)).copied().unwrap_or(&super::scalar::ENTRY)
}
