//! The contract of a depthwise tile kernel, and its bodies, generic over the vector type.
//!
//! A tile is `T` neighbouring pixels of an output row and one vector of channels. Every sum is of the products of a
//! channel's taps, in order.

#![expect(unsafe_code, reason = "the innermost loops address memory by pointers")]

use crate::epilogue::TileEpilogue;
use crate::simd::Vector;

/// The arguments of a depthwise tile kernel of `T` pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    /// Kernels of inner tiles: the first input pixel's channels.
    pub(crate) x: *const f32,
    /// Kernels of inner tiles: floats from an input row to that of the next kernel row.
    pub(crate) x_row: usize,
    /// Kernels of inner tiles: floats from an input pixel to the next.
    pub(crate) x_pixel: usize,
    /// Other kernels: pointers to the channels of input pixels. Border tiles: for each kernel row the pixels that the tile
    /// sees, from left to right. Any tiles: for each tap one per output pixel.
    pub(crate) pixels: *const *const f32,
    /// Other kernels: floats to add to each pointer of `pixels`.
    pub(crate) channel: usize,
    /// Kernel rows, or for kernels of any tiles, taps.
    pub(crate) rows: usize,
    /// The weights of the first tap.
    pub(crate) weights: *const f32,
    /// Floats from the weights of one tap to those of the next.
    pub(crate) weights_stride: usize,
    /// Where the first output pixel's channels are stored.
    pub(crate) y: *mut f32,
    /// Floats from an output pixel to the next.
    pub(crate) y_pixel: usize,
    /// Channels, at most one vector. Without masks, kernels of inner and border tiles take whole vectors only.
    pub(crate) channels: usize,
    /// What to do before storing.
    pub(crate) epilogue: TileEpilogue,
}

/// A depthwise tile kernel.
///
/// # Safety
/// The machine has the kernel's instruction set. Readable: `channels` floats at each input pixel that the kernel's kind
/// uses, a vector at each tap's weights, and what the epilogue points to. Writable: `channels` floats of each output pixel.
pub(crate) type TileKernel = unsafe fn(&Tile);

