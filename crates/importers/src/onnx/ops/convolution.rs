//! Convolutions.

use armet_graph::ops::window::AutoPad;
use armet_graph::ops::{Conv, ConvInteger, ConvTranspose};

use super::{Entry, onnx};
use crate::onnx::error::Reason;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("Conv", 1, |n| {
        let op = conv(n, 1)?;
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    onnx("ConvInteger", 10, |n| {
        let op = ConvInteger { conv: conv(n, 1)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    onnx("ConvTranspose", 1, transpose),
];

const AUTO_PADS: [(&str, AutoPad); 4] = [
    ("NOTSET", AutoPad::NotSet),
    ("SAME_UPPER", AutoPad::SameUpper),
    ("SAME_LOWER", AutoPad::SameLower),
    ("VALID", AutoPad::Valid),
];

/// How padding is chosen.
pub(super) fn auto_pad(n: &NodeReader<'_, '_>) -> Read<AutoPad> {
    n.choice("auto_pad", AutoPad::NotSet, &AUTO_PADS)
}

/// Steps of a window, which cannot be zero.
pub(super) fn steps(n: &NodeReader<'_, '_>, name: &'static str) -> Read<Vec<usize>> {
    let steps = n.sizes(name)?;
    if steps.contains(&0) {
        return Err(n.refuse(name, "must be positive").into());
    }
    Ok(steps)
}

/// The attributes of a convolution. The weights tell the size of the window, so the attribute for it is not needed.
/// `weights` is the index of their input.
pub(super) fn conv(n: &mut NodeReader<'_, '_>, weights: usize) -> Read<Conv> {
    let group = n.size_or("group", 1)?;
    if group == 0 {
        return Err(n.refuse("group", "must be positive").into());
    }
    let kernel = steps(n, "kernel_shape")?;
    if let Some(weights) = n.constant(weights)?
        && !kernel.is_empty()
        && weights.shape().get(2..) != Some(kernel.as_slice())
    {
        return Err(n.refuse("kernel_shape", "is not the shape of the weights").into());
    }
    Ok(Conv {
        strides: steps(n, "strides")?,
        dilations: steps(n, "dilations")?,
        pads: n.sizes("pads")?,
        auto_pad: auto_pad(n)?,
        group,
        activation: None,
    })
}

fn transpose(n: &mut NodeReader<'_, '_>) -> Read {
    let op = transposed_conv(n)?;
    let inputs = n.inputs(2)?;
    if inputs.len() > 3 {
        return Err(Reason::Input { index: 3, what: "is not taken" }.into());
    }
    n.emit(op, inputs)
}

/// The attributes of a transposed convolution.
pub(super) fn transposed_conv(n: &NodeReader<'_, '_>) -> Read<ConvTranspose> {
    let group = n.size_or("group", 1)?;
    if group == 0 {
        return Err(n.refuse("group", "must be positive").into());
    }
    n.ignore(&["kernel_shape"]);
    Ok(ConvTranspose {
        strides: steps(n, "strides")?,
        dilations: steps(n, "dilations")?,
        pads: n.sizes("pads")?,
        output_padding: n.sizes("output_padding")?,
        output_shape: n.sizes("output_shape")?,
        auto_pad: auto_pad(n)?,
        group,
        activation: None,
    })
}
