//! A tensor cut along an axis into a list of tensors.

use armet_tensor::{Shape, Tensor};

use super::movement::{self, Elements, around};
use super::support;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// No list of tensors is longer: even empty ones take memory.
const MOST_PARTS: usize = 1 << 24;

/// A tensor cut along an axis into a list of tensors.
///
/// Inputs are the data and, optionally, the lengths of the parts: one number for all of them (the last one may be
/// shorter), or a list. Without it every part is of length one.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitToSequence {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// Whether parts of length one keep their axis; only asked where no lengths are given.
    pub keep_dims: bool,
}

/// The lengths of the parts of an axis.
fn lengths(len: usize, given: Option<&Tensor>) -> Result<Vec<usize>, InferError> {
    let cannot = || InferError::Mismatch(format!("an axis of length {len} cannot be cut so"));
    let Some(given) = given else {
        return if len <= MOST_PARTS { Ok(vec![1; len]) } else { Err(cannot()) };
    };
    let numbers = given.to_i64().ok_or_else(cannot)?;
    if given.shape().is_empty() {
        let each = usize::try_from(numbers[0]).ok().filter(|&n| n > 0 && len / n <= MOST_PARTS);
        let each = each.ok_or_else(cannot)?;
        return Ok((0..len).step_by(each).map(|at| each.min(len - at)).collect());
    }
    let lengths: Vec<usize> =
        numbers.into_iter().map(|n| usize::try_from(n).map_err(|_| cannot())).collect::<Result<_, _>>()?;
    let sum = lengths.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    if sum == Some(len) { Ok(lengths) } else { Err(cannot()) }
}

impl Operator for SplitToSequence {
    fn name(&self) -> &'static str {
        "SplitToSequence"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("keepdims", self.keep_dims)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let mut dims = inputs.dims(0)?.to_vec();
        let axis = support::axis(self.axis, dims.len())?;
        if inputs.has(1) {
            movement::index_element(self.name(), 1, inputs.element(1)?)?;
            dims[axis] = match (dims[axis].fixed(), inputs.value(1)) {
                (Some(len), Ok(given)) => match lengths(len, Some(given))?.as_slice() {
                    [first, others @ ..] if others.iter().all(|n| n == first) => Dim::Fixed(*first),
                    _ => Dim::Unknown,
                },
                _ => Dim::Unknown,
            };
        } else if self.keep_dims {
            dims[axis] = Dim::Fixed(1);
        } else {
            dims.remove(axis);
        }
        let part = TensorType::new(inputs.element(0)?, dims);
        Ok(vec![ValueType::Sequence(Box::new(part.into()))])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let data = tensor(inputs, 0)?;
        movement::check_size(data.element(), data.shape())?;
        let axis = support::axis(self.axis, data.shape().len())?;
        let given = crate::evaluate::optional(inputs, 1);
        let (outer, len, inner) = around(data.shape(), axis);
        let mut begin = 0;
        let mut parts = Vec::new();
        for length in lengths(len, given)? {
            let mut shape: Shape = data.shape().clone();
            shape[axis] = length;
            let mut out = Elements::zeros(data.element(), shape.clone())?;
            for i in 0..outer {
                out.copy(i * length * inner, data, (i * len + begin) * inner, length * inner);
            }
            begin += length;
            let part = out.finish()?;
            parts.push(Value::from(if given.is_none() && !self.keep_dims {
                shape.remove(axis);
                part.reshape(shape)?
            } else {
                part
            }));
        }
        Ok(vec![Value::Sequence(parts)])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(62);
        let mut case = |name: &str, axis, keep_dims, shape: &[usize], lengths: Option<Tensor>| {
            let data = numbers.tensor(armet_tensor::ElementType::F32, shape);
            let inputs: Vec<Tensor> = std::iter::once(data).chain(lengths).collect();
            Case::new(name, Self { axis, keep_dims }, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("rows", 0, true, &[3, 2], None),
            case("columns without their axis", -1, false, &[2, 3], None),
            case("of one length", 1, true, &[2, 5], Some(Tensor::scalar(2i64))),
            case("of given lengths", 0, false, &[4, 3], Some(Tensor::vector(&[1i64, 0, 3]))),
            case("of equal lengths", 1, true, &[2, 4, 2], Some(Tensor::vector(&[2i64, 2]))),
            case("of nothing", 0, true, &[0, 3], None),
        ]
    }
}
