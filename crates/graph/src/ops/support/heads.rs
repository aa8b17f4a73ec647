//! Heads of attention: where they are among the axes of a tensor, and its elements with the heads as an axis.

use armet_tensor::Shape;

use crate::ops::movement::show;
use crate::{Dim, InferError};

/// Axes of queries, keys or values.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_field_names, reason = "an axis of heads has no other name")]
pub(crate) struct Heads<D> {
    pub(crate) batch: D,
    pub(crate) heads: D,
    pub(crate) length: D,
    pub(crate) size: D,
}

impl Heads<Dim> {
    /// Of `[batch, heads, length, size]`, or of `[batch, length, heads * size]` when the number of heads is given.
    ///
    /// # Errors
    /// When the axes are others, or do not fit that number.
    pub(crate) fn of(operator: &str, dims: &[Dim], heads: Option<usize>) -> Result<Self, InferError> {
        let fault = |what: &str| InferError::Mismatch(format!("{operator} of {}: {what}", show(dims)));
        match (dims, heads) {
            ([batch, own, length, size], _) => {
                if let (Some(heads), Some(own)) = (heads, own.fixed())
                    && heads != own
                {
                    return Err(fault(&format!("the second axis should be {heads} heads")));
                }
                let [batch, heads, length, size] = [batch, own, length, size].map(Clone::clone);
                Ok(Self { batch, heads, length, size })
            }
            ([_, _, _], None | Some(0)) => Err(fault("the number of heads is not given")),
            ([batch, length, width], Some(heads)) => {
                if width.fixed().is_some_and(|width| !width.is_multiple_of(heads)) {
                    return Err(fault(&format!("the last axis is no multiple of {heads} heads")));
                }
                let size = width.floor_div(&Dim::Fixed(heads));
                Ok(Self { batch: batch.clone(), heads: Dim::Fixed(heads), length: length.clone(), size })
            }
            _ => Err(fault("three or four axes are needed")),
        }
    }

    /// With numbers in place of dimensions.
    pub(crate) fn fixed(&self) -> Option<Heads<usize>> {
        let [batch, heads, length, size] =
            [&self.batch, &self.heads, &self.length, &self.size].map(Dim::fixed);
        Some(Heads { batch: batch?, heads: heads?, length: length?, size: size? })
    }
}

impl Heads<usize> {
    /// Of a tensor's shape, as [`Heads::of`].
    ///
    /// # Errors
    /// As [`Heads::of`].
    pub(crate) fn of_shape(operator: &str, shape: &Shape, heads: Option<usize>) -> Result<Self, InferError> {
        let dims: Vec<Dim> = shape.iter().map(|&n| Dim::Fixed(n)).collect();
        let heads = Heads::of(operator, &dims, heads)?;
        heads.fixed().ok_or_else(|| InferError::Mismatch(format!("{operator} of {shape}: too large")))
    }

    /// Elements of a `[batch, length, heads, size]` tensor in the order of `[batch, heads, length, size]`.
    pub(crate) fn by_head<T: Copy>(&self, values: &[T]) -> Vec<T> {
        reorder(values, [self.batch, self.length, self.heads, self.size])
    }

    /// Elements of a `[batch, heads, length, size]` tensor in the order of `[batch, length, heads, size]`.
    pub(crate) fn by_position<T: Copy>(&self, values: &[T]) -> Vec<T> {
        reorder(values, [self.batch, self.heads, self.length, self.size])
    }
}

/// Exchanges the second and the third of four axes.
fn reorder<T: Copy>(values: &[T], [first, second, third, inner]: [usize; 4]) -> Vec<T> {
    let mut result = Vec::with_capacity(values.len());
    if values.is_empty() {
        return result;
    }
    for a in 0..first {
        for c in 0..third {
            for b in 0..second {
                result.extend_from_slice(&values[((a * second + b) * third + c) * inner..][..inner]);
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_an_axis_or_part_of_one() {
        let flat = Heads::of_shape("Op", &Shape::from([2, 5, 12]), Some(3)).unwrap();
        assert_eq!(flat, Heads { batch: 2, heads: 3, length: 5, size: 4 });
        assert_eq!(flat, Heads::of_shape("Op", &Shape::from([2, 3, 5, 4]), None).unwrap());
        let message =
            |shape: &[usize], heads| Heads::of_shape("Op", &shape.into(), heads).unwrap_err().to_string();
        assert_eq!(message(&[2, 5, 12], Some(5)), "Op of [2,5,12]: the last axis is no multiple of 5 heads");
        assert_eq!(message(&[2, 3, 5, 4], Some(2)), "Op of [2,3,5,4]: the second axis should be 2 heads");
        assert_eq!(message(&[2, 5, 12], None), "Op of [2,5,12]: the number of heads is not given");
        assert_eq!(message(&[5], None), "Op of [5]: three or four axes are needed");
    }

    #[test]
    fn elements_are_reordered_and_back() {
        let heads = Heads { batch: 1, heads: 2, length: 3, size: 1 };
        let by_head = heads.by_head(&[0, 1, 2, 3, 4, 5]);
        assert_eq!(by_head, [0, 2, 4, 1, 3, 5]);
        assert_eq!(heads.by_position(&by_head), [0, 1, 2, 3, 4, 5]);
    }
}
