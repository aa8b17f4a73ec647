//! Convolution with moved taps: what they read is gathered for some windows at a time, and multiplied with the weights.

use std::sync::Arc;

use armet_graph::ops::DeformConv;
use armet_kernels::epilogue::Epilogue;
use armet_kernels::gemm::{self, PackedMatrix};
use armet_kernels::sample::DeformTaps;
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout, Tensor};

use super::conv::channels_last;
use super::support::unquantized;
use crate::{Cpu, packed};

/// Windows whose taps are gathered together.
const WINDOWS: usize = 256;

/// Two numbers of an attribute, which is empty where both are the usual one.
fn pair(list: &[usize], usual: usize) -> Result<[usize; 2], Unsupported> {
    match *list {
        [] => Ok([usual; 2]),
        [a, b] | [a, b, _, _] => Ok([a, b]),
        _ => Err(Unsupported::Rank(list.len() + 2)),
    }
}

pub(crate) fn lower(cpu: Cpu, op: &DeformConv, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    for index in (0..5).filter(|&index| node.has_input(index)) {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
        if index > 0 && node.layout(index)? != Layout::Plain {
            return Err(Unsupported::Layout(node.layout(index)?));
        }
    }
    let (x, y) = (node.shape(0)?, node.output_shape(0)?);
    channels_last(node.layout(0)?, &x)?;
    channels_last(node.output_layout(0)?, &y)?;
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("weights"))?.clone();
    let (&[batch, channels, height, width], &[_, outputs, rows, columns], &[_, _, kernel_h, kernel_w]) =
        (x.dims(), y.dims(), weights.shape().dims())
    else {
        return Err(Unsupported::Rank(x.len()));
    };
    if channels == 0 || outputs == 0 || u32::try_from(height * width).is_err() {
        return Err(Unsupported::Shapes("no channels, or too many pixels".into()));
    }
    let taps = DeformTaps {
        channels,
        size: [height, width],
        output: [rows, columns],
        kernel: [kernel_h, kernel_w],
        strides: pair(&op.strides, 1)?,
        dilations: pair(&op.dilations, 1)?,
        begins: pair(&op.pads, 0)?,
        groups: op.group,
        offset_groups: op.offset_group,
    };
    let (windows, isas) = (rows * columns, cpu.isas);
    Ok(packed(move |context: &CompileContext<'_>| {
        let matrices = (0..taps.groups)
            .map(|group| pack(cpu, context, &weights, (taps.groups, group)))
            .collect::<Result<Vec<_>, CompileError>>()?;
        let together = WINDOWS.min(windows);
        let scratch = together * taps.row() * size_of::<f32>();
        let kernel = format!("deform_conv_f32_{}", isas.best());
        Ok((kernel, scratch, move |b: &mut Bindings<'_>| {
            let (x, offsets): (&[f32], &[f32]) = (b.input(0), b.input(2));
            let (bias, mask): (Option<&[f32]>, Option<&[f32]>) = (b.optional_input(3), b.optional_input(4));
            let (y, scratch): (&mut [f32], &mut [f32]) = (b.output(0), b.scratch());
            let (plane, moves) = (height * width * channels, offsets.len() / batch.max(1));
            for item in 0..batch {
                let x = &x[item * plane..][..plane];
                let offsets = &offsets[item * moves..][..moves];
                let mask = mask.map(|mask| &mask[item * moves / 2..][..moves / 2]);
                for first in (0..windows).step_by(WINDOWS) {
                    let count = WINDOWS.min(windows - first);
                    let read = &mut scratch[..count * taps.row()];
                    taps.read(isas, b.team(), first, x, (offsets, mask), read);
                    let y = &mut y[(item * windows + first) * outputs..][..count * outputs];
                    let (k, n) = (taps.row() / taps.groups, outputs / taps.groups);
                    for (group, matrix) in matrices.iter().enumerate() {
                        let bias = bias.map(|bias| &bias[group * n..][..n]);
                        let epilogue = Epilogue { bias, ..Epilogue::default() };
                        let (a, y) = (&read[group * k..], &mut y[group * n..]);
                        gemm::gemm(b.team(), count, a, taps.row(), matrix, y, outputs, &epilogue);
                    }
                }
            }
        }))
    }))
}

/// The weights of a group as a matrix: taps, in each the channels, by output channels.
fn pack(
    cpu: Cpu,
    context: &CompileContext<'_>,
    weights: &Tensor,
    (groups, group): (usize, usize),
) -> Result<Arc<PackedMatrix>, CompileError> {
    let isas = cpu.isas;
    context.packs.get(weights, &format!("deform group {group} of {groups} {isas:?}"), || {
        let shape = weights.shape();
        let (n, channels, taps) = (shape[0] / groups, shape[1], shape[2] * shape[3]);
        let values = weights.expect::<f32>();
        let own = &values[group * n * channels * taps..][..n * channels * taps];
        let mut turned = Vec::with_capacity(own.len());
        for output in own.chunks_exact(channels * taps) {
            for tap in 0..taps {
                turned.extend(output[tap..].iter().step_by(taps));
            }
        }
        let k = channels * taps;
        Ok::<_, CompileError>(PackedMatrix::pack(isas, k, n, &turned, 1, k))
    })
}
