//! Broadcasts to a shape.

use armet_kernels::transpose::Expansion;
use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{element_size, operand_shape, same_storage, shapes};
use crate::direct;

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let layout = node.output_layout(0)?;
    let output = node.output_memory_shape(0)?;
    let size = element_size(node.element(0)?)?;
    let input = operand_shape(node, 0, output.len(), layout)?;
    let copy = Expansion::new(&input, &output, size).map_err(shapes)?;
    Ok(direct(format!("expand_{size}"), move |b| copy.run(b.team(), b.bytes(0), b.output_bytes(0))))
}
