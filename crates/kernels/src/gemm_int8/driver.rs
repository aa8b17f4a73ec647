//! Cutting a product into tasks and tiles.
//!
//! Weights of up to about a megabyte stay in the second level of cache: then a few tiles of rows meet all panels before the
//! next rows come. Larger weights are read once for as many rows as the cache holds. While a panel is used the next one is
//! fetched.

#![expect(unsafe_code, reason = "calls tile kernels on addresses computed here")]

use super::epilogue::Finisher;
use super::pack::PackedPanels;
use super::tile::{MOST_ROWS, Sums, Tile};
use crate::gemm::driver::RowTiles;
use crate::threads::Team;

/// Weights up to this size are expected to stay in the second level of cache.
const NEAR_WEIGHTS: usize = 1 << 20;
/// Tiles of rows that meet a panel one after the other, if the weights are near.
const GROUP: usize = 4;
/// The most tiles of rows of one task.
const MOST_TILES: usize = 16;

/// Writes the pointers of consecutive rows, from the one with the given index on.
pub(crate) type Rows<'a> = &'a (dyn Fn(usize, &mut [*const u8]) + Sync);

/// One product, as far as all its tasks agree on it.
pub(crate) struct Product<'a> {
    pub(crate) packed: &'a PackedPanels,
    /// Which group's panels.
    pub(crate) group: usize,
    /// For each tap, what is added to the row's pointer.
    pub(crate) offsets: &'a [usize],
    /// How many rows.
    pub(crate) m: usize,
    /// The row of the output at which the first one is.
    pub(crate) first_row: usize,
    pub(crate) rows: Rows<'a>,
    /// Where the memory ends that the rows lie in: up to there, kernels may read beyond a row, which spares them its last
    /// bytes one by one.
    pub(crate) end: *const u8,
    /// For each row, the sum of its bytes over all taps; needed only if columns have zero points.
    pub(crate) row_sums: &'a (dyn Fn(usize) -> i32 + Sync),
    pub(crate) finisher: &'a Finisher<'a>,
}

// SAFETY: the pointer is compared with others only; what the functions give is shared between tasks by the callers' promise.
unsafe impl Sync for Product<'_> {}

impl Product<'_> {
    /// Computes all of it.
    ///
    /// # Safety
    /// The rows are readable for `depth` bytes at each of the offsets, and nobody else uses the finisher's output at the
    /// columns of the group.
    pub(crate) unsafe fn run(&self, team: &Team) {
        let panels = &self.packed.panels;
        let tiles = RowTiles::new(self.m, panels.kernel.rows());
        let near = if panels.bytes() <= NEAR_WEIGHTS { GROUP } else { MOST_TILES };
        let mut tiles_per_task = near.min(tiles.count()).max(1);
        let mut panels_per_task = panels.count().max(1);
        if team.threads() > 1 {
            let wanted = team.threads() * 4;
            let row_groups = tiles.count().div_ceil(tiles_per_task).max(1);
            if row_groups < wanted {
                panels_per_task = panels.count().div_ceil(wanted.div_ceil(row_groups)).max(1);
                let chunks = panels.count().div_ceil(panels_per_task).max(1);
                if row_groups * chunks < wanted {
                    tiles_per_task = tiles.count().div_ceil(wanted.div_ceil(chunks)).clamp(1, tiles_per_task);
                }
            }
        }
        let row_groups = tiles.count().div_ceil(tiles_per_task);
        let chunks = panels.count().div_ceil(panels_per_task);
        team.run(row_groups * chunks, &|task| {
            let (chunk, group) = (task / row_groups, task % row_groups);
            let tile_range = group * tiles_per_task..((group + 1) * tiles_per_task).min(tiles.count());
            let panel_range = chunk * panels_per_task..((chunk + 1) * panels_per_task).min(panels.count());
            // SAFETY: as promised by the caller; each task has its own tiles or panels.
            unsafe { self.run_task(tiles, tile_range, panel_range) };
        });
    }

    /// # Safety
    /// As [`Product::run`], for these tiles and panels.
    unsafe fn run_task(
        &self,
        tiles: RowTiles,
        tile_range: std::ops::Range<usize>,
        panel_range: std::ops::Range<usize>,
    ) {
        let panels = &self.packed.panels;
        let entry = panels.kernel.entry();
        let weights = self.packed.group(self.group);
        let mut pointers = [std::ptr::null(); MOST_TILES * MOST_ROWS];
        let first_row = tiles.start(tile_range.start);
        let end_row = tiles.start(tile_range.end);
        (self.rows)(first_row, &mut pointers[..end_row - first_row]);
        let has_zeros = !self.packed.zero_points.is_empty();
        let mut row_sums = [0; MOST_TILES * MOST_ROWS];
        if has_zeros {
            for (index, sum) in row_sums[..end_row - first_row].iter_mut().enumerate() {
                *sum = (self.row_sums)(first_row + index);
            }
        }
        let mut sums = Sums([0; _]);
        let steps = panels.steps();
        let last_offset = self.offsets.iter().copied().max().unwrap_or(0);
        let whole_depth = panels.depth.next_multiple_of(4);
        for panel in panel_range.clone() {
            let vectors = panels.vectors(panel);
            let here = weights[panels.start(panel)..].as_ptr();
            let column = self.group * panels.columns + panel * panels.kernel.columns();
            let prepared = self.finisher.prepare(column, panels.columns(panel));
            // The last panel of a task has none to fetch: it is near itself.
            let next = if panel + 1 < panel_range.end { here.wrapping_add(panels.start(1)) } else { here };
            for tile in tile_range.clone() {
                let (row, rows) = (tiles.start(tile), tiles.rows(tile));
                let ahead = (tile - tile_range.start) * steps * 64;
                let pointers = &pointers[row - first_row..row - first_row + rows];
                let may_read_on = pointers
                    .iter()
                    .all(|pointer| pointer.wrapping_add(last_offset + whole_depth) <= self.end);
                let arguments = Tile {
                    rows: pointers.as_ptr(),
                    offsets: self.offsets.as_ptr(),
                    taps: panels.taps,
                    depth: if may_read_on { whole_depth } else { panels.depth },
                    b: here,
                    sums: sums.0.as_mut_ptr(),
                    prefetch: if ahead < panels.start(1) { next.wrapping_add(ahead) } else { here },
                };
                // SAFETY: the caller vouches for the rows; a `Kernel` is only made for available instruction sets, and its
                // table has kernels up to the tile's rows and vectors; the tile of the output belongs to this task.
                unsafe {
                    entry.kernels[rows - 1][vectors - 1](&arguments);
                    self.finisher.finish(
                        &prepared,
                        &sums,
                        vectors * entry.lanes,
                        &row_sums[row - first_row..],
                        (self.first_row + row, rows),
                    );
                }
            }
        }
    }
}
