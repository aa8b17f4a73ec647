//! Convolutions of 8-bit integers, summed in int32.

use armet_graph::ops::ConvInteger;
use armet_kernels::gemm_int8::{Int8Epilogue, Int8Output, Stage};
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};

use super::conv::{channels_last, conv_shape};
use super::quantized::{Integers, prepare_conv};
use crate::{Cpu, packed};

pub(crate) fn lower(cpu: Cpu, op: &ConvInteger, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let (x, y) = (node.shape(0)?, node.output_shape(0)?);
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("weights"))?.clone();
    let shape = conv_shape(&op.conv, &x, weights.shape())?;
    channels_last(node.layout(0)?, &x)?;
    channels_last(node.output_layout(0)?, &y)?;
    let integers =
        Integers::of(node, &weights, "the data have several zero points", "zero point of the weights")?;
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let conv = prepare_conv(context, isas, &name, &weights, &shape, &integers.zeros, integers.signed)?;
        let scratch = conv.scratch_length();
        Ok((format!("conv_{}", conv.packed().kernel()), scratch, move |b: &mut Bindings<'_>| {
            let data = integers.data(b);
            let epilogue = Int8Epilogue { bias: &[], stage: Stage::Raw };
            let (y, scratch) = (Int8Output::I32(b.output(0)), b.scratch());
            conv.run(b.team(), data, &epilogue, y, scratch);
        }))
    }))
}
