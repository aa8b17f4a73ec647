//! Cuts a tensor along an axis.

use armet_graph::ops::Split;
use armet_kernels::transpose::Slice;
use armet_runtime::{Lowered, NodeView, Unsupported};
use smallvec::SmallVec;

use super::support::{axis, element_size, lie_in_a_row, memory_axis, same_layout, same_storage, shapes};
use crate::direct;

pub(crate) fn lower(op: &Split, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let first =
        (0..node.node().outputs.len()).find(|&i| node.output(i).is_ok()).ok_or(Unsupported::RunTimeShape)?;
    if first == 0 {
        same_layout(node)?;
    }
    same_storage(node)?;
    let layout = node.layout(0)?;
    let shape = node.shape(0)?;
    let (rank, size) = (shape.len(), element_size(node.element(0)?)?);
    let at = axis(op.axis, rank)?;
    let outputs = node.node().outputs.len();
    let lengths: Vec<usize> = if node.has_input(1) {
        let tensor = node.constant(1).ok_or(Unsupported::NotConstant("split"))?;
        let ints = tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))?;
        ints.into_iter().map(|n| usize::try_from(n).unwrap_or(0)).collect()
    } else {
        // Results that nobody wants may have been cut off, so the operator says how many parts there are.
        let part = shape[at].div_ceil(op.parts.max(1));
        (0..op.parts).map(|i| part.min(shape[at].saturating_sub(part * i))).collect()
    };
    let memory = layout.physical(&shape);
    let memory_at = memory_axis(at, rank, layout);
    let steps = vec![1isize; rank];
    let mut start = 0;
    let mut copies = Vec::with_capacity(outputs);
    let row: usize = memory[memory_at + 1..].iter().product::<usize>() * size;
    let mut offsets = SmallVec::new();
    for (index, &length) in lengths.iter().enumerate().take(outputs) {
        let mut starts = vec![0usize; rank];
        starts[memory_at] = start;
        let mut extents = memory.to_vec();
        extents[memory_at] = length;
        if node.output(index).is_ok() {
            if node.output_layout(index)? != layout {
                return Err(Unsupported::Layout(layout));
            }
            copies.push((index, Slice::new(&memory, &starts, &steps, &extents, size).map_err(shapes)?));
        }
        offsets.push(start * row);
        start += length;
    }
    let kernel = direct(format!("split_{size}"), move |b| {
        for (index, copy) in &copies {
            let y = b.output_bytes(*index);
            copy.run(b.team(), b.bytes(0), y);
        }
    });
    Ok(if lie_in_a_row(&memory, memory_at) { kernel.or_parts(offsets) } else { kernel })
}
