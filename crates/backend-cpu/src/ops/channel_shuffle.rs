//! Channels of several groups, one of each in turn: groups and their channels exchanged in memory.

use armet_graph::ops::ChannelShuffle;
use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{element_size, memory_axis, same_layout, same_storage};
use super::transpose::permute;

pub(crate) fn lower(op: &ChannelShuffle, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    let size = element_size(node.element(0)?)?;
    let channels = memory_axis(1, shape.len(), layout);
    let memory = layout.physical(&shape);
    let (before, behind) = (&memory[..channels], &memory[channels + 1..]);
    let groups = [op.groups, memory[channels] / op.groups];
    let whole: Vec<usize> = before.iter().chain(&groups).chain(behind).copied().collect();
    let mut perm: Vec<usize> = (0..whole.len()).collect();
    perm.swap(channels, channels + 1);
    permute(&whole, &perm, size)
}
