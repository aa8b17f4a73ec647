//! Products of matrices.

use std::borrow::Cow;
use std::ops::{AddAssign, Mul};

/// Numbers that matrices are made of.
pub(crate) trait Number: Copy + Default + AddAssign + Mul<Output = Self> {}
impl<T: Copy + Default + AddAssign + Mul<Output = T>> Number for T {}

/// `out += a * b` for row-major `a` of m rows and k columns, `b` of k rows and n columns.
pub(crate) fn accumulate<T: Number>(out: &mut [T], a: &[T], b: &[T], k: usize, n: usize) {
    if n == 0 || k == 0 {
        return;
    }
    for (out, a) in out.chunks_exact_mut(n).zip(a.chunks_exact(k)) {
        for (&a, b) in a.iter().zip(b.chunks_exact(n)) {
            for (out, &b) in out.iter_mut().zip(b) {
                *out += a * b;
            }
        }
    }
}

/// Rows and columns exchanged, for each of a row of matrices, where asked for.
pub(crate) fn transposed<T: Number>(values: &[T], rows: usize, columns: usize, really: bool) -> Cow<'_, [T]> {
    if !really || rows == 0 || columns == 0 {
        return Cow::Borrowed(values);
    }
    let mut result = Vec::with_capacity(values.len());
    for matrix in values.chunks_exact(rows * columns) {
        for column in 0..columns {
            result.extend(matrix[column..].iter().step_by(columns));
        }
    }
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_with_a_transposed_factor() {
        let b = transposed(&[1.0, 3.0, 5.0, 2.0, 4.0, 6.0], 2, 3, true);
        let mut out = [100.0; 4];
        accumulate(&mut out, &[1.0, 0.0, 2.0, 0.0, 1.0, 0.0], &b, 3, 2);
        assert_eq!(out, [111.0, 114.0, 103.0, 104.0]);
    }
}
