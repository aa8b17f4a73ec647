//! Adds or removes margins.

use armet_graph::ops::{Pad, PadMode};
use armet_kernels::transpose as kernel;
use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{axis, element_size, memory_axis, same_layout, same_storage, shapes};
use crate::direct;

pub(crate) fn lower(op: &Pad, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    if node.input(0)?.quantization.is_some() && op.mode == PadMode::Constant {
        return Err(Unsupported::Quantization("the padding value is a real number".into()));
    }
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let (rank, size) = (shape.len(), element_size(node.element(0)?)?);
    let ints = |index: usize, what| -> Result<Vec<i64>, Unsupported> {
        let tensor = node.constant(index).ok_or(Unsupported::NotConstant(what))?;
        tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))
    };
    let pads = ints(1, "pads")?;
    let axes = if node.has_input(3) { ints(3, "axes")? } else { (0..rank as i64).collect() };
    if pads.len() != 2 * axes.len() {
        return Err(Unsupported::Shapes("pads must have two entries for each axis".into()));
    }
    let (mut before, mut after) = (vec![0isize; rank], vec![0isize; rank]);
    for (index, &given) in axes.iter().enumerate() {
        let at = memory_axis(axis(given, rank)?, rank, layout);
        before[at] = isize::try_from(pads[index]).unwrap_or(isize::MAX / 4);
        after[at] = isize::try_from(pads[index + axes.len()]).unwrap_or(isize::MAX / 4);
    }
    let mode = match op.mode {
        PadMode::Constant => kernel::PadMode::Constant,
        PadMode::Reflect => kernel::PadMode::Reflect,
        PadMode::Edge => kernel::PadMode::Edge,
        PadMode::Wrap => kernel::PadMode::Wrap,
    };
    let copy = kernel::Pad::new(&layout.physical(&shape), &before, &after, mode, size).map_err(shapes)?;
    Ok(direct(format!("pad_{size}"), move |b| {
        let zero = [0u8; 16];
        let fill = b.optional_bytes(2).filter(|f| f.len() == size).unwrap_or(&zero[..size]);
        copy.run(b.team(), b.bytes(0), fill, b.output_bytes(0));
    }))
}
