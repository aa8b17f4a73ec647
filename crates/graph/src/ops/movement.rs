//! Moving elements of any type: whole bytes, types that share a byte, and text. The contract of everything here: a
//! result is sized and checked before memory is taken for it, and elements are never read as numbers.

use armet_tensor::storage::AlignedBytes;
use armet_tensor::{ElementType, Shape, Tensor, TensorError, strides};
use smallvec::SmallVec;

use crate::{Dim, EvaluateError, InferError, InferInput, InferInputs, Operator, Value, ValueType};

/// Results of more bytes than this are refused: no board has as much memory, so the shape must be a mistake.
const LARGEST_RESULT: usize = 1 << 40;

/// Bytes that a text takes at least.
const TEXT_BYTES: usize = size_of::<String>();

/// Refuses shapes whose elements cannot be held.
///
/// # Errors
/// [`TensorError::TooLarge`].
pub(crate) fn check_size(element: ElementType, shape: &Shape) -> Result<usize, EvaluateError> {
    let too_large = || TensorError::TooLarge(shape.clone());
    let count = shape.checked_len().ok_or_else(too_large)?;
    let bytes = match element {
        ElementType::String => count.checked_mul(TEXT_BYTES),
        _ => element.bytes_for(count),
    };
    if bytes.is_none_or(|bytes| bytes > LARGEST_RESULT) {
        return Err(too_large().into());
    }
    Ok(count)
}

