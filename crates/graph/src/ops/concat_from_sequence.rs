//! The tensors of a list joined along an axis, which may be a new one.

use armet_tensor::Shape;

use super::{Concat, support};
use crate::evaluate::sequence;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// The tensors of a list joined along an axis, which may be a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct ConcatFromSequence {
    /// The axis; negative counts from the end of the result's axes.
    pub axis: i64,
    /// Whether the axis is a new one: tensors are stacked.
    pub new_axis: bool,
}

impl Operator for ConcatFromSequence {
    fn name(&self) -> &'static str {
        "ConcatFromSequence"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("new_axis", self.new_axis)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let ValueType::Tensor(item) = inputs.items(0)? else {
            return Err(InferError::Mismatch("only tensors can be joined".into()));
        };
        let Some(dims) = &item.dims else { return Ok(vec![TensorType::unranked(item.element).into()]) };
        let mut dims = dims.to_vec();
        if self.new_axis {
            let axis = support::axis(self.axis, dims.len() + 1)?;
            dims.insert(axis, Dim::Unknown);
        } else {
            let axis = support::axis(self.axis, dims.len())?;
            dims[axis] = Dim::Unknown;
        }
        Ok(vec![TensorType::new(item.element, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let items = sequence(inputs, 0)?;
        if items.is_empty() {
            return Err(EvaluateError::Invalid("an empty sequence cannot be joined".into()));
        }
        let stacked: Vec<Value>;
        let parts = if self.new_axis {
            let upright = items.iter().map(|item| {
                let tensor = item.tensor().ok_or(EvaluateError::MissingInput(0))?;
                let axis = support::axis(self.axis, tensor.shape().len() + 1)?;
                let mut shape: Shape = tensor.shape().clone();
                shape.insert(axis, 1);
                Ok(Value::from(tensor.reshape(shape)?))
            });
            stacked = upright.collect::<Result<_, EvaluateError>>()?;
            &stacked
        } else {
            items
        };
        let parts: Vec<Option<&Value>> = parts.iter().map(Some).collect();
        Concat { axis: self.axis }.evaluate(&parts, context)
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(63);
        let mut case = |name: &str, axis, new_axis, shapes: &[&[usize]]| {
            let item = |shape: &&[usize]| numbers.tensor(armet_tensor::ElementType::F32, *shape).into();
            let list = Value::Sequence(shapes.iter().map(item).collect());
            Case::of_values(name, Self { axis, new_axis }, vec![list]).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("along an axis", 1, false, &[&[2, 3], &[2, 1], &[2, 0]]),
            case("stacked", 0, true, &[&[2, 3], &[2, 3]]),
            case("stacked at the end", -1, true, &[&[4], &[4], &[4]]),
            case("one", -1, false, &[&[3]]),
            case("scalars stacked", 0, true, &[&[], &[]]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_cannot_be_joined() {
        let none = Value::Sequence(Vec::new());
        let op = ConcatFromSequence { axis: 0, new_axis: false };
        assert!(op.evaluate(&[Some(&none)], &Context::default()).is_err());
    }
}
