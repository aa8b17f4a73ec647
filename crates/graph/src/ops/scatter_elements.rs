//! A copy of the data with elements written by index along one axis.

use armet_tensor::{Tensor, strides};

use super::movement::{self, Scatter};
use super::{ScatterReduction, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// A copy of the data with elements written by index along one axis: inputs are data, indices, updates.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterElements {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// How an update joins what is there.
    pub reduction: ScatterReduction,
}

impl Operator for ScatterElements {
    fn name(&self) -> &'static str {
        "ScatterElements"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("reduction", self.reduction.name())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        movement::index_element(self.name(), 1, inputs.element(1)?)?;
        let element = inputs.element(0)?;
        movement::same_element(self.name(), element, 2, inputs.element(2)?)?;
        self.reduction.check(element)?;
        let (data, indices) = (inputs.dims(0)?, inputs.dims(1)?);
        let axis = support::axis(self.axis, data.len())?;
        movement::within(data, indices, axis)?;
        movement::same_dims(indices, inputs.dims(2)?)?;
        Ok(vec![TensorType::new(element, data.iter().cloned()).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        movement::result(self, inputs)?;
        let (data, updates) = (tensor(inputs, 0)?, tensor(inputs, 2)?);
        let indices = movement::indices(inputs, 1)?;
        let axis = support::axis(self.axis, data.shape().len())?;
        let steps = strides(data.shape());
        let mut scatter = Scatter::new(data, updates, self.reduction)?;
        for (from, (mut at, index)) in movement::coordinates(updates.shape()).zip(indices).enumerate() {
            at[axis] = movement::resolve_index(index, data.shape()[axis])?;
            scatter.write(at.iter().zip(&steps).map(|(i, step)| i * step).sum(), from, 1);
        }
        Ok(vec![scatter.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I32};
        let mut numbers = Numbers::new(15);
        let mut case =
            |name: &str, axis, reduction, element, data: &[usize], shape: &[usize], indices: &[i64]| {
                let indices = Tensor::new(shape, indices).expect("as many indices as the shape has");
                let inputs = [numbers.tensor(element, data), indices, numbers.tensor(element, shape)];
                let exact =
                    matches!(reduction, ScatterReduction::Add | ScatterReduction::Mul).then_some(1e-6);
                Case::new(name, Self { axis, reduction }, inputs)
                    .with_tolerance(exact.map_or(Tolerance::Exact, Tolerance::Relative))
            };
        vec![
            case("rows", 0, ScatterReduction::None, F32, &[5, 3], &[2, 3], &[1, 0, 4, 3, 2, -4]),
            case("columns", 1, ScatterReduction::None, F32, &[2, 5], &[2, 2], &[1, 3, -1, 0]),
            case("sum of repeated", -1, ScatterReduction::Add, F32, &[1, 5], &[1, 4], &[1, 1, 1, 4]),
            case("product", 0, ScatterReduction::Mul, I32, &[4], &[3], &[0, 2, 0]),
            case("larger", 0, ScatterReduction::Max, F32, &[4, 2], &[1, 2], &[1, 3]),
            case("smaller", 1, ScatterReduction::Min, I32, &[2, 3], &[2, 1], &[2, 0]),
            case("no updates", 0, ScatterReduction::None, F32, &[3, 2], &[0, 2], &[]),
        ]
    }
}
