//! Values looked up in a table.

use std::collections::HashMap;

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, Elements};
use super::numbers;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// Values looked up in a table: texts or numbers to texts or numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelEncoder {
    /// What is looked up.
    pub keys: Tensor,
    /// What each key becomes.
    pub values: Tensor,
    /// What everything else becomes: one element.
    pub default: Tensor,
}

/// An element as it is looked up: zeros of both signs are one, and so is what is no number.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key<'t> {
    Text(&'t str),
    Integer(i128),
    Real(u64),
}

fn keys(tensor: &Tensor) -> Result<Vec<Key<'_>>, EvaluateError> {
    let element = tensor.element();
    if element == ElementType::String {
        return Ok(tensor.strings().iter().map(|text| Key::Text(text)).collect());
    }
    if element.is_float() {
        let real = |v: f64| Key::Real(if v.is_nan() { f64::NAN.to_bits() } else { (v + 0.0).to_bits() });
        return Ok(numbers::to_f64(tensor)?.into_iter().map(real).collect());
    }
    Ok(numbers::to_i128(tensor)?.into_iter().map(Key::Integer).collect())
}

impl Operator for LabelEncoder {
    fn name(&self) -> &'static str {
        "LabelEncoder"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("keys", self.keys.clone())
            .with("values", self.values.clone())
            .with("default", self.default.clone())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        if element != self.keys.element() {
            return Err(InferError::ElementType { input: 0, element, operator: self.name() });
        }
        let (keys, values, default) = (&self.keys, &self.values, &self.default);
        if keys.len() != values.len() || default.len() != 1 || default.element() != values.element() {
            return Err(InferError::Mismatch(format!(
                "a table of {} keys, {} values of {} and {} defaults of {} is none",
                keys.len(),
                values.len(),
                values.element(),
                default.len(),
                default.element()
            )));
        }
        let dims = inputs.tensor(0)?.dims.clone();
        Ok(vec![TensorType { element: values.element(), dims, quantization: None }.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let mut table = HashMap::with_capacity(self.keys.len());
        for (place, key) in keys(&self.keys)?.into_iter().enumerate() {
            // Of equal keys the first one counts.
            table.entry(key).or_insert(place);
        }
        let mut out = Elements::zeros(element, shape)?;
        for (to, key) in keys(tensor(inputs, 0)?)?.into_iter().enumerate() {
            match table.get(&key) {
                Some(&from) => out.set(to, &self.values, from),
                None => out.set(to, &self.default, 0),
            }
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let texts = |texts: &[&str]| {
            Tensor::from_strings([texts.len()], texts.iter().map(|t| (*t).to_owned()).collect())
        };
        let mut cases = vec![
            Case::new(
                "numbers to numbers",
                Self {
                    keys: Tensor::vector(&[1.5f32, f32::NAN, 0.0]),
                    values: Tensor::vector(&[10i64, 20, 30]),
                    default: Tensor::scalar(-1i64),
                },
                Tensor::new([2, 2], &[f32::NAN, -0.0, 1.5, 7.0]),
            ),
            Case::new(
                "integers to reals",
                Self {
                    keys: Tensor::vector(&[3i64, 1]),
                    values: Tensor::vector(&[0.5f32, 0.25]),
                    default: Tensor::vector(&[f32::INFINITY]),
                },
                [Tensor::vector(&[1i64, 3, 2, 1])],
            ),
        ];
        if let (Ok(keys), Ok(given), Ok(default)) =
            (texts(&["a", "b", "c"]), texts(&["b", "", "c"]), texts(&["none"]))
        {
            let table = Self { keys: keys.clone(), values: keys.clone(), default };
            cases.push(Case::new("texts to texts", table, [given.clone()]));
            let values = Tensor::vector(&[7u8, 8, 9]);
            let table = Self { keys, values, default: Tensor::scalar(0u8) };
            cases.push(Case::new("texts to numbers", table, [given]));
        }
        cases.into_iter().map(|case| case.with_tolerance(Tolerance::Exact)).collect()
    }
}
