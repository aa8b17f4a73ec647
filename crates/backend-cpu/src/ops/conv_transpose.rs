//! Transposed convolution, one product for each phase of the strides.

use std::sync::Arc;

use armet_graph::ops::ConvTranspose;
use armet_graph::ops::window::AutoPad;
use armet_kernels::conv_transpose as kernel;
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::conv::channels_last;
use super::epilogue::Fused;
use super::support::unquantized;
use crate::{Cpu, packed};

/// More phases than this have fewer taps than they cost to set up.
const MOST_PHASES: usize = 256;

pub(crate) fn lower(cpu: Cpu, op: &ConvTranspose, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    for index in [0, 1] {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    if op.auto_pad != AutoPad::NotSet || !op.output_shape.is_empty() {
        return Err(Unsupported::Attribute {
            name: "auto_pad or output_shape",
            value: op.auto_pad.name().into(),
        });
    }
    let (x, y) = (node.shape(0)?, node.output_shape(0)?);
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("weights"))?.clone();
    let w = weights.shape().clone();
    let spatial = x.len().checked_sub(2).filter(|n| (1..=2).contains(n)).ok_or(Unsupported::Rank(x.len()))?;
    if w.len() != x.len() {
        return Err(Unsupported::Rank(w.len()));
    }
    channels_last(node.layout(0)?, &x)?;
    channels_last(node.output_layout(0)?, &y)?;
    // One spatial axis is a picture of one row: the value for rows is then the neutral one.
    let row = |list: &[usize], i: usize, neutral: usize| match spatial {
        1 => neutral,
        _ => list.get(i).copied().unwrap_or(neutral),
    };
    let column = |list: &[usize], i: usize, neutral: usize| list.get(i).copied().unwrap_or(neutral);
    let last = spatial - 1;
    let shape = kernel::ConvTransposeShape {
        batch: x[0],
        in_h: if spatial == 2 { x[2] } else { 1 },
        in_w: x[last + 2],
        in_c: x[1],
        out_c: w[1] * op.group,
        kernel_h: if spatial == 2 { w[2] } else { 1 },
        kernel_w: w[last + 2],
        stride_h: row(&op.strides, 0, 1),
        stride_w: column(&op.strides, last, 1),
        dilation_h: row(&op.dilations, 0, 1),
        dilation_w: column(&op.dilations, last, 1),
        pad_top: row(&op.pads, 0, 0),
        pad_left: column(&op.pads, last, 0),
        pad_bottom: row(&op.pads, spatial, 0),
        pad_right: column(&op.pads, last + spatial, 0),
        output_padding_h: row(&op.output_padding, 0, 0),
        output_padding_w: column(&op.output_padding, last, 0),
        groups: op.group,
    };
    // Each pair of remainders by the strides has its own packed weights.
    if shape.stride_h.checked_mul(shape.stride_w).is_none_or(|phases| phases > MOST_PHASES) {
        return Err(Unsupported::Attribute { name: "strides", value: format!("{:?}", op.strides) });
    }
    if (spatial == 2 && shape.out_h() != y[2]) || shape.out_w() != y[last + 2] {
        return Err(Unsupported::Shapes("the result has another size than padding and strides give".into()));
    }
    let fused = Fused::new(node, op.activation, shape.out_c)?;
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let failed = |reason: String| CompileError::Backend { backend: Cpu::ID, node: name.clone(), reason };
        let form = format!(
            "conv_transpose groups {} strides {}x{} dilations {}x{} {isas:?}",
            shape.groups, shape.stride_h, shape.stride_w, shape.dilation_h, shape.dilation_w
        );
        let pack = context.packs.get(&weights, &form, || {
            let pack = kernel::PackedConvTranspose::pack(isas, &shape, &weights.expect::<f32>());
            pack.map(Arc::new).map_err(|e| failed(e.to_string()))
        })?;
        let options = kernel::ConvTransposeOptions::default();
        let conv = kernel::ConvTranspose::from_packed(Arc::clone(&pack), &shape, options)
            .map_err(|e| failed(e.to_string()))?;
        let scratch = conv.scratch_len(context.threads) * size_of::<f32>();
        let kernel = format!("{} {}", conv.kernel_name(), conv.algorithm_name());
        Ok((kernel, scratch, move |b: &mut Bindings<'_>| {
            let epilogue = fused.epilogue(b);
            let (y, scratch) = (b.output(0), b.scratch());
            conv.run(b.team(), b.input(0), y, &epilogue, scratch);
        }))
    }))
}
