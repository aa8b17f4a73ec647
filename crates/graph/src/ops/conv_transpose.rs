//! Transposed convolution.

use armet_tensor::{ElementType, Tensor};
use smallvec::SmallVec;

use super::conv::{check_bias, convolution_operations, fill_bias, finish};
use super::movement::{self, show};
use super::support::{broadcast, sliding, sum_tolerance, typing};
use super::window::{AutoPad, Axis};
use super::{UnaryKind, numbers, unary};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Value,
    ValueType,
};

/// Transposed convolution: inputs are data `[N,C,...]`, weights `[C,M/group,...]`, bias `[M]` (optional).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConvTranspose {
    /// Distance between windows, per spatial axis; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between taps, per spatial axis; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding cut from the result: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
    /// Added to one side of the result; empty means 0.
    pub output_padding: Vec<usize>,
    /// Spatial shape of the result, from which padding follows; empty means not given.
    pub output_shape: Vec<usize>,
    /// How padding is chosen.
    pub auto_pad: AutoPad,
    /// Number of groups.
    pub group: usize,
    /// Function applied to the result, put there by a pass.
    pub activation: Option<UnaryKind>,
}

const NAME: &str = "ConvTranspose";

impl ConvTranspose {
    fn windows(&self) -> sliding::Attributes<'_> {
        sliding::Attributes {
            operator: NAME,
            strides: &self.strides,
            dilations: &self.dilations,
            pads: &self.pads,
        }
    }

    /// What one axis gives before anything is cut: a window for each element, and the output padding.
    fn full(&self, index: usize, axis: Axis, dim: &Dim) -> Dim {
        let padding = self.output_padding.get(index).copied().unwrap_or(0);
        let more = axis.extent().saturating_add(padding);
        let grown = dim.mul(&axis.stride.into());
        if more >= axis.stride {
            grown.add(&(more - axis.stride).into())
        } else {
            grown.sub(&(axis.stride - more).into())
        }
    }

    /// The length of one axis of the result.
    fn output(&self, index: usize, axis: Axis, dim: &Dim) -> Dim {
        if let Some(&given) = self.output_shape.get(index) {
            return given.into();
        }
        match self.auto_pad {
            AutoPad::SameUpper | AutoPad::SameLower => dim.mul(&axis.stride.into()),
            AutoPad::Valid => self.full(index, axis, dim),
            AutoPad::NotSet => self.full(index, axis, dim).sub(&axis.begin.saturating_add(axis.end).into()),
        }
    }

    /// The axis with the padding that is cut from the beginning of its result.
    fn resolved(&self, index: usize, mut axis: Axis, len: usize, output: usize) -> Axis {
        let total = self.full(index, axis, &len.into()).fixed().unwrap_or(0).saturating_sub(output);
        if !self.output_shape.is_empty() || matches!(self.auto_pad, AutoPad::SameUpper | AutoPad::SameLower) {
            let smaller = total / 2;
            axis.begin = if self.auto_pad == AutoPad::SameUpper { smaller } else { total - smaller };
        } else if self.auto_pad == AutoPad::Valid {
            axis.begin = 0;
        }
        axis
    }
}

