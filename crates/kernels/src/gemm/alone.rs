//! Products on the calling thread whose right side is packed apart from them, for kernels that are cut into tasks
//! themselves. Of the packed matrix leading rows and columns may be used alone.

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

use super::driver::{Product, RowSource, RowTiles};
use super::matmul::pack;
use super::pack::Panels;
use super::table::Kernel;
use crate::epilogue::{Epilogue, Finisher, check_matrix};
use crate::isa::Isas;

/// Products by a `k` x `n` matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    isas: Isas,
    panels: Panels,
}

impl Alone {
    /// Products by a matrix of this size.
    pub(crate) fn new(isas: Isas, k: usize, n: usize) -> Self {
        Self { isas, panels: Panels { kernel: Kernel::choose(isas), k, n } }
    }

    /// The floats of the packed matrix.
    pub(crate) fn packed_len(&self) -> usize {
        self.panels.len()
    }

    /// Rows that a tile has at most.
    pub(crate) fn tile_rows(&self) -> usize {
        self.panels.kernel.rows()
    }

    /// Columns of a whole panel.
    pub(crate) fn panel_columns(&self) -> usize {
        self.panels.kernel.columns()
    }

    /// How many columns are computed where so many are wanted.
    pub(crate) fn columns_up_to(&self, wanted: usize) -> usize {
        let width = self.panels.kernel.columns();
        (wanted.div_ceil(width) * width).min(self.panels.n)
    }

    /// Packs the matrix whose element at `row`, `column` is `alpha * data[row * row_stride + column * column_stride]`.
    ///
    /// # Panics
    /// When it does not lie within its slice.
    pub(crate) fn pack(
        &self,
        to: &mut [f32],
        data: &[f32],
        row_stride: usize,
        column_stride: usize,
        alpha: f32,
    ) {
        let panels = self.panels;
        for panel in 0..panels.count() {
            let end = if panel + 1 == panels.count() { panels.len() } else { panels.start(panel + 1) };
            pack(panels, panel, &mut to[panels.start(panel)..end], data, row_stride, column_stride, alpha);
        }
    }

    /// Computes `m` rows of the first [`Alone::columns_up_to`] columns of `c = a b`, over the first `depth` rows of b and
    /// as many columns of a, or all.
    ///
    /// # Panics
    /// When a slice is too short.
    pub(crate) fn run(
        &self,
        packed: &[f32],
        (a, a_stride): (&[f32], usize),
        m: usize,
        depth: usize,
        columns: usize,
        c: &mut [f32],
        c_stride: usize,
    ) {
        let panels = self.panels;
        let (depth, columns) = (depth.min(panels.k), self.columns_up_to(columns));
        if m == 0 || columns == 0 {
            return;
        }
        assert!(packed.len() >= panels.len(), "the whole matrix was packed");
        let end = (m - 1).checked_mul(a_stride).and_then(|start| start.checked_add(depth));
        assert!(end.is_some_and(|end| end <= a.len()), "a matrix must lie within its slice");
        check_matrix(c.len(), m, columns, c_stride);
        let c = c.as_mut_ptr();
        let finisher = Finisher::new(self.isas, &Epilogue::default(), m, columns, c, c_stride);
        let tiles = RowTiles::new(m, panels.kernel.rows());
        let product = Product {
            panels,
            weights: packed.as_ptr(),
            tiles,
            depth,
            c,
            c_stride,
            first_row: 0,
            row_step: 1,
            first_column: 0,
            finisher: &finisher,
        };
        let source = RowSource::Strided { start: a.as_ptr(), stride: a_stride, offsets: &[0] };
        let wanted = columns.div_ceil(panels.kernel.columns());
        // SAFETY: a and c were checked above; the panels were packed as this kernel reads them, of which the first `depth`
        // rows are read; an empty epilogue fits every output.
        unsafe { product.run(0..tiles.count(), 0..wanted, source) };
    }
}
