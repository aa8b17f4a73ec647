//! Axes of length one dropped.

use armet_tensor::Tensor;

use super::{movement, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Axes of length one dropped: inputs are data and axes (optional: all of length one).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Squeeze;

impl Operator for Squeeze {
    fn name(&self) -> &'static str {
        "Squeeze"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let dropped = if inputs.has(1) {
            let axes = support::axes(&inputs.ints(1)?, dims.len())?;
            for &axis in &axes {
                if dims[axis].fixed().is_some_and(|len| len != 1) {
                    return Err(InferError::Mismatch(format!(
                        "axis {axis} of {} cannot be dropped: its length is not 1",
                        movement::show(dims)
                    )));
                }
            }
            axes
        } else if dims.iter().all(|dim| dim.fixed().is_some()) {
            (0..dims.len()).filter(|&axis| dims[axis].is(1)).collect()
        } else {
            // A named length may turn out to be 1: the rank of the result is open.
            return Err(InferError::NeedsRank(0));
        };
        let kept = dims.iter().enumerate().filter(|(axis, _)| !dropped.contains(axis));
        Ok(vec![TensorType::new(inputs.element(0)?, kept.map(|(_, dim)| dim.clone())).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        Ok(vec![tensor(inputs, 0)?.reshape(shape)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I64};
        let mut numbers = Numbers::new(10);
        let mut case = |name: &str, element, shape: &[usize], axes: Option<&[i64]>| {
            let inputs = std::iter::once(numbers.tensor(element, shape)).chain(axes.map(Tensor::vector));
            let constants = if axes.is_some() { vec![1] } else { vec![] };
            Case::new(name, Self, inputs).with_constants(&constants).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("given axes", F32, &[1, 3, 1, 5], Some(&[0, 2])),
            case("all of length one", F32, &[1, 3, 1, 5, 1], None),
            case("from the end", F32, &[2, 7, 1, 1], Some(&[-1, -2])),
            case("to a scalar", I64, &[1], Some(&[0])),
            case("nothing to drop", F32, &[2, 3], None),
            case("no axes", F32, &[1, 3], Some(&[])),
            case("empty", F32, &[0, 1], Some(&[1])),
        ]
    }
}
