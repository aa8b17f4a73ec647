//! Matrices packed into the panels that tile kernels read.
//!
//! A panel has as many columns as a kernel's widest tile; the last one has as many whole vectors as the rest needs,
//! filled up with zeros. Within a panel the rows follow each other, so that a kernel reads straight on.

use super::table::Kernel;
use crate::aligned::AlignedFloats;
use crate::isa::Isas;

/// Where the panels of a packed matrix are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels {
    pub(crate) kernel: Kernel,
    /// Rows of the matrix.
    pub(crate) k: usize,
    /// Columns of the matrix.
    pub(crate) n: usize,
}

impl Panels {
    pub(crate) fn count(self) -> usize {
        self.n.div_ceil(self.kernel.columns())
    }

    /// The matrix's columns in a panel.
    pub(crate) fn columns(self, panel: usize) -> usize {
        let width = self.kernel.columns();
        width.min(self.n - panel * width)
    }

    /// The vectors of one row of a panel.
    pub(crate) fn vectors(self, panel: usize) -> usize {
        self.columns(panel).div_ceil(self.kernel.entry().lanes)
    }

    /// Where a panel begins, in floats.
    pub(crate) fn start(self, panel: usize) -> usize {
        panel * self.kernel.columns() * self.k
    }

    /// The floats of all panels.
    pub(crate) fn len(self) -> usize {
        match self.count() {
            0 => 0,
            count => self.start(count - 1) + self.k * self.vectors(count - 1) * self.kernel.entry().lanes,
        }
    }

    /// Write one panel; `element(row, column)` is the matrix.
    pub(crate) fn pack_panel(self, panel: usize, to: &mut [f32], element: impl Fn(usize, usize) -> f32) {
        let columns = self.columns(panel);
        let width = self.vectors(panel) * self.kernel.entry().lanes;
        let first = panel * self.kernel.columns();
        for (row, line) in to.chunks_exact_mut(width).take(self.k).enumerate() {
            for (column, to) in line[..columns].iter_mut().enumerate() {
                *to = element(row, first + column);
            }
            line[columns..].fill(0.0);
        }
    }

    /// Write all panels; `element(row, column)` is the matrix.
    pub(crate) fn pack(self, to: &mut [f32], element: impl Fn(usize, usize) -> f32) {
        for panel in 0..self.count() {
            let to = &mut to[self.start(panel)..];
            self.pack_panel(panel, to, &element);
        }
    }
}

/// A `k` x `n` matrix of weights in the form that one kernel reads.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    pub(crate) isas: Isas,
    pub(crate) panels: Panels,
    pub(crate) data: AlignedFloats,
}

impl PackedMatrix {
    /// Pack the matrix whose element at `row`, `column` is `data[row * row_stride + column * column_stride]`, for the
    /// best kernel of `isas`.
    ///
    /// # Panics
    /// When the matrix does not lie within `data`.
    pub fn pack(
        isas: Isas,
        k: usize,
        n: usize,
        data: &[f32],
        row_stride: usize,
        column_stride: usize,
    ) -> PackedMatrix {
        if k > 0 && n > 0 {
            let last = (k - 1)
                .checked_mul(row_stride)
                .zip((n - 1).checked_mul(column_stride))
                .and_then(|(row, column)| row.checked_add(column));
            assert!(last.is_some_and(|last| last < data.len()), "a matrix must lie within its slice");
        }
        PackedMatrix::from_elements(isas, k, n, |row, column| data[row * row_stride + column * column_stride])
    }

    /// Pack the matrix that `element(row, column)` gives.
    pub(crate) fn from_elements(
        isas: Isas,
        k: usize,
        n: usize,
        element: impl Fn(usize, usize) -> f32,
    ) -> PackedMatrix {
        let panels = Panels { kernel: Kernel::choose(isas), k, n };
        let mut data = AlignedFloats::zeroed(panels.len());
        panels.pack(data.as_mut_slice(), element);
        PackedMatrix { isas, panels, data }
    }

    /// Rows of the matrix.
    pub fn k(&self) -> usize {
        self.panels.k
    }

    /// Columns of the matrix.
    pub fn n(&self) -> usize {
        self.panels.n
    }

    /// The memory it takes.
    pub fn bytes(&self) -> usize {
        self.data.bytes()
    }

    /// The kernel that reads it.
    pub fn kernel_name(&self) -> &'static str {
        self.panels.kernel.entry().name
    }
}
