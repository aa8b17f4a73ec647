//! The inverse of square matrices.

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, show};
use super::numbers;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// The inverse of square matrices, which the last two axes are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inverse;

/// Elimination with the largest element of each column as the pivot; a matrix without an inverse gives no numbers.
fn invert(matrix: &mut [f64], n: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; n * n];
    (0..n).for_each(|i| inverse[i * n + i] = 1.0);
    for column in 0..n {
        let size = |row: usize| matrix[row * n + column].abs();
        let pivot = (column..n).max_by(|a, b| size(*a).total_cmp(&size(*b))).unwrap_or(column);
        for i in 0..n {
            matrix.swap(pivot * n + i, column * n + i);
            inverse.swap(pivot * n + i, column * n + i);
        }
        let divisor = matrix[column * n + column];
        for i in 0..n {
            matrix[column * n + i] /= divisor;
            inverse[column * n + i] /= divisor;
        }
        for row in (0..n).filter(|&row| row != column) {
            let factor = matrix[row * n + column];
            for i in 0..n {
                matrix[row * n + i] -= factor * matrix[column * n + i];
                inverse[row * n + i] -= factor * inverse[column * n + i];
            }
        }
    }
    inverse
}

impl Operator for Inverse {
    fn name(&self) -> &'static str {
        "Inverse"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, "Inverse", ElementType::is_float)?;
        match inputs.dims(0)? {
            [.., rows, columns] if movement::unify(rows, columns).is_some() => {
                Ok(vec![inputs.value_type(0)?.clone()])
            }
            dims => Err(InferError::Mismatch(format!("{} is no square matrix", show(dims)))),
        }
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let n = shape[shape.len() - 1];
        let mut values = numbers::to_f64(tensor(inputs, 0)?)?;
        if !values.is_empty() {
            values
                .chunks_exact_mut(n * n)
                .for_each(|matrix| matrix.copy_from_slice(&invert(&mut matrix.to_vec(), n)));
        }
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        let shape = inputs.first().copied().flatten().and_then(ValueType::shape);
        let n = shape.and_then(|shape| shape.last().copied()).unwrap_or(0);
        typing::count(inputs, 0).saturating_mul(n as u64).saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(33);
        let mut case = |name: &str, shape: &[usize]| {
            Case::new(name, Inverse, [numbers.floats(shape, -2.0, 2.0)])
                .with_tolerance(Tolerance::Relative(1e-4))
        };
        let turned = Tensor::new([2, 2], &[0.0f32, 1.0, 1.0, 0.0]).expect("four elements");
        vec![
            case("matrix", &[4, 4]),
            case("batch", &[2, 3, 3]),
            case("one number", &[1, 1]),
            case("empty", &[0, 3, 3]),
            Case::new("zero on the diagonal", Inverse, [turned]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_undoes() {
        let x = Value::from(Tensor::new([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap());
        let y = Inverse.evaluate(&[Some(&x)], &Context::default()).unwrap();
        assert_eq!(y[0].tensor().unwrap().expect::<f32>().to_vec(), [-2.0, 1.0, 1.5, -0.5]);
    }

    #[test]
    fn only_squares_have_one() {
        let x = Value::from(Tensor::zeros(ElementType::F32, [2, 3]).unwrap());
        let error = Inverse.evaluate(&[Some(&x)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "[2,3] is no square matrix");
    }
}
