//! Other shapes for the same bytes: Reshape, Flatten, Squeeze, Unsqueeze, Identity.

use armet_graph::Op;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::Layout;

use super::support::same_storage;

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let (from, to) = (node.layout(0)?, node.output_layout(0)?);
    let (input, output) = (node.shape(0)?, node.output_shape(0)?);
    // With channels last the bytes stay where they are as long as batch and channels do.
    let keeps_channels = input.len() > 2 && output.len() > 2 && input[..2] == output[..2];
    let plain = from == Layout::Plain && to == Layout::Plain;
    let kept = from == to && (keeps_channels || matches!(node.node().op, Op::Identity(_)));
    if plain || kept { Ok(Lowered::Alias) } else { Err(Unsupported::Layout(from)) }
}
