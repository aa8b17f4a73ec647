//! Writing new entries into a cache along one axis.

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, Elements, around};
use super::support;
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// A cache with an update written into it: inputs are the cache `[batch, ..., length, ...]`, the update, and for each
/// item of the batch the index along the axis at which it begins (optional, 0).
#[derive(Debug, Clone, PartialEq)]
pub struct TensorScatter {
    /// The axis that is written along; it is not the first.
    pub axis: i64,
    /// What does not fit behind the last entry goes on at the first.
    pub circular: bool,
}

impl Operator for TensorScatter {
    fn name(&self) -> &'static str {
        "TensorScatter"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("axis", self.axis)
            .with("mode", if self.circular { "circular" } else { "linear" })
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let cache = inputs.tensor(0)?;
        movement::same_element(self.name(), cache.element, 1, inputs.element(1)?)?;
        let (dims, update) = (inputs.dims(0)?, inputs.dims(1)?);
        let axis = support::axis(self.axis, dims.len())?;
        let fits = update.len() == dims.len()
            && dims.iter().zip(update).enumerate().all(|(i, (old, new))| match (old.fixed(), new.fixed()) {
                (Some(old), Some(new)) => {
                    if i == axis {
                        new <= old
                    } else {
                        new == old
                    }
                }
                _ => true,
            });
        if axis == 0 || !fits {
            return Err(InferError::Mismatch(format!(
                "an update of shape {} along axis {axis} does not fit a cache of shape {}",
                movement::show(update),
                movement::show(dims)
            )));
        }
        if inputs.has(2) {
            movement::index_element(self.name(), 2, inputs.element(2)?)?;
            if inputs.tensor(2)?.dims.is_some() {
                movement::same_dims(&dims[..1], inputs.dims(2)?)?;
            }
        }
        Ok(vec![cache.clone().into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let (cache, update) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let axis = support::axis(self.axis, shape.len())?;
        let (outer, len, inner) = around(&shape, axis);
        let new = update.shape()[axis];
        let starts = match optional(inputs, 2) {
            Some(_) => movement::indices(inputs, 2)?,
            None => vec![0; shape[0]],
        };
        let mut out = Elements::copy_of(cache);
        if outer * inner == 0 || new == 0 {
            return Ok(vec![out.finish()?.into()]);
        }
        let per_item = outer / shape[0];
        for i in 0..outer {
            for k in 0..new {
                let wanted = starts[i / per_item].saturating_add(k as i64);
                let at = if self.circular { wanted.rem_euclid(len as i64) } else { wanted };
                let at = usize::try_from(at).ok().filter(|at| *at < len).ok_or_else(|| {
                    EvaluateError::Invalid(format!("index {wanted} is outside a cache of length {len}"))
                })?;
                out.copy((i * len + at) * inner, update, (i * new + k) * inner, inner);
            }
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(72);
        let mut case = |name: &str, (axis, circular), element, cache: &[usize], new: &[usize], at: &[i64]| {
            let mut inputs = vec![numbers.tensor(element, cache), numbers.tensor(element, new)];
            if !at.is_empty() {
                inputs.push(Tensor::vector(at));
            }
            Case::new(name, Self { axis, circular }, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("one entry", (-2, false), ElementType::F32, &[2, 3, 5, 4], &[2, 3, 1, 4], &[1, 4]),
            case("without indices", (-2, false), ElementType::F32, &[1, 4, 3], &[1, 2, 3], &[]),
            case("around the end", (1, true), ElementType::F16, &[2, 4, 3], &[2, 3, 3], &[3, 9]),
            case("last axis", (-1, false), ElementType::I64, &[2, 2, 5], &[2, 2, 2], &[3, 0]),
            case("nothing new", (1, true), ElementType::U8, &[2, 3], &[2, 0], &[1, 1]),
            case("no batch", (1, false), ElementType::F32, &[0, 3], &[0, 1], &[]),
        ]
    }
}
