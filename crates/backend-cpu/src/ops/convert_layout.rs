//! The same tensor laid out otherwise.

use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::element_size;
use super::transpose::permute;

pub(crate) fn lower(node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let shape = node.shape(0)?;
    let rank = shape.len();
    let size = element_size(node.element(0)?)?;
    let (from, to) = (node.layout(0)?, node.output_layout(0)?);
    let order = from.permutation(rank);
    let memory: Vec<usize> =
        to.permutation(rank).iter().map(|&axis| order.iter().position(|&a| a == axis).unwrap_or(0)).collect();
    permute(&from.physical(&shape), &memory, size)
}
