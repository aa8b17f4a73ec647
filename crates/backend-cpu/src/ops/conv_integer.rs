//! Convolutions of 8-bit integers, summed in int32.

use std::sync::Arc;

use armet_graph::ops::ConvInteger;
use armet_kernels::conv_int8::{ConvInt8, ConvInt8Options, PackedConvInt8};
use armet_kernels::gemm_int8::{Int8Epilogue, Int8Output, Int8Slice, Stage};
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::conv::{channels_last, conv_shape};
use super::quantized::with_slice;
use crate::{Cpu, packed};

pub(crate) fn lower(cpu: Cpu, op: &ConvInteger, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let (x, y) = (node.shape(0)?, node.output_shape(0)?);
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("weights"))?.clone();
    let shape = conv_shape(&op.conv, &x, weights.shape())?;
    channels_last(node.layout(0)?, &x)?;
    channels_last(node.output_layout(0)?, &y)?;
    let signed = match node.element(0)? {
        ElementType::I8 => true,
        ElementType::U8 => false,
        other => return Err(Unsupported::ElementType(other)),
    };
    if !matches!(weights.element(), ElementType::I8 | ElementType::U8) {
        return Err(Unsupported::ElementType(weights.element()));
    }
    // The zero point of the data comes from their own quantization in each run, one for the whole tensor.
    if node.has_input(2) && node.shape(2)?.elements() != 1 {
        return Err(Unsupported::Quantization("the data have several zero points".into()));
    }
    let zeros: Vec<i32> = match node.constant(3) {
        Some(tensor) => {
            let ints = tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))?;
            ints.into_iter().map(|zero| zero as i32).collect()
        }
        None if node.has_input(3) => return Err(Unsupported::NotConstant("zero point of the weights")),
        None => Vec::new(),
    };
    let zeros = if zeros.iter().all(|&zero| zero == 0) { Vec::new() } else { zeros };
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let failed = |reason: String| CompileError::Backend { backend: Cpu::ID, node: name.clone(), reason };
        let form =
            format!("conv int8 groups {} dilation {} {zeros:?} {isas:?}", shape.groups, shape.dilation_w);
        let pack = context.packs.get(&weights, &form, || {
            let pack = |slice: Int8Slice<'_>| PackedConvInt8::pack(isas, &shape, slice, &zeros);
            with_slice(&weights, pack).map(Arc::new).map_err(|e| failed(e.to_string()))
        })?;
        let options = ConvInt8Options { is_input_signed: signed, ..ConvInt8Options::default() };
        let conv =
            ConvInt8::from_packed(Arc::clone(&pack), &shape, options).map_err(|e| failed(e.to_string()))?;
        let scratch = conv.scratch_length();
        Ok((format!("conv_{}", conv.packed().kernel()), scratch, move |b: &mut Bindings<'_>| {
            let zero = b.optional_bytes(2).and_then(|zero| zero.first().copied());
            let zero = zero.map_or(0, |zero| if signed { i32::from(zero as i8) } else { i32::from(zero) });
            let data = if signed { Int8Slice::I8(b.input(0)) } else { Int8Slice::U8(b.input(0)) };
            let epilogue = Int8Epilogue { bias: &[], stage: Stage::Raw };
            let (y, scratch) = (Int8Output::I32(b.output(0)), b.scratch());
            conv.run(b.team(), (data, zero), &epilogue, y, scratch);
        }))
    }))
}
