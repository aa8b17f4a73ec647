//! Coordinates of the elements that are not zero.

use armet_tensor::{Bool, ElementType, Tensor, strides};

use super::numbers;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Coordinates of the elements that are not zero: int64 [rank, count], in row-major order.
///
/// A scalar has no coordinates: its result is of shape [0, 1] or [0, 0]. (onnxruntime takes it for a vector of one element.)
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NonZero;

/// Which elements are not zero; texts are when they are not empty.
fn flags(tensor: &Tensor) -> Result<Vec<bool>, EvaluateError> {
    if tensor.element() == ElementType::String {
        return Ok(tensor.strings().iter().map(|text| !text.is_empty()).collect());
    }
    Ok(numbers::to_f64(tensor)?.into_iter().map(|value| value != 0.0).collect())
}

impl Operator for NonZero {
    fn name(&self) -> &'static str {
        "NonZero"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let rank = inputs.dims(0)?.len();
        let count = match inputs.value(0) {
            Ok(tensor) => flags(tensor)
                .map(|flags| Dim::Fixed(flags.into_iter().filter(|flag| *flag).count()))
                .map_err(|_| InferError::ElementType {
                    input: 0,
                    element: tensor.element(),
                    operator: self.name(),
                })?,
            Err(_) => Dim::Unknown,
        };
        Ok(vec![TensorType::new(ElementType::I64, [Dim::Fixed(rank), count]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let data = tensor(inputs, 0)?;
        let flags = flags(data)?;
        // Of a scalar there are no coordinates: the result has a row for each axis, none.
        let shape = data.shape().to_vec();
        let found: Vec<usize> =
            flags.into_iter().enumerate().filter(|(_, flag)| *flag).map(|(at, _)| at).collect();
        let rows: Vec<i64> = strides(&shape)
            .iter()
            .zip(&shape)
            .flat_map(|(stride, len)| found.iter().map(move |at| (at / stride % len) as i64))
            .collect();
        Ok(vec![Tensor::new([shape.len(), found.len()], &rows)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(20);
        let mut case = |name: &str, element, shape: &[usize]| {
            Case::new(name, Self, [numbers.tensor(element, shape)]).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("flags", ElementType::Bool, &[3, 5]),
            case("integers", ElementType::I64, &[2, 3, 4]),
            case("all", ElementType::F32, &[7]),
            case("empty", ElementType::F32, &[0, 3]),
            Case::new("none", Self, [Tensor::vector(&[0.0f32, -0.0])]).with_tolerance(Tolerance::Exact),
            Case::new("scalar", Self, [Tensor::scalar(Bool(1))]).with_tolerance(Tolerance::Exact),
        ]
    }
}
