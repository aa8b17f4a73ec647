//! Real numbers to uint8 by their own range; results are data, scale, zero point.

use armet_tensor::{ElementType, Quantization, Tensor};

use super::movement;
use super::numbers;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Real numbers to uint8 by their own range; results are data, scale, zero point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DynamicQuantizeLinear;

const NAME: &str = "DynamicQuantizeLinear";

/// Scale and zero point such that 0..=255 covers all values and zero. In single precision, as ONNX has it.
fn measure(values: &[f32]) -> (f32, u8) {
    let low = values.iter().copied().fold(0.0f32, f32::min);
    let high = values.iter().copied().fold(0.0f32, f32::max);
    // Zeros are kept by any scale.
    let scale = if high == low { 1.0 } else { (high - low) / 255.0 };
    let zero_point = (0.0 - low / scale).clamp(0.0, 255.0).round_ties_even();
    (scale, zero_point as u8)
}

impl Operator for DynamicQuantizeLinear {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, NAME, |e| e == ElementType::F32)?;
        let mut ty = inputs.tensor(0)?.clone();
        ty.element = ElementType::U8;
        let scale = TensorType::fixed(ElementType::F32, &[]);
        let zero_point = TensorType::fixed(ElementType::U8, &[]);
        Ok(vec![ty.into(), scale.into(), zero_point.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        movement::results(self, inputs)?;
        let (scale, zero_point) = measure(&x.values::<f32>()?);
        let parameters = Quantization::per_tensor(scale, i32::from(zero_point));
        let y = numbers::quantize(x, ElementType::U8, &parameters)?;
        Ok(vec![y.into(), Tensor::scalar(scale).into(), Tensor::scalar(zero_point).into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // Minimum, maximum, quotient, rounding and sum.
        typing::count(inputs, 0).saturating_mul(5)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(24);
        [
            ("both signs", numbers.floats([3, 4, 5], -3.0, 2.0)),
            ("positive", numbers.floats([17], 1.0, 2.0)),
            ("negative", numbers.floats([2, 9], -2.0, -1.0)),
            ("zeros", Tensor::vector(&[0.0f32; 5])),
            ("scalar", Tensor::scalar(0.5f32)),
        ]
        .map(|(name, x)| {
            // A scale that is off by its last bit may move a half.
            Case::new(name, DynamicQuantizeLinear, [x]).with_outputs(3).with_tolerance(Tolerance::Steps(1))
        })
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_includes_zero() {
        assert_eq!(measure(&[1.0, 2.55]), (0.01, 0));
        assert_eq!(measure(&[-2.55, -1.0]), (0.01, 255));
        assert_eq!(measure(&[]), (1.0, 0));
    }
}
