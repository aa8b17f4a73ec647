//! Cutting a product into tasks and tiles: the loops around the tile kernels, for matrix products and convolutions.
//!
//! Weights of up to about a megabyte stay in the second level of cache: then a few tiles of rows meet all panels before
//! the next rows come. Larger weights are read once for as many rows as the cache holds. While a panel is used the next
//! one is fetched, since in a network the weights of every layer come from far away.

#![expect(unsafe_code, reason = "calls tile kernels on addresses computed here")]

use super::pack::Panels;
use super::tile::Tile;
use crate::epilogue::Finisher;
use crate::threads::Team;
use std::ptr;

/// Weights up to this size are expected to stay in the second level of cache.
const NEAR_WEIGHTS: usize = 1 << 20;
/// How many bytes of rows to keep near while larger weights stream by.
const NEAR_ROWS: usize = 512 << 10;
/// Weights up to this size are not worth fetching ahead.
const TINY_WEIGHTS: usize = 20 << 10;
/// Tiles of rows that meet a panel one after the other.
const GROUP: usize = 4;

/// How the rows of a result are cut into tiles of nearly equal height.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTiles {
    count: usize,
    least: usize,
    /// So many tiles have one row more.
    higher: usize,
}

impl RowTiles {
    pub(crate) fn new(rows: usize, most: usize) -> RowTiles {
        let count = rows.div_ceil(most);
        RowTiles {
            count,
            least: rows.checked_div(count).unwrap_or(0),
            higher: rows.checked_rem(count).unwrap_or(0),
        }
    }

    pub(crate) fn count(self) -> usize {
        self.count
    }

    pub(crate) fn start(self, tile: usize) -> usize {
        tile * self.least + tile.min(self.higher)
    }

    pub(crate) fn rows(self, tile: usize) -> usize {
        self.least + usize::from(tile < self.higher)
    }
}

/// How a product is cut into tasks: each a range of row tiles times a range of panels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tasks {
    tiles: usize,
    tiles_per_task: usize,
    panels: usize,
    panels_per_task: usize,
}

impl Tasks {
    /// Tasks for the panels of all `groups`, which follow each other; `most_tiles` bounds the tiles of one task.
    pub(crate) fn new(
        tiles: usize,
        panels: Panels,
        groups: usize,
        threads: usize,
        most_tiles: usize,
    ) -> Tasks {
        let weights = panels.len() * groups * size_of::<f32>();
        let panel_count = panels.count() * groups;
        let tile_bytes = panels.kernel.rows() * panels.k.max(1) * size_of::<f32>();
        let near = if weights <= NEAR_WEIGHTS { GROUP } else { (NEAR_ROWS / tile_bytes).max(GROUP) };
        let mut tiles_per_task = near.min(tiles).min(most_tiles).max(1);
        let mut panels_per_task = panel_count.max(1);
        if threads > 1 {
            let wanted = threads * 4;
            let row_groups = tiles.div_ceil(tiles_per_task).max(1);
            if row_groups < wanted {
                panels_per_task = panel_count.div_ceil(wanted.div_ceil(row_groups)).max(1);
                let chunks = panel_count.div_ceil(panels_per_task).max(1);
                if row_groups * chunks < wanted {
                    tiles_per_task = tiles.div_ceil(wanted.div_ceil(chunks)).max(1).min(tiles_per_task);
                }
            }
        }
        Tasks { tiles, tiles_per_task, panels: panel_count, panels_per_task }
    }

    /// The most tiles of one task.
    pub(crate) fn tiles_per_task(self) -> usize {
        self.tiles_per_task
    }

    pub(crate) fn count(self) -> usize {
        self.tiles.div_ceil(self.tiles_per_task) * self.panels.div_ceil(self.panels_per_task)
    }

    /// The tiles and the panels of a task. Tasks that follow each other share panels, so that threads share what they
    /// fetch.
    pub(crate) fn ranges(self, task: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let groups = self.tiles.div_ceil(self.tiles_per_task);
        let (chunk, group) = (task / groups, task % groups);
        let tiles = group * self.tiles_per_task..((group + 1) * self.tiles_per_task).min(self.tiles);
        let panels = chunk * self.panels_per_task..((chunk + 1) * self.panels_per_task).min(self.panels);
        (tiles, panels)
    }
}

/// Where tile kernels find their rows of A.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowSource<'a> {
    /// Row `r` of tap `t` is at `start + offsets[t] + r * stride`.
    Strided { start: *const f32, stride: usize, offsets: &'a [usize] },
    /// Tile `i` of the range finds its pointers from `rows + i * pitch` on: for each tap one per row of the tile, to which
    /// `offset` floats are added.
    Indirect { rows: *const *const f32, pitch: usize, taps: usize, offset: usize },
}

