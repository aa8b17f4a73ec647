//! Pooling over all spatial axes.

use armet_graph::ops::{GlobalPool, PoolKind};
use armet_kernels::reduce::Reduce;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::quantized::{self, is_quantized};
use super::reduce::lower_over;
use super::support::memory_axis;
use crate::Cpu;

pub(crate) fn lower(cpu: Cpu, op: &GlobalPool, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    if is_quantized(node) {
        return quantized::global_average(cpu, op, node);
    }
    let shape = node.shape(0)?;
    let layout = node.layout(0)?;
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    // All spatial lengths of the result are one, so either layout of it is the same bytes.
    let axes: Vec<usize> = (2..shape.len()).map(|a| memory_axis(a, shape.len(), layout)).collect();
    let function = match op.kind {
        PoolKind::Average => Reduce::Mean,
        PoolKind::Max => Reduce::Max,
        PoolKind::Lp { p: 1 } => Reduce::L1,
        PoolKind::Lp { p: 2 } => Reduce::L2,
        PoolKind::Lp { p } => return Err(Unsupported::Attribute { name: "p", value: p.to_string() }),
    };
    lower_over(cpu, function, &layout.physical(&shape), &axes)
}
