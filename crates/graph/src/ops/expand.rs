//! Broadcast of the first input with the shape that the second holds.

use armet_tensor::{Tensor, strides};

use super::movement;
use crate::evaluate::tensor;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Broadcast of the first input with the shape that the second holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expand;

impl Operator for Expand {
    fn name(&self) -> &'static str {
        "Expand"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let data = inputs.dims(0)?;
        let wanted: Option<Vec<Dim>> = inputs.entries(1)?.iter().map(Entry::dim).collect();
        let wanted =
            wanted.ok_or_else(|| InferError::Mismatch("a dimension of a shape cannot be negative".into()))?;
        let rank = data.len().max(wanted.len());
        let at = |dims: &[Dim], axis: usize| {
            (axis + dims.len()).checked_sub(rank).map_or(Dim::Fixed(1), |axis| dims[axis].clone())
        };
        let dims: Option<Vec<Dim>> =
            (0..rank).map(|axis| at(data, axis).broadcast(&at(&wanted, axis))).collect();
        let dims = dims.ok_or_else(|| {
            InferError::Mismatch(format!(
                "{} and {} do not broadcast",
                movement::show(data),
                movement::show(&wanted)
            ))
        })?;
        Ok(vec![TensorType::new(inputs.element(0)?, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let steps = strides(data.shape());
        let added = shape.len() - data.shape().len();
        let positions = movement::coordinates(&shape).map(|at| {
            let axes = at[added..].iter().zip(data.shape().iter()).zip(&steps);
            axes.map(|((&i, &len), step)| if len == 1 { 0 } else { i * step }).sum()
        });
        Ok(vec![movement::pick(data, shape.clone(), positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{Bool, F32, I64};
        let mut numbers = Numbers::new(12);
        let mut case = |name: &str, element, from: &[usize], to: &[i64]| {
            Case::new(name, Self, [numbers.tensor(element, from), Tensor::vector(to)])
                .with_constants(&[1])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("one axis", F32, &[3, 1], &[3, 4]),
            case("new axes", F32, &[3, 1], &[2, 1, 6]),
            case("the shape is smaller", F32, &[2, 3, 4], &[3, 1]),
            case("a scalar", I64, &[], &[2, 2]),
            case("flags", Bool, &[1, 1, 1, 5], &[1, 1, 5, 5]),
            case("to nothing", F32, &[1, 3], &[0, 3]),
            Case { constants: vec![], ..case("shape given at run time", F32, &[1, 3], &[4, 1]) },
        ]
    }
}
