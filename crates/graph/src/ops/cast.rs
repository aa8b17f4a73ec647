//! Conversion of the element type, as ONNX Cast.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Conversion of the element type, as ONNX Cast.
#[derive(Debug, Clone, PartialEq)]
pub struct Cast {
    /// Type to convert to.
    pub to: ElementType,
    /// Out-of-range values become the largest value instead of NaN or infinity (8-bit floats only).
    pub saturate: bool,
}

fn complex(element: ElementType) -> bool {
    matches!(element, ElementType::Complex64 | ElementType::Complex128)
}

/// A number as text: plain, or with an exponent where that is shorter; ONNX's words for what is no number.
fn text(value: f64, single: bool) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let plain = if single { (value as f32).to_string() } else { value.to_string() };
    let exponent = if single { format!("{:e}", value as f32) } else { format!("{value:e}") };
    if plain.len() <= exponent.len() + 4 { plain } else { exponent }
}

/// The number that a text stands for.
fn number(text: &str) -> Result<f64, EvaluateError> {
    let trimmed = text.trim();
    trimmed.parse().map_err(|_| EvaluateError::Invalid(format!("Cast finds no number in the text {text:?}")))
}

fn to_strings(x: &Tensor) -> Result<Vec<String>, EvaluateError> {
    if x.element().is_float() {
        let single = x.element() != ElementType::F64;
        return Ok(numbers::to_f64(x)?.into_iter().map(|v| text(v, single)).collect());
    }
    let ints = numbers::to_i128(x)?;
    if x.element() == ElementType::Bool {
        return Ok(ints.into_iter().map(|v| if v == 0 { "False" } else { "True" }.to_owned()).collect());
    }
    Ok(ints.into_iter().map(|v| v.to_string()).collect())
}

fn from_strings(x: &Tensor, to: ElementType) -> Result<Tensor, EvaluateError> {
    if to.is_integer() {
        // Integers that no double holds are read as such.
        let values: Result<Vec<i128>, EvaluateError> =
            x.strings().iter().map(|s| s.trim().parse().or_else(|_| number(s).map(|v| v as i128))).collect();
        return numbers::from_i128(to, x.shape().clone(), &values?);
    }
    let values: Result<Vec<f64>, EvaluateError> = x.strings().iter().map(|s| number(s)).collect();
    numbers::from_f64(to, x.shape().clone(), &values?)
}

impl Operator for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("to", self.to.name()).with("saturate", self.saturate)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, "Cast", |e| !complex(e))?;
        if complex(self.to) {
            return Err(InferError::Mismatch(format!("Cast does not convert to {}", self.to)));
        }
        let mut ty = inputs.tensor(0)?.clone();
        ty.element = self.to;
        Ok(vec![ty.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (to, shape) = movement::result(self, inputs)?;
        let y = match (x.element(), to) {
            (from, to) if from == to => x.clone(),
            (ElementType::String, to) => from_strings(x, to)?,
            (_, ElementType::String) => Tensor::from_strings(shape, to_strings(x)?)?,
            // Integers of less than a byte wrap.
            (from, to) if from.is_float() && to.is_integer() && to.byte_size().is_none() => {
                let values: Vec<i128> = numbers::to_f64(x)?.into_iter().map(|v| v as i128).collect();
                numbers::from_i128(to, shape, &values)?
            }
            (from, to) if from.is_float() || (to == ElementType::F32 && from.bits() <= 32) => {
                numbers::from_f64_saturating(to, shape, &numbers::to_f64(x)?, self.saturate)?
            }
            // Rounded once: by way of a double the last bit may differ.
            (_, ElementType::F32) => {
                let values: Vec<f32> = numbers::to_i128(x)?.into_iter().map(|v| v as f32).collect();
                Tensor::new(shape, &values)?
            }
            (_, to) => numbers::from_i128(to, shape, &numbers::to_i128(x)?)?,
        };
        Ok(vec![y.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0)
    }

    fn cases() -> Vec<Case> {
        use ElementType::{Bf16, Bool, F16, F32, F64, I4, I8, I32, I64, U8};
        let mut numbers = Numbers::new(13);
        let mut cases = Vec::new();
        for (from, to) in [
            (F32, F16),
            (F16, F32),
            (F32, Bf16),
            (Bf16, F32),
            (F32, F64),
            (F32, I32),
            (F32, U8),
            (I64, F32),
            (U8, F32),
            (I32, I64),
            (I64, I32),
            (I64, I8),
            (Bool, F32),
            (F32, Bool),
            (I64, Bool),
            (Bool, I64),
            (I4, F32),
            (I8, I4),
        ] {
            let op = Cast { to, saturate: true };
            let x = numbers.tensor(from, [3, 7]);
            cases.push(Case::new(format!("{from} to {to}"), op, [x]).with_tolerance(Tolerance::Exact));
        }
        let fractions = Tensor::vector(&[-2.7f32, -0.5, 0.5, 1.5, 2.5, 200.9]);
        for to in [I8, I32, I64] {
            let name = format!("fractions to {to}");
            let fractions = if to == I8 { numbers.floats([6], -99.0, 99.0) } else { fractions.clone() };
            cases.push(
                Case::new(name, Cast { to, saturate: true }, [fractions]).with_tolerance(Tolerance::Exact),
            );
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(x: &Tensor, to: ElementType) -> Result<Tensor, EvaluateError> {
        let x = Value::from(x.clone());
        let y = Cast { to, saturate: true }.evaluate(&[Some(&x)], &Context::default())?;
        Ok(y[0].tensor().unwrap().clone())
    }

    #[test]
    fn floats_truncate_and_integers_wrap() {
        let x = Tensor::vector(&[-2.7f32, 2.5, f32::NAN]);
        assert_eq!(cast(&x, ElementType::I64).unwrap().expect::<i64>().as_ref(), [-2, 2, 0]);
        let x = Tensor::vector(&[300i64, -1]);
        assert_eq!(cast(&x, ElementType::U8).unwrap().expect::<u8>().as_ref(), [44, 255]);
    }

    #[test]
    fn large_integers_round_once() {
        let x = Tensor::vector(&[(1i64 << 54) + (1 << 30) + 1]);
        let near = ((1i64 << 54) + (1 << 31)) as f32;
        assert_eq!(cast(&x, ElementType::F32).unwrap().expect::<f32>()[0], near);
    }

    #[test]
    fn text_and_numbers() {
        let texts =
            Tensor::from_strings([4], ["1e-5", " 3", "-INF", "nan"].map(String::from).to_vec()).unwrap();
        let y = cast(&texts, ElementType::F32).unwrap();
        assert_eq!(y.expect::<f32>()[..3], [1e-5, 3.0, f32::NEG_INFINITY]);
        assert!(y.expect::<f32>()[3].is_nan());
        let back =
            cast(&Tensor::vector(&[0.47892547f32, f32::INFINITY, 1.5e-20]), ElementType::String).unwrap();
        assert_eq!(back.strings(), ["0.47892547", "INF", "1.5e-20"]);
        let error =
            cast(&Tensor::from_strings([1], vec!["x".into()]).unwrap(), ElementType::I64).unwrap_err();
        assert_eq!(error.to_string(), "Cast finds no number in the text \"x\"");
    }
}
