//! Convolution.

use armet_tensor::{ElementType, Shape, Tensor};
use smallvec::SmallVec;

use super::movement::{self, show};
use super::support::{broadcast, sliding, sum_tolerance, typing};
use super::window::{AutoPad, output_dim};
use super::{UnaryKind, numbers, unary};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Value,
    ValueType,
};

/// Convolution: inputs are data `[N,C,...]`, weights `[M,C/group,...]`, bias `[M]` (optional), and a tensor of the result's shape added before the activation (optional, put there by a pass).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conv {
    /// Distance between windows, per spatial axis; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between taps, per spatial axis; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
    /// How padding is chosen.
    pub auto_pad: AutoPad,
    /// Number of groups.
    pub group: usize,
    /// Function applied to the result, put there by a pass.
    pub activation: Option<UnaryKind>,
}

impl Conv {
    fn windows(&self, operator: &'static str) -> sliding::Attributes<'_> {
        sliding::Attributes { operator, strides: &self.strides, dilations: &self.dilations, pads: &self.pads }
    }

    /// Attributes but for the activation.
    pub(super) fn window_attributes(&self) -> Attributes {
        Attributes::none()
            .with("strides", &self.strides[..])
            .with("dilations", &self.dilations[..])
            .with("pads", &self.pads[..])
            .with("auto_pad", self.auto_pad.name())
            .with("group", self.group)
    }

    /// The dimensions of the result; inputs 0 and 1 are data and weights.
    pub(super) fn dims(
        &self,
        operator: &'static str,
        inputs: &InferInputs<'_>,
    ) -> Result<SmallVec<[Dim; 6]>, InferError> {
        let (x, w) = (inputs.dims(0)?, inputs.dims(1)?);
        let shapes = || format!("{operator} of {} with weights {}", show(x), show(w));
        let fault = |what: &str| InferError::Mismatch(format!("{}: {what}", shapes()));
        if x.len() < 2 || x.len() != w.len() {
            return Err(fault("both need a batch or output axis, a channel axis and the same spatial axes"));
        }
        if self.group == 0 {
            return Err(fault("the number of groups is zero"));
        }
        if let (Some(channels), Some(per_group)) = (x[1].fixed(), w[1].fixed())
            && per_group.checked_mul(self.group) != Some(channels)
        {
            return Err(fault(&format!("{} groups do not fit the channels", self.group)));
        }
        if w[0].fixed().is_some_and(|m| m % self.group != 0) {
            return Err(fault(&format!("{} groups do not divide the output channels", self.group)));
        }
        let mut dims: SmallVec<[Dim; 6]> = SmallVec::from_iter([x[0].clone(), w[0].clone()]);
        let kernel: Option<SmallVec<[usize; 3]>> = w[2..].iter().map(Dim::fixed).collect();
        let Some(kernel) = kernel else {
            dims.extend(std::iter::repeat_n(Dim::Unknown, x.len() - 2));
            return Ok(dims);
        };
        for (axis, dim) in self.windows(operator).axes(&kernel)?.into_iter().zip(&x[2..]) {
            dims.push(output_dim(self.auto_pad, axis, dim, false)?);
        }
        Ok(dims)
    }

    /// `out += convolution of x with w`: shapes have been checked by [`Self::dims`].
    pub(super) fn accumulate(
        &self,
        operator: &'static str,
        (x, x_shape): (&[f64], &[usize]),
        (w, w_shape): (&[f64], &[usize]),
        (out, out_shape): (&mut [f64], &Shape),
    ) -> Result<(), EvaluateError> {
        if x.is_empty() || w.is_empty() || out.is_empty() {
            return Ok(());
        }
        let lengths = &x_shape[2..];
        let axes = self.windows(operator).axes(&w_shape[2..])?;
        let axes = sliding::resolved(self.auto_pad, &axes, lengths);
        let taps = sliding::taps(&axes, lengths, &out_shape[2..]);
        let (plane, out_plane): (usize, usize) =
            (broadcast::product(lengths), broadcast::product(&out_shape[2..]));
        let (outputs, channels, taps_of_channel) = (w_shape[0], w_shape[1], taps.runs.len());
        let outputs_of_group = outputs / self.group;
        for (index, out) in out.chunks_exact_mut(out_plane).enumerate() {
            let (item, output) = (index / outputs, index % outputs);
            let first = (item * self.group + output / outputs_of_group) * channels;
            let w = &w[output * channels * taps_of_channel..][..channels * taps_of_channel];
            let x = &x[first * plane..][..channels * plane];
            for (x, w) in x.chunks_exact(plane).zip(w.chunks_exact(taps_of_channel)) {
                for (&factor, runs) in w.iter().zip(&taps.runs) {
                    sliding::gather(out, x, factor, runs, taps.step);
                }
            }
        }
        Ok(())
    }
}

/// Puts the bias of each channel into a result of shape [N,M,...].
pub(super) fn fill_bias(out: &mut [f64], shape: &[usize], bias: &[f64]) {
    let plane: usize = broadcast::product(&shape[2..]);
    if plane > 0 && !bias.is_empty() {
        for (channel, out) in out.chunks_exact_mut(plane).enumerate() {
            out.fill(bias[channel % bias.len()]);
        }
    }
}

/// Checks that a bias is a vector of one number for each output channel.
pub(super) fn check_bias(
    inputs: &InferInputs<'_>,
    operator: &'static str,
    outputs: &Dim,
) -> Result<(), InferError> {
    if inputs.has(2) && inputs.tensor(2)?.dims.is_some() {
        let bias = inputs.dims(2)?;
        let fits = bias.len() == 1
            && match (bias[0].fixed(), outputs.fixed()) {
                (Some(bias), Some(outputs)) => bias == outputs,
                _ => true,
            };
        if !fits {
            return Err(InferError::Mismatch(format!(
                "{operator} has a bias of shape {} for {outputs} output channels",
                show(bias)
            )));
        }
    }
    Ok(())
}

/// Arithmetic of a convolution: a multiply-add counts two; `windows` is the index among `types` of what windows make.
pub(super) fn convolution_operations(
    weights: Option<&ValueType>,
    windows: Option<&ValueType>,
    channel_axis_of_weights: usize,
) -> u64 {
    let shapes = weights.and_then(ValueType::shape).zip(windows.and_then(ValueType::shape));
    let Some((w, windows)) = shapes else { return 0 };
    let per_window = w.get(channel_axis_of_weights..).unwrap_or(&[]);
    per_window
        .iter()
        .chain(windows.iter())
        .try_fold(2u64, |product, &dim| product.checked_mul(dim as u64))
        .unwrap_or(u64::MAX)
}

impl Operator for Conv {
    fn name(&self) -> &'static str {
        "Conv"
    }

