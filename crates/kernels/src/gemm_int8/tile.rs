//! The contract of an 8-bit tile kernel.
//!
//! A tile kernel adds up to `R` rows by `NV` vectors of columns of products of 8-bit numbers in 32-bit integers, exactly,
//! and stores the sums. Rows of A are pointers, one per row of the tile; a tap is an offset to all of them, at which `depth`
//! bytes are used. The panel of B holds, for each tap, one group per four bytes of depth (the last filled up with zeros):
//! four bytes of each column side by side.
//!
//! B is signed. Whether bytes of A are taken as signed is fixed by the kernel.

#![expect(unsafe_code, reason = "reads rows through pointers")]

/// Rows of the highest tile of any kernel.
pub(crate) const MOST_ROWS: usize = 14;
/// Columns of the widest panel of any kernel.
pub(crate) const MOST_COLUMNS: usize = 32;

/// The sums of one tile, row by row, as wide as the tile's panel; a few more may be read beyond the last row.
#[repr(align(64))]
pub(crate) struct Sums(pub(crate) [i32; MOST_ROWS * MOST_COLUMNS + 16]);

/// The arguments of a tile kernel of `R` rows and `NV` vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    /// `R` pointers.
    pub(crate) rows: *const *const u8,
    /// For each tap, what is added to the pointers.
    pub(crate) offsets: *const usize,
    /// How many taps.
    pub(crate) taps: usize,
    /// Bytes of a row per tap.
    pub(crate) depth: usize,
    /// The panel of B.
    pub(crate) b: *const i8,
    /// Where the sums go: `R` rows of `NV` vectors.
    pub(crate) sums: *mut i32,
    /// Memory that will be wanted next: one cache line is fetched for each four bytes of depth; any address is allowed.
    pub(crate) prefetch: *const i8,
}

/// A tile kernel.
///
/// # Safety
/// The machine has the kernel's instruction set; the rows are readable for `depth` bytes at each tap, the panel is as
/// described above, and `sums` is writable.
pub(crate) type TileKernel = unsafe fn(&Tile);

/// Four bytes of a row.
///
/// # Safety
/// They are readable.
#[inline(always)]
pub(super) unsafe fn load_quad(from: *const u8) -> i32 {
    // SAFETY: as promised by the caller.
    unsafe { from.cast::<i32>().read_unaligned() }
}

/// The last `count` bytes of a row, fewer than four, filled up with zeros.
///
/// # Safety
/// They are readable.
#[inline(always)]
pub(super) unsafe fn load_partial_quad(from: *const u8, count: usize) -> i32 {
    let mut bytes = [0; 4];
    for (index, byte) in bytes[..count].iter_mut().enumerate() {
        // SAFETY: as promised by the caller.
        *byte = unsafe { *from.add(index) };
    }
    i32::from_le_bytes(bytes)
}

/// Repeats the body with the name bound to 0, 1, ... below the count, as constants: loops that the compiler might not unroll
/// would keep the accumulators in memory.
macro_rules! unrolled {
    ($count:expr, $index:ident => $body:block) => {
        unrolled!(@ $count, $index => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (@ $count:expr, $index:ident => $body:block; $($literal:literal)+) => {
        $({
            const $index: usize = $literal;
            if $index < $count $body
        })+
    };
}

/// The loops of a tile kernel over taps and depth: runs `$step` with `$row` bound to a function from a row's index to its
/// next four bytes, for each four bytes of depth.
macro_rules! for_quads {
    ($tile:expr, $b:ident += $group:expr, $row:ident => $step:block) => {{
        let tile: &Tile = $tile;
        let mut $b = tile.b;
        let mut prefetch = tile.prefetch;
        let quads = tile.depth / 4;
        let rest = tile.depth % 4;
        for tap in 0..tile.taps {
            let offset = *tile.offsets.add(tap);
            let mut place = offset;
            for _ in 0..quads {
                let $row = |row: usize| load_quad((*tile.rows.add(row)).add(place));
                fetch(prefetch);
                $step
                place += 4;
                prefetch = prefetch.wrapping_add(64);
                $b = $b.add($group);
            }
            if rest > 0 {
                let $row = |row: usize| load_partial_quad((*tile.rows.add(row)).add(place), rest);
                $step
                $b = $b.add($group);
            }
        }
    }};
}

/// A table of kernels: for each number of rows, kernels of one, two, ... vectors.
macro_rules! kernel_table {
    ($kernel:ident; $($rows:literal)+; $vectors:tt) => {
        [$(kernel_table!(@ $kernel; $rows; $vectors)),+]
    };
    (@ $kernel:ident; $rows:literal; ($($vectors:literal)+)) => {
        &[$($kernel::<$rows, $vectors> as TileKernel),+]
    };
}

pub(super) use {for_quads, kernel_table, unrolled};
