//! Repetition along each axis.

use armet_tensor::Tensor;

use super::movement;
use crate::evaluate::tensor;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Repetition along each axis: inputs are data and repeats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tile;

impl Operator for Tile {
    fn name(&self) -> &'static str {
        "Tile"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let repeats: Option<Vec<Dim>> = inputs.entries(1)?.iter().map(Entry::dim).collect();
        let data = inputs.dims(0)?;
        let repeats = repeats.filter(|repeats| repeats.len() == data.len()).ok_or_else(|| {
            InferError::Mismatch(format!(
                "each of {} dimensions needs one number of repeats, 0 or more",
                data.len()
            ))
        })?;
        let dims = data.iter().zip(&repeats).map(|(dim, repeat)| dim.mul(repeat));
        Ok(vec![TensorType::new(inputs.element(0)?, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        movement::check_size(element, &shape)?;
        let data = tensor(inputs, 0)?;
        let positions = movement::coordinates(&shape).map(|at| {
            // Row-major position of the coordinate wrapped into the data.
            at.iter().zip(data.shape().iter()).fold(0, |sum, (i, len)| sum * len + i % len)
        });
        Ok(vec![movement::pick(data, shape.clone(), positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I64, U8};
        let mut numbers = Numbers::new(16);
        let mut case = |name: &str, element, shape: &[usize], repeats: &[i64]| {
            Case::new(name, Self, [numbers.tensor(element, shape), Tensor::vector(repeats)])
                .with_constants(&[1])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("both axes", F32, &[2, 3], &[2, 2]),
            case("one axis of four", U8, &[1, 3, 2, 5], &[1, 1, 3, 1]),
            case("once", F32, &[3, 4], &[1, 1]),
            case("never", F32, &[3, 4], &[2, 0]),
            case("a scalar", I64, &[], &[]),
            case("an empty tensor", F32, &[0, 2], &[3, 2]),
            Case { constants: vec![], ..case("repeats given at run time", F32, &[2, 1], &[1, 4]) },
        ]
    }
}
