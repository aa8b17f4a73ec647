//! Beginnings of sequences turned around.

use armet_graph::ops::ReverseSequence;
use armet_kernels::gather::{Index, Reversal};
use armet_runtime::{Bindings, Lowered, NodeView, RunError, Unsupported};
use armet_tensor::{Element, ElementType};

use super::support::{element_size, plain, same_storage, shapes};
use crate::fallible;

pub(crate) fn lower(op: &ReverseSequence, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    fn typed<I: Element + Index>(node: NodeView<'_>, reversal: Reversal, size: usize) -> Lowered {
        let name = node.node().name.clone();
        fallible(format!("reverse_sequence_{size}"), 0, move |b: &mut Bindings<'_>| {
            let y = b.output_bytes(0);
            reversal
                .run::<I>(b.team(), b.input(1), b.bytes(0), y)
                .map_err(|e| RunError::Kernel { node: name.clone(), reason: e.to_string() })
        })
    }
    same_storage(node)?;
    plain(node)?;
    let shape = node.shape(0)?;
    let (batch, time) = op.axes(shape.len()).map_err(shapes)?;
    let size = element_size(node.element(0)?)?;
    let behind = batch.max(time) + 1;
    let rows = |axis: usize| shape[axis + 1..behind].iter().product::<usize>();
    let reversal = Reversal {
        batch: (shape[batch], rows(batch)),
        time: (shape[time], rows(time)),
        row: shape[behind..].iter().product::<usize>() * size,
    };
    match node.element(1)? {
        ElementType::I64 => Ok(typed::<i64>(node, reversal, size)),
        ElementType::I32 => Ok(typed::<i32>(node, reversal, size)),
        other => Err(Unsupported::ElementType(other)),
    }
}
