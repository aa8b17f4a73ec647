//! Convolution with moved taps.

use armet_tensor::ElementType;
use smallvec::SmallVec;

use super::support::{broadcast::filled, product, sliding, typing};
use super::window::{AutoPad, Axis, output_dim};
use super::{conv, movement, numbers};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Value,
    ValueType,
};

/// Convolution of which each tap of each window is moved by an offset and weighed by a mask.
///
/// Inputs are data `[N,C,...]`, weights `[M,C/group,...]`, offsets `[N, offset_group*taps*axes, ...]` of the result's
/// lengths, bias `[M]` (optional), and the mask `[N, offset_group*taps, ...]` (optional). Between elements data are
/// interpolated linearly, outside they are zero.
#[derive(Debug, Clone, PartialEq)]
pub struct DeformConv {
    /// Distance between windows, per spatial axis; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between taps, per spatial axis; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
    /// Number of groups of channels.
    pub group: usize,
    /// Number of groups of channels with offsets of their own.
    pub offset_group: usize,
}

/// Linear interpolation of a plane at a place; outside of it all is zero.
fn interpolate(plane: &[f64], lengths: &[usize], place: &[f64]) -> f64 {
    let corners = SmallVec::<[usize; 6]>::from_elem(2, lengths.len());
    let mut sum = 0.0;
    for corner in movement::coordinates(&corners) {
        let (mut share, mut offset) = (1.0, 0);
        for ((&upper, &at), &len) in corner.iter().zip(place).zip(lengths) {
            let index = at.floor() + upper as f64;
            if !(0.0..len as f64).contains(&index) {
                share = 0.0;
                break;
            }
            share *= 1.0 - (at - index).abs();
            offset = offset * len + index as usize;
        }
        if share != 0.0 {
            sum += share * plane[offset];
        }
    }
    sum
}

impl DeformConv {
    fn axes(&self, kernel: &[usize]) -> Result<SmallVec<[Axis; 3]>, InferError> {
        let (strides, dilations, pads) = (&self.strides[..], &self.dilations[..], &self.pads[..]);
        sliding::Attributes { operator: "DeformConv", strides, dilations, pads }.axes(kernel)
    }
}

