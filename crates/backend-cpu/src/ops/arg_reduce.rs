//! Where the largest or smallest element along an axis is.

use armet_graph::ops::{ArgKind, ArgReduce};
use armet_kernels::reduce::{self as kernel, arg_reduce};
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{Element, ElementType};

use super::support::{around, axis, memory_axis, unquantized};
use crate::{Cpu, direct};

pub(crate) fn lower(cpu: Cpu, op: &ArgReduce, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<T: Element + Default + PartialOrd>(
        cpu: Cpu,
        wanted: kernel::ArgReduce,
        dims: (usize, usize, usize),
    ) -> Lowered {
        let isas = cpu.isas;
        direct(format!("arg_reduce_{}_{}", T::TYPE, isas.best()), move |b| {
            arg_reduce::<T>(isas, b.team(), wanted, dims, b.input(0), b.output(0));
        })
    }
    unquantized(node)?;
    let (shape, layout) = (node.shape(0)?, node.layout(0)?);
    let at = axis(op.axis, shape.len())?;
    // The result is plain: what is left of the input must lie as it does.
    let left = layout.permutation(shape.len());
    if !left.iter().copied().filter(|&axis| axis != at && shape[axis] != 1).is_sorted() {
        return Err(Unsupported::Layout(layout));
    }
    let dims = around(&layout.physical(&shape), memory_axis(at, shape.len(), layout));
    let wanted = kernel::ArgReduce { smallest: op.kind == ArgKind::Min, last: op.select_last_index };
    match node.element(0)? {
        ElementType::F32 => Ok(typed::<f32>(cpu, wanted, dims)),
        ElementType::F64 => Ok(typed::<f64>(cpu, wanted, dims)),
        ElementType::I64 => Ok(typed::<i64>(cpu, wanted, dims)),
        ElementType::I32 => Ok(typed::<i32>(cpu, wanted, dims)),
        ElementType::I8 => Ok(typed::<i8>(cpu, wanted, dims)),
        ElementType::U8 => Ok(typed::<u8>(cpu, wanted, dims)),
        other => Err(Unsupported::ElementType(other)),
    }
}
