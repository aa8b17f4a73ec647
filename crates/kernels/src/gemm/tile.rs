//! The contract of a tile kernel, and its body, generic over the vector type.
//!
//! A tile kernel computes `rows` rows and up to `NV` vectors of columns of a matrix product and stores them finished:
//! for each tap, `depth` products per element of a row of A with a packed panel of B; the panel has the taps one after
//! the other, `depth` lines of `NV` vectors each. Each row of A is a pointer per tap: computed from a stride (a matrix,
//! or pixels at equal distances), or taken from a list (pixels of a convolution, some of them padding).

#![expect(unsafe_code, reason = "the innermost loops address memory by pointers")]

use crate::epilogue::TileEpilogue;
use crate::simd::Vector;
use std::sync::atomic::{Ordering, compiler_fence};

/// The arguments of a tile kernel of `R` rows and `NV` vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    /// Strided kernels: the first row of A. Others: added, in floats, to each pointer of `rows`.
    pub(crate) a: *const f32,
    /// Strided kernels: floats from one row of A to the next.
    pub(crate) a_stride: usize,
    /// Strided kernels: for each tap, floats from `a` to the tap's first row.
    pub(crate) offsets: *const usize,
    /// Indirect kernels: for each tap, `R` pointers.
    pub(crate) rows: *const *const f32,
    /// Indirect kernels: floats to add to each pointer of `rows`.
    pub(crate) rows_offset: usize,
    /// How many taps.
    pub(crate) taps: usize,
    /// Floats of a row of A per tap.
    pub(crate) depth: usize,
    /// The panel of B.
    pub(crate) b: *const f32,
    /// Where the tile is stored.
    pub(crate) c: *mut f32,
    /// Floats from one row of the output to the next.
    pub(crate) c_stride: usize,
    /// Columns to store: more than `NV - 1` vectors, at most `NV`.
    pub(crate) columns: usize,
    /// What to do before storing.
    pub(crate) epilogue: TileEpilogue,
    /// Memory that will be wanted next, fetched while this tile computes; any address is allowed.
    pub(crate) prefetch: *const f32,
    /// Cache lines to fetch for every four products.
    pub(crate) prefetch_lines: usize,
}

/// A tile kernel.
///
/// # Safety
/// The machine has the kernel's instruction set. Readable: `depth` floats of each row of A for each tap (the rows as the
/// kernel's kind defines them), the panel of B, and what the epilogue points to. Writable: `columns` floats of each row
/// at `c`.
pub(crate) type TileKernel = unsafe fn(&Tile);

/// Repeat the body with the name bound to 0, 1, ... below the count, as constants: loops that the compiler might not
/// unroll would keep the accumulators in memory.
macro_rules! unrolled {
    ($count:expr, $index:ident => $body:block) => {
        unrolled!(@ $count, $index => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (4 : $count:expr, $index:ident => $body:block) => {
        unrolled!(@ $count, $index => $body; 0 1 2 3)
    };
    (@ $count:expr, $index:ident => $body:block; $($literal:literal)+) => {
        $({
            const $index: usize = $literal;
            if $index < $count $body
        })+
    };
}

/// Finish the accumulators and store them: a macro, so that they never leave their registers.
macro_rules! store_tile {
    ($tile:expr, $sums:expr, $V:ty, $R:expr, $NV:expr) => {{
        let tile: &Tile = $tile;
        let epilogue = &tile.epilogue;
        let last = tile.columns - ($NV - 1) * <$V>::LANES;
        let is_whole = !<$V>::HAS_MASKS && last == <$V>::LANES;
        let (min, max) = (<$V>::splat(epilogue.min), <$V>::splat(epilogue.max));
        let mut bias = [<$V>::splat(0.0); $NV];
        unrolled!(4: $NV, COLUMN => {
            let at = epilogue.bias.add(COLUMN * <$V>::LANES);
            bias[COLUMN] = if COLUMN + 1 < $NV || is_whole { <$V>::load(at) } else { <$V>::load_partial(at, last) };
        });
        unrolled!($R, ROW => {
            unrolled!(4: $NV, COLUMN => {
                let whole = COLUMN + 1 < $NV || is_whole;
                let from = epilogue.residual.add(ROW * epilogue.residual_stride + COLUMN * <$V>::LANES);
                let residual = if whole { <$V>::load(from) } else { <$V>::load_partial(from, last) };
                let value = ($sums[ROW][COLUMN] + bias[COLUMN] + residual).max(min).min(max);
                let to = tile.c.add(ROW * tile.c_stride + COLUMN * <$V>::LANES);
                if whole { value.store(to) } else { value.store_partial(to, last) }
            });
        });
    }};
}

/// Fetch `lines` cache lines from `at` on into the second level of cache, and return the address after them.
#[inline(always)]
pub(crate) fn prefetch(at: *const f32, lines: usize) -> *const f32 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut line = 0;
        while line < lines {
            let first = at.wrapping_add(line * 16).cast();
            let second = at.wrapping_add((line + 1) * 16).cast();
            // SAFETY: a prefetch may name any address.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(first);
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(second);
            }
            line += 2;
        }
    }
    #[cfg(target_arch = "aarch64")]
    for line in 0..lines {
        let address = at.wrapping_add(line * 16);
        // SAFETY: a prefetch may name any address and writes nothing.
        unsafe {
            std::arch::asm!("prfm pldl2keep, [{address}]", address = in(reg) address,
                options(nostack, readonly, preserves_flags));
        }
    }
    at.wrapping_add(lines * 16)
}

