//! Moving elements of any type: whole bytes, types that share a byte, and text. The contract of everything here: a
//! result is sized and checked before memory is taken for it, and elements are never read as numbers.

use armet_tensor::storage::AlignedBytes;
use armet_tensor::{ElementType, Shape, Tensor, TensorError, strides};
use smallvec::SmallVec;

use super::{ScatterReduction, numbers};
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
    // The axes of an empty tensor are held to the same measure: indices along one must fit.
    let longest = shape.iter().copied().max().unwrap_or(1);
    if bytes.is_none_or(|bytes| bytes > LARGEST_RESULT) || !fits_in_memory(count.max(longest)) {
        return Err(too_large().into());
    }
    Ok(count)
}

/// Whether memory for so many elements can be had now, as numbers to compute with and their positions: allocations that
/// follow would end the process where this says no.
fn fits_in_memory(count: usize) -> bool {
    const NOT_WORTH_ASKING: usize = 1 << 20;
    count <= NOT_WORTH_ASKING || Vec::<[u64; 3]>::new().try_reserve_exact(count).is_ok()
}

/// What inference says of an operator's results on these very inputs, which have been checked when this returns.
///
/// # Errors
/// When inference refuses the inputs.
pub(crate) fn types(
    operator: &dyn Operator,
    inputs: &[Option<&Value>],
) -> Result<Vec<ValueType>, EvaluateError> {
    for tensor in inputs.iter().filter_map(|input| (*input)?.tensor()) {
        check_size(tensor.element(), tensor.shape())?;
    }
    let types: SmallVec<[Option<ValueType>; 6]> =
        inputs.iter().map(|input| input.and_then(Value::value_type)).collect();
    let shown: SmallVec<[Option<InferInput<'_>>; 6]> = inputs
        .iter()
        .zip(&types)
        .map(|(input, ty)| Some(InferInput { ty: ty.as_ref()?, value: (*input)?.tensor(), entries: None }))
        .collect();
    Ok(operator.infer(&InferInputs(&shown))?)
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
    types(operator, inputs)?
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

/// A list with room for this many items, for intermediate results as large as a result.
///
/// # Errors
/// When the system has no such block of memory.
pub(crate) fn reserve<T>(count: usize) -> Result<Vec<T>, EvaluateError> {
    let mut list = Vec::new();
    list.try_reserve_exact(count)
        .map_err(|_| EvaluateError::Invalid(format!("{count} elements do not fit in memory")))?;
    Ok(list)
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

/// Refuses indices along `axis` that leave the data along another axis.
///
/// # Errors
/// [`InferError::Mismatch`].
pub(crate) fn within(data: &[Dim], indices: &[Dim], axis: usize) -> Result<(), InferError> {
    let fits = data.len() == indices.len()
        && data.iter().zip(indices).enumerate().all(|(i, (data, index))| {
            match (data.fixed(), index.fixed()) {
                (Some(data), Some(index)) => i == axis || index <= data,
                _ => true,
            }
        });
    if fits {
        return Ok(());
    }
    Err(InferError::Mismatch(format!(
        "indices of shape {} along axis {axis} do not fit data of shape {}",
        show(indices),
        show(data)
    )))
}

/// Refuses updates of another shape than their indices ask for.
///
/// # Errors
/// [`InferError::Mismatch`].
pub(crate) fn same_dims(wanted: &[Dim], updates: &[Dim]) -> Result<(), InferError> {
    if wanted.len() == updates.len() && wanted.iter().zip(updates).all(|(a, b)| unify(a, b).is_some()) {
        return Ok(());
    }
    Err(InferError::Mismatch(format!(
        "updates of shape {} should have shape {}",
        show(updates),
        show(wanted)
    )))
}

/// Number of elements of the first of these types, when it is concrete.
pub(crate) fn element_count(types: &[Option<&ValueType>]) -> u64 {
    let shape = types.first().copied().flatten().and_then(ValueType::shape);
    shape.and_then(|shape| shape.checked_len()).map_or(0, |count| count as u64)
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
        let data = if element == ElementType::String {
            let mut texts = reserve(count)?;
            texts.resize(count, String::new());
            Data::Text(texts)
        } else {
            let too_large = || TensorError::TooLarge(shape.clone());
            let bytes = element.bytes_for(count).ok_or_else(too_large)?;
            Data::Bytes(AlignedBytes::try_zeroed(bytes).ok_or_else(too_large)?)
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

/// A copy of a tensor into which elements of another are written, replacing what is there or joined with it.
pub(crate) struct Scatter<'a> {
    updates: &'a Tensor,
    reduction: ScatterReduction,
    data: ScatterData,
}

enum ScatterData {
    Moved(Elements),
    Floats(ElementType, Shape, Vec<f64>, Vec<f64>),
    Integers(ElementType, Shape, Vec<i128>, Vec<i128>),
}

impl<'a> Scatter<'a> {
    /// A copy of `data` to write into.
    ///
    /// # Errors
    /// When the elements are no numbers and the reduction needs some.
    pub(crate) fn new(
        data: &Tensor,
        updates: &'a Tensor,
        reduction: ScatterReduction,
    ) -> Result<Self, EvaluateError> {
        let (element, shape) = (data.element(), data.shape().clone());
        let data = if reduction == ScatterReduction::None {
            ScatterData::Moved(Elements::copy_of(data))
        } else if element.is_float() {
            ScatterData::Floats(element, shape, numbers::to_f64(data)?, numbers::to_f64(updates)?)
        } else {
            ScatterData::Integers(element, shape, numbers::to_i128(data)?, numbers::to_i128(updates)?)
        };
        Ok(Self { updates, reduction, data })
    }

    /// Writes `count` neighbouring elements. Callers have checked the ranges.
    pub(crate) fn write(&mut self, to: usize, from: usize, count: usize) {
        match &mut self.data {
            ScatterData::Moved(out) => out.copy(to, self.updates, from, count),
            ScatterData::Floats(_, _, out, updates) => {
                for (old, &new) in out[to..to + count].iter_mut().zip(&updates[from..]) {
                    *old = match self.reduction {
                        ScatterReduction::None => new,
                        ScatterReduction::Add => *old + new,
                        ScatterReduction::Mul => *old * new,
                        // A NaN on either side stays one.
                        ScatterReduction::Max if new > *old || new.is_nan() => new,
                        ScatterReduction::Min if new < *old || new.is_nan() => new,
                        ScatterReduction::Max | ScatterReduction::Min => *old,
                    };
                }
            }
            ScatterData::Integers(_, _, out, updates) => {
                for (old, &new) in out[to..to + count].iter_mut().zip(&updates[from..]) {
                    *old = match self.reduction {
                        ScatterReduction::None => new,
                        ScatterReduction::Add => old.wrapping_add(new),
                        ScatterReduction::Mul => old.wrapping_mul(new),
                        ScatterReduction::Max => new.max(*old),
                        ScatterReduction::Min => new.min(*old),
                    };
                }
            }
        }
    }

    /// The finished tensor.
    ///
    /// # Errors
    /// See [`Elements::finish`].
    pub(crate) fn finish(self) -> Result<Tensor, EvaluateError> {
        match self.data {
            ScatterData::Moved(out) => out.finish(),
            ScatterData::Floats(element, shape, values, _) => numbers::from_f64(element, shape, &values),
            ScatterData::Integers(element, shape, values, _) => numbers::from_i128(element, shape, &values),
        }
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
    let mut out = Elements::zeros(source.element(), shape.clone())?;
    if shape.contains(&0) {
        return out.finish();
    }
    let strides = strides(source.shape());
    // Elements that lie side by side are copied together: whole axes from the last one on, and a run along the one before.
    let follow = |axis: &[usize]| axis.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let mut split = axes.len();
    while split > 0 && axes[split - 1].len() == source.shape()[split - 1] && follow(&axes[split - 1]) {
        split -= 1;
    }
    let mut offset = 0;
    if split > 0 && follow(&axes[split - 1]) {
        split -= 1;
        offset = axes[split][0] * strides[split];
    }
    let block: usize = shape[split..].iter().product();
    for (index, at) in coordinates(&shape[..split]).enumerate() {
        let from: usize =
            at.iter().zip(axes).zip(&strides).map(|((&i, axis), stride)| axis[i] * stride).sum();
        out.copy(index * block, source, offset + from, block);
    }
    out.finish()
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
    fn parts_are_the_same_whether_their_elements_lie_side_by_side_or_not() {
        let count = 3 * 4 * 5;
        let source = Tensor::new([3, 4, 5], &(0..count).collect::<Vec<i32>>()).unwrap();
        let all = |n: usize| (0..n).collect::<Vec<usize>>();
        for axes in [
            vec![all(3), all(4), all(5)],
            vec![vec![2, 0], all(4), all(5)],
            vec![vec![1], vec![1, 2], all(5)],
            vec![all(3), vec![3, 1], vec![1, 2, 3]],
            vec![vec![2], vec![0], vec![4, 2, 0]],
            vec![all(3), vec![], all(5)],
        ] {
            let mut wanted = Vec::new();
            for i in &axes[0] {
                for j in &axes[1] {
                    wanted.extend(axes[2].iter().map(|k| ((i * 4 + j) * 5 + k) as i32));
                }
            }
            let found = select(&source, &axes).unwrap();
            assert_eq!(found.values::<i32>().unwrap().as_ref(), wanted, "{axes:?}");
        }
        let scalar = Tensor::scalar(7i64);
        assert_eq!(select(&scalar, &[]).unwrap(), scalar);
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
        // Empty, but indices along an axis must fit too.
        assert!(Elements::zeros(ElementType::F32, [0, usize::MAX, usize::MAX]).is_err());
    }
}
