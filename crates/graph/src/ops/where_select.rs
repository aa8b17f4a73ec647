//! Elements of the second input where the first is true, of the third elsewhere; all broadcast.

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, Elements};
use super::numbers;
use super::support::{broadcast, typing};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Elements of the second input where the first is true, of the third elsewhere; all broadcast.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Where;

impl Operator for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, "Where", |e| e == ElementType::Bool)?;
        typing::same_elements(inputs, "Where", &[1, 2])?;
        let dims = broadcast::dims("Where", &[inputs.dims(0)?, inputs.dims(1)?, inputs.dims(2)?])?;
        Ok(typing::one(inputs.element(1)?, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (condition, x, y) = (tensor(inputs, 0)?, tensor(inputs, 1)?, tensor(inputs, 2)?);
        let (element, shape) = movement::result(self, inputs)?;
        let conditions: Vec<bool> = numbers::to_i128(condition)?.into_iter().map(|v| v != 0).collect();
        let conditions = broadcast::expand(conditions, condition.shape(), &shape)?;
        let positions = |t: &Tensor| broadcast::expand((0..t.len()).collect(), t.shape(), &shape);
        let (x_at, y_at): (Vec<usize>, Vec<usize>) = (positions(x)?, positions(y)?);
        let mut result = Elements::zeros(element, shape)?;
        for (i, condition) in conditions.into_iter().enumerate() {
            if condition {
                result.set(i, x, x_at[i]);
            } else {
                result.set(i, y, y_at[i]);
            }
        }
        Ok(vec![result.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        typing::count(outputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(15);
        let mut case = |name: &str, element: ElementType, shapes: [&[usize]; 3]| {
            let inputs = [
                numbers.tensor(ElementType::Bool, shapes[0]),
                numbers.tensor(element, shapes[1]),
                numbers.tensor(element, shapes[2]),
            ];
            Case::new(name, Where, inputs).with_tolerance(Tolerance::Exact)
        };
        let f = ElementType::F32;
        vec![
            case("equal shapes", f, [&[3, 7], &[3, 7], &[3, 7]]),
            case("a scalar elsewhere", f, [&[2, 3, 5], &[2, 3, 5], &[]]),
            case("all broadcast", f, [&[3, 1], &[4], &[2, 1, 1]]),
            case("mask of attention", f, [&[1, 1, 5, 5], &[1], &[2, 3, 5, 5]]),
            case("int64", ElementType::I64, [&[6], &[6], &[1]]),
            case("bool", ElementType::Bool, [&[5], &[5], &[5]]),
            case("float16", ElementType::F16, [&[2, 3], &[2, 3], &[3]]),
            case("uint8", ElementType::U8, [&[2, 9], &[2, 9], &[2, 9]]),
            case("empty", f, [&[0, 3], &[0, 3], &[1]]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_packed_integers_are_selected_too() {
        let condition = Value::from(numbers::from_i128(ElementType::Bool, [2], &[1, 0]).unwrap());
        let evaluate = |x: Tensor, y: Tensor| {
            let (x, y) = (Value::from(x), Value::from(y));
            let result =
                Where.evaluate(&[Some(&condition), Some(&x), Some(&y)], &Context::default()).unwrap();
            result[0].tensor().unwrap().clone()
        };
        let texts = |a: &str, b: &str| Tensor::from_strings([2], vec![a.into(), b.into()]).unwrap();
        assert_eq!(evaluate(texts("a", "b"), texts("c", "d")).strings(), ["a", "d"]);
        let ints = |values: &[i128]| numbers::from_i128(ElementType::I4, [2], values).unwrap();
        assert_eq!(evaluate(ints(&[-1, 2]), ints(&[3, -4])), ints(&[-1, -4]));
    }
}
