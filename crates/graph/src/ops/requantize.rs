//! The same real numbers stored otherwise. The type of the result is set by whoever adds the node.

use armet_tensor::ElementType;

use super::movement;
use super::numbers;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// The same real numbers stored otherwise. The type of the result is set by whoever adds the node: with a quantization it is stored as integers, without as float32.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requantize;

impl Operator for Requantize {
    fn name(&self) -> &'static str {
        "Requantize"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, "Requantize", typing::is_number)?;
        let mut ty = inputs.tensor(0)?.clone();
        ty.element = ElementType::F32;
        Ok(vec![ty.into()])
    }

    /// Whoever calls has made real numbers of the input, and stores the result as its type says.
    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (element, shape) = movement::result(self, inputs)?;
        if x.element() == element {
            return Ok(vec![x.clone().into()]);
        }
        Ok(vec![numbers::from_f64(element, shape, &numbers::to_f64(x)?)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(20);
        let shapes: [(&str, &[usize]); 4] =
            [("pictures", &[1, 3, 5, 7]), ("row", &[33]), ("scalar", &[]), ("empty", &[0, 2])];
        shapes
            .map(|(name, shape)| {
                Case::new(name, Requantize, [numbers.floats(shape, -2.0, 2.0)])
                    .with_tolerance(Tolerance::Exact)
            })
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, TensorType, evaluate_graph};
    use armet_tensor::{Quantization, Tensor};
    use std::sync::Arc;

    #[test]
    fn the_type_of_the_result_decides_how_it_is_stored() {
        let mut graph = Graph::new("requantize");
        let quantized = |scale, zero_point| TensorType {
            quantization: Some(Arc::new(Quantization::per_tensor(scale, zero_point))),
            ..TensorType::fixed(ElementType::U8, &[2])
        };
        let x = graph.add_input("x", quantized(0.5, 10));
        let y = graph.add("y", Requantize, [Some(x)]);
        graph.value_mut(y).ty = quantized(0.25, 0).into();
        graph.add_output("y", y);
        let results = evaluate_graph(&graph, &[Tensor::vector(&[12u8, 9]).into()], 0).unwrap();
        assert_eq!(results[0].tensor().unwrap().expect::<u8>().as_ref(), [4, 0]);
    }
}
