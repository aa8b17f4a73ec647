//! The upper or lower triangle of matrices.

use crate::threads::Team;

/// Bytes worth a task of their own.
const GRAIN: usize = 32 * 1024;

/// ONNX `Trilu` on bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triangle {
    /// Rows of a matrix.
    pub rows: usize,
    /// Columns of a matrix.
    pub columns: usize,
    /// Bytes of an element.
    pub element_size: usize,
    /// What is on and above the diagonal is kept, rather than what is on and below.
    pub upper: bool,
}

impl Triangle {
    /// Copies what is kept, the diagonal beginning in column `diagonal`, and makes the rest zero.
    ///
    /// # Panics
    /// When input and output do not consist of equally many whole matrices.
    pub fn run(&self, team: &Team, diagonal: i64, x: &[u8], y: &mut [u8]) {
        let row = self.columns * self.element_size;
        assert_eq!(x.len(), y.len(), "input and output differ in length");
        if y.is_empty() {
            return;
        }
        assert!(x.len().is_multiple_of(row * self.rows), "the slices do not hold whole matrices");
        let rows = GRAIN.div_ceil(row.max(1));
        team.parallel_chunks_mut(y, rows * row, &|task, y| {
            for (index, y) in (task * rows..).zip(y.chunks_exact_mut(row)) {
                let x = &x[index * row..][..row];
                // The first column on or behind the diagonal, and the first behind it.
                let on = ((index % self.rows) as i64).saturating_add(diagonal);
                let column = if self.upper { on } else { on.saturating_add(1) };
                let split = column.clamp(0, self.columns as i64) as usize * self.element_size;
                let (kept, cleared) =
                    if self.upper { (split..row, 0..split) } else { (0..split, split..row) };
                y[kept.clone()].copy_from_slice(&x[kept]);
                y[cleared].fill(0);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonals_divide_matrices() {
        let x: Vec<u8> = (1..=12).collect();
        let mut y = [0; 12];
        let upper = Triangle { rows: 2, columns: 3, element_size: 2, upper: true };
        upper.run(&Team::new(2), 1, &x, &mut y);
        assert_eq!(y, [0, 0, 3, 4, 5, 6, 0, 0, 0, 0, 11, 12]);
        let lower = Triangle { upper: false, ..upper };
        lower.run(&Team::single(), 0, &x, &mut y);
        assert_eq!(y, [1, 2, 0, 0, 0, 0, 7, 8, 9, 10, 0, 0]);
        lower.run(&Team::single(), i64::MAX, &x, &mut y);
        assert_eq!(y[..], x);
        upper.run(&Team::single(), i64::MIN, &x, &mut y);
        assert_eq!(y[..], x);
    }
}
