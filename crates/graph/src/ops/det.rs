//! Determinants.

use armet_tensor::{ElementType, Tensor};

use super::support::typing;
use super::{movement, numbers};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Value, ValueType,
};

/// The determinant of each square matrix in the last two axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Det;

/// By elimination with the largest element of each column as pivot.
fn determinant(matrix: &mut [f64], n: usize) -> f64 {
    let mut result = 1.0;
    for column in 0..n {
        let size = |row: &usize| matrix[row * n + column].abs();
        let pivot = (column..n).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(column);
        if pivot != column {
            for k in 0..n {
                matrix.swap(pivot * n + k, column * n + k);
            }
            result = -result;
        }
        let head = matrix[column * n + column];
        result *= head;
        if head == 0.0 {
            return result;
        }
        for row in column + 1..n {
            let factor = matrix[row * n + column] / head;
            for k in column..n {
                matrix[row * n + k] -= factor * matrix[column * n + k];
            }
        }
    }
    result
}

impl Operator for Det {
    fn name(&self) -> &'static str {
        "Det"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        let dims = inputs.dims(0)?;
        let [batch @ .., rows, columns] = dims else {
            return Err(InferError::Mismatch(format!("Det of {} is not of matrices", movement::show(dims))));
        };
        if movement::unify(rows, columns).is_none() {
            let shape = movement::show(dims);
            return Err(InferError::Mismatch(format!("Det of {shape} is not of square matrices")));
        }
        Ok(typing::one(element, batch.iter().cloned()))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let n = data.shape().last().copied().unwrap_or(0);
        let mut values = numbers::to_f64(data)?;
        let result: Vec<f64> = if n == 0 {
            // The empty product.
            vec![1.0; shape.elements()]
        } else {
            values.chunks_exact_mut(n.saturating_mul(n)).map(|matrix| determinant(matrix, n)).collect()
        };
        Ok(vec![numbers::from_f64(element, shape, &result)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        let shape = inputs.first().copied().flatten().and_then(ValueType::shape);
        let n = shape.and_then(|shape| shape.last().copied()).unwrap_or(0) as u64;
        movement::element_count(inputs).saturating_mul(n) / 3 * 2
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(71);
        let mut case =
            |name: &str, shape: &[usize]| Case::new(name, Self, [numbers.floats(shape, -2.0, 2.0)]);
        vec![
            case("matrix", &[3, 3]),
            case("batches", &[2, 3, 4, 4]),
            case("one number", &[5, 1, 1]),
            case("no rows", &[2, 0, 0]),
            case("no matrices", &[0, 3, 3]),
            Case::new("singular", Self, [Tensor::zeros(ElementType::F32, [2, 2]).expect("four numbers fit")]),
        ]
    }
}
