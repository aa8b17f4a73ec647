//! Elements picked by index along one axis.

use armet_tensor::{Tensor, strides};

use super::{movement, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Elements picked by index along one axis: inputs are data and indices of the result's shape.
#[derive(Debug, Clone, PartialEq)]
pub struct GatherElements {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

impl Operator for GatherElements {
    fn name(&self) -> &'static str {
        "GatherElements"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        movement::index_element(self.name(), 1, inputs.element(1)?)?;
        let (data, indices) = (inputs.dims(0)?, inputs.dims(1)?);
        let axis = support::axis(self.axis, data.len())?;
        movement::within(data, indices, axis)?;
        Ok(vec![TensorType::new(inputs.element(0)?, indices.iter().cloned()).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let (data, indices) = (tensor(inputs, 0)?, movement::indices(inputs, 1)?);
        let axis = support::axis(self.axis, data.shape().len())?;
        let steps = strides(data.shape());
        let positions: Vec<usize> = movement::coordinates(&shape)
            .zip(indices)
            .map(|(mut at, index)| {
                at[axis] = movement::resolve_index(index, data.shape()[axis])?;
                Ok(at.iter().zip(&steps).map(|(i, step)| i * step).sum())
            })
            .collect::<Result<_, EvaluateError>>()?;
        Ok(vec![movement::pick(data, shape, positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I8};
        let mut numbers = Numbers::new(13);
        let mut case = |name: &str, axis, element, data: &[usize], indices: &[usize]| {
            let len = data[usize::try_from(axis).unwrap_or(data.len() - 1)] as i64;
            let indices = numbers.ints::<i64>(indices, -len, len - 1);
            Case::new(name, Self { axis }, [numbers.tensor(element, data), indices])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("rows", 0, F32, &[5, 3], &[4, 3]),
            case("columns", 1, F32, &[3, 7], &[3, 2]),
            case("fewer rows than there are", -1, F32, &[4, 5], &[2, 9]),
            case("bytes", 1, I8, &[2, 3, 5], &[2, 4, 5]),
            case("no indices", 0, F32, &[3, 2], &[0, 2]),
            Case::new(
                "narrow indices",
                Self { axis: 0 },
                [Tensor::vector(&[1.0f32, 2.0, 3.0]), Tensor::vector(&[2i32, -3])],
            )
            .with_tolerance(Tolerance::Exact),
        ]
    }
}
