//! The same tensor laid out otherwise in memory; input and result say how in their `layout`.

use armet_tensor::ElementType;

use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// The same tensor laid out otherwise in memory; input and result say how in their `layout`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConvertLayout;

impl Operator for ConvertLayout {
    fn name(&self) -> &'static str {
        "ConvertLayout"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        Ok(vec![inputs.tensor(0)?.clone().into()])
    }

    /// Values are logical: where their elements lie in memory is no part of them.
    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        Ok(vec![tensor(inputs, 0)?.clone().into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(21);
        let f = ElementType::F32;
        [
            ("pictures", f, vec![2, 5, 3, 7]),
            ("one channel", f, vec![1, 1, 4, 3]),
            ("sequences", f, vec![2, 3, 9]),
            ("uint8", ElementType::U8, vec![1, 3, 5, 4]),
            ("empty", f, vec![1, 3, 0, 4]),
        ]
        .map(|(name, element, shape)| {
            Case::new(name, ConvertLayout, [numbers.tensor(element, shape)]).with_tolerance(Tolerance::Exact)
        })
        .into()
    }
}
