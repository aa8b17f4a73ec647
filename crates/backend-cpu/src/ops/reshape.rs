//! Other shapes for the same bytes: Reshape, Flatten, Squeeze, Unsqueeze, Identity.

use armet_graph::Op;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::Layout;

use super::support::same_storage;

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let (from, to) = (node.layout(0)?, node.output_layout(0)?);
    let identity = matches!(node.node().op, Op::Identity(_)) && from == to;
    if !identity && (from != Layout::Plain || to != Layout::Plain) {
        return Err(Unsupported::Layout(from));
    }
    node.shape(0)?;
    Ok(Lowered::Alias)
}
