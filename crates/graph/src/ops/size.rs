//! The number of elements of a tensor, as an int64 scalar.

use armet_tensor::{ElementType, Tensor};

use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// The number of elements of a tensor, as an int64 scalar.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Size;

impl Operator for Size {
    fn name(&self) -> &'static str {
        "Size"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        inputs.tensor(0)?;
        Ok(vec![TensorType::fixed(ElementType::I64, &[]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let count = tensor(inputs, 0)?.len();
        Ok(vec![Tensor::scalar(i64::try_from(count).unwrap_or(i64::MAX)).into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(17);
        [("matrix", vec![3, 5]), ("scalar", vec![]), ("empty", vec![3, 0])]
            .into_iter()
            .map(|(name, shape)| {
                Case::new(name, Self, [numbers.tensor(ElementType::F32, shape)])
                    .with_tolerance(Tolerance::Exact)
            })
            .collect()
    }
}
