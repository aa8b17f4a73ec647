//! Which layouts the kernels want around each node.

use armet_graph::passes::{LayoutChoice, LayoutPreference};
use armet_graph::{Graph, Node, NodeId, Op};
use armet_tensor::Layout;

use crate::Cpu;

const CHANNELS_LAST: LayoutChoice =
    LayoutChoice::Required { input: Layout::ChannelsLast, output: Layout::ChannelsLast };

/// Most channels that a convolution reads from a plain picture.
const MOST_STEM_CHANNELS: usize = 4;

fn is_stem(graph: &Graph, node: &Node) -> bool {
    let Some(input) = node.input(0) else { return false };
    let channels = graph.value(input).ty.tensor().and_then(|t| t.dims.as_ref()?.get(1)?.fixed());
    graph.producer(input).is_none() && channels.is_some_and(|c| c <= MOST_STEM_CHANNELS)
}

impl LayoutPreference for Cpu {
    fn preference(&self, graph: &Graph, id: NodeId) -> LayoutChoice {
        let node = graph.node(id);
        let rank = node.input(0).and_then(|v| graph.value(v).ty.tensor()?.rank());
        match &node.op {
            // The first convolution reads pictures as they come.
            Op::Conv(op) if op.group == 1 && is_stem(graph, node) => {
                LayoutChoice::Required { input: Layout::Plain, output: Layout::ChannelsLast }
            }
            Op::DeformConv(_) if rank == Some(4) => CHANNELS_LAST,
            Op::Conv(_) | Op::ConvTranspose(_) | Op::ConvInteger(_)
                if rank.is_some_and(|r| r == 3 || r == 4) =>
            {
                CHANNELS_LAST
            }
            Op::Pool(op) if rank.is_some_and(|r| r == 3 || r == 4) && op.column_major => {
                LayoutChoice::PlainOnly
            }
            Op::Pool(_) if rank.is_some_and(|r| r == 3 || r == 4) && node.outputs.len() < 2 => CHANNELS_LAST,
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Concat(_)
            | Op::GlobalPool(_)
            | Op::Resize(_)
            | Op::GridSample(_)
            | Op::RoiAlign(_)
            | Op::ChannelShuffle(_)
            | Op::DepthToSpace(_)
            | Op::SpaceToDepth(_)
            | Op::Pad(_)
            | Op::Slice(_)
            | Op::Split(_)
            | Op::Requantize(_)
            | Op::Where(_)
            | Op::Clip(_)
            | Op::Cast(_)
            | Op::CastLike(_)
            | Op::Reshape(_)
            | Op::Identity(_) => LayoutChoice::Any,
            Op::Transpose(_) => LayoutChoice::AnyInput,
            // What is left of channels-last data without their channels is plain.
            Op::ArgReduce(op) if op.axis == 1 || rank.is_some_and(|r| op.axis == 1 - r as i64) => {
                LayoutChoice::AnyInput
            }
            _ => LayoutChoice::PlainOnly,
        }
    }
}