/// Repeat the body with the name bound to 0, 1, ... below the count, as constants.
macro_rules! unrolled {
    (pixels $count:expr, $index:ident => $body:block) => {
        unrolled!(@ $count, $index => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (inputs $count:expr, $index:ident => $body:block) => {
        unrolled!(@ $count, $index => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30)
    };
    (taps $count:expr, $index:ident => $body:block) => {
        unrolled!(@ $count, $index => $body; 0 1 2 3 4)
    };
    (@ $count:expr, $index:ident => $body:block; $($literal:literal)+) => {
        $({
            const $index: usize = $literal;
            if $index < $count $body
        })+
    };
}

/// Finish the sums and store them: a macro, so that they never leave their registers.
macro_rules! store_tile {
    ($tile:expr, $sums:expr, $V:ty, $T:expr) => {{
        let tile: &Tile = $tile;
        let epilogue = &tile.epilogue;
        let is_whole = !<$V>::HAS_MASKS && tile.channels == <$V>::LANES;
        let read = |at: *const f32| {
            if is_whole { <$V>::load(at) } else { <$V>::load_partial(at, tile.channels) }
        };
        let (min, max) = (<$V>::splat(epilogue.min), <$V>::splat(epilogue.max));
        let bias = read(epilogue.bias);
        unrolled!(pixels $T, PIXEL => {
            let residual = read(epilogue.residual.add(PIXEL * epilogue.residual_stride));
            let value = ($sums[PIXEL] + bias + residual).max(min).min(max);
            let to = tile.y.add(PIXEL * tile.y_pixel);
            if is_whole { value.store(to) } else { value.store_partial(to, tile.channels) }
        });
    }};
}

/// The output pixel of a tile of `pixels` that sees this input column by this tap.
const fn pixel_of(column: usize, tap: usize, stride: usize, pixels: usize) -> Option<usize> {
    let Some(distance) = column.checked_sub(tap) else { return None };
    let is_seen = distance.is_multiple_of(stride) && distance / stride < pixels;
    if is_seen { Some(distance / stride) } else { None }
}

/// The body of a kernel of inner tiles, whose taps are all inside the input: `KW` columns, a horizontal stride of `S`, no
/// horizontal dilation. Each input vector is read once and meets all taps that see it.
///
/// # Safety
/// As [`TileKernel`].
#[inline(always)]
pub(super) unsafe fn inner<V: Vector, const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: all addresses are within what `TileKernel` demands.
    unsafe {
        let mut sums = [V::splat(0.0); T];
        let mut weights = tile.weights;
        let mut x = tile.x;
        for _ in 0..tile.rows {
            let mut row = [V::splat(0.0); KW];
            unrolled!(taps KW, KX => { row[KX] = V::load(weights.add(KX * tile.weights_stride)); });
            unrolled!(inputs (T - 1) * S + KW, COLUMN => {
                let at = x.wrapping_add(COLUMN * tile.x_pixel);
                let value = if V::HAS_MASKS { V::load_partial(at, tile.channels) } else { V::load(at) };
                unrolled!(taps KW, KX => {
                    if let Some(pixel) = const { pixel_of(COLUMN, KX, S, T) } {
                        sums[pixel] = value.mul_add(row[KX], sums[pixel]);
                    }
                });
            });
            x = x.wrapping_add(tile.x_row);
            weights = weights.wrapping_add(KW * tile.weights_stride);
        }
        store_tile!(tile, sums, V, T);
    }
}

/// The body of a kernel of border tiles: as [`inner`], with a pointer for each input pixel.
///
/// # Safety
/// As [`TileKernel`].
#[inline(always)]
pub(super) unsafe fn border<V: Vector, const KW: usize, const S: usize, const T: usize>(tile: &Tile) {
    // SAFETY: all addresses are within what `TileKernel` demands.
    unsafe {
        let mut sums = [V::splat(0.0); T];
        let mut weights = tile.weights;
        let mut pixels = tile.pixels;
        for _ in 0..tile.rows {
            let mut row = [V::splat(0.0); KW];
            unrolled!(taps KW, KX => { row[KX] = V::load(weights.add(KX * tile.weights_stride)); });
            unrolled!(inputs (T - 1) * S + KW, COLUMN => {
                let at = (*pixels.add(COLUMN)).wrapping_add(tile.channel);
                let value = if V::HAS_MASKS { V::load_partial(at, tile.channels) } else { V::load(at) };
                unrolled!(taps KW, KX => {
                    if let Some(pixel) = const { pixel_of(COLUMN, KX, S, T) } {
                        sums[pixel] = value.mul_add(row[KX], sums[pixel]);
                    }
                });
            });
            pixels = pixels.wrapping_add((T - 1) * S + KW);
            weights = weights.wrapping_add(KW * tile.weights_stride);
        }
        store_tile!(tile, sums, V, T);
    }
}

/// The body of a kernel of any tiles: a pointer for each tap of each output pixel.
///
/// # Safety
/// As [`TileKernel`].
#[inline(always)]
pub(super) unsafe fn any<V: Vector, const T: usize>(tile: &Tile) {
    // SAFETY: all addresses are within what `TileKernel` demands.
    unsafe {
        let mut sums = [V::splat(0.0); T];
        let mut weights = tile.weights;
        let mut pixels = tile.pixels;
        let is_whole = !V::HAS_MASKS && tile.channels == V::LANES;
        for _ in 0..tile.rows {
            let weight = V::load(weights);
            unrolled!(pixels T, PIXEL => {
                let at = (*pixels.add(PIXEL)).wrapping_add(tile.channel);
                let value = if is_whole { V::load(at) } else { V::load_partial(at, tile.channels) };
                sums[PIXEL] = value.mul_add(weight, sums[PIXEL]);
            });
            pixels = pixels.wrapping_add(T);
            weights = weights.wrapping_add(tile.weights_stride);
        }
        store_tile!(tile, sums, V, T);
    }
}