/// The body of a strided tile kernel.
///
/// # Safety
/// As [`TileKernel`].
#[inline(always)]
pub(crate) unsafe fn strided<V: Vector, const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: all addresses are within what `TileKernel` demands.
    unsafe {
        let mut sums = [[V::splat(0.0); NV]; R];
        let mut b = tile.b;
        let mut ahead = tile.prefetch;
        let stride = tile.a_stride;
        for tap in 0..tile.taps {
            // One pointer for every three rows: their distances fit the addressing modes.
            let start = tile.a.wrapping_add(*tile.offsets.add(tap));
            let mut rows = [start; 5];
            unrolled!(4: 4, THREE => { rows[THREE + 1] = start.wrapping_add((THREE + 1) * 3 * stride); });
            let mut left = tile.depth;
            macro_rules! step {
                ($K:expr) => {
                    let mut line = [V::splat(0.0); NV];
                    unrolled!(4: NV, COLUMN => { line[COLUMN] = V::load(b.add(($K * NV + COLUMN) * V::LANES)); });
                    unrolled!(R, ROW => {
                        let factor = V::splat(*rows[ROW / 3].add(ROW % 3 * stride + $K));
                        unrolled!(4: NV, COLUMN => {
                            sums[ROW][COLUMN] = factor.mul_add(line[COLUMN], sums[ROW][COLUMN]);
                        });
                    });
                };
            }
            macro_rules! advance {
                ($K:expr) => {
                    b = b.add($K * NV * V::LANES);
                    unrolled!(4: 5, THREE => { rows[THREE] = rows[THREE].wrapping_add($K); });
                    rows[4] = rows[4].wrapping_add($K);
                    left -= $K;
                };
            }
            while left >= 4 {
                ahead = prefetch(ahead, tile.prefetch_lines);
                // Left alone, the compiler loads ahead until it has no registers left for the sums.
                step!(0);
                compiler_fence(Ordering::SeqCst);
                step!(1);
                compiler_fence(Ordering::SeqCst);
                step!(2);
                compiler_fence(Ordering::SeqCst);
                step!(3);
                advance!(4);
            }
            while left > 0 {
                step!(0);
                advance!(1);
            }
        }
        store_tile!(tile, sums, V, R, NV);
    }
}

/// The body of an indirect tile kernel.
///
/// # Safety
/// As [`TileKernel`].
#[inline(always)]
pub(crate) unsafe fn indirect<V: Vector, const R: usize, const NV: usize>(tile: &Tile) {
    // SAFETY: all addresses are within what `TileKernel` demands.
    unsafe {
        let mut sums = [[V::splat(0.0); NV]; R];
        let mut b = tile.b;
        let mut ahead = tile.prefetch;
        for tap in 0..tile.taps {
            let list = tile.rows.add(tap * R);
            let mut rows = [tile.b; R];
            unrolled!(R, ROW => { rows[ROW] = (*list.add(ROW)).wrapping_add(tile.rows_offset); });
            let mut k = 0;
            macro_rules! step {
                ($K:expr) => {
                    let mut line = [V::splat(0.0); NV];
                    unrolled!(4: NV, COLUMN => { line[COLUMN] = V::load(b.add(($K * NV + COLUMN) * V::LANES)); });
                    unrolled!(R, ROW => {
                        let factor = V::splat(*rows[ROW].add(k + $K));
                        unrolled!(4: NV, COLUMN => {
                            sums[ROW][COLUMN] = factor.mul_add(line[COLUMN], sums[ROW][COLUMN]);
                        });
                    });
                };
            }
            while k + 4 <= tile.depth {
                ahead = prefetch(ahead, tile.prefetch_lines);
                step!(0);
                compiler_fence(Ordering::SeqCst);
                step!(1);
                compiler_fence(Ordering::SeqCst);
                step!(2);
                compiler_fence(Ordering::SeqCst);
                step!(3);
                b = b.add(4 * NV * V::LANES);
                k += 4;
            }
            while k < tile.depth {
                step!(0);
                b = b.add(NV * V::LANES);
                k += 1;
            }
        }
        store_tile!(tile, sums, V, R, NV);
    }
}

/// The table of a kind of tile kernel: `TABLE[rows - 1][vectors - 1]`.
macro_rules! kernel_table {
    ($kernel:ident; $($rows:literal)+; $vectors:tt) => {
        [$(kernel_table!(@ $kernel; $rows; $vectors)),+]
    };
    (@ $kernel:ident; $rows:literal; ($($vectors:literal)+)) => {
        &[$($kernel::<$rows, $vectors>),+]
    };
}
pub(crate) use kernel_table;
