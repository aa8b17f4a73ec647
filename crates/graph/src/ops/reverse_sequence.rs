//! The beginnings of sequences turned around, each as far as its own length.

use armet_tensor::{Tensor, strides};

use super::{movement, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// The beginnings of sequences turned around: inputs are data and, for each sequence of the batch, its length. What
/// lies behind the length stays where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ReverseSequence {
    /// The axis of the sequences; negative counts from the end.
    pub batch_axis: i64,
    /// The axis that is turned around; negative counts from the end.
    pub time_axis: i64,
}

impl ReverseSequence {
    /// The batch axis and the time axis.
    ///
    /// # Errors
    /// When they are out of range or the same.
    pub fn axes(&self, rank: usize) -> Result<(usize, usize), InferError> {
        let axes = support::axes(&[self.batch_axis, self.time_axis], rank)?;
        Ok((axes[0], axes[1]))
    }
}

impl Operator for ReverseSequence {
    fn name(&self) -> &'static str {
        "ReverseSequence"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("batch_axis", self.batch_axis).with("time_axis", self.time_axis)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        movement::index_element(self.name(), 1, inputs.element(1)?)?;
        let (data, lengths) = (inputs.dims(0)?, inputs.dims(1)?);
        let (batch, _) = self.axes(data.len())?;
        if lengths.len() != 1 || movement::unify(&lengths[0], &data[batch]).is_none() {
            return Err(InferError::Mismatch(format!(
                "lengths of shape {} do not go with axis {batch} of {}",
                movement::show(lengths),
                movement::show(data)
            )));
        }
        Ok(vec![TensorType::new(inputs.element(0)?, data.iter().cloned()).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let (batch, time) = self.axes(shape.len())?;
        let longest = shape[time];
        let lengths: Vec<usize> = movement::indices(inputs, 1)?
            .into_iter()
            .map(|length| {
                usize::try_from(length).ok().filter(|length| *length <= longest).ok_or_else(|| {
                    EvaluateError::Invalid(format!(
                        "length {length} does not fit an axis of length {longest}"
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        let steps = strides(&shape);
        let positions = movement::coordinates(&shape).map(|mut at| {
            let length = lengths[at[batch]];
            if at[time] < length {
                at[time] = length - 1 - at[time];
            }
            at.iter().zip(&steps).map(|(i, step)| i * step).sum()
        });
        Ok(vec![movement::pick(data, shape.clone(), positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I64, U8};
        let mut numbers = Numbers::new(30);
        let mut case = |name: &str, batch_axis, time_axis, element, shape: &[usize], lengths: &[i64]| {
            let inputs = [numbers.tensor(element, shape), Tensor::vector(lengths)];
            Case::new(name, Self { batch_axis, time_axis }, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("time first", 1, 0, F32, &[5, 3], &[5, 2, 0]),
            case("batch first", 0, 1, F32, &[2, 7, 3], &[4, 7]),
            case("inner axes", -1, 1, U8, &[2, 4, 3, 2], &[1, 3]),
            case("no sequences", 0, 1, I64, &[0, 3], &[]),
        ]
    }
}