impl Operator for DeformConv {
    fn name(&self) -> &'static str {
        "DeformConv"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("strides", &self.strides[..])
            .with("dilations", &self.dilations[..])
            .with("pads", &self.pads[..])
            .with("group", self.group)
            .with("offset_group", self.offset_group)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        typing::same_elements(inputs, self.name(), &[0, 1, 2, 3, 4])?;
        let (x, w, offset) = (inputs.dims(0)?, inputs.dims(1)?, inputs.dims(2)?);
        let shown = || [x, w, offset].map(movement::show).join(", ");
        let fault = |what: &str| InferError::Mismatch(format!("DeformConv of {}: {what}", shown()));
        let rank = x.len();
        if rank < 3 || w.len() != rank || offset.len() != rank || self.group == 0 || self.offset_group == 0 {
            return Err(fault("data, weights and offsets need the same axes, and groups must not be zero"));
        }
        if let (Some(channels), Some(per_group)) = (x[1].fixed(), w[1].fixed())
            && (per_group.checked_mul(self.group) != Some(channels) || channels % self.offset_group != 0)
        {
            return Err(fault("the groups do not fit the channels"));
        }
        if w[0].fixed().is_some_and(|m| m % self.group != 0) {
            return Err(fault("the groups do not divide the output channels"));
        }
        let kernel: Option<SmallVec<[usize; 3]>> = w[2..].iter().map(Dim::fixed).collect();
        let mut dims: SmallVec<[Dim; 6]> = SmallVec::from_iter([x[0].clone(), w[0].clone()]);
        let mut taps = Dim::Unknown;
        if let Some(kernel) = kernel {
            for (axis, dim) in self.axes(&kernel)?.into_iter().zip(&x[2..]) {
                dims.push(output_dim(AutoPad::NotSet, axis, dim, false)?);
            }
            taps = Dim::product(&w[2..]).mul(&self.offset_group.into());
        } else {
            dims.extend(offset[2..].iter().cloned());
        }
        let wanted = |channels: Dim| [x[0].clone(), channels].into_iter().chain(dims[2..].iter().cloned());
        movement::same_dims(&wanted(taps.mul(&(rank - 2).into())).collect::<Vec<_>>(), offset)?;
        if inputs.has(4) && inputs.tensor(4)?.dims.is_some() {
            movement::same_dims(&wanted(taps).collect::<Vec<_>>(), inputs.dims(4)?)?;
        }
        if inputs.has(3) && inputs.tensor(3)?.dims.is_some() {
            movement::same_dims(&dims[1..2], inputs.dims(3)?)?;
        }
        Ok(typing::one(element, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (x, w) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let mut out = filled(&shape, 0.0)?;
        if let Some(bias) = optional(inputs, 3) {
            conv::fill_bias(&mut out, &shape, &numbers::to_f64(bias)?);
        }
        if x.is_empty() || w.is_empty() || out.is_empty() {
            return Ok(vec![numbers::from_f64(element, shape, &out)?.into()]);
        }
        let lengths = &x.shape()[2..];
        let axes = self.axes(&w.shape()[2..])?;
        let kernel: SmallVec<[usize; 6]> = w.shape()[2..].iter().copied().collect();
        let (taps, count) = (kernel.iter().product::<usize>(), axes.len());
        let (plane, windows): (usize, usize) = (lengths.iter().product(), shape[2..].iter().product());
        let (data, weights) = (numbers::to_f64(x)?, numbers::to_f64(w)?);
        let offsets = numbers::to_f64(tensor(inputs, 2)?)?;
        let mask = optional(inputs, 4).map(numbers::to_f64).transpose()?;
        let (channels, outputs) = (x.shape()[1], shape[1]);
        let per_offset_group = channels / self.offset_group;
        let (per_group, outputs_per_group) = (channels / self.group, outputs / self.group);
        for item in 0..shape[0] {
            // What each tap of each channel reads in each window: the factor of a product of matrices.
            let mut read = movement::reserve(channels * taps * windows)?;
            for channel in 0..channels {
                let data = &data[(item * channels + channel) * plane..][..plane];
                let group = item * self.offset_group + channel / per_offset_group;
                for (tap, at) in movement::coordinates(&kernel).enumerate() {
                    let row = group * taps + tap;
                    for (window, place) in movement::coordinates(&shape[2..]).enumerate() {
                        let place: SmallVec<[f64; 3]> = (0..count)
                            .map(|i| {
                                let regular = place[i] * axes[i].stride + at[i] * axes[i].dilation;
                                regular as f64 - axes[i].begin as f64
                                    + offsets[(row * count + i) * windows + window]
                            })
                            .collect();
                        let share = mask.as_ref().map_or(1.0, |mask| mask[row * windows + window]);
                        read.push(share * interpolate(data, lengths, &place));
                    }
                }
            }
            for group in 0..self.group {
                let rows = per_group * taps;
                let first = group * outputs_per_group;
                product::accumulate(
                    &mut out[(item * outputs + first) * windows..][..outputs_per_group * windows],
                    &weights[first * rows..][..outputs_per_group * rows],
                    &read[group * rows * windows..][..rows * windows],
                    rows,
                    windows,
                );
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        conv::convolution_operations(inputs.get(1).copied().flatten(), outputs.first().copied().flatten(), 1)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(78);
        let mut case = |name: &str, op: Self, x: &[usize], w: &[usize], more: &[bool]| {
            let axes = op.axes(&w[2..]).unwrap_or_default();
            let lengths: Vec<usize> =
                axes.iter().zip(&x[2..]).map(|(axis, &len)| axis.output(len, false)).collect();
            let taps = op.offset_group * w[2..].iter().product::<usize>();
            let of = |channels: usize| [&[x[0], channels], &lengths[..]].concat();
            let mut case = Case::new(
                name,
                op,
                [
                    numbers.tensor(ElementType::F32, x),
                    numbers.tensor(ElementType::F32, w),
                    numbers.floats(of(taps * lengths.len()), -1.5, 1.5),
                ],
            );
            case.inputs.extend(more.iter().enumerate().map(|(i, &there)| {
                let shape = if i == 0 { vec![w[0]] } else { of(taps) };
                there.then(|| numbers.floats(shape, 0.0, 1.0))
            }));
            case.with_constants(&[1])
        };
        let plain = Self { strides: vec![], dilations: vec![], pads: vec![], group: 1, offset_group: 1 };
        let padded = Self { pads: vec![1, 1, 1, 1], ..plain.clone() };
        let strided = Self {
            strides: vec![2, 1],
            dilations: vec![1, 2],
            pads: vec![1, 0, 1, 2],
            group: 2,
            offset_group: 2,
        };
        let volume = Self { pads: vec![0, 1, 0, 0, 1, 0], ..plain.clone() };
        vec![
            case("plain", plain.clone(), &[1, 2, 4, 5], &[3, 2, 2, 2], &[]),
            case("bias and mask", padded.clone(), &[2, 3, 5, 6], &[4, 3, 3, 3], &[true, true]),
            case("mask alone", padded, &[1, 2, 4, 4], &[2, 2, 3, 3], &[false, true]),
            case("groups", strided, &[2, 4, 6, 7], &[6, 2, 3, 2], &[true]),
            case("signal", plain.clone(), &[1, 2, 7], &[2, 2, 3], &[]),
            case("volume", volume, &[1, 2, 3, 3, 3], &[2, 2, 2, 2, 2], &[true]),
            case("no batch", plain, &[0, 2, 4, 5], &[3, 2, 2, 2], &[]),
        ]
    }
}
