//! Channels of several groups, one of each in turn.

use super::movement::{self, show};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Channels (the second axis) of several groups, one of each in turn (put there by a pass).
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelShuffle {
    /// Number of groups, which lie behind each other before.
    pub groups: usize,
}

impl Operator for ChannelShuffle {
    fn name(&self) -> &'static str {
        "ChannelShuffle"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("groups", self.groups)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let fits = dims.get(1).is_some_and(|channels| {
            self.groups > 0 && channels.fixed().is_none_or(|count| count.is_multiple_of(self.groups))
        });
        if !fits {
            return Err(InferError::Mismatch(format!(
                "the channels of {} are not {} equal groups",
                show(dims),
                self.groups
            )));
        }
        Ok(vec![inputs.value_type(0)?.clone()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let channels = shape[1];
        let inner: usize = shape[2..].iter().product();
        let positions = (0..shape.elements()).map(|at| {
            let (plane, within) = (at / inner, at % inner);
            let (item, channel) = (plane / channels, plane % channels);
            let from = channel % self.groups * (channels / self.groups) + channel / self.groups;
            (item * channels + from) * inner + within
        });
        Ok(vec![movement::pick(data, shape.clone(), positions)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I8};
        let mut numbers = Numbers::new(34);
        let mut case = |name: &str, groups: usize, element, shape: &[usize]| {
            Case::new(name, Self { groups }, [numbers.tensor(element, shape)])
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("two groups", 2, F32, &[2, 8, 3, 5]),
            case("three groups of bytes", 3, I8, &[1, 12, 2, 2]),
            case("no picture", 4, F32, &[3, 8]),
            case("one group", 1, F32, &[1, 3, 2]),
            case("no items", 2, F32, &[0, 4, 2, 2]),
            case("no pixels", 2, F32, &[1, 4, 0]),
        ]
    }
}
