//! Index of the maximum or minimum along an axis, as int64.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::{axis, broadcast, typing};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance,
    Value, ValueType,
};

/// Index of the maximum or minimum along an axis, as int64.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgReduce {
    /// Maximum or minimum.
    pub kind: ArgKind,
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// The axis stays with length one.
    pub keep_dims: bool,
    /// Of equal elements the last counts rather than the first.
    pub select_last_index: bool,
}

/// Which element is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgKind {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl ArgReduce {
    /// Index of the element looked for, for each line of `len` elements that are `inner` apart.
    fn search<T: PartialOrd + Copy>(&self, values: &[T], len: usize, inner: usize) -> Vec<i64> {
        let better = |a: T, b: T| match self.kind {
            ArgKind::Max => a > b,
            ArgKind::Min => a < b,
        };
        let mut result = Vec::new();
        for block in values.chunks_exact(len.saturating_mul(inner).max(1)) {
            for first in 0..inner {
                let mut best = 0;
                for i in 1..len {
                    let (value, so_far) = (block[first + i * inner], block[first + best * inner]);
                    if better(value, so_far) || (self.select_last_index && value == so_far) {
                        best = i;
                    }
                }
                result.push(best as i64);
            }
        }
        result
    }
}

impl Operator for ArgReduce {
    fn name(&self) -> &'static str {
        match self.kind {
            ArgKind::Max => "ArgMax",
            ArgKind::Min => "ArgMin",
        }
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("axis", self.axis)
            .with("keepdims", self.keep_dims)
            .with("select_last_index", self.select_last_index)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), typing::is_number)?;
        let mut dims = inputs.dims(0)?.to_vec();
        let at = axis(self.axis, dims.len())?;
        if dims[at].is(0) {
            return Err(InferError::Mismatch(format!("{} of an empty axis {at}", self.name())));
        }
        if self.keep_dims {
            dims[at] = Dim::Fixed(1);
        } else {
            dims.remove(at);
        }
        Ok(typing::one(ElementType::I64, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (_, shape) = movement::result(self, inputs)?;
        let at = axis(self.axis, x.shape().len())?;
        let (len, inner) = (x.shape()[at], broadcast::product(&x.shape()[at + 1..]));
        let result = if x.element().is_float() {
            self.search(&numbers::to_f64(x)?, len, inner)
        } else {
            self.search(&numbers::to_i128(x)?, len, inner)
        };
        Ok(vec![Tensor::new(shape, &result)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(16);
        let mut case = |name: &str, kind: ArgKind, axis: i64, element: ElementType, shape: &[usize]| {
            let op = ArgReduce {
                kind,
                axis,
                keep_dims: axis != 1,
                select_last_index: name.contains("last of equals"),
            };
            Case::new(name, op, [numbers.tensor(element, shape)]).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("maximum of the last axis", ArgKind::Max, -1, ElementType::F32, &[3, 4, 17]),
            case("maximum of channels", ArgKind::Max, 1, ElementType::F32, &[2, 5, 3, 4]),
            case("minimum of the first axis", ArgKind::Min, 0, ElementType::F32, &[6, 5]),
            case("first of equals", ArgKind::Max, -1, ElementType::I32, &[4, 19]),
            case("last of equals", ArgKind::Max, -1, ElementType::I32, &[4, 19]),
            case("last of equals, minimum", ArgKind::Min, 1, ElementType::U8, &[4, 19]),
            case("one element", ArgKind::Max, -1, ElementType::F32, &[4, 1]),
            case("no lines", ArgKind::Max, -1, ElementType::F32, &[0, 3]),
            case("float16", ArgKind::Max, -1, ElementType::F16, &[2, 9]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_are_told_apart_and_empty_axes_refused() {
        let op = ArgReduce { kind: ArgKind::Max, axis: 0, keep_dims: false, select_last_index: false };
        let evaluate = |x: Tensor| op.evaluate(&[Some(&x.into())], &Context::default());
        let y = evaluate(Tensor::vector(&[i64::MAX - 1, i64::MAX])).unwrap();
        assert_eq!(y[0].tensor().unwrap(), &Tensor::scalar(1i64));
        let error = evaluate(Tensor::zeros(ElementType::F32, [0]).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "ArgMax of an empty axis 0");
    }
}
