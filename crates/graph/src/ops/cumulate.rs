//! Running sum and running product.

use armet_tensor::Tensor;

use super::movement::{self, around};
use super::{numbers, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Value, ValueType,
};

/// Running sum or product along an axis: inputs are data and axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Cumulate {
    /// What is done with the elements.
    pub kind: CumulateKind,
    /// An element does not count itself.
    pub exclusive: bool,
    /// From the end.
    pub reverse: bool,
}

/// What a running result is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CumulateKind {
    /// Elements added.
    Sum,
    /// Elements multiplied.
    Product,
}

impl Cumulate {
    fn run<T: Copy>(
        &self,
        values: &mut [T],
        [outer, len, inner]: [usize; 3],
        (first, join): (T, impl Fn(T, T) -> T),
    ) {
        for i in 0..outer {
            for j in 0..inner {
                let mut so_far = first;
                for step in 0..len {
                    let k = if self.reverse { len - 1 - step } else { step };
                    let value = &mut values[(i * len + k) * inner + j];
                    let with = join(so_far, *value);
                    *value = if self.exclusive { so_far } else { with };
                    so_far = with;
                }
            }
        }
    }
}

impl Operator for Cumulate {
    fn name(&self) -> &'static str {
        match self.kind {
            CumulateKind::Sum => "CumSum",
            CumulateKind::Product => "CumProd",
        }
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
        let dims = [outer, len, inner];
        let out = if element.is_float() {
            let mut values = numbers::to_f64(data)?;
            match self.kind {
                CumulateKind::Sum => self.run(&mut values, dims, (0.0, |a, b| a + b)),
                CumulateKind::Product => self.run(&mut values, dims, (1.0, |a, b| a * b)),
            }
            numbers::from_f64(element, shape, &values)?
        } else {
            // Results wrap at 64 bits or fewer, to which wrapping at 128 bits makes no difference.
            let mut values = numbers::to_i128(data)?;
            match self.kind {
                CumulateKind::Sum => self.run(&mut values, dims, (0, i128::wrapping_add)),
                CumulateKind::Product => self.run(&mut values, dims, (1, i128::wrapping_mul)),
            }
            numbers::from_i128(element, shape, &values)?
        };
        Ok(vec![out.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        movement::element_count(outputs)
    }

    fn cases() -> Vec<Case> {
        use CumulateKind::{Product, Sum};
        use armet_tensor::ElementType::{F32, I32, I64};
        let mut numbers = Numbers::new(21);
        let mut case = |name: &str, kind, (exclusive, reverse), element, shape: &[usize], axis: Tensor| {
            let inputs = [numbers.tensor(element, shape), axis];
            Case::new(name, Self { kind, exclusive, reverse }, inputs).with_constants(&[1])
        };
        vec![
            case("along rows", Sum, (false, false), F32, &[3, 7], Tensor::scalar(1i64)),
            case("along columns", Sum, (false, false), F32, &[5, 3], Tensor::scalar(0i32)),
            case("exclusive", Sum, (true, false), I64, &[2, 4, 3], Tensor::scalar(-2i64)),
            case("from the end", Sum, (false, true), F32, &[6], Tensor::vector(&[0i64])),
            case("exclusive from the end", Sum, (true, true), I32, &[2, 5], Tensor::scalar(1i64)),
            case("empty", Sum, (false, false), F32, &[0, 3], Tensor::scalar(0i64)),
            case("product along rows", Product, (false, false), F32, &[3, 6], Tensor::scalar(1i64)),
            case("product of integers", Product, (true, false), I64, &[2, 4, 3], Tensor::scalar(-2i64)),
            case("product from the end", Product, (true, true), I32, &[2, 5], Tensor::scalar(-1i32)),
        ]
    }
}