/// One product, as far as all its tasks agree on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'a> {
    pub(crate) panels: Panels,
    /// The packed panels.
    pub(crate) weights: *const f32,
    pub(crate) tiles: RowTiles,
    /// Products per tap; times the number of taps it is `panels.k`.
    pub(crate) depth: usize,
    /// The output's first column and, of the rows, `first_row`.
    pub(crate) c: *mut f32,
    pub(crate) c_stride: usize,
    /// The row of the finisher's output at which this product's first row is.
    pub(crate) first_row: usize,
    /// Rows of the finisher's output from one row of this product to the next.
    pub(crate) row_step: usize,
    /// The column of the finisher's output at which this product's first column is.
    pub(crate) first_column: usize,
    pub(crate) finisher: &'a Finisher<'a>,
}

// SAFETY: the pointers are to packed weights, which are only read, and to the output, each tile of which is written by
// one task.
unsafe impl Sync for Product<'_> {}

impl Product<'_> {
    /// Compute a range of tiles times a range of panels.
    ///
    /// # Safety
    /// The machine has the kernel's instruction set. `weights` are the panels; `source` gives readable rows of `depth`
    /// floats for each tap of each of these tiles; `c` is the output that the finisher was checked against, from
    /// `first_row` and `first_column` on, and nobody else uses these tiles of it.
    pub(crate) unsafe fn run(
        &self,
        tiles: std::ops::Range<usize>,
        panels: std::ops::Range<usize>,
        source: RowSource<'_>,
    ) {
        let entry = self.panels.kernel.entry();
        let taps = match source {
            RowSource::Strided { offsets, .. } => offsets.len(),
            RowSource::Indirect { taps, .. } => taps,
        };
        let steps = taps * (self.depth / 4);
        let is_worth_fetching = self.panels.len() * size_of::<f32>() > TINY_WEIGHTS && steps > 0;
        for panel in panels.clone() {
            let vectors = self.panels.vectors(panel);
            let columns = self.panels.columns(panel);
            let column = panel * self.panels.kernel.columns();
            let next = self.weights.wrapping_add(self.panels.start(panel + 1));
            let mut lines = 0;
            let mut ahead = 0;
            let mut fetch_end = 0;
            if is_worth_fetching && panel + 1 < panels.end {
                fetch_end = self.panels.k * self.panels.vectors(panel + 1) * entry.lanes;
                lines = (fetch_end / 16).div_ceil(steps * tiles.len()).next_multiple_of(2);
            }
            for (position, tile) in tiles.clone().enumerate() {
                let row = self.tiles.start(tile);
                let (out_row, out_column) =
                    (self.first_row + row * self.row_step, self.first_column + column);
                let rows = self.tiles.rows(tile);
                let (kernels, a, a_stride, offsets, pointers, rows_offset) = match source {
                    RowSource::Strided { start, stride, offsets } => {
                        let a = start.wrapping_add(row * stride);
                        (entry.strided, a, stride, offsets.as_ptr(), ptr::null(), 0)
                    }
                    RowSource::Indirect { rows: pointers, pitch, offset, .. } => {
                        let pointers = pointers.wrapping_add(position * pitch);
                        (entry.indirect, ptr::null(), 0, ptr::null(), pointers, offset)
                    }
                };
                let c = self.c.wrapping_add(row * self.c_stride + column);
                let tile = Tile {
                    a,
                    a_stride,
                    offsets,
                    rows: pointers,
                    rows_offset,
                    taps,
                    depth: self.depth,
                    b: self.weights.wrapping_add(self.panels.start(panel)),
                    c,
                    c_stride: self.c_stride,
                    columns,
                    epilogue: self.finisher.tile(out_row, out_column),
                    prefetch: next.wrapping_add(ahead),
                    prefetch_lines: if ahead < fetch_end { lines } else { 0 },
                };
                ahead += lines * steps * 16;
                // SAFETY: the caller vouches for the rows and the output; the tables have kernels up to the tile's rows
                // and vectors; `Kernel` is only made for available instruction sets.
                unsafe {
                    kernels[rows - 1][vectors - 1](&tile);
                    self.finisher.finish(c, self.c_stride, out_row, out_column, rows, columns);
                }
            }
        }
    }
}

/// Run all tasks of a product whose rows of A are at equal distances.
///
/// # Safety
/// As [`Product::run`], for all tiles and panels.
pub(crate) unsafe fn run_strided(team: &Team, product: &Product<'_>, a: *const f32, stride: usize) {
    /// A pointer that tasks may share.
    struct Shared(*const f32);
    // SAFETY: what it points to is only read.
    unsafe impl Sync for Shared {}

    let tasks = Tasks::new(product.tiles.count(), product.panels, 1, team.threads(), usize::MAX);
    let shared = Shared(a);
    let shared = &shared;
    team.run(tasks.count(), &|task| {
        let (tiles, panels) = tasks.ranges(task);
        let source = RowSource::Strided { start: shared.0, stride, offsets: &[0] };
        // SAFETY: as promised by the caller; each task has its own tiles or panels.
        unsafe { product.run(tiles, panels, source) };
    });
}
