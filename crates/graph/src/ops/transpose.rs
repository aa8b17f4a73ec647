//! Axes in another order.

use armet_tensor::strides;

use super::movement;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Axes in another order.
#[derive(Debug, Clone, PartialEq)]
pub struct Transpose {
    /// For each axis of the result, the axis of the input; empty reverses all.
    pub perm: Vec<usize>,
}

impl Transpose {
    /// For each axis of the result, the axis of the input.
    ///
    /// # Errors
    /// When the attribute is no permutation of this many axes.
    pub fn order(&self, rank: usize) -> Result<Vec<usize>, InferError> {
        if self.perm.is_empty() {
            return Ok((0..rank).rev().collect());
        }
        let mut sorted = self.perm.clone();
        sorted.sort_unstable();
        if sorted.into_iter().eq(0..rank) {
            return Ok(self.perm.clone());
        }
        Err(InferError::Mismatch(format!("perm {:?} does not permute {rank} axes", self.perm)))
    }
}

impl Operator for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("perm", self.perm.as_slice())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let order = self.order(dims.len())?;
        Ok(vec![TensorType::new(inputs.element(0)?, order.into_iter().map(|a| dims[a].clone())).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let steps = strides(data.shape());
        let order = self.order(shape.len())?;
        let positions = movement::coordinates(&shape)
            .map(|at| at.iter().zip(&order).map(|(&i, &axis)| i * steps[axis]).sum());
        Ok(vec![movement::pick(data, shape.clone(), positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F16, F32, I8, I64};
        let mut numbers = Numbers::new(2);
        [
            ("matrix", F32, vec![7, 5], vec![1, 0]),
            ("reversed by default", F32, vec![2, 3, 4], vec![]),
            ("to channels last", F32, vec![1, 3, 5, 7], vec![0, 2, 3, 1]),
            ("to channels first", I8, vec![2, 5, 3, 4], vec![0, 3, 1, 2]),
            ("heads", F32, vec![2, 9, 4, 16], vec![0, 2, 1, 3]),
            ("nothing moves", F32, vec![3, 4], vec![0, 1]),
            ("five axes", F16, vec![2, 1, 3, 2, 5], vec![4, 0, 3, 1, 2]),
            ("empty", I64, vec![3, 0, 2], vec![1, 2, 0]),
            ("scalar", F32, vec![], vec![]),
        ]
        .into_iter()
        .map(|(name, element, shape, perm)| {
            Case::new(name, Self { perm }, [numbers.tensor(element, shape)]).with_tolerance(Tolerance::Exact)
        })
        .collect()
    }
}
