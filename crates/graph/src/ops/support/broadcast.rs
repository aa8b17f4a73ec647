//! NumPy broadcasting: of dimensions while types are inferred, of elements while values are computed.

use armet_tensor::{Shape, TensorError, strides};
use smallvec::SmallVec;

use crate::ops::movement::show;
use crate::{Dim, EvaluateError, InferError};

/// The dimensions that all of these broadcast to.
///
/// # Errors
/// When two dimensions cannot be equal and neither is 1.
pub(crate) fn dims(operator: &str, all: &[&[Dim]]) -> Result<SmallVec<[Dim; 6]>, InferError> {
    let rank = all.iter().map(|d| d.len()).max().unwrap_or(0);
    let mut result: SmallVec<[Dim; 6]> = SmallVec::from_elem(Dim::Fixed(1), rank);
    for one in all {
        for (slot, dim) in result[rank - one.len()..].iter_mut().zip(*one) {
            *slot = slot.broadcast(dim).ok_or_else(|| {
                let shapes: Vec<String> = all.iter().map(|d| show(d)).collect();
                InferError::Mismatch(format!("{operator} cannot broadcast {}", shapes.join(" with ")))
            })?;
        }
    }
    Ok(result)
}

/// Product of dimensions, saturating: of an empty tensor single dimensions may be of any size.
pub(crate) fn product(dims: &[usize]) -> usize {
    dims.iter().fold(1, |product, &dim| product.saturating_mul(dim))
}

/// The number of elements of a shape.
///
/// # Errors
/// When it is too large to count.
pub(crate) fn elements(shape: &Shape) -> Result<usize, EvaluateError> {
    shape.checked_len().ok_or_else(|| TensorError::TooLarge(shape.clone()).into())
}

/// A buffer for a result of this shape.
///
/// # Errors
/// When there is not that much memory.
pub(crate) fn filled<T: Clone>(shape: &Shape, value: T) -> Result<Vec<T>, EvaluateError> {
    let mut buffer = reserved(shape)?;
    buffer.resize(elements(shape)?, value);
    Ok(buffer)
}

/// An empty buffer with room for a result of this shape.
fn reserved<T>(shape: &Shape) -> Result<Vec<T>, EvaluateError> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(elements(shape)?).map_err(|_| TensorError::TooLarge(shape.clone()))?;
    Ok(buffer)
}

/// Repeats elements of shape `from` so that they fill shape `to`.
///
/// # Errors
/// When `from` does not broadcast to `to`, or the result does not fit in memory.
pub(crate) fn expand<T: Clone>(values: Vec<T>, from: &[usize], to: &Shape) -> Result<Vec<T>, EvaluateError> {
    if from == &**to {
        return Ok(values);
    }
    if Shape::broadcast(from, to).as_ref() != Some(to) {
        let from = Shape::new(from);
        return Err(EvaluateError::Invalid(format!("{from} does not broadcast to {to}")));
    }
    let mut result: Vec<T> = reserved(to)?;
    if elements(to)? == 0 {
        return Ok(result);
    }
    let lead = to.len() - from.len();
    let own = strides(from);
    let steps: SmallVec<[usize; 6]> =
        (0..to.len()).map(|i| if i < lead || from[i - lead] == 1 { 0 } else { own[i - lead] }).collect();
    let Some((&inner, outer)) = to.split_last() else { return Ok(values) };
    let inner_step = steps[outer.len()];
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
    loop {
        let start: usize = index.iter().zip(&steps).map(|(i, s)| i * s).sum();
        if inner_step == 0 {
            result.extend(std::iter::repeat_n(&values[start], inner).cloned());
        } else {
            result.extend_from_slice(&values[start..start + inner]);
        }
        if !advance(&mut index, outer) {
            return Ok(result);
        }
    }
}

/// Steps a row-major index on; false when it was the last one.
pub(crate) fn advance(index: &mut [usize], dims: &[usize]) -> bool {
    for (i, &dim) in index.iter_mut().zip(dims).rev() {
        *i += 1;
        if *i < dim {
            return true;
        }
        *i = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_repeat_along_axes_of_length_one() {
        let e = |v: &[i32], from: &[usize], to: &[usize]| expand(v.to_vec(), from, &Shape::new(to)).ok();
        assert_eq!(e(&[1, 2], &[2, 1], &[2, 2]), Some(vec![1, 1, 2, 2]));
        assert_eq!(e(&[1, 2], &[2], &[2, 2]), Some(vec![1, 2, 1, 2]));
        assert_eq!(e(&[7], &[], &[1, 3]), Some(vec![7, 7, 7]));
        assert_eq!(e(&[1, 2], &[1, 2, 1], &[2, 2, 2]), Some(vec![1, 1, 2, 2, 1, 1, 2, 2]));
        assert_eq!(e(&[], &[0], &[3, 0]), Some(vec![]));
        assert_eq!(e(&[1, 2], &[2], &[3]), None);
        assert_eq!(e(&[1], &[1], &[usize::MAX, 2]), None);
        assert_eq!(e(&[1], &[1], &[1 << 45]), None);
    }

    #[test]
    fn the_message_of_a_mismatch_names_the_shapes() {
        let error = dims("Add", &[&[Dim::symbol("n"), 3.into()], &[4.into()]]).unwrap_err();
        assert_eq!(error.to_string(), "Add cannot broadcast [n,3] with [4]");
    }
}
