//! Running sum.

use armet_tensor::Tensor;

use super::movement::{self, around};
use super::{numbers, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Value, ValueType,
};

/// Running sum: inputs are data and axis.
#[derive(Debug, Clone, PartialEq)]
pub struct CumSum {
    /// An element does not count itself.
    pub exclusive: bool,
    /// From the end.
    pub reverse: bool,
}

impl CumSum {
    fn sum<T: Copy>(
        &self,
        values: &mut [T],
        [outer, len, inner]: [usize; 3],
        add: impl Fn(T, T) -> T,
        zero: T,
    ) {
        for i in 0..outer {
            for j in 0..inner {
                let mut sum = zero;
                for step in 0..len {
                    let k = if self.reverse { len - 1 - step } else { step };
                    let value = &mut values[(i * len + k) * inner + j];
                    let with = add(sum, *value);
                    *value = if self.exclusive { sum } else { with };
                    sum = with;
                }
            }
        }
    }
}

impl Operator for CumSum {
    fn name(&self) -> &'static str {
        "CumSum"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("exclusive", self.exclusive).with("reverse", self.reverse)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let data = inputs.tensor(0)?;
        if !data.element.is_integer() && !data.element.is_float() {
            return Err(InferError::ElementType { input: 0, element: data.element, operator: self.name() });
        }
        // The axis decides no shape, but it may be wrong.
        if let (Some(dims), Ok(axis)) = (&data.dims, inputs.ints(1)) {
            let [axis] = axis[..] else {
                return Err(InferError::Mismatch(format!("the axis must be one number, not {axis:?}")));
            };
            support::axis(axis, dims.len())?;
        }
        Ok(vec![data.clone().into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let axis = movement::indices(inputs, 1)?.first().copied().unwrap_or(0);
        let (outer, len, inner) = around(&shape, support::axis(axis, shape.len())?);
        let out = if element.is_float() {
            let mut values = numbers::to_f64(data)?;
            self.sum(&mut values, [outer, len, inner], |a, b| a + b, 0.0);
            numbers::from_f64(element, shape, &values)?
        } else {
            let mut values = numbers::to_i128(data)?;
            self.sum(&mut values, [outer, len, inner], i128::wrapping_add, 0);
            numbers::from_i128(element, shape, &values)?
        };
        Ok(vec![out.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        movement::element_count(outputs)
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I32, I64};
        let mut numbers = Numbers::new(21);
        let mut case = |name: &str, exclusive, reverse, element, shape: &[usize], axis: Tensor| {
            Case::new(name, Self { exclusive, reverse }, [numbers.tensor(element, shape), axis])
                .with_constants(&[1])
        };
        vec![
            case("along rows", false, false, F32, &[3, 7], Tensor::scalar(1i64)),
            case("along columns", false, false, F32, &[5, 3], Tensor::scalar(0i32)),
            case("exclusive", true, false, I64, &[2, 4, 3], Tensor::scalar(-2i64)),
            case("from the end", false, true, F32, &[6], Tensor::vector(&[0i64])),
            case("exclusive from the end", true, true, I32, &[2, 5], Tensor::scalar(1i64)),
            case("empty", false, false, F32, &[0, 3], Tensor::scalar(0i64)),
        ]
    }
}
