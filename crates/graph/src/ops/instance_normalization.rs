//! Normalization of groups of channels of each item over the spatial axes.

use armet_tensor::ElementType;

use super::layer_normalization::statistics;
use super::movement::{self, show};
use super::numbers;
use super::support::{broadcast, typing};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

/// Normalization of groups of channels of each item over the spatial axes: inputs are data, scale, bias.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// Channels are normalized in this many groups; `None` for each on its own.
    pub groups: Option<usize>,
}

impl Operator for InstanceNormalization {
    fn name(&self) -> &'static str {
        if self.groups.is_some() { "GroupNormalization" } else { "InstanceNormalization" }
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none().with("epsilon", self.epsilon);
        match self.groups {
            Some(groups) => attributes.with("num_groups", groups),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        for i in 0..3 {
            typing::element(inputs, i, self.name(), ElementType::is_float)?;
        }
        let Some(x) = inputs.tensor(0)?.dims.as_deref() else {
            return Ok(vec![inputs.value_type(0)?.clone()]);
        };
        let fault = |what: &str| InferError::Mismatch(format!("{} of {}: {what}", self.name(), show(x)));
        let Some(channels) = x.get(1) else { return Err(fault("there is no channel axis")) };
        if let (Some(groups), Some(channels)) = (self.groups, channels.fixed())
            && (groups == 0 || channels % groups != 0)
        {
            return Err(fault(&format!("{groups} groups do not divide the channels")));
        }
        for i in 1..3 {
            let Some(own) = inputs.tensor(i)?.dims.as_deref() else { continue };
            // Up to opset 20 group normalization has one parameter for each group.
            let fits = own.len() == 1
                && own[0]
                    .fixed()
                    .zip(channels.fixed())
                    .is_none_or(|(own, channels)| own == channels || self.groups == Some(own));
            if !fits {
                return Err(fault(&format!("a parameter has shape {}", show(own))));
            }
        }
        Ok(vec![inputs.value_type(0)?.clone()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let mut values = numbers::to_f64(tensor(inputs, 0)?)?;
        if !values.is_empty() {
            let of = |i: usize| numbers::to_f64(tensor(inputs, i)?);
            let (scale, bias) = (of(1)?, of(2)?);
            let channels = shape[1];
            let channels_of_group = channels / self.groups.unwrap_or(channels);
            let plane: usize = broadcast::product(&shape[2..]);
            for (index, group) in values.chunks_exact_mut(plane * channels_of_group).enumerate() {
                let (mean, inverse) = statistics(group.iter().copied(), self.epsilon);
                for (i, plane) in group.chunks_exact_mut(plane).enumerate() {
                    let channel = (index * channels_of_group + i) % channels;
                    let of = |parameter: &[f64]| parameter[channel * parameter.len() / channels];
                    for value in plane {
                        *value = (*value - mean) * inverse * of(&scale) + of(&bias);
                    }
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // Mean, difference, square, sum, product, scale and bias.
        typing::count(inputs, 0).saturating_mul(7)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(19);
        let mut case =
            |name: &str, groups: Option<usize>, element: ElementType, shape: &[usize], parameters| {
                let op = InstanceNormalization { epsilon: 1e-5, groups };
                let x = numbers.tensor(element, shape);
                let inputs =
                    [x, numbers.tensor(element, [parameters]), numbers.tensor(element, [parameters])];
                Case::new(name, op, inputs).with_constants(&[1, 2])
            };
        let f = ElementType::F32;
        vec![
            case("pictures", None, f, &[2, 3, 5, 7], 3),
            case("sequences", None, f, &[2, 4, 11], 4),
            case("volumes", None, f, &[1, 2, 3, 4, 2], 2),
            case("groups", Some(2), f, &[2, 6, 3, 5], 6),
            case("parameters of groups", Some(3), f, &[1, 6, 3, 5], 3),
            case("one group", Some(1), f, &[1, 4, 3, 3], 4),
            case("empty", None, f, &[0, 3, 4], 3),
            case("float16", None, ElementType::F16, &[1, 3, 4, 4], 3)
                .with_tolerance(Tolerance::Relative(1e-2)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    #[test]
    fn parameters_must_fit_channels_or_groups() {
        let zeros = |shape: &[usize]| Value::from(Tensor::zeros(ElementType::F32, shape).unwrap());
        let evaluate = |groups, parameters: usize| {
            let (x, p) = (zeros(&[1, 4, 2]), zeros(&[parameters]));
            let op = InstanceNormalization { epsilon: 1.0, groups };
            op.evaluate(&[Some(&x), Some(&p), Some(&p)], &Context::default()).map_err(|e| e.to_string())
        };
        assert!(evaluate(Some(2), 2).is_ok());
        let message = "InstanceNormalization of [1,4,2]: a parameter has shape [2]";
        assert_eq!(evaluate(None, 2), Err(message.to_owned()));
        let message = "GroupNormalization of [1,4,2]: 3 groups do not divide the channels";
        assert_eq!(evaluate(Some(3), 4), Err(message.to_owned()));
    }
}