    fn attributes(&self) -> Attributes {
        unary::with_activation(self.window_attributes(), self.activation)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, "Conv", ElementType::is_float)?;
        typing::same_elements(inputs, "Conv", &[0, 1, 2, 3])?;
        let dims = self.dims("Conv", inputs)?;
        check_bias(inputs, "Conv", &dims[1])?;
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
        self.accumulate("Conv", (&x_values, x.shape()), (&w_values, w.shape()), (&mut out, &shape))?;
        finish(element, shape, out, optional(inputs, 3), self.activation)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        convolution_operations(inputs.get(1).copied().flatten(), outputs.first().copied().flatten(), 1)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(3);
        let mut case = |name: &str, op: Conv, x: &[usize], w: &[usize], bias: bool| {
            let terms = w[1..].iter().product();
            let mut inputs = vec![numbers.floats(x, -2.0, 2.0), numbers.floats(w, -1.0, 1.0)];
            if bias {
                inputs.push(numbers.floats([w[0]], -1.0, 1.0));
            }
            let constants: Vec<usize> = (1..inputs.len()).collect();
            Case::new(name, op, inputs).with_constants(&constants).with_tolerance(sum_tolerance(terms))
        };
        let plain = Conv { group: 1, ..Conv::default() };
        let padded = Conv { pads: vec![1; 4], ..plain.clone() };
        let strided = Conv { strides: vec![2, 2], ..padded.clone() };
        let same = Conv { auto_pad: AutoPad::SameUpper, strides: vec![2, 2], ..plain.clone() };
        let relu = Conv { activation: Some(UnaryKind::Relu), ..padded.clone() };
        let six = Conv { activation: Some(UnaryKind::Clip { min: 0.0, max: 6.0 }), ..plain.clone() };
        let mut cases = vec![
            case("1x1", plain.clone(), &[1, 5, 7, 9], &[11, 5, 1, 1], true),
            case("3x3 padded", padded.clone(), &[2, 3, 7, 5], &[4, 3, 3, 3], true),
            case("3x3 stride 2", strided, &[1, 3, 9, 8], &[8, 3, 3, 3], false),
            case("depthwise 3x3", Conv { group: 9, ..padded.clone() }, &[1, 9, 6, 7], &[9, 1, 3, 3], true),
            case("groups", Conv { group: 3, ..padded }, &[1, 6, 5, 4], &[9, 2, 3, 3], true),
            case(
                "dilated, uneven pads",
                Conv { dilations: vec![2, 3], pads: vec![0, 3, 2, 1], ..plain.clone() },
                &[1, 2, 8, 9],
                &[3, 2, 3, 2],
                true,
            ),
            case("same, stride 2, 5x5", same, &[1, 3, 10, 11], &[4, 3, 5, 5], false),
            case(
                "one spatial axis",
                Conv { pads: vec![1, 2], ..plain.clone() },
                &[2, 3, 13],
                &[5, 3, 4],
                true,
            ),
            case("three spatial axes", plain.clone(), &[1, 2, 4, 5, 3], &[3, 2, 2, 3, 2], true),
            case("Clip fused", six, &[1, 4, 6, 6], &[7, 4, 1, 1], true),
        ];
        let mut fused = case("sum and Relu fused", relu, &[1, 3, 5, 6], &[4, 3, 3, 3], true);
        fused.inputs.push(Some(Numbers::new(4).floats([1, 4, 5, 6], -2.0, 2.0)));
        cases.push(fused);
        cases
    }
}