/// Element types and shapes of an operator's tensor results on these very inputs.
///
/// Inference sees the contents of all inputs, so it has checked all that inference checks when this returns.
///
/// # Errors
/// When inference refuses the inputs, leaves a dimension open, or a result is too large to be held.
pub(crate) fn results(
    operator: &dyn Operator,
    inputs: &[Option<&Value>],
) -> Result<Vec<(ElementType, Shape)>, EvaluateError> {
    let types: SmallVec<[Option<ValueType>; 6]> =
        inputs.iter().map(|input| input.and_then(Value::value_type)).collect();
    let shown: SmallVec<[Option<InferInput<'_>>; 6]> = inputs
        .iter()
        .zip(&types)
        .map(|(input, ty)| Some(InferInput { ty: ty.as_ref()?, value: (*input)?.tensor(), entries: None }))
        .collect();
    let results = operator.infer(&InferInputs(&shown))?;
    results
        .iter()
        .map(|ty| {
            let open = || EvaluateError::Invalid(format!("the inputs do not decide the shape of {ty}"));
            let ty = ty.tensor().ok_or_else(open)?;
            let shape = ty.shape().ok_or_else(open)?;
            check_size(ty.element, &shape)?;
            Ok((ty.element, shape))
        })
        .collect()
}

/// As [`results`], for operators with one result.
///
/// # Errors
/// See [`results`].
pub(crate) fn result(
    operator: &dyn Operator,
    inputs: &[Option<&Value>],
) -> Result<(ElementType, Shape), EvaluateError> {
    results(operator, inputs)?
        .into_iter()
        .next()
        .ok_or_else(|| EvaluateError::Invalid(format!("{} gave no result type", operator.name())))
}

/// Refuses tensors of different element types.
///
/// # Errors
/// [`InferError::Mismatch`].
pub(crate) fn same_element(
    operator: &'static str,
    expected: ElementType,
    input: usize,
    actual: ElementType,
) -> Result<(), InferError> {
    if expected == actual {
        return Ok(());
    }
    Err(InferError::Mismatch(format!(
        "the inputs of {operator} must have one element type, but input {input} holds {actual} and input 0 {expected}"
    )))
}

/// Refuses element types other than int32 and int64 for indices.
///
/// # Errors
/// [`InferError::ElementType`].
pub(crate) fn index_element(
    operator: &'static str,
    input: usize,
    element: ElementType,
) -> Result<(), InferError> {
    match element {
        ElementType::I32 | ElementType::I64 => Ok(()),
        _ => Err(InferError::ElementType { input, element, operator }),
    }
}

/// The one dimension that two dimensions which must be equal are; `None` when they differ.
pub(crate) fn unify(a: &Dim, b: &Dim) -> Option<Dim> {
    match (a, b) {
        (Dim::Fixed(x), Dim::Fixed(y)) => (x == y).then_some(Dim::Fixed(*x)),
        (Dim::Fixed(n), _) | (_, Dim::Fixed(n)) => Some(Dim::Fixed(*n)),
        (Dim::Unknown, other) | (other, _) => Some(other.clone()),
    }
}

/// Resolves an index that may count from the end.
///
/// # Errors
/// When it is out of range.
pub(crate) fn resolve_index(index: i64, len: usize) -> Result<usize, EvaluateError> {
    let n = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if index < 0 { index.saturating_add(n) } else { index };
    usize::try_from(at)
        .ok()
        .filter(|&at| at < len)
        .ok_or_else(|| EvaluateError::Invalid(format!("index {index} is outside an axis of length {len}")))
}

/// The contents of an input that holds indices.
///
/// # Errors
/// When it is missing or holds no integers.
pub(crate) fn indices(inputs: &[Option<&Value>], index: usize) -> Result<Vec<i64>, EvaluateError> {
    let tensor = crate::evaluate::tensor(inputs, index)?;
    tensor.to_i64().ok_or_else(|| {
        EvaluateError::Invalid(format!("input {index} must hold integers, not {}", tensor.element()))
    })
}

/// Dimensions as text, for messages.
pub(crate) fn show(dims: &[Dim]) -> String {
    let parts: Vec<String> = dims.iter().map(Dim::to_string).collect();
    format!("[{}]", parts.join(","))
}

enum Data {
    Bytes(AlignedBytes),
    Text(Vec<String>),
}

/// A tensor under construction, written element by element from other tensors of its type.
pub(crate) struct Elements {
    element: ElementType,
    shape: Shape,
    data: Data,
}

impl Elements {
    /// Zeros, or empty texts.
    ///
    /// # Errors
    /// When they cannot be held.
    pub(crate) fn zeros(element: ElementType, shape: impl Into<Shape>) -> Result<Self, EvaluateError> {
        let shape = shape.into();
        let count = check_size(element, &shape)?;
        let data = match element {
            ElementType::String => Data::Text(vec![String::new(); count]),
            _ => {
                let bytes = element.bytes_for(count).ok_or_else(|| TensorError::TooLarge(shape.clone()))?;
                Data::Bytes(AlignedBytes::zeroed(bytes))
            }
        };
        Ok(Self { element, shape, data })
    }

    /// The elements of a tensor, to be overwritten in places.
    pub(crate) fn copy_of(tensor: &Tensor) -> Self {
        let data = match tensor.element() {
            ElementType::String => Data::Text(tensor.strings().to_vec()),
            _ => Data::Bytes(AlignedBytes::copy_from(tensor.bytes())),
        };
        Self { element: tensor.element(), shape: tensor.shape().clone(), data }
    }

    /// Copies `count` neighbouring elements of a tensor of the same type. Callers have checked type and ranges.
    pub(crate) fn copy(&mut self, to: usize, source: &Tensor, from: usize, count: usize) {
        debug_assert_eq!(self.element, source.element(), "elements of one type");
        match (&mut self.data, self.element.byte_size()) {
            (Data::Text(texts), _) => {
                texts[to..to + count].clone_from_slice(&source.strings()[from..from + count]);
            }
            (Data::Bytes(bytes), Some(size)) => bytes[to * size..(to + count) * size]
                .copy_from_slice(&source.bytes()[from * size..(from + count) * size]),
            (Data::Bytes(bytes), None) => {
                let bits = self.element.bits();
                let per_byte = 8 / bits;
                let mask = (1u8 << bits) - 1;
                let source = source.bytes();
                for i in 0..count {
                    let (to, from) = (to + i, from + i);
                    let raw = (source[from / per_byte] >> (bits * (from % per_byte))) & mask;
                    let shift = bits * (to % per_byte);
                    let byte = &mut bytes[to / per_byte];
                    *byte = (*byte & !(mask << shift)) | (raw << shift);
                }
            }
        }
    }

    /// Copies one element of a tensor of the same type.
    pub(crate) fn set(&mut self, to: usize, source: &Tensor, from: usize) {
        self.copy(to, source, from, 1);
    }

    /// The finished tensor.
    ///
    /// # Errors
    /// Never for elements made by this type; the tensor checks again.
    pub(crate) fn finish(self) -> Result<Tensor, EvaluateError> {
        Ok(match self.data {
            Data::Text(texts) => Tensor::from_strings(self.shape, texts)?,
            Data::Bytes(bytes) => Tensor::from_aligned(self.element, self.shape, bytes)?,
        })
    }
}

/// A tensor of this shape whose elements are those of `source` at these positions, in order.
///
/// # Errors
/// When the result cannot be held.
pub(crate) fn pick(
    source: &Tensor,
    shape: impl Into<Shape>,
    positions: impl IntoIterator<Item = usize>,
) -> Result<Tensor, EvaluateError> {
    let mut out = Elements::zeros(source.element(), shape)?;
    for (to, from) in positions.into_iter().enumerate() {
        out.set(to, source, from);
    }
    out.finish()
}

/// The part of a tensor that has, along each axis, these indices: `result[i, j, ..] = source[axes[0][i], axes[1][j], ..]`.
///
/// # Errors
/// When the result cannot be held.
pub(crate) fn select(source: &Tensor, axes: &[Vec<usize>]) -> Result<Tensor, EvaluateError> {
    let shape: Shape = axes.iter().map(Vec::len).collect();
    check_size(source.element(), &shape)?;
    let strides = strides(source.shape());
    let positions = coordinates(&shape)
        .map(|at| at.iter().zip(axes).zip(&strides).map(|((&i, axis), stride)| axis[i] * stride).sum());
    pick(source, shape.clone(), positions)
}

/// All coordinates of a shape in row-major order. A scalar has one: the empty one.
pub(crate) fn coordinates(dims: &[usize]) -> impl Iterator<Item = SmallVec<[usize; 6]>> + use<> {
    let dims: SmallVec<[usize; 6]> = dims.into();
    let first = (!dims.contains(&0)).then(|| SmallVec::from_elem(0, dims.len()));
    std::iter::successors(first, move |at| {
        let mut next = at.clone();
        for axis in (0..dims.len()).rev() {
            next[axis] += 1;
            if next[axis] < dims[axis] {
                return Some(next);
            }
            next[axis] = 0;
        }
        None
    })
}

/// A shape seen from one of its axes: how many slices lie before, how long the axis is, how many elements lie in one
/// of its entries. The shape is that of a tensor, so no product overflows.
pub(crate) fn around(dims: &[usize], axis: usize) -> (usize, usize, usize) {
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    (product(&dims[..axis]), dims[axis], product(&dims[axis + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::numbers;

    #[test]
    fn elements_below_a_byte_keep_their_neighbours() {
        let source = numbers::from_i128(ElementType::I4, [5], &[1, -2, 3, -4, 5]).unwrap();
        let picked = pick(&source, [3], [4, 1, 1]).unwrap();
        assert_eq!(numbers::to_i128(&picked).unwrap(), [5, -2, -2]);
        let mut crumbs = Elements::copy_of(&numbers::from_i128(ElementType::U2, [4], &[3, 3, 3, 3]).unwrap());
        crumbs.set(2, &numbers::from_i128(ElementType::U2, [1], &[1]).unwrap(), 0);
        assert_eq!(numbers::to_i128(&crumbs.finish().unwrap()).unwrap(), [3, 3, 1, 3]);
    }

    #[test]
    fn text_moves_as_numbers_do() {
        let source = Tensor::from_strings([2, 2], ["a", "b", "c", "d"].map(String::from).to_vec()).unwrap();
        let picked = select(&source, &[vec![1, 0], vec![1]]).unwrap();
        assert_eq!(picked.strings(), ["d", "b"]);
        assert_eq!(picked.shape().dims(), [2, 1]);
    }

    #[test]
    fn coordinates_of_scalars_and_of_nothing() {
        assert_eq!(coordinates(&[]).count(), 1);
        assert_eq!(coordinates(&[3, 0, 2]).count(), 0);
        let all: Vec<Vec<usize>> = coordinates(&[2, 2]).map(|c| c.to_vec()).collect();
        assert_eq!(all, [[0, 0], [0, 1], [1, 0], [1, 1]]);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Elements::zeros(ElementType::F32, [1 << 39]).is_err());
        assert!(Elements::zeros(ElementType::String, [usize::MAX]).is_err());
        assert!(Elements::zeros(ElementType::F32, [0, usize::MAX, usize::MAX]).is_ok());
    }
}
