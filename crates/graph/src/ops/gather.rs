//! Entries of one axis.

use super::movement::{self, Elements, around};
use super::support;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Entries of one axis: inputs are data and indices.
#[derive(Debug, Clone, PartialEq)]
pub struct Gather {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

impl Operator for Gather {
    fn name(&self) -> &'static str {
        "Gather"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        movement::index_element(self.name(), 1, inputs.element(1)?)?;
        let (data, indices) = (inputs.dims(0)?, inputs.dims(1)?);
        let axis = support::axis(self.axis, data.len())?;
        let dims = data[..axis].iter().chain(indices).chain(&data[axis + 1..]);
        Ok(vec![TensorType::new(inputs.element(0)?, dims.cloned()).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (data, indices) = (tensor(inputs, 0)?, movement::indices(inputs, 1)?);
        let axis = support::axis(self.axis, data.shape().len())?;
        let (outer, len, inner) = around(data.shape(), axis);
        let mut out = Elements::zeros(element, shape)?;
        let indices: Vec<usize> =
            indices.into_iter().map(|i| movement::resolve_index(i, len)).collect::<Result<_, _>>()?;
        for i in 0..outer {
            for (j, index) in indices.iter().enumerate() {
                out.copy((i * indices.len() + j) * inner, data, (i * len + index) * inner, inner);
            }
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I64, U8};
        use armet_tensor::Tensor;
        let mut numbers = Numbers::new(4);
        let mut case = |name: &str, axis: i64, element, shape: &[usize], indices: Tensor| {
            Case::new(name, Self { axis }, [numbers.tensor(element, shape), indices])
                .with_tolerance(Tolerance::Exact)
        };
        let matrix = Tensor::new([2, 3], &[4i64, 0, -1, 2, 2, 1]).expect("six indices");
        vec![
            case("embedding", 0, F32, &[11, 5], Tensor::vector(&[3i64, 0, 10, 3])),
            case("embedding of a batch", 0, F32, &[5, 7], matrix.clone()),
            case("one channel", 1, F32, &[2, 3, 4], Tensor::scalar(-1i64)),
            case("last axis", -1, F32, &[3, 5], matrix.clone()),
            case("a dimension of a shape", 0, I64, &[4], Tensor::scalar(2i64)).with_constants(&[1]),
            case("narrow indices", 1, U8, &[2, 6, 3], Tensor::vector(&[5i32, -6])).with_constants(&[1]),
            case("no indices", 0, F32, &[3, 4], Tensor::vector::<i64>(&[])),
            case("middle axis", 1, F32, &[2, 5, 3], matrix),
        ]
    }
}