/// Adds the tensor that a pass fused in, applies the fused function and rounds to the element type.
pub(super) fn finish(
    element: ElementType,
    shape: Shape,
    mut values: Vec<f64>,
    added: Option<&Tensor>,
    activation: Option<UnaryKind>,
) -> Result<Vec<Value>, EvaluateError> {
    if let Some(added) = added {
        let added = broadcast::expand(numbers::to_f64(added)?, added.shape(), &shape)?;
        for (value, added) in values.iter_mut().zip(added) {
            *value += added;
        }
    }
    unary::activate(activation, &mut values);
    Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(op: &Conv, inputs: &[Tensor]) -> Result<Tensor, EvaluateError> {
        let values: Vec<Value> = inputs.iter().cloned().map(Value::from).collect();
        let inputs: Vec<Option<&Value>> = values.iter().map(Some).collect();
        Ok(op.evaluate(&inputs, &Context::default())?[0].tensor().unwrap().clone())
    }

    fn ones(shape: &[usize]) -> Tensor {
        Tensor::new(shape, &vec![1.0f32; shape.iter().product()]).unwrap()
    }

    #[test]
    fn padding_counts_as_zero_and_bias_is_added_once() {
        let op = Conv { group: 1, pads: vec![1, 1], ..Conv::default() };
        let y = evaluate(&op, &[ones(&[1, 2, 3]), ones(&[1, 2, 3]), Tensor::vector(&[0.5f32])]).unwrap();
        assert_eq!(y.expect::<f32>().as_ref(), [4.5, 6.5, 4.5]);
    }

    #[test]
    fn a_fused_sum_comes_before_the_activation() {
        let op = Conv { group: 1, activation: Some(UnaryKind::Relu), ..Conv::default() };
        let added = Tensor::new([1, 1, 2], &[-5.0f32, 1.0]).unwrap();
        let inputs = [ones(&[1, 1, 2]), ones(&[1, 1, 1]), Tensor::vector(&[1.0f32]), added];
        assert_eq!(evaluate(&op, &inputs).unwrap().expect::<f32>().as_ref(), [0.0, 3.0]);
    }

    #[test]
    fn faults_name_the_shapes() {
        let op = Conv { group: 2, ..Conv::default() };
        let error = evaluate(&op, &[ones(&[1, 3, 4]), ones(&[2, 1, 2])]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Conv of [1,3,4] with weights [2,1,2]: 2 groups do not fit the channels"
        );
    }

    #[test]
    fn a_result_larger_than_memory_is_an_error() {
        let op = Conv { group: 1, pads: vec![1 << 40, 0], ..Conv::default() };
        let error = evaluate(&op, &[ones(&[1, 1, 4]), ones(&[1024, 1, 1])]).unwrap_err();
        assert!(error.to_string().ends_with("more elements than fit in memory"), "{error}");
        let op = Conv { group: 1, pads: vec![usize::MAX, usize::MAX], ..Conv::default() };
        assert!(evaluate(&op, &[ones(&[1, 1, 4]), ones(&[1, 1, 1])]).is_err());
    }

    #[test]
    fn empty_tensors_are_fine() {
        let op = Conv { group: 1, pads: vec![1, 1], ..Conv::default() };
        assert_eq!(evaluate(&op, &[ones(&[0, 2, 3]), ones(&[1, 2, 3])]).unwrap().shape().dims(), [0, 1, 3]);
        let y = evaluate(&op, &[ones(&[1, 0, 3]), ones(&[1, 0, 3]), Tensor::vector(&[2.0f32])]).unwrap();
        assert_eq!(y.expect::<f32>().as_ref(), [2.0, 2.0, 2.0]);
    }
}