impl Operator for ConvTranspose {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none()
            .with("strides", &self.strides[..])
            .with("dilations", &self.dilations[..])
            .with("pads", &self.pads[..])
            .with("output_padding", &self.output_padding[..])
            .with("output_shape", &self.output_shape[..])
            .with("auto_pad", self.auto_pad.name())
            .with("group", self.group);
        unary::with_activation(attributes, self.activation)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, NAME, ElementType::is_float)?;
        typing::same_elements(inputs, NAME, &[0, 1, 2])?;
        let (x, w) = (inputs.dims(0)?, inputs.dims(1)?);
        let fault = |what: &str| {
            let (x, w) = (show(x), show(w));
            InferError::Mismatch(format!("{NAME} of {x} with weights {w}: {what}"))
        };
        if x.len() < 2 || x.len() != w.len() {
            return Err(fault("both need two axes and the same spatial axes"));
        }
        if x[1].fixed().zip(w[0].fixed()).is_some_and(|(x, w)| x != w) {
            return Err(fault("the channels differ"));
        }
        if self.group == 0 || w[0].fixed().is_some_and(|channels| channels % self.group != 0) {
            return Err(fault(&format!("{} groups do not divide the channels", self.group)));
        }
        let rank = x.len() - 2;
        for (name, values) in [("output_padding", &self.output_padding), ("output_shape", &self.output_shape)]
        {
            if !values.is_empty() && values.len() != rank {
                return Err(fault(&format!("{name} is {values:?}")));
            }
        }
        let outputs = w[1].mul(&self.group.into());
        check_bias(inputs, NAME, &outputs)?;
        let mut dims: SmallVec<[Dim; 6]> = SmallVec::from_iter([x[0].clone(), outputs]);
        let kernel: Option<SmallVec<[usize; 3]>> = w[2..].iter().map(Dim::fixed).collect();
        match kernel {
            None => dims.extend(std::iter::repeat_n(Dim::Unknown, rank)),
            Some(kernel) => {
                let axes = self.windows().axes(&kernel)?;
                dims.extend(
                    axes.iter().zip(&x[2..]).enumerate().map(|(i, (a, dim))| self.output(i, *a, dim)),
                );
            }
        }
        Ok(typing::one(element, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (x, w) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let (element, shape) = movement::result(self, inputs)?;
        let mut out = broadcast::filled(&shape, 0.0)?;
        if let Some(bias) = optional(inputs, 2) {
            fill_bias(&mut out, &shape, &numbers::to_f64(bias)?);
        }
        let (x_values, w_values) = (numbers::to_f64(x)?, numbers::to_f64(w)?);
        if !out.is_empty() && !x_values.is_empty() && !w_values.is_empty() {
            let (lengths, outputs) = (&x.shape()[2..], &shape[2..]);
            let axes = self.windows().axes(&w.shape()[2..])?;
            let axes: SmallVec<[Axis; 3]> = axes
                .iter()
                .enumerate()
                .map(|(i, axis)| self.resolved(i, *axis, lengths[i], outputs[i]))
                .collect();
            // Each element of the data is a window over the result.
            let taps = sliding::taps(&axes, outputs, lengths);
            let plane: usize = broadcast::product(lengths);
            let out_plane: usize = broadcast::product(outputs);
            let (channels, outputs_of_group, taps_of_channel) = (w.shape()[0], w.shape()[1], taps.runs.len());
            let channels_of_group = channels / self.group;
            for (index, out) in out.chunks_exact_mut(out_plane).enumerate() {
                let (item, output) = (index / shape[1], index % shape[1]);
                let group = output / outputs_of_group;
                for channel in group * channels_of_group..(group + 1) * channels_of_group {
                    let x = &x_values[(item * channels + channel) * plane..][..plane];
                    let at = channel * outputs_of_group + output % outputs_of_group;
                    let w = &w_values[at * taps_of_channel..][..taps_of_channel];
                    for (&factor, runs) in w.iter().zip(&taps.runs) {
                        sliding::scatter(out, x, factor, runs, taps.step);
                    }
                }
            }
        }
        finish(element, shape, out, None, self.activation)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        convolution_operations(inputs.get(1).copied().flatten(), inputs.first().copied().flatten(), 1)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(17);
        let mut case = |name: &str, op: ConvTranspose, x: &[usize], w: &[usize], bias: bool| {
            let terms = w[0] * w[2..].iter().product::<usize>();
            let mut inputs: Vec<Tensor> = vec![numbers.floats(x, -2.0, 2.0), numbers.floats(w, -1.0, 1.0)];
            if bias {
                inputs.push(numbers.floats([w[1] * op.group], -1.0, 1.0));
            }
            let constants: Vec<usize> = (1..inputs.len()).collect();
            Case::new(name, op, inputs).with_constants(&constants).with_tolerance(sum_tolerance(terms))
        };
        let plain = ConvTranspose { group: 1, ..ConvTranspose::default() };
        let double = ConvTranspose { strides: vec![2, 2], ..plain.clone() };
        let padded = ConvTranspose { pads: vec![1; 4], output_padding: vec![1, 0], ..double.clone() };
        let same = ConvTranspose { auto_pad: AutoPad::SameUpper, ..double.clone() };
        let shaped = ConvTranspose { output_shape: vec![10, 9], ..double.clone() };
        let dilated = ConvTranspose { dilations: vec![2, 1], pads: vec![0, 1, 2, 0], ..plain.clone() };
        let relu = ConvTranspose { activation: Some(UnaryKind::Relu), ..double.clone() };
        vec![
            case("2x2 stride 2", double, &[1, 5, 4, 7], &[5, 3, 2, 2], true),
            case("3x3 stride 2, padded", padded, &[2, 3, 4, 5], &[3, 4, 3, 3], true),
            case("4x4 stride 2, same", same, &[1, 3, 5, 4], &[3, 2, 4, 4], false),
            case("output shape", shaped, &[1, 2, 4, 4], &[2, 3, 3, 3], false),
            case("dilated, uneven pads", dilated, &[1, 2, 5, 6], &[2, 3, 3, 2], true),
            case("groups", ConvTranspose { group: 2, ..plain.clone() }, &[1, 4, 3, 5], &[4, 3, 3, 3], true),
            case("Relu fused", relu, &[1, 3, 3, 4], &[3, 5, 2, 2], true),
            case("one spatial axis", plain.clone(), &[1, 3, 9], &[3, 2, 4], true),
            case("three spatial axes", plain, &[1, 2, 2, 3, 2], &[2, 2, 2, 2, 3], false),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(op: &ConvTranspose, x: &[usize], w: &[usize]) -> Result<Tensor, EvaluateError> {
        let ones =
            |shape: &[usize]| Value::from(Tensor::new(shape, &vec![1.0f32; shape.iter().product()]).unwrap());
        let (x, w) = (ones(x), ones(w));
        Ok(op.evaluate(&[Some(&x), Some(&w)], &Context::default())?[0].tensor().unwrap().clone())
    }

    #[test]
    fn windows_overlap_and_padding_is_cut() {
        let op = ConvTranspose { group: 1, strides: vec![2], pads: vec![1, 0], ..ConvTranspose::default() };
        let y = evaluate(&op, &[1, 1, 3], &[1, 1, 3]).unwrap();
        assert_eq!(y.expect::<f32>().as_ref(), [1.0, 2.0, 1.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn a_stride_longer_than_the_kernel_leaves_gaps() {
        let op = ConvTranspose { group: 1, strides: vec![3], ..ConvTranspose::default() };
        let y = evaluate(&op, &[1, 1, 2], &[1, 1, 1]).unwrap();
        assert_eq!(y.expect::<f32>().as_ref(), [1.0, 0.0, 0.0, 1.0]);
        assert!(evaluate(&op, &[1, 1, 0], &[1, 1, 1]).unwrap().is_empty());
    }

    #[test]
    fn faults_are_named() {
        let op = ConvTranspose { group: 1, output_padding: vec![1], ..ConvTranspose::default() };
        let error = evaluate(&op, &[1, 1, 2, 2], &[1, 1, 2, 2]).unwrap_err();
        let message = "ConvTranspose of [1,1,2,2] with weights [1,1,2,2]: output_padding is [1]";
        assert_eq!(error.to_string(), message);
        let op = ConvTranspose { group: 1, strides: vec![usize::MAX], ..ConvTranspose::default() };
        assert!(evaluate(&op, &[1, 1, 3], &[1, 1, 2]).is_err());
    }
}
