//! Softmax or its logarithm along an axis.

use armet_graph::ops::Softmax;
use armet_kernels::softmax as kernel;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout};

use super::support::{axis, memory_axis, same_layout, unquantized};
use crate::{Cpu, direct};

pub(crate) fn lower(cpu: Cpu, op: &Softmax, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    if op.flatten && layout != Layout::Plain {
        return Err(Unsupported::Layout(layout));
    }
    let memory = layout.physical(&shape);
    // Opsets below 13 allow the axis behind the last: softmax over nothing but the element itself.
    let at = match op.axis {
        a if a == shape.len() as i64 && op.flatten => shape.len(),
        a => memory_axis(axis(a, shape.len())?, shape.len(), layout),
    };
    let dims = if op.flatten {
        (memory[..at].iter().product(), memory[at..].iter().product(), 1)
    } else {
        (memory[..at].iter().product(), memory[at], memory[at + 1..].iter().product())
    };
    let function = if op.log { kernel::Softmax::Logarithm } else { kernel::Softmax::Probability };
    let isas = cpu.isas;
    Ok(direct(format!("softmax_f32_{}", isas.best()), move |b| {
        kernel::softmax(isas, b.team(), function, dims, b.input(0), b.output(0));
    }))
}
