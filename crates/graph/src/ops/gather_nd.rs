//! Elements or slices picked by coordinates.

use armet_tensor::{Tensor, strides};

use super::movement::{self, Elements};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Elements or slices picked by coordinates: inputs are data and indices, whose last axis holds coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct GatherNd {
    /// Leading axes that data and indices share.
    pub batch_dims: usize,
}

impl Operator for GatherNd {
    fn name(&self) -> &'static str {
        "GatherND"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("batch_dims", self.batch_dims)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        movement::index_element(self.name(), 1, inputs.element(1)?)?;
        let (data, indices) = (inputs.dims(0)?, inputs.dims(1)?);
        let batch = self.batch_dims;
        let misfit = || {
            InferError::Mismatch(format!(
                "indices of shape {} do not address data of shape {} behind {batch} shared axes",
                movement::show(indices),
                movement::show(data)
            ))
        };
        let (last, leading) = indices.split_last().ok_or_else(misfit)?;
        if leading.len() < batch || data.len() < batch {
            return Err(misfit());
        }
        // The length of a coordinate decides the rank.
        let depth = last.fixed().ok_or(InferError::NeedsRank(1))?;
        let rest = data[batch..].get(depth..).ok_or_else(misfit)?;
        let shared: Option<Vec<Dim>> =
            data[..batch].iter().zip(leading).map(|(a, b)| movement::unify(a, b)).collect();
        let dims = shared.ok_or_else(misfit)?.into_iter().chain(leading[batch..].iter().chain(rest).cloned());
        Ok(vec![TensorType::new(inputs.element(0)?, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (data, indices) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let coordinates = movement::indices(inputs, 1)?;
        let depth = indices.shape().last().copied().unwrap_or(0);
        let count = |dims: &[usize]| dims.iter().product::<usize>();
        let batches = count(&data.shape()[..self.batch_dims]);
        let picks = count(&indices.shape()[self.batch_dims..indices.shape().len() - 1]);
        let addressed = &data.shape()[self.batch_dims..][..depth];
        let run = count(&data.shape()[self.batch_dims + depth..]);
        let steps = strides(&data.shape()[self.batch_dims..]);
        let mut out = Elements::zeros(element, shape)?;
        for pick in 0..batches * picks {
            let mut from = pick / picks * count(addressed) * run;
            for (i, &len) in addressed.iter().enumerate() {
                from += movement::resolve_index(coordinates[pick * depth + i], len)? * steps[i];
            }
            out.copy(pick * run, data, from, run);
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I64};
        let mut numbers = Numbers::new(14);
        let mut case = |name: &str, batch_dims, element, data: &[usize], shape: &[usize], indices: &[i64]| {
            let indices = Tensor::new(shape, indices).expect("as many indices as the shape has");
            Case::new(name, Self { batch_dims }, [numbers.tensor(element, data), indices])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("elements", 0, F32, &[3, 4], &[3, 2], &[0, 1, 2, 3, -1, -4]),
            case("rows", 0, F32, &[3, 4], &[2, 1], &[2, 0]),
            case("a table of rows", 0, I64, &[2, 3, 5], &[2, 1, 2], &[0, 1, 1, -1]),
            case("a batch", 1, F32, &[2, 3, 4], &[2, 1], &[1, 2]),
            case("a batch of elements", 1, F32, &[2, 3, 4], &[2, 2, 2], &[0, 0, 2, 3, 1, 1, 0, -1]),
            case("nothing", 0, F32, &[3, 4], &[0, 2], &[]),
        ]
    }
}
