//! One value repeated in the shape that the input holds.

use armet_tensor::Tensor;

use super::movement;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// One value repeated in the shape that the input holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantOfShape {
    /// A tensor with one element: value and type of the result.
    pub value: Tensor,
}

impl Operator for ConstantOfShape {
    fn name(&self) -> &'static str {
        "ConstantOfShape"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("value", self.value.clone())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        if self.value.len() != 1 {
            return Err(InferError::Mismatch(format!(
                "the value to repeat must be one element, not {}",
                self.value.shape()
            )));
        }
        let entries = inputs.entries(0)?;
        let dims: Option<Vec<Dim>> = entries.iter().map(Entry::dim).collect();
        let dims =
            dims.ok_or_else(|| InferError::Mismatch("a dimension of a shape cannot be negative".into()))?;
        Ok(vec![TensorType::new(self.value.element(), dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let count = shape.elements();
        Ok(vec![movement::pick(&self.value, shape, std::iter::repeat_n(0, count))?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let case = |name: &str, value: Tensor, shape: &[i64]| {
            Case::new(name, Self { value }, [Tensor::vector(shape)])
                .with_constants(&[0])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("floats", Tensor::vector(&[1.5f32]), &[2, 3]),
            case("integers", Tensor::vector(&[-7i64]), &[5]),
            case("flags", Tensor::vector(&[armet_tensor::Bool(1)]), &[1, 3]),
            case("scalar", Tensor::vector(&[2.0f32]), &[]),
            case("empty", Tensor::vector(&[2i32]), &[3, 0]),
            Case {
                constants: vec![],
                ..case("shape given at run time", Tensor::vector(&[0.5f32]), &[3, 1, 2])
            },
        ]
    }
}
