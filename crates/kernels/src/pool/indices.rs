//! Maximum pooling that tells where each maximum is.

use super::{Axis, GRAIN, Pool2d};
use crate::elementwise::Number;
use crate::layout::ChannelOrder;
use crate::threads::{DisjointMut, Team};

impl Pool2d {
    /// The largest element of each window, and its index in the whole tensor, rows before columns or, if `column_major`,
    /// columns before rows; of equal ones the first. A window without elements has `lowest` and the first index.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply, or channels are not first.
    pub fn max_with_indices<T: Number>(
        &self,
        team: &Team,
        lowest: T,
        column_major: bool,
        x: &[T],
        (y, indices): (Option<&mut [T]>, &mut [i64]),
    ) {
        let planes = self.batch * self.channels;
        let (plane, count) = (self.in_h * self.in_w, self.out_h * self.out_w);
        assert!(self.order == ChannelOrder::First, "indices are those of channels first");
        assert_eq!(x.len(), planes * plane, "the input's length differs from its shape's");
        assert_eq!(indices.len(), planes * count, "the indices' length differs from the output's");
        assert!(y.as_ref().is_none_or(|y| y.len() == planes * count), "the output's length differs");
        let (rows, columns) = (self.vertical(), self.horizontal());
        let steps = if column_major { (1, self.in_h) } else { (self.in_w, 1) };
        let values = y.map(DisjointMut::new);
        let indices = DisjointMut::new(indices);
        let grain = GRAIN.div_ceil(count * self.kernel_h * self.kernel_w + 1);
        team.parallel_ranges(planes, grain, 1, &|start, end| {
            for index in start..end {
                let x = &x[index * plane..][..plane];
                // SAFETY: every plane belongs to one task.
                let indices = unsafe { indices.slice_mut(index * count, count) };
                // SAFETY: as above.
                let mut y = values.as_ref().map(|y| unsafe { y.slice_mut(index * count, count) });
                for (window, place) in indices.iter_mut().enumerate() {
                    let at = (window / self.out_w, window % self.out_w);
                    let (value, (row, column)) = largest(x, lowest, rows, columns, at);
                    *place = (index * plane + row * steps.0 + column * steps.1) as i64;
                    if let Some(y) = y.as_deref_mut() {
                        y[window] = value;
                    }
                }
            }
        });
    }
}

/// The largest element of a window, and its row and column.
fn largest<T: Number>(
    x: &[T],
    lowest: T,
    rows: Axis,
    columns: Axis,
    (row, column): (usize, usize),
) -> (T, (usize, usize)) {
    let mut best: Option<(T, (usize, usize))> = None;
    for tap_row in rows.taps(row) {
        let y = rows.index(row, tap_row);
        for tap in columns.taps(column) {
            let x_at = columns.index(column, tap);
            let value = x[y * columns.input + x_at];
            // The first NaN wins over all numbers.
            if best.is_none_or(|(best, _)| value > best || (is_nan(value) && !is_nan(best))) {
                best = Some((value, (y, x_at)));
            }
        }
    }
    best.unwrap_or((lowest, (0, 0)))
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself, and the trait has no other test")]
fn is_nan<T: PartialOrd + Copy>(value: T) -> bool {
    value != value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_name_the_first_largest_element() {
        let pool = Pool2d {
            batch: 1,
            channels: 2,
            in_h: 3,
            in_w: 4,
            out_h: 2,
            out_w: 3,
            kernel_h: 2,
            kernel_w: 2,
            stride_h: 2,
            stride_w: 2,
            dilation_h: 1,
            dilation_w: 1,
            pad_top: 0,
            pad_left: 1,
            pad_bottom: 1,
            pad_right: 1,
            order: ChannelOrder::First,
        };
        let mut x = [0.0f32; 24];
        (x[1], x[5], x[7], x[8], x[11], x[12 + 3]) = (2.0, 2.0, 3.0, -1.0, 4.0, f32::NAN);
        let (mut y, mut rows, mut columns) = ([0.0; 12], [0; 12], [0; 12]);
        let team = Team::new(2);
        pool.max_with_indices(&team, f32::NEG_INFINITY, false, &x, (Some(&mut y), &mut rows));
        assert_eq!(y[..6], [0.0, 2.0, 3.0, -1.0, 0.0, 4.0]);
        assert_eq!(rows[..6], [0, 1, 7, 8, 9, 11]);
        assert!(y[8].is_nan() && rows[8] == 15);
        pool.max_with_indices(&team, f32::NEG_INFINITY, true, &x, (None, &mut columns));
        assert_eq!(columns[..6], [0, 3, 10, 2, 5, 11]);
    }
}
