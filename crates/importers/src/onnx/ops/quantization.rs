//! Quantization as operators of its own.

use armet_graph::ops::{Cast, DequantizeLinear, DynamicQuantizeLinear, QuantizeLinear, Requantize};
use armet_tensor::ElementType;

use super::{Entry, microsoft, onnx};
use crate::onnx::error::Reason;
use crate::onnx::node::{NodeReader, Read};
use crate::onnx::values;

pub(super) const ENTRIES: &[Entry] = &[
    onnx("QuantizeLinear", 10, quantize),
    onnx("DequantizeLinear", 10, dequantize),
    onnx("DynamicQuantizeLinear", 11, |n| {
        let x = n.input(0)?;
        n.emit(DynamicQuantizeLinear, vec![Some(x)])
    }),
    microsoft("QuantizeLinear", quantize),
    microsoft("DequantizeLinear", dequantize),
];

fn quantize(n: &mut NodeReader<'_, '_>) -> Read {
    // Before version 23 nothing was said: single precision is closest to real numbers.
    let precision = if n.version() < 23 { Some(ElementType::F32) } else { n.element("precision")? };
    n.ignore(&["precision"]);
    let op = QuantizeLinear {
        axis: n.int_or("axis", 1)?,
        block_size: n.size_or("block_size", 0)?,
        element: n.element("output_dtype")?,
        saturate: n.flag("saturate", true)?,
        precision,
    };
    let inputs = n.inputs(2)?;
    n.emit(op, inputs)
}

/// A value that is typed with the same parameters already stands for the real numbers.
fn dequantize(n: &mut NodeReader<'_, '_>) -> Read {
    let op = DequantizeLinear { axis: n.int_or("axis", 1)?, block_size: n.size_or("block_size", 0)? };
    let wanted = n.element("output_dtype")?;
    let scale = n.constant(1)?;
    let zero = n.constant(2)?;
    if n.has_input(2) == zero.is_some()
        && let Some((typed, q)) = n.quantization(0)?
        && let Some(scale) = scale
        && scale.element() == ElementType::F32
        && values::quantization(&scale, zero.as_ref(), Some(op.axis), op.block_size).as_ref() == Some(&*q)
    {
        return n.emit(Requantize, vec![Some(typed)]);
    }
    let inputs = n.inputs(2)?;
    if inputs.len() > 3 {
        return Err(Reason::Input { index: 3, what: "is not taken" }.into());
    }
    match wanted {
        Some(to) if to != ElementType::F32 => {
            let real = n.step("real", op, inputs);
            n.emit(Cast { to, saturate: true }, vec![Some(real)])
        }
        _ => n.emit(op, inputs),
    }
}
