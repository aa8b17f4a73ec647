//! Channels to blocks of pixels and back: permutations of six axes.

use armet_graph::ops::{DepthToSpace, SpaceToDepth};
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::Layout;

use super::support::{element_size, same_layout, same_storage};
use super::transpose::permute;

/// The copy that takes the axes `split` of the input in the order `perm`.
fn lowered(node: NodeView<'_>, split: [usize; 6], perm: [usize; 6]) -> Result<Lowered, Unsupported> {
    permute(&split, &perm, element_size(node.element(0)?)?)
}

/// Layout and logical lengths of the data, and the side of a block, which is not zero.
fn check(node: NodeView<'_>, side: usize) -> Result<(Layout, [usize; 4]), Unsupported> {
    same_storage(node)?;
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let lengths = <[usize; 4]>::try_from(shape.dims()).map_err(|_| Unsupported::Rank(shape.len()))?;
    if side == 0 { Err(Unsupported::Shapes("blocks have no side".into())) } else { Ok((layout, lengths)) }
}

pub(crate) fn lower(op: &DepthToSpace, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let side = op.block_size;
    let (layout, [n, c, h, w]) = check(node, side)?;
    let kept = c / (side * side);
    match (layout, op.column_row_depth) {
        (Layout::Plain, false) => lowered(node, [n, side, side, kept, h, w], [0, 3, 4, 1, 5, 2]),
        (Layout::Plain, true) => lowered(node, [n, kept, side, side, h, w], [0, 1, 4, 2, 5, 3]),
        (Layout::ChannelsLast, false) => lowered(node, [n, h, w, side, side, kept], [0, 1, 3, 2, 4, 5]),
        (Layout::ChannelsLast, true) => lowered(node, [n, h, w, kept, side, side], [0, 1, 4, 2, 5, 3]),
    }
}

pub(crate) fn lower_back(op: &SpaceToDepth, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let side = op.block_size;
    let (layout, [n, c, h, w]) = check(node, side)?;
    let (rows, columns) = (h / side, w / side);
    match (layout, op.column_row_depth) {
        (Layout::Plain, false) => lowered(node, [n, c, rows, side, columns, side], [0, 3, 5, 1, 2, 4]),
        (Layout::Plain, true) => lowered(node, [n, c, rows, side, columns, side], [0, 1, 3, 5, 2, 4]),
        (Layout::ChannelsLast, false) => lowered(node, [n, rows, side, columns, side, c], [0, 1, 3, 2, 4, 5]),
        (Layout::ChannelsLast, true) => lowered(node, [n, rows, side, columns, side, c], [0, 1, 3, 5, 2, 4]),
    }
}
