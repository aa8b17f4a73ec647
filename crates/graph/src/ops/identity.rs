//! The value itself, of any kind.

use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// The value itself, of any kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity;

impl Operator for Identity {
    fn name(&self) -> &'static str {
        "Identity"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        Ok(vec![inputs.value_type(0)?.clone()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let value = inputs.first().copied().flatten().ok_or(EvaluateError::MissingInput(0))?;
        Ok(vec![value.clone()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{Bool, F16, F32, I64};
        let mut numbers = Numbers::new(1);
        [
            ("float", F32, vec![2, 3, 5]),
            ("scalar", F32, vec![]),
            ("empty", I64, vec![3, 0]),
            ("half", F16, vec![7]),
            ("flags", Bool, vec![1, 9]),
        ]
        .into_iter()
        .map(|(name, element, shape)| {
            Case::new(name, Self, [numbers.tensor(element, shape)]).with_tolerance(Tolerance::Exact)
        })
        .collect()
    }
}
