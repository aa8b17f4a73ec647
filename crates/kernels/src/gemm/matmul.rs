//! Matrix products of two activations: B is packed at run time, into scratch memory of the caller.

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

use super::driver::{Product, RowSource, RowTiles, Tasks, run_strided};
use super::pack::Panels;
use super::table::Kernel;
use crate::epilogue::{Epilogue, Finisher, Residual, ResidualSource, check_matrix};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// A batch of matrices in one slice.
#[derive(Clone, Copy, Debug)]
pub struct MatMulOperand<'a> {
    /// All elements.
    pub data: &'a [f32],
    /// Elements from one row to the next.
    pub row_stride: usize,
    /// Elements from one column to the next.
    pub column_stride: usize,
}

/// A batch of products C = alpha A B of `m` x `k` and `k` x `n` matrices, neither of which is known before.
#[derive(Clone, Copy, Debug)]
pub struct MatMul {
    isas: Isas,
    m: usize,
    panels: Panels,
    transposed_a: bool,
}

impl MatMul {
    /// Products of these sizes. With `transposed_a` the columns of A may be at any distance, otherwise they must be side
    /// by side.
    pub fn new(isas: Isas, m: usize, k: usize, n: usize, transposed_a: bool) -> MatMul {
        MatMul { isas, m, panels: Panels { kernel: Kernel::choose(isas), k, n }, transposed_a }
    }

    /// The kernel that runs.
    pub fn kernel_name(&self) -> &'static str {
        self.panels.kernel.entry().name
    }

    /// The floats of scratch memory that a run on so many threads wants.
    pub fn scratch_len(&self, threads: usize) -> usize {
        self.scratch_per_thread() * threads
    }

    fn scratch_per_thread(&self) -> usize {
        self.panels.len() + if self.transposed_a { self.m * self.panels.k } else { 0 }
    }

    /// Compute C = alpha A B for each element of `offsets`: where the matrices of A, B and C begin.
    ///
    /// A residual matrix begins, for each product, as far from its start as C does.
    ///
    /// # Panics
    /// When a matrix does not lie within its slice, the epilogue does not fit, the scratch memory is too short, or the Cs
    /// are not in order: each must begin after all before it have ended, or lie beside its predecessor, all that lie
    /// side by side within one `c_row_stride`.
    pub fn run(
        &self,
        team: &Team,
        alpha: f32,
        a: MatMulOperand<'_>,
        b: MatMulOperand<'_>,
        c: &mut [f32],
        c_row_stride: usize,
        offsets: &[[usize; 3]],
        epilogue: &Epilogue<'_>,
        scratch: &mut [f32],
    ) {
        let Panels { k, n, .. } = self.panels;
        if self.m == 0 || n == 0 {
            return;
        }
        assert!(self.transposed_a || a.column_stride == 1 || k <= 1, "columns of A are side by side");
        for &[a_start, b_start, c_start] in offsets {
            check_operand(&a, a_start, self.m, k);
            check_operand(&b, b_start, k, n);
            check_matrix(c.len().saturating_sub(c_start), self.m, n, c_row_stride);
        }
        self.check_order(c_row_stride, offsets);
        let c = DisjointMut::new(c);
        let threads = team.threads();
        assert!(scratch.len() >= self.scratch_len(threads), "scratch memory for every thread");
        let per_thread = self.scratch_per_thread();
        if threads > 1 && offsets.len() < threads {
            for &starts in offsets {
                let (packed, rows) = scratch[..per_thread].split_at_mut(self.panels.len());
                self.one_product(team, alpha, a, b, c, c_row_stride, starts, epilogue, packed, rows);
            }
            return;
        }
        let scratch = DisjointMut::new(scratch);
        team.run_with_thread(offsets.len(), &|thread, index| {
            // SAFETY: no two tasks run with one thread index at a time.
            let own = unsafe { scratch.slice_mut(thread * per_thread, per_thread) };
            let (packed, rows) = own.split_at_mut(self.panels.len());
            let alone = Team::single();
            self.one_product(&alone, alpha, a, b, c, c_row_stride, offsets[index], epilogue, packed, rows);
        });
    }

    /// Check that no two Cs have an element in common; see [`MatMul::run`].
    fn check_order(&self, c_row_stride: usize, offsets: &[[usize; 3]]) {
        let extent = (self.m - 1) * c_row_stride + self.panels.n;
        let mut end = 0;
        let mut first = 0;
        let mut beside = 0;
        for (index, &[_, _, start]) in offsets.iter().enumerate() {
            if index == 0 || start >= end {
                first = start;
            } else {
                let fits = start + self.panels.n <= first + c_row_stride;
                assert!(start >= beside && fits, "results of a batch must not overlap");
            }
            beside = start + self.panels.n;
            end = end.max(start + extent);
        }
    }

    /// One product, whose packing and tiles are shared by the team.
    fn one_product(
        &self,
        team: &Team,
        alpha: f32,
        a: MatMulOperand<'_>,
        b: MatMulOperand<'_>,
        c: DisjointMut<'_, f32>,
        c_row_stride: usize,
        [a_start, b_start, c_start]: [usize; 3],
        epilogue: &Epilogue<'_>,
        packed: &mut [f32],
        rows: &mut [f32],
    ) {
        let panels = self.panels;
        let c = c.at(c_start);
        let epilogue = shifted(epilogue, c_start);
        let b_data = &b.data[b_start.min(b.data.len())..];
        let whole = DisjointMut::new(packed);
        team.run(panels.count(), &|panel| {
            let start = panels.start(panel);
            let end = if panel + 1 == panels.count() { panels.len() } else { panels.start(panel + 1) };
            // SAFETY: panels do not overlap, and each is packed by one task.
            let to = unsafe { whole.slice_mut(start, end - start) };
            pack(panels, panel, to, b_data, b.row_stride, b.column_stride, alpha);
        });
        let mut a_data = &a.data[a_start.min(a.data.len())..];
        let mut a_stride = a.row_stride;
        if self.transposed_a && panels.k > 0 {
            team.parallel_chunks_mut(rows, panels.k, &|row, to| {
                for (column, to) in to.iter_mut().enumerate() {
                    *to = a_data[row * a.row_stride + column * a.column_stride];
                }
            });
            a_data = rows;
            a_stride = panels.k;
        }
        let finisher = Finisher::new(self.isas, &epilogue, self.m, panels.n, c, c_row_stride);
        let product = Product {
            panels,
            weights: packed.as_ptr(),
            tiles: RowTiles::new(self.m, panels.kernel.rows()),
            depth: panels.k,
            c,
            c_stride: c_row_stride,
            first_row: 0,
            row_step: 1,
            first_column: 0,
            finisher: &finisher,
        };
        if team.threads() > 1 {
            // SAFETY: `run` checked A and C, the finisher the epilogue; the panels were packed above.
            unsafe { run_strided(team, &product, a_data.as_ptr(), a_stride) };
        } else {
            let tasks = Tasks::new(product.tiles.count(), panels, 1, 1, usize::MAX);
            for task in 0..tasks.count() {
                let (tiles, chunk) = tasks.ranges(task);
                let source = RowSource::Strided { start: a_data.as_ptr(), stride: a_stride, offsets: &[0] };
                // SAFETY: as above.
                unsafe { product.run(tiles, chunk, source) };
            }
        }
    }
}

