//! Convolution: weights packed once, the algorithm chosen by shape, bias, added tensor and activation in the store.

use std::sync::Arc;

use armet_graph::ops::Conv;
use armet_graph::ops::window::{self, Axis};
use armet_kernels::conv::{Algorithm, ConvOptions, ConvShape, Convolution, InputLayout, PackedConvolution};
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout, Shape};

use super::epilogue::Fused;
use super::quantized::{self, is_quantized};

use crate::{Cpu, packed};

/// The sizes of a convolution over one or two spatial axes; one axis is a picture of one row.
pub(super) fn conv_shape(op: &Conv, shape: &Shape, weights: &[usize]) -> Result<ConvShape, Unsupported> {
    let spatial =
        shape.len().checked_sub(2).filter(|n| (1..=2).contains(n)).ok_or(Unsupported::Rank(shape.len()))?;
    if weights.len() != shape.len() {
        return Err(Unsupported::Rank(weights.len()));
    }
    let at = |list: &[usize], i: usize, otherwise: usize| list.get(i).copied().unwrap_or(otherwise);
    let axis = |i: usize| {
        let axis = Axis {
            kernel: weights[i + 2],
            stride: at(&op.strides, i, 1),
            dilation: at(&op.dilations, i, 1),
            begin: at(&op.pads, i, 0),
            end: at(&op.pads, i + spatial, 0),
        };
        window::resolve(op.auto_pad, axis, shape[i + 2])
    };
    let point = Axis { kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0 };
    let (height, vertical) = if spatial == 2 { (shape[2], axis(0)) } else { (1, point) };
    let horizontal = axis(spatial - 1);
    if [vertical, horizontal].iter().any(|a| a.stride == 0 || a.dilation == 0 || a.kernel == 0) {
        return Err(Unsupported::Shapes("kernel sizes, strides and dilations must be positive".into()));
    }
    Ok(ConvShape {
        batch: shape[0],
        in_h: height,
        in_w: shape[spatial + 1],
        in_c: shape[1],
        out_c: weights[0],
        kernel_h: vertical.kernel,
        kernel_w: horizontal.kernel,
        stride_h: vertical.stride,
        stride_w: horizontal.stride,
        dilation_h: vertical.dilation,
        dilation_w: horizontal.dilation,
        pad_top: vertical.begin,
        pad_left: horizontal.begin,
        pad_bottom: vertical.end,
        pad_right: horizontal.end,
        groups: op.group,
    })
}

/// Whether values of this shape lie alike in both layouts: one channel, or one pixel.
pub(super) fn is_both(shape: &Shape) -> bool {
    shape.get(1) == Some(&1) || shape[2..].iter().product::<usize>() == 1
}

/// Refuses unless a value lies, or may be taken to lie, with its channels last.
pub(super) fn channels_last(layout: Layout, shape: &Shape) -> Result<(), Unsupported> {
    if layout == Layout::ChannelsLast || is_both(shape) { Ok(()) } else { Err(Unsupported::Layout(layout)) }
}

pub(crate) fn lower(cpu: Cpu, op: &Conv, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    if is_quantized(node) {
        return quantized::conv(cpu, op, node);
    }
    for index in [0, 1] {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    let (x, y) = (node.shape(0)?, node.output_shape(0)?);
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("weights"))?.clone();
    let shape = conv_shape(op, &x, weights.shape())?;
    channels_last(node.output_layout(0)?, &y)?;
    let first = node.layout(0)? == Layout::Plain && !is_both(&x);
    let input_layout = if first { InputLayout::ChannelsFirst } else { InputLayout::ChannelsLast };
    let options = ConvOptions { input_layout, ..ConvOptions::default() };
    let algorithm = Algorithm::choose(&shape, &options).map_err(|_| Unsupported::Layout(Layout::Plain))?;
    let fused = Fused::new(node, op.activation, shape.out_c)?;
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let failed = |reason: String| CompileError::Backend { backend: Cpu::ID, node: name.clone(), reason };
        // What the packing depends on; spatial sizes only through the algorithm.
        let form = format!("conv {algorithm:?} {input_layout:?} groups {} {isas:?}", shape.groups);
        let pack = || {
            PackedConvolution::pack(isas, algorithm, &shape, &options, &weights.expect::<f32>())
                .map(Arc::new)
                .map_err(|e| failed(e.to_string()))
        };
        let pack = context.packs.get(&weights, &form, pack)?;
        let conv = Convolution::from_packed(Arc::clone(&pack), &shape, options)
            .map_err(|e| failed(e.to_string()))?;
        let kernel = format!("{} {}", conv.kernel_name(), conv.algorithm_name());
        let scratch = conv.scratch_len(context.threads) * size_of::<f32>();
        Ok((kernel, scratch, move |b: &mut Bindings<'_>| {
            let epilogue = fused.epilogue(b);
            let (y, scratch) = (b.output(0), b.scratch());
            conv.run(b.team(), b.input(0), y, &epilogue, scratch);
        }))
    }))
}
