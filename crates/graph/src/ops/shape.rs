//! The dimensions of a tensor, as an int64 vector (ONNX Shape).

use armet_tensor::{ElementType, Tensor};

use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// The dimensions of a tensor, as an int64 vector (ONNX Shape).
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeOf {
    /// First dimension; negative counts from the end.
    pub start: i64,
    /// Dimension to stop before; `None` for all.
    pub end: Option<i64>,
}

impl ShapeOf {
    /// The axes that are given for a tensor of this rank.
    pub fn range(&self, rank: usize) -> std::ops::Range<usize> {
        let n = i64::try_from(rank).unwrap_or(i64::MAX);
        let clamp =
            |v: i64| usize::try_from((if v < 0 { v.saturating_add(n) } else { v }).clamp(0, n)).unwrap_or(0);
        let (start, end) = (clamp(self.start), self.end.map_or(rank, clamp));
        start..end.max(start)
    }
}

impl Operator for ShapeOf {
    fn name(&self) -> &'static str {
        "Shape"
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none().with("start", self.start);
        match self.end {
            Some(end) => attributes.with("end", end),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let count = self.range(inputs.dims(0)?.len()).len();
        Ok(vec![TensorType::new(ElementType::I64, [Dim::Fixed(count)]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let shape = tensor(inputs, 0)?.shape();
        let dims: Vec<i64> =
            shape[self.range(shape.len())].iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
        Ok(vec![Tensor::vector(&dims).into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(7);
        [
            ("all", 0, None, vec![2, 3, 5]),
            ("from an axis", 1, None, vec![2, 3, 5]),
            ("from the end", -2, None, vec![2, 3, 5, 7]),
            ("between", 1, Some(-1), vec![2, 3, 5, 7]),
            ("nothing between", 3, Some(1), vec![2, 3, 5, 7]),
            ("limits beyond the rank", -9, Some(9), vec![4, 0]),
            ("scalar", 0, None, vec![]),
        ]
        .into_iter()
        .map(|(name, start, end, shape)| {
            Case::new(name, Self { start, end }, [numbers.tensor(ElementType::F32, shape)])
                .with_tolerance(Tolerance::Exact)
        })
        .collect()
    }
}
