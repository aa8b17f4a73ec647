//! Indicator vectors.

use armet_tensor::Tensor;

use super::movement::{self, Elements, around};
use super::{numbers, support};
use crate::evaluate::tensor;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Indicator vectors: inputs are indices, depth, and values [off, on].
#[derive(Debug, Clone, PartialEq)]
pub struct OneHot {
    /// The axis of the result that is added; negative counts from its end.
    pub axis: i64,
}

impl Operator for OneHot {
    fn name(&self) -> &'static str {
        "OneHot"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(2)?;
        if let Some(count) = inputs.tensor(2)?.shape()
            && count.elements() != 2
        {
            return Err(InferError::Mismatch(format!(
                "the values must be off and on, not a tensor of {count}"
            )));
        }
        let depth = match inputs.entries(1) {
            Ok(entries) => entries.first().and_then(Entry::dim),
            Err(InferError::Mismatch(_)) => inputs
                .floats(1)?
                .first()
                .filter(|depth| **depth >= 0.0)
                .map(|depth| Dim::Fixed(*depth as usize)),
            Err(error) => return Err(error),
        };
        let depth =
            depth.ok_or_else(|| InferError::Mismatch("the depth must be one number, 0 or more".into()))?;
        let mut dims = inputs.dims(0)?.to_vec();
        let axis = support::axis(self.axis, dims.len() + 1)?;
        dims.insert(axis, depth);
        Ok(vec![TensorType::new(element, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (indices, values) = (tensor(inputs, 0)?, tensor(inputs, 2)?);
        let axis = support::axis(self.axis, shape.len())?;
        let (_, depth, inner) = around(&shape, axis);
        let count = shape.elements();
        let off = movement::pick(values, shape, std::iter::repeat_n(0, count))?;
        debug_assert_eq!(off.element(), element);
        let mut out = Elements::copy_of(&off);
        for (i, index) in numbers::to_f64(indices)?.into_iter().enumerate() {
            // Indices outside the depth mark nothing.
            if let Ok(index) = movement::resolve_index(index as i64, depth) {
                out.set((i / inner * depth + index) * inner + i % inner, values, 1);
            }
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(22);
        let mut case = |name: &str, axis, shape: &[usize], depth: Tensor, values: Tensor| {
            Case::new(name, Self { axis }, [numbers.ints::<i64>(shape, -6, 6), depth, values])
                .with_constants(&[1])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("last axis", -1, &[2, 3], Tensor::scalar(5i64), Tensor::vector(&[0.0f32, 1.0])),
            case("first axis", 0, &[4], Tensor::vector(&[3i64]), Tensor::vector(&[0i64, 1])),
            case("middle axis", 1, &[2, 3], Tensor::scalar(7i32), Tensor::vector(&[-1.0f32, 2.5])),
            case("depth of zero", -1, &[3], Tensor::scalar(0i64), Tensor::vector(&[0.0f32, 1.0])),
            case("no indices", -1, &[0], Tensor::scalar(4i64), Tensor::vector(&[0u8, 1])),
            case("a scalar", -1, &[], Tensor::scalar(4.0f32), Tensor::vector(&[0.0f32, 1.0])),
        ]
    }
}
