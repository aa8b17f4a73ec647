//! Softmax along an axis.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::{axis, broadcast, typing};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Softmax along an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Softmax {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// The logarithm of the softmax.
    pub log: bool,
    /// The axis and all behind it count as one (opsets below 13).
    pub flatten: bool,
}

impl Operator for Softmax {
    fn name(&self) -> &'static str {
        if self.log { "LogSoftmax" } else { "Softmax" }
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("flatten", self.flatten)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        if let Some(rank) = inputs.tensor(0)?.rank() {
            axis(self.axis, rank)?;
        }
        Ok(vec![inputs.value_type(0)?.clone()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (element, shape) = movement::result(self, inputs)?;
        let at = axis(self.axis, shape.len())?;
        let stored = numbers::stored(element);
        let mut values = numbers::to_f64(x)?;
        let (len, inner): (usize, usize) = if self.flatten {
            (broadcast::product(&shape[at..]), 1)
        } else {
            (shape[at], broadcast::product(&shape[at + 1..]))
        };
        if !values.is_empty() {
            for block in values.chunks_exact_mut(len * inner) {
                for first in 0..inner {
                    let line = || (0..len).map(move |i| first + i * inner);
                    let largest = line().map(|i| block[i]).fold(f64::NEG_INFINITY, f64::max);
                    let shifted = |v: f64| stored(v - largest);
                    let power = |v: f64| stored(shifted(v).exp());
                    let powers: Vec<f64> = line().map(|i| power(block[i])).collect();
                    let sum = numbers::stored_sum(element, &powers);
                    for i in line() {
                        let v = block[i];
                        block[i] = if self.log { shifted(v) - stored(sum.ln()) } else { power(v) / sum };
                    }
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // Maximum, difference, exponential, sum and quotient.
        typing::count(inputs, 0).saturating_mul(5)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(7);
        let mut case = |name: &str, axis: i64, log: bool, flatten: bool, shape: &[usize]| {
            Case::new(name, Softmax { axis, log, flatten }, [numbers.floats(shape, -6.0, 6.0)])
        };
        let mut cases = vec![
            case("last axis", -1, false, false, &[3, 4, 17]),
            case("channels", 1, false, false, &[2, 5, 3, 4]),
            case("first axis", 0, false, false, &[6, 5]),
            case("LogSoftmax", -1, true, false, &[3, 10]),
            case("LogSoftmax channels", 1, true, false, &[1, 4, 5]),
            case("flattened", 1, false, true, &[2, 3, 5]),
            case("one element", -1, false, false, &[4, 1]),
            case("empty", -1, false, false, &[0, 3]),
        ];
        let large = Tensor::new([2, 3], &[1000.0f32, 1001.0, 999.0, -1000.0, -1000.0, -2000.0]);
        cases.extend(
            large.map(|x| Case::new("large numbers", Softmax { axis: 1, log: false, flatten: false }, [x])),
        );
        let half = numbers.tensor(ElementType::F16, [3, 9]);
        cases.push(
            Case::new("float16", Softmax { axis: -1, log: false, flatten: false }, [half])
                .with_tolerance(Tolerance::Relative(1e-2)),
        );
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_sum_to_one_and_a_wrong_axis_is_refused() {
        let x = Value::from(Numbers::new(1).floats([3, 4], -9.0, 9.0));
        let op = Softmax { axis: -1, log: false, flatten: false };
        let y = op.evaluate(&[Some(&x)], &Context::default()).unwrap();
        for row in y[0].tensor().unwrap().expect::<f32>().chunks_exact(4) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
        let error = Softmax { axis: 2, ..op }.evaluate(&[Some(&x)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "axis 2 is outside a tensor of 2 dimensions");
    }
}
