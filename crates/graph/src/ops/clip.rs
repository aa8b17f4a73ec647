//! Elements limited to a range.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::typing;
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Elements limited to a range: inputs are data, minimum (optional), maximum (optional).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clip;

/// The only element of an optional limit.
fn limit<T: Copy>(
    inputs: &[Option<&Value>],
    index: usize,
    read: impl Fn(&Tensor) -> Result<Vec<T>, EvaluateError>,
) -> Result<Option<T>, EvaluateError> {
    let Some(tensor) = optional(inputs, index) else { return Ok(None) };
    match read(tensor)?[..] {
        [limit] => Ok(Some(limit)),
        _ => Err(EvaluateError::Invalid(format!("a limit of Clip is one number, not {}", tensor.shape()))),
    }
}

/// `Min(max, Max(x, min))`: the upper limit wins where they contradict; NaN stays, and a limit that is NaN makes all NaN.
fn clip<T: PartialOrd + Copy>(x: T, min: Option<T>, max: Option<T>) -> T {
    // Only NaN cannot be compared to itself.
    if let Some(nan) = [min, max].into_iter().flatten().find(|limit| limit.partial_cmp(limit).is_none()) {
        return nan;
    }
    let x = match min {
        Some(min) if x < min => min,
        _ => x,
    };
    match max {
        Some(max) if x > max => max,
        _ => x,
    }
}

impl Operator for Clip {
    fn name(&self) -> &'static str {
        "Clip"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, "Clip", typing::is_number)?;
        typing::same_elements(inputs, "Clip", &[0, 1, 2])?;
        typing::one_number(inputs, "Clip", &[1, 2])?;
        Ok(vec![inputs.value_type(0)?.clone()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (element, shape) = movement::result(self, inputs)?;
        let y = if element.is_float() {
            let (min, max) = (limit(inputs, 1, numbers::to_f64)?, limit(inputs, 2, numbers::to_f64)?);
            let values: Vec<f64> = numbers::to_f64(x)?.into_iter().map(|v| clip(v, min, max)).collect();
            numbers::from_f64(element, shape, &values)?
        } else {
            let (min, max) = (limit(inputs, 1, numbers::to_i128)?, limit(inputs, 2, numbers::to_i128)?);
            let values: Vec<i128> = numbers::to_i128(x)?.into_iter().map(|v| clip(v, min, max)).collect();
            numbers::from_i128(element, shape, &values)?
        };
        Ok(vec![y.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0).saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(8);
        let (low, high) = (Tensor::scalar(-0.5f32), Tensor::scalar(1.25f32));
        let mut x = || numbers.floats([2, 3, 7], -3.0, 3.0);
        let mut cases = vec![
            Case::new("both limits", Clip, [x(), low.clone(), high.clone()]).with_constants(&[1, 2]),
            Case::new("limits of the run", Clip, [x(), low.clone(), high.clone()]),
            Case::new("no number as a limit", Clip, [x(), Tensor::scalar(f32::NAN), high.clone()])
                .with_constants(&[1]),
            Case::new("lower limit", Clip, [x(), low.clone()]).with_constants(&[1]),
            Case::new("upper limit", Clip, [x(), low.clone(), high.clone()])
                .without_input(1)
                .with_constants(&[2]),
            Case::new("no limit", Clip, [x()]),
            Case::new("contradicting limits", Clip, [x(), high, low]).with_constants(&[1, 2]),
        ];
        let bytes = [numbers.ints::<i8>([19], -99, 99), Tensor::scalar(-5i8), Tensor::scalar(50i8)];
        let longs = [numbers.ints::<i64>([4, 3], -99, 99), Tensor::scalar(0i64), Tensor::scalar(i64::MAX)];
        cases.push(Case::new("int8", Clip, bytes));
        cases.push(Case::new("int64", Clip, longs));
        let half = [numbers.tensor(ElementType::F16, [5]), numbers.tensor(ElementType::F16, [])];
        cases.push(Case::new("float16", Clip, half));
        cases.into_iter().map(|case| case.with_tolerance(Tolerance::Exact)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_must_be_one_number() {
        let (x, min) = (Value::from(Tensor::vector(&[1.0f32])), Value::from(Tensor::vector(&[0.0f32, 1.0])));
        let error = Clip.evaluate(&[Some(&x), Some(&min)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "input 1 of Clip is one number, not [2]");
    }

    #[test]
    fn nan_stays_and_the_upper_limit_wins() {
        assert!(clip(f64::NAN, Some(0.0), Some(1.0)).is_nan());
        assert_eq!(clip(0.0, Some(2.0), Some(1.0)), 1.0);
    }
}
