//! Axes of length one added.

use armet_tensor::Tensor;

use super::{movement, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Axes of length one added: inputs are data and axes, counted in the result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unsqueeze;

impl Operator for Unsqueeze {
    fn name(&self) -> &'static str {
        "Unsqueeze"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let axes = inputs.ints(1)?;
        let rank = dims.len() + axes.len();
        let axes = support::axes(&axes, rank)?;
        let mut rest = dims.iter();
        let dims = (0..rank).map(|axis| {
            // Axes are distinct, so exactly the input's dimensions are left for the others.
            if axes.contains(&axis) { Dim::Fixed(1) } else { rest.next().cloned().unwrap_or(Dim::Fixed(1)) }
        });
        Ok(vec![TensorType::new(inputs.element(0)?, dims).into()])
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
        let mut numbers = Numbers::new(11);
        let mut case = |name: &str, element, shape: &[usize], axes: Tensor| {
            Case::new(name, Self, [numbers.tensor(element, shape), axes])
                .with_constants(&[1])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("in front", F32, &[3, 4], Tensor::vector(&[0i64])),
            case("in any order", F32, &[3, 4, 5], Tensor::vector(&[4i64, 2, 5])),
            case("from the end", F32, &[2, 3], Tensor::vector(&[-1i64, -3])),
            case("a scalar", I64, &[], Tensor::vector(&[0i64])),
            case("the axis is a scalar", F32, &[5], Tensor::scalar(1i64)),
            case("no axes", F32, &[2, 3], Tensor::vector::<i64>(&[])),
            case("empty", F32, &[0, 2], Tensor::vector(&[1i64])),
        ]
    }
}
