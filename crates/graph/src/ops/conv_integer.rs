//! Convolution of 8-bit integers in int32.

use armet_tensor::{ElementType, Shape, Tensor};

use super::matmul_integer::{accepts, centred, sums};
use super::movement;
use super::support::{broadcast, typing};
use super::{Conv, conv};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Convolution of 8-bit integers in int32: inputs are data, weights, zero point of data (optional), of weights (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct ConvInteger {
    /// Windows, padding and groups, as for Conv; its activation is not used.
    pub conv: Conv,
}

const NAME: &str = "ConvInteger";

impl Operator for ConvInteger {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        self.conv.window_attributes()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, NAME, accepts)?;
        typing::element(inputs, 1, NAME, accepts)?;
        typing::same_elements(inputs, NAME, &[0, 2])?;
        typing::same_elements(inputs, NAME, &[1, 3])?;
        Ok(typing::one(ElementType::I32, self.conv.dims(NAME, inputs)?))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (x, w) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let (_, shape) = movement::result(self, inputs)?;
        // Padding stands for zero, so it stays out of the sums once zero points are subtracted.
        let x_values = centred(x, optional(inputs, 2), |zero| zero.shape().clone())?;
        let of_outputs = |zero: &Tensor| {
            let ones = std::iter::repeat_n(1, w.shape().len() - 1);
            std::iter::once(zero.len()).chain(ones).collect::<Shape>()
        };
        let w_values = centred(w, optional(inputs, 3), of_outputs)?;
        let mut values = broadcast::filled(&shape, 0.0)?;
        self.conv.accumulate(NAME, (&x_values, x.shape()), (&w_values, w.shape()), (&mut values, &shape))?;
        Ok(vec![sums(shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        conv::convolution_operations(inputs.get(1).copied().flatten(), outputs.first().copied().flatten(), 1)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(26);
        let plain = Conv { group: 1, ..Conv::default() };
        let padded = Conv { pads: vec![1; 4], strides: vec![2, 2], ..plain.clone() };
        let (x_zero, w_zero) = (Tensor::scalar(120u8), Tensor::scalar(3i8));
        let mut case = |name: &str, conv: &Conv, x: &[usize], w: &[usize], zeros: &[Tensor]| {
            let mut inputs = vec![numbers.ints::<u8>(x, 0, 255), numbers.ints::<i8>(w, -128, 127)];
            inputs.extend(zeros.iter().cloned());
            let constants: Vec<usize> = (1..inputs.len()).filter(|&i| i != 2).collect();
            Case::new(name, ConvInteger { conv: conv.clone() }, inputs)
                .with_constants(&constants)
                .with_tolerance(Tolerance::Exact)
        };
        let depthwise = Conv { group: 5, pads: vec![1; 4], ..plain.clone() };
        let outputs = Tensor::vector(&[1i8, -2, 3, 0]);
        vec![
            case("1x1", &plain, &[1, 5, 4, 3], &[7, 5, 1, 1], &[]),
            case(
                "3x3 padded, stride 2",
                &padded,
                &[1, 3, 7, 6],
                &[4, 3, 3, 3],
                std::slice::from_ref(&x_zero),
            ),
            case("zero points", &padded, &[2, 3, 5, 6], &[4, 3, 3, 3], &[x_zero.clone(), w_zero]),
            case("zero points of outputs", &plain, &[1, 2, 5, 5], &[4, 2, 3, 3], &[x_zero.clone(), outputs]),
            case("depthwise", &depthwise, &[1, 5, 5, 4], &[5, 1, 3, 3], &[x_zero]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_stands_for_zero() {
        let op = ConvInteger { conv: Conv { group: 1, pads: vec![1, 1], ..Conv::default() } };
        let values = [
            Tensor::new([1, 1, 1], &[12u8]).unwrap(),
            Tensor::new([1, 1, 3], &[1i8, 2, 3]).unwrap(),
            Tensor::scalar(10u8),
        ]
        .map(Value::from);
        let inputs: Vec<Option<&Value>> = values.iter().map(Some).collect();
        let y = op.evaluate(&inputs, &Context::default()).unwrap();
        assert_eq!(y[0].tensor().unwrap().expect::<i32>().as_ref(), [4]);
    }
}
