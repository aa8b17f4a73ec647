//! Reductions over axes.

use armet_graph::ops::{Reduce, ReduceKind};
use armet_kernels::elementwise::Number;
use armet_kernels::reduce as kernel;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType, Layout};

use super::support::{axis, memory_axis, shapes, unquantized};
use crate::{Cpu, direct};

fn function(kind: ReduceKind) -> kernel::Reduce {
    use kernel::Reduce as K;
    match kind {
        ReduceKind::Sum => K::Sum,
        ReduceKind::Mean => K::Mean,
        ReduceKind::Max => K::Max,
        ReduceKind::Min => K::Min,
        ReduceKind::Prod => K::Prod,
        ReduceKind::L1 => K::L1,
        ReduceKind::L2 => K::L2,
        ReduceKind::SumSquare => K::SumSquare,
        ReduceKind::LogSum => K::LogSum,
        ReduceKind::LogSumExp => K::LogSumExp,
    }
}

pub(crate) fn lower(cpu: Cpu, op: &Reduce, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let shape = node.shape(0)?;
    let rank = shape.len();
    let layout = node.layout(0)?;
    let given = if node.has_input(1) {
        let tensor = node.constant(1).ok_or(Unsupported::NotConstant("axes"))?;
        tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))?
    } else {
        Vec::new()
    };
    let axes: Vec<usize> = if given.is_empty() {
        if op.noop_with_empty_axes {
            // Nothing is reduced, but what the reduction does to each element is still done.
            return match op.kind {
                ReduceKind::Sum | ReduceKind::Mean | ReduceKind::Max | ReduceKind::Min | ReduceKind::Prod => {
                    Ok(Lowered::Alias)
                }
                _ => Err(Unsupported::Attribute { name: "noop_with_empty_axes", value: "1".into() }),
            };
        }
        (0..rank).collect()
    } else {
        given.iter().map(|&a| axis(a, rank)).collect::<Result<_, _>>()?
    };
    let spatial_only = layout == Layout::ChannelsLast && op.keep_dims && node.output_layout(0)? == layout;
    if layout != Layout::Plain && !spatial_only {
        return Err(Unsupported::Layout(layout));
    }
    let memory: Vec<usize> = axes.iter().map(|&a| memory_axis(a, rank, layout)).collect();
    let memory_shape = layout.physical(&shape);
    match node.element(0)? {
        ElementType::F32 => lower_over(cpu, function(op.kind), &memory_shape, &memory),
        ElementType::I64 => numbers(cpu, op.kind, [0, 1, i64::MIN, i64::MAX], &memory_shape, &memory),
        ElementType::I32 => numbers(cpu, op.kind, [0, 1, i32::MIN, i32::MAX], &memory_shape, &memory),
        ElementType::U8 => numbers(cpu, op.kind, [0, 1, u8::MIN, u8::MAX], &memory_shape, &memory),
        ElementType::I8 => numbers(cpu, op.kind, [0, 1, i8::MIN, i8::MAX], &memory_shape, &memory),
        other => Err(Unsupported::ElementType(other)),
    }
}

/// A reduction of integers over axes in memory order; zero, one, and the least and greatest number are given.
fn numbers<T: Element + Number>(
    cpu: Cpu,
    kind: ReduceKind,
    [zero, one, least, greatest]: [T; 4],
    memory: &[usize],
    axes: &[usize],
) -> Result<Lowered, Unsupported> {
    use kernel::NumberReduce as K;
    let (function, neutral) = match kind {
        ReduceKind::Sum => (K::Sum, zero),
        ReduceKind::Prod => (K::Prod, one),
        ReduceKind::Max => (K::Max, least),
        ReduceKind::Min => (K::Min, greatest),
        ReduceKind::L1 => (K::L1, zero),
        ReduceKind::SumSquare => (K::SumSquare, zero),
        ReduceKind::Mean | ReduceKind::L2 | ReduceKind::LogSum | ReduceKind::LogSumExp => {
            return Err(Unsupported::ElementType(T::TYPE));
        }
    };
    let plan = kernel::Reduction::new(memory, axes).map_err(shapes)?;
    let isas = cpu.isas;
    Ok(direct(format!("reduce_{}_{}", T::TYPE, isas.best()), move |b| {
        kernel::reduce_number::<T>(isas, b.team(), function, &plan, neutral, b.input(0), b.output(0));
    }))
}

/// A reduction over axes in memory order.
pub(super) fn lower_over(
    cpu: Cpu,
    function: kernel::Reduce,
    memory: &[usize],
    axes: &[usize],
) -> Result<Lowered, Unsupported> {
    let plan = kernel::Reduction::new(memory, axes).map_err(shapes)?;
    let isas = cpu.isas;
    Ok(direct(format!("reduce_f32_{}", isas.best()), move |b| {
        kernel::reduce(isas, b.team(), function, &plan, b.input(0), b.output(0));
    }))
}