/// The epilogue for a product whose C, and residual, begin `start` elements later.
fn shifted<'a>(epilogue: &Epilogue<'a>, start: usize) -> Epilogue<'a> {
    let mut epilogue = *epilogue;
    if let Some(Residual { source: ResidualSource::Matrix { data, .. }, .. }) = &mut epilogue.residual {
        *data = &data[start.min(data.len())..];
    }
    epilogue
}

fn check_operand(operand: &MatMulOperand<'_>, start: usize, rows: usize, columns: usize) {
    if rows > 0 && columns > 0 {
        let last = (rows - 1)
            .checked_mul(operand.row_stride)
            .zip((columns - 1).checked_mul(operand.column_stride))
            .and_then(|(row, column)| row.checked_add(column)?.checked_add(start));
        assert!(last.is_some_and(|last| last < operand.data.len()), "a matrix must lie within its slice");
    }
}

/// Pack one panel of a matrix with strides, times `alpha`.
pub(super) fn pack(
    panels: Panels,
    panel: usize,
    to: &mut [f32],
    data: &[f32],
    row_stride: usize,
    column_stride: usize,
    alpha: f32,
) {
    let columns = panels.columns(panel);
    let width = panels.vectors(panel) * panels.kernel.entry().lanes;
    let first = panel * panels.kernel.columns() * column_stride;
    if panels.k == 0 {
        return;
    }
    if column_stride == 1 {
        for (row, line) in to.chunks_exact_mut(width).take(panels.k).enumerate() {
            let from = &data[row * row_stride + first..][..columns];
            for (to, from) in line.iter_mut().zip(from) {
                *to = alpha * from;
            }
            line[columns..].fill(0.0);
        }
        return;
    }
    // Columns lie apart, rows side by side: a few rows at a time, so that what is written stays in the nearest cache.
    for (block, lines) in to[..panels.k * width].chunks_mut(16 * width).enumerate() {
        let rows = lines.len() / width;
        for column in 0..width {
            if column < columns {
                let start = first + column * column_stride + block * 16 * row_stride;
                for row in 0..rows {
                    lines[row * width + column] = alpha * data[start + row * row_stride];
                }
            } else {
                for row in 0..rows {
                    lines[row * width + column] = 0.0;
                }
            }
        }
    }
}
