//! Matrix product of 8-bit integers in int32.

use armet_tensor::{ElementType, Shape, Tensor};

use super::matmul::{product, product_dims, product_operations};
use super::movement;
use super::numbers;
use super::support::{broadcast, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Matrix product of 8-bit integers in int32: inputs are A, B, zero point of A (optional), of B (optional).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatMulInteger;

const NAME: &str = "MatMulInteger";

/// Elements less their zero points. Eight bits and sums of their products are exact in double precision.
pub(super) fn centred(
    x: &Tensor,
    zero_point: Option<&Tensor>,
    zero_shape: impl FnOnce(&Tensor) -> Shape,
) -> Result<Vec<f64>, EvaluateError> {
    let mut values = numbers::to_f64(x)?;
    if let Some(zero_point) = zero_point {
        let shape = if zero_point.len() == 1 { Shape::scalar() } else { zero_shape(zero_point) };
        let zeros = broadcast::expand(numbers::to_f64(zero_point)?, &shape, x.shape())?;
        values.iter_mut().zip(zeros).for_each(|(v, zero)| *v -= zero);
    }
    Ok(values)
}

/// Sums as int32, wrapping.
pub(super) fn sums(shape: Shape, values: &[f64]) -> Result<Tensor, EvaluateError> {
    let values: Vec<i32> = values.iter().map(|&v| v as i64 as i32).collect();
    Ok(Tensor::new(shape, &values)?)
}

/// Whether factors may have this type.
pub(super) fn accepts(element: ElementType) -> bool {
    matches!(element, ElementType::I8 | ElementType::U8)
}

fn shape_of(inputs: &InferInputs<'_>, index: usize) -> Option<Shape> {
    inputs.has(index).then(|| inputs.value_type(index).ok()?.shape()).flatten()
}

impl Operator for MatMulInteger {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, NAME, accepts)?;
        typing::element(inputs, 1, NAME, accepts)?;
        typing::same_elements(inputs, NAME, &[0, 2])?;
        typing::same_elements(inputs, NAME, &[1, 3])?;
        // Zero points are one number, or one for each row of A and column of B.
        for (i, (matrix, from_end)) in [(2, (0, 2)), (3, (1, 1))] {
            let (Some(zero), Some(matrix)) = (shape_of(inputs, i), shape_of(inputs, matrix)) else {
                continue;
            };
            let lines = matrix.len().checked_sub(from_end).map_or(1, |at| matrix[at]);
            let count = zero.checked_len();
            if zero.len() == 1 && count != Some(1) && count != Some(lines) {
                return Err(InferError::Mismatch(format!(
                    "{NAME} takes one zero point or {lines} of them, not {zero}"
                )));
            }
        }
        let dims = product_dims(NAME, inputs.dims(0)?, inputs.dims(1)?, false, false)?;
        Ok(typing::one(ElementType::I32, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (a, b) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let (_, shape) = movement::result(self, inputs)?;
        // A vector of zero points of A belongs to its rows.
        let rows = |zero: &Tensor| match zero.shape().dims() {
            &[rows] => Shape::from([rows, 1]),
            _ => zero.shape().clone(),
        };
        let a_values = centred(a, optional(inputs, 2), rows)?;
        let b_values = centred(b, optional(inputs, 3), |zero| zero.shape().clone())?;
        let values = product((&a_values, a.shape()), (&b_values, b.shape()), false, false, &shape)?;
        Ok(vec![sums(shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        product_operations(inputs, outputs, false)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(25);
        let mut bytes = |shape: &[usize]| numbers.ints::<u8>(shape, 0, 255);
        let zero = Tensor::scalar(131u8);
        let zeros = bytes(&[9]);
        let rows = bytes(&[5]);
        let mut cases = vec![
            Case::new("no zero points", MatMulInteger, [bytes(&[5, 7]), bytes(&[7, 9])]),
            Case::new(
                "zero points",
                MatMulInteger,
                [bytes(&[5, 7]), bytes(&[7, 9]), zero.clone(), zero.clone()],
            ),
            Case::new(
                "zero points of columns",
                MatMulInteger,
                [bytes(&[2, 5, 7]), bytes(&[7, 9]), zero.clone(), zeros],
            ),
            Case::new("zero points of rows", MatMulInteger, [bytes(&[5, 7]), bytes(&[7, 9]), rows]),
            Case::new("batch", MatMulInteger, [bytes(&[2, 1, 3, 4]), bytes(&[3, 4, 2]), zero.clone()]),
            Case::new("vector", MatMulInteger, [bytes(&[7]), bytes(&[7, 9]), zero.clone()]),
        ];
        let signed = numbers.ints::<i8>([33, 10], -128, 127);
        let inputs = [numbers.ints::<u8>([3, 33], 0, 255), signed, zero, Tensor::scalar(0i8)];
        cases.push(Case::new("uint8 by int8", MatMulInteger, inputs).with_constants(&[1, 3]));
        cases.into_iter().map(|case| case.with_tolerance(Tolerance::Exact)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_points_of_rows_and_columns() {
        let values = [
            Tensor::new([2, 1], &[5u8, 5]).unwrap(),
            Tensor::new([1, 2], &[7i8, 7]).unwrap(),
            Tensor::vector(&[5u8, 3]),
            Tensor::vector(&[7i8, 5]),
        ]
        .map(Value::from);
        let inputs: Vec<Option<&Value>> = values.iter().map(Some).collect();
        let y = MatMulInteger.evaluate(&inputs, &Context::default()).unwrap();
        assert_eq!(y[0].tensor().unwrap().expect::<i32>().as_ref(), [0, 0, 0, 4]);
    }
}
