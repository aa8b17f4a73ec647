//! Real numbers to integers.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::{quantization, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Real numbers to integers: inputs are data, scale, zero point (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizeLinear {
    /// Axis of the scales when they are not one; negative counts from the end.
    pub axis: i64,
    /// Elements that share a scale along the axis; 0 for each its own.
    pub block_size: usize,
    /// Type of the result; `None` for the zero point's, or uint8.
    pub element: Option<ElementType>,
    /// Out-of-range values become the largest (8-bit floats only).
    pub saturate: bool,
    /// Type in which data are divided by the scale; `None` for the scale's.
    pub precision: Option<ElementType>,
}

const NAME: &str = "QuantizeLinear";

impl Operator for QuantizeLinear {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none()
            .with("axis", self.axis)
            .with("block_size", self.block_size)
            .with("saturate", self.saturate);
        let attributes = match self.element {
            Some(element) => attributes.with("output_dtype", element.name()),
            None => attributes,
        };
        match self.precision {
            Some(precision) => attributes.with("precision", precision.name()),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, NAME, |e| e.is_float() || e == ElementType::I32)?;
        typing::element(inputs, 1, NAME, |e| e.is_float() || e == ElementType::I32)?;
        let zero_point = if inputs.has(2) { Some(inputs.element(2)?) } else { None };
        if let (Some(own), Some(zero_point)) = (self.element, zero_point)
            && own != zero_point
        {
            return Err(InferError::Mismatch(format!(
                "{NAME} makes {own} but has a zero point of type {zero_point}"
            )));
        }
        let mut ty = inputs.tensor(0)?.clone();
        ty.element = self.element.or(zero_point).unwrap_or(ElementType::U8);
        Ok(vec![ty.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (x, scale, zero_point) = (tensor(inputs, 0)?, tensor(inputs, 1)?, optional(inputs, 2));
        let (element, shape) = movement::result(self, inputs)?;
        let axis = (self.axis, self.block_size);
        let mut parameters = quantization::parameters(NAME, &shape, axis, scale, zero_point)?;
        let mut x = x.clone();
        let precision = self.precision.unwrap_or(scale.element());
        if matches!(precision, ElementType::F16 | ElementType::Bf16) {
            // The quotient in single precision has more than twice the digits: rounding it again is rounding once.
            let zero_points = std::mem::take(&mut parameters.zero_point);
            parameters.zero_point = vec![0; zero_points.len()];
            let quotients = numbers::to_f64(&numbers::quantize(&x, ElementType::F32, &parameters)?)?;
            x = numbers::from_f64(precision, shape.clone(), &quotients)?;
            parameters.zero_point = zero_points;
            parameters.scale.fill(1.0);
        }
        if element.is_float() {
            let scaled = numbers::to_f64(&numbers::quantize(&x, ElementType::F32, &parameters)?)?;
            return Ok(vec![numbers::from_f64_saturating(element, shape, &scaled, self.saturate)?.into()]);
        }
        Ok(vec![numbers::quantize(&x, element, &parameters)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // Quotient, rounding and sum.
        typing::count(inputs, 0).saturating_mul(3)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(22);
        let plain = QuantizeLinear { axis: 1, block_size: 0, element: None, saturate: true, precision: None };
        let scale = Tensor::scalar(0.03125f32);
        // The scale is a power of two: halves are exact, whatever divides.
        let mut x = |shape: &[usize]| numbers.floats(shape, -5.0, 5.0);
        let scales = Tensor::vector(&[0.5f32, 0.25, 0.03125]);
        let blocked = QuantizeLinear { block_size: 2, ..plain.clone() };
        let shaped = Tensor::new([2, 3], &[0.5f32, 0.25, 0.125, 0.5, 1.0, 2.0]).expect("six scales");
        let cases = vec![
            Case::new("uint8", plain.clone(), [x(&[2, 3, 7]), scale.clone(), Tensor::scalar(100u8)]),
            Case::new("int8", plain.clone(), [x(&[2, 3, 7]), scale.clone(), Tensor::scalar(-3i8)]),
            Case::new("no zero point", plain.clone(), [x(&[5]), scale.clone()]),
            Case::new(
                "halves",
                plain.clone(),
                [
                    Tensor::vector(&[-0.75f32, -0.25, 0.25, 0.75, 1.25]),
                    Tensor::scalar(0.5f32),
                    Tensor::scalar(0i8),
                ],
            ),
            Case::new("per channel", plain.clone(), [x(&[2, 3, 5]), scales, Tensor::vector(&[0i8, 5, -7])]),
            Case::new("blocks", blocked, [x(&[2, 5]), shaped]),
            Case::new("empty", plain, [x(&[0, 3]), scale, Tensor::scalar(0u8)]),
        ];
        cases
            .into_iter()
            .map(|case| {
                let constants: Vec<usize> = (1..case.inputs.len()).collect();
                case.with_constants(&constants).with_tolerance(Tolerance::Exact)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_floats_divide_in_their_own_precision() {
        let half = |values: &[f64]| {
            numbers::from_f64(ElementType::F16, [values.len()], values).expect("as many as there are")
        };
        let op = |precision| QuantizeLinear {
            axis: 1,
            block_size: 0,
            element: Some(ElementType::I8),
            saturate: true,
            precision,
        };
        let values: Vec<f64> = (0..500).map(|i| f64::from(i) * 0.0127).collect();
        let inputs = [half(&values), half(&[0.05]).reshape([]).expect("one element")];
        let own = numbers::to_f64(&quantize(&op(None), &inputs).expect("it is fine")).expect("integers");
        let single = quantize(&op(Some(ElementType::F32)), &inputs).expect("it is fine");
        let single = numbers::to_f64(&single).expect("integers");
        let exact = |precision: ElementType| -> Vec<f64> {
            let (x, scale) = (numbers::to_f64(&inputs[0]), numbers::to_f64(&inputs[1]));
            let (x, scale) = (x.expect("numbers"), scale.expect("a number")[0]);
            let quotients: Vec<f64> = x.iter().map(|x| x / scale).collect();
            let rounded = numbers::from_f64(precision, [quotients.len()], &quotients).expect("it fits");
            let rounded = numbers::to_f64(&rounded).expect("numbers");
            rounded.iter().map(|q| q.round_ties_even().clamp(-128.0, 127.0)).collect()
        };
        assert_eq!(own, exact(ElementType::F16));
        assert_eq!(single, exact(ElementType::F32));
        assert_ne!(own, single);
    }

    fn quantize(op: &QuantizeLinear, inputs: &[Tensor]) -> Result<Tensor, EvaluateError> {
        let values: Vec<Value> = inputs.iter().cloned().map(Value::from).collect();
        let inputs: Vec<Option<&Value>> = values.iter().map(Some).collect();
        Ok(op.evaluate(&inputs, &Context::default())?[0].tensor().unwrap().clone())
    }

    #[test]
    fn the_type_is_the_attributes_or_the_zero_points() {
        let op = QuantizeLinear {
            axis: 1,
            block_size: 0,
            element: Some(ElementType::I4),
            saturate: true,
            precision: None,
        };
        let (x, scale) = (Tensor::vector(&[-100.0f32, 1.4]), Tensor::scalar(1.0f32));
        let y = quantize(&op, &[x.clone(), scale.clone()]).unwrap();
        assert_eq!(numbers::to_i128(&y).unwrap(), [-8, 1]);
        let error = quantize(&op, &[x, scale, Tensor::scalar(0u8)]).unwrap_err();
        assert_eq!(error.to_string(), "QuantizeLinear makes int4 but has a zero point of type uint8");
    }

    #[test]
    fn parameters_must_fit_the_axis() {
        let op = QuantizeLinear { axis: 0, block_size: 0, element: None, saturate: true, precision: None };
        let error = quantize(&op, &[Tensor::vector(&[0.0f32; 3]), Tensor::vector(&[1.0f32; 2])]).unwrap_err();
        let message = "QuantizeLinear along axis 0 of [3] has scales of shape [2] and no zero points";
        assert_eq!(error.to_string(), message);
    }
}
