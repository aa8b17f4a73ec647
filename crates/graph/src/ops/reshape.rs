//! Another shape for the same elements.

use armet_tensor::Tensor;

use super::movement;
use crate::evaluate::tensor;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Another shape for the same elements: inputs are data and shape, where -1 is inferred and 0 copies the input's dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Reshape {
    /// A 0 in the shape is a length of zero.
    pub allow_zero: bool,
}

impl Reshape {
    fn dims(&self, inputs: &InferInputs<'_>) -> Result<Vec<Dim>, InferError> {
        let entries = inputs.entries(1)?;
        let mut dims = Vec::with_capacity(entries.len());
        let mut open = None;
        for (i, entry) in entries.iter().enumerate() {
            dims.push(match entry {
                Entry::Int(-1) if open.is_none() => {
                    open = Some(i);
                    Dim::Fixed(1)
                }
                Entry::Int(0) if !self.allow_zero => {
                    let data = inputs.dims(0)?;
                    data.get(i).cloned().ok_or_else(|| {
                        InferError::Mismatch(format!(
                            "the shape copies dimension {i}, but the data has shape {}",
                            movement::show(data)
                        ))
                    })?
                }
                entry => entry.dim().ok_or_else(|| {
                    let entries: Vec<String> = entries.iter().map(Entry::to_string).collect();
                    InferError::Mismatch(format!("[{}] is not a shape to reshape to", entries.join(",")))
                })?,
            });
        }
        let data = match inputs.dims(0) {
            Ok(data) => data,
            // Nothing is copied and nothing inferred: the shape stands on its own.
            Err(InferError::NeedsRank(_)) if open.is_none() => return Ok(dims),
            Err(error) => return Err(error),
        };
        let misfit = |dims: &[Dim]| {
            InferError::Mismatch(format!(
                "{} cannot be reshaped to {}: the numbers of elements differ",
                movement::show(data),
                movement::show(dims)
            ))
        };
        let ratio = Dim::quotient(data, &dims);
        if let Some(open) = open {
            dims[open] = ratio.ok_or_else(|| misfit(&dims))?;
        } else if has_zero(&dims) {
            if data.iter().all(|dim| dim.fixed().is_some_and(|len| len != 0)) {
                return Err(misfit(&dims));
            }
        } else if ratio.is_none_or(|ratio| ratio.fixed().is_some_and(|ratio| ratio != 1)) {
            return Err(misfit(&dims));
        }
        Ok(dims)
    }
}

fn has_zero(dims: &[Dim]) -> bool {
    dims.iter().any(|dim| dim.is(0))
}

impl Operator for Reshape {
    fn name(&self) -> &'static str {
        "Reshape"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("allowzero", self.allow_zero)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        Ok(vec![TensorType::new(element, self.dims(inputs)?).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        Ok(vec![tensor(inputs, 0)?.reshape(shape)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I64, U8};
        let mut numbers = Numbers::new(8);
        let mut case = |name: &str, allow_zero, element, from: &[usize], to: &[i64]| {
            Case::new(name, Self { allow_zero }, [numbers.tensor(element, from), Tensor::vector(to)])
                .with_constants(&[1])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("plain", false, F32, &[2, 3, 4], &[4, 6]),
            case("one length left open", false, F32, &[2, 3, 4], &[2, -1]),
            case("a dimension copied", false, F32, &[2, 3, 4], &[0, 2, 6]),
            case("copied and left open", false, U8, &[5, 3, 4], &[0, -1]),
            case("a length of zero", true, F32, &[0, 3], &[3, 0]),
            case("an empty tensor", false, F32, &[0, 3], &[0, 3, 1]),
            case("to a scalar", false, I64, &[1, 1], &[]),
            case("from a scalar", false, F32, &[], &[-1]),
            Case { constants: vec![], ..case("shape given at run time", false, F32, &[6, 2], &[3, -1]) },
        ]
    }
}
