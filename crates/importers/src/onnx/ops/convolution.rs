//! Convolutions.

use armet_graph::ops::window::AutoPad;
use armet_graph::ops::{Concat, Conv, ConvInteger, ConvTranspose, Pad, PadMode, Slice, Unary, UnaryKind};

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
    onnx("CausalConvWithState", 27, causal),
];

/// A convolution along time that sees the past, and the past that the next one will need.
fn causal(n: &mut NodeReader<'_, '_>) -> Read {
    let (none, swish) = (None, Some(UnaryKind::Swish { alpha: 1.0 }));
    let activation = n.choice("activation", none, &[("none", none), ("silu", swish), ("swish", swish)])?;
    let (x, w, bias, past) = (n.input(0)?, n.input(1)?, n.optional(2)?, n.optional(3)?);
    let shape = n.type_of(w).and_then(|ty| ty.shape());
    let shape = shape.as_ref().and_then(|shape| <[usize; 3]>::try_from(shape.dims()).ok());
    let Some([channels, _, kernel]) = shape.filter(|shape| !shape.contains(&0)) else {
        return Err(Reason::Input { index: 1, what: "must have a known shape of three axes" }.into());
    };
    let kept = kernel as i64 - 1;
    let whole = if let Some(past) = past {
        n.step("whole", Concat { axis: 2 }, vec![Some(past), Some(x)])
    } else {
        let pads = n.vector("past", &[0, 0, kept, 0, 0, 0]);
        n.step("whole", Pad { mode: PadMode::Constant }, vec![Some(x), Some(pads)])
    };
    let op = Conv { group: channels, ..Conv::default() };
    let y = n.output(0)?;
    let inputs = vec![Some(whole), Some(w), bias];
    if let Some(kind) = activation {
        let sum = n.step("sum", op, inputs);
        n.emit_to(Unary { kind }, vec![Some(sum)], &[y]);
    } else {
        n.emit_to(op, inputs, &[y]);
    }
    if n.wants(1) {
        // Counted from the end, zero entries are those behind all.
        let start = n.vector("start", &[if kept == 0 { i64::MAX } else { -kept }]);
        let (end, axis) = (n.vector("end", &[i64::MAX]), n.vector("axis", &[2i64]));
        let present = n.output(1)?;
        n.emit_to(Slice, vec![Some(whole), Some(start), Some(end), Some(axis)], &[present]);
    }
    Ok(())
}

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
    let group = n.size_or("group", 1)?;
    if group == 0 {
        return Err(n.refuse("group", "must be positive").into());
    }
    n.ignore(&["kernel_shape"]);
    let op = ConvTranspose {
        strides: steps(n, "strides")?,
        dilations: steps(n, "dilations")?,
        pads: n.sizes("pads")?,
        output_padding: n.sizes("output_padding")?,
        output_shape: n.sizes("output_shape")?,
        auto_pad: auto_pad(n)?,
        group,
        activation: None,
    };
    let inputs = n.inputs(2)?;
    if inputs.len() > 3 {
        return Err(Reason::Input { index: 3, what: "is not taken" }.into());
    }
    n.emit(op, inputs)
}
