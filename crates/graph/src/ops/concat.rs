//! Tensors joined along an axis.

use super::movement::{self, Elements, around};
use super::support;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Tensors joined along an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Concat {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

impl Operator for Concat {
    fn name(&self) -> &'static str {
        "Concat"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        for input in 1..inputs.len() {
            movement::same_element(self.name(), element, input, inputs.element(input)?)?;
        }
        let mut dims = inputs.dims(0)?.to_vec();
        let axis = support::axis(self.axis, dims.len())?;
        for input in 1..inputs.len() {
            let other = inputs.dims(input)?;
            let joined: Option<Vec<_>> = (other.len() == dims.len())
                .then(|| {
                    dims.iter()
                        .zip(other)
                        .enumerate()
                        .map(|(i, (a, b))| if i == axis { Some(a.add(b)) } else { movement::unify(a, b) })
                })
                .and_then(Iterator::collect);
            dims = joined.ok_or_else(|| {
                InferError::Mismatch(format!(
                    "input {input} of shape {} cannot be joined along axis {axis} to {}",
                    movement::show(other),
                    movement::show(&dims)
                ))
            })?;
        }
        Ok(vec![TensorType::new(element, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let axis = support::axis(self.axis, shape.len())?;
        let (outer, len, inner) = around(&shape, axis);
        // Of an empty tensor single dimensions may be of any size.
        let parts = if shape.contains(&0) { 0 } else { inputs.len() };
        let mut out = Elements::zeros(element, shape)?;
        let mut done = 0;
        for input in 0..parts {
            let part = tensor(inputs, input)?;
            let count = part.shape()[axis] * inner;
            for i in 0..outer {
                out.copy(i * len * inner + done, part, i * count, count);
            }
            done += count;
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I8, I64};
        let mut numbers = Numbers::new(3);
        let mut case = |name: &str, axis: i64, element, shapes: &[&[usize]]| {
            let inputs: Vec<_> = shapes.iter().map(|s| numbers.tensor(element, *s)).collect();
            Case::new(name, Self { axis }, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("channels", 1, F32, &[&[2, 3, 5, 4], &[2, 7, 5, 4], &[2, 1, 5, 4]]),
            case("last axis", -1, F32, &[&[3, 5], &[3, 2]]),
            case("first axis", 0, I64, &[&[2], &[1], &[3]]),
            case("one input", 1, F32, &[&[3, 4]]),
            case("an empty part", 0, F32, &[&[2, 3], &[0, 3], &[1, 3]]),
            case("nothing but empty parts", 1, F32, &[&[2, 0], &[2, 0]]),
            case("bytes", 2, I8, &[&[1, 2, 3, 3], &[1, 2, 5, 3]]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::{ElementType, Tensor};

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let (a, b) = (Tensor::zeros(ElementType::F32, [2, 3]), Tensor::zeros(ElementType::F32, [3, 3]));
        let (a, b) = (Value::from(a.unwrap()), Value::from(b.unwrap()));
        let error = Concat { axis: 1 }.evaluate(&[Some(&a), Some(&b)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "input 1 of shape [3,3] cannot be joined along axis 1 to [2,3]");
    }
}
