//! Integers to real numbers.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::{quantization, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Integers to real numbers: inputs are data, scale, zero point (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct DequantizeLinear {
    /// Axis of the scales when they are not one; negative counts from the end.
    pub axis: i64,
    /// Elements that share a scale along the axis; 0 for each its own.
    pub block_size: usize,
}

const NAME: &str = "DequantizeLinear";

impl Operator for DequantizeLinear {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("block_size", self.block_size)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, NAME, |e| e.is_integer() || (e.is_float() && e.bits() <= 8))?;
        typing::same_elements(inputs, NAME, &[0, 2])?;
        let mut ty = inputs.tensor(0)?.clone();
        ty.element = typing::element(inputs, 1, NAME, ElementType::is_float)?;
        Ok(vec![ty.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (x, scale, zero_point) = (tensor(inputs, 0)?, tensor(inputs, 1)?, optional(inputs, 2));
        let (element, shape) = movement::result(self, inputs)?;
        let axis = (self.axis, self.block_size);
        let parameters = quantization::parameters(NAME, &shape, axis, scale, zero_point)?;
        let real = numbers::dequantize(x, &parameters)?;
        if element == ElementType::F32 {
            return Ok(vec![real.into()]);
        }
        Ok(vec![numbers::from_f64(element, shape, &numbers::to_f64(&real)?)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0).saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(23);
        let plain = DequantizeLinear { axis: 1, block_size: 0 };
        let scale = Tensor::scalar(0.017f32);
        let scales = Tensor::vector(&[0.5f32, 0.013, 0.9]);
        let shaped = Tensor::new([2, 3], &[0.5f32, 0.25, 0.7, 0.5, 1.1, 2.0]).expect("six scales");
        let blocks = DequantizeLinear { block_size: 2, ..plain.clone() };
        let bytes = numbers.ints::<u8>([2, 3, 7], 0, 255);
        let signed = numbers.ints::<i8>([2, 3, 7], -128, 127);
        let per_channel = numbers.ints::<i8>([2, 3, 5], -128, 127);
        let sums = numbers.ints::<i32>([3, 5], -99999, 99999);
        let in_blocks = numbers.ints::<i8>([2, 5], -128, 127);
        let nibbles = numbers.tensor(ElementType::U4, [3, 5]);
        let empty = numbers.ints::<u8>([0, 3], 0, 255);
        let half = numbers.tensor(ElementType::F16, []);
        let cases = vec![
            Case::new("uint8", plain.clone(), [bytes.clone(), scale.clone(), Tensor::scalar(100u8)]),
            Case::new("int8", plain.clone(), [signed, scale.clone(), Tensor::scalar(-3i8)]),
            Case::new("no zero point", plain.clone(), [sums, scale.clone()]),
            Case::new("per channel", plain.clone(), [per_channel, scales, Tensor::vector(&[0i8, 5, -7])]),
            Case::new("blocks", blocks, [in_blocks, shaped]),
            Case::new("uint4", plain.clone(), [nibbles, scale.clone()]),
            Case::new("float16", plain.clone(), [bytes, half]).with_tolerance(Tolerance::Relative(1e-3)),
            Case::new("empty", plain, [empty, scale, Tensor::scalar(7u8)]),
        ];
        cases
            .into_iter()
            .map(|case| {
                let constants: Vec<usize> = (1..case.inputs.len()).collect();
                case.with_constants(&constants)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_has_the_type_of_the_scale() {
        let scale = numbers::from_f64(ElementType::F16, [], &[0.5]).unwrap();
        let (x, scale) = (Value::from(Tensor::vector(&[3i8, -128])), Value::from(scale));
        let op = DequantizeLinear { axis: 0, block_size: 0 };
        let y = op.evaluate(&[Some(&x), Some(&scale)], &Context::default()).unwrap();
        assert_eq!(y[0].tensor().unwrap().element(), ElementType::F16);
        assert_eq!(numbers::to_f64(y[0].tensor().unwrap()).unwrap(), [1.5, -64.0]);
    }
}
