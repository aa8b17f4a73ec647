//! `scale * (x - mean) / sqrt(variance + epsilon) + bias` per channel.

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, show};
use super::numbers;
use super::support::{broadcast, typing};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance,
    Value, ValueType,
};

/// `scale * (x - mean) / sqrt(variance + epsilon) + bias` per channel: inputs are data, scale, bias, mean, variance.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNormalization {
    /// Added to the variance.
    pub epsilon: f32,
}

const NAME: &str = "BatchNormalization";

impl Operator for BatchNormalization {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("epsilon", self.epsilon)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        for i in 0..5 {
            typing::element(inputs, i, NAME, ElementType::is_float)?;
        }
        if let Some(dims) = inputs.tensor(0)?.dims.as_deref() {
            // A vector is one channel.
            let channels = dims.get(1).cloned().unwrap_or(Dim::Fixed(1));
            for i in 1..5 {
                let Some(own) = inputs.tensor(i)?.dims.as_deref() else { continue };
                let fits = own.len() == 1
                    && own[0].fixed().zip(channels.fixed()).is_none_or(|(own, channels)| own == channels);
                if !fits {
                    return Err(InferError::Mismatch(format!(
                        "{NAME} of {} has statistics of shape {}",
                        show(dims),
                        show(own)
                    )));
                }
            }
        }
        Ok(vec![inputs.value_type(0)?.clone()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let mut values = numbers::to_f64(tensor(inputs, 0)?)?;
        let of = |i: usize| numbers::to_f64(tensor(inputs, i)?);
        let (scale, bias, mean, variance) = (of(1)?, of(2)?, of(3)?, of(4)?);
        let plane: usize = broadcast::product(shape.get(2..).unwrap_or(&[]));
        if !values.is_empty() {
            for (index, plane) in values.chunks_exact_mut(plane).enumerate() {
                let channel = index % scale.len();
                let factor = scale[channel] / (variance[channel] + f64::from(self.epsilon)).sqrt();
                for value in plane {
                    *value = (*value - mean[channel]) * factor + bias[channel];
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0).saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(9);
        let mut case = |name: &str, epsilon: f32, element: ElementType, shape: &[usize]| {
            let channels = shape.get(1).copied().unwrap_or(1);
            let x = numbers.tensor(element, shape);
            let mut statistics = |low, high| numbers.floats([channels], low, high);
            let inputs: [Tensor; 5] = [
                x,
                statistics(-2.0, 2.0),
                statistics(-1.0, 1.0),
                statistics(-1.0, 1.0),
                statistics(0.1, 3.0),
            ];
            Case::new(name, BatchNormalization { epsilon }, inputs).with_constants(&[1, 2, 3, 4])
        };
        vec![
            case("pictures", 1e-5, ElementType::F32, &[2, 5, 3, 7]),
            case("rows", 1e-3, ElementType::F32, &[4, 9]),
            case("sequences", 1e-5, ElementType::F32, &[2, 3, 11]),
            case("volumes", 1e-5, ElementType::F32, &[1, 4, 2, 3, 5]),
            case("one vector", 1e-5, ElementType::F32, &[6]),
            case("empty", 1e-5, ElementType::F32, &[0, 3, 2]),
            case("float16 data", 1e-5, ElementType::F16, &[1, 3, 4, 4])
                .with_tolerance(Tolerance::Relative(1e-2)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_must_fit_the_channels() {
        let x = Value::from(Tensor::zeros(ElementType::F32, [1, 3, 2]).unwrap());
        let s = Value::from(Tensor::zeros(ElementType::F32, [2]).unwrap());
        let op = BatchNormalization { epsilon: 0.0 };
        let error = op
            .evaluate(&[Some(&x), Some(&s), Some(&s), Some(&s), Some(&s)], &Context::default())
            .unwrap_err();
        assert_eq!(error.to_string(), "BatchNormalization of [1,3,2] has statistics of shape [2]");
    }
}
