//! A matrix.

use super::movement;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// A matrix: axes before `axis` become the first, the others the second.
#[derive(Debug, Clone, PartialEq)]
pub struct Flatten {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

impl Operator for Flatten {
    fn name(&self) -> &'static str {
        "Flatten"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
        let axis = if self.axis < 0 { self.axis.saturating_add(rank) } else { self.axis };
        // The axis may be the rank itself, which leaves one column.
        let (rows, columns) =
            usize::try_from(axis).ok().and_then(|axis| dims.split_at_checked(axis)).ok_or_else(|| {
                InferError::Mismatch(format!("axis {} is outside a tensor of {rank} dimensions", self.axis))
            })?;
        Ok(vec![TensorType::new(inputs.element(0)?, [Dim::product(rows), Dim::product(columns)]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        Ok(vec![tensor(inputs, 0)?.reshape(shape)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I8};
        let mut numbers = Numbers::new(9);
        [
            ("features", 1, F32, vec![2, 3, 4, 5]),
            ("one row", 0, F32, vec![2, 3]),
            ("one column", 3, I8, vec![2, 3, 4]),
            ("from the end", -1, F32, vec![2, 3, 4]),
            ("empty", 1, F32, vec![2, 0, 4]),
            ("scalar", 0, F32, vec![]),
        ]
        .into_iter()
        .map(|(name, axis, element, shape)| {
            Case::new(name, Self { axis }, [numbers.tensor(element, shape)]).with_tolerance(Tolerance::Exact)
        })
        .collect()
    }
}
