//! Joins tensors along an axis.

use armet_graph::ops::Concat;
use armet_kernels::transpose::Concatenation;
use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{axis, element_size, lie_in_a_row, memory_axis, same_storage, shapes};
use crate::direct;

pub(crate) fn lower(op: &Concat, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let layout = node.output_layout(0)?;
    let output = node.output_shape(0)?;
    let size = element_size(node.element(0)?)?;
    let at = axis(op.axis, output.len())?;
    let first = node.input(0)?;
    let mut extents = Vec::with_capacity(node.node().inputs.len());
    for index in 0..node.node().inputs.len() {
        let ty = node.input(index)?;
        if ty.element != first.element || ty.quantization.as_deref() != first.quantization.as_deref() {
            return Err(Unsupported::Quantization("inputs are quantized differently".into()));
        }
        if node.layout(index)? != layout {
            return Err(Unsupported::Layout(node.layout(index)?));
        }
        extents.push(node.shape(index)?[at]);
    }
    let memory = layout.physical(&output);
    let memory_at = memory_axis(at, output.len(), layout);
    let copy = Concatenation::new(&memory, memory_at, &extents, size).map_err(shapes)?;
    let kernel = direct(format!("concat_{size}"), move |b| {
        let y = b.output_bytes(0);
        for index in 0..copy.pieces() {
            copy.run_piece(index, b.team(), b.bytes(index), y);
        }
    });
    Ok(if lie_in_a_row(&memory, memory_at) { kernel.or_whole() } else { kernel })
}
