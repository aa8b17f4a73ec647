//! Normalization of groups of channels of each item.

use armet_graph::ops::InstanceNormalization;
use armet_kernels::layout::ChannelOrder;
use armet_kernels::normalize::GroupNorm;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout};

use super::support::{same_layout, unquantized};
use crate::{Cpu, direct};

pub(crate) fn lower(
    cpu: Cpu,
    op: &InstanceNormalization,
    node: NodeView<'_>,
) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let layout = same_layout(node)?;
    let shape = node.shape(0)?;
    if node.element(0)? != ElementType::F32 {
        return Err(Unsupported::ElementType(node.element(0)?));
    }
    let [batch, channels, spatial @ ..] = shape.dims() else { return Err(Unsupported::Rank(shape.len())) };
    for index in [1, 2] {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
        if node.shape(index)?.elements() != *channels {
            return Err(Unsupported::Shapes("scale and bias are not one per channel".into()));
        }
    }
    let groups = op.groups.unwrap_or(*channels);
    if groups == 0 || channels % groups != 0 {
        return Err(Unsupported::Attribute { name: "num_groups", value: groups.to_string() });
    }
    let norm = GroupNorm {
        batch: *batch,
        channels: *channels,
        spatial: spatial.iter().product(),
        groups,
        epsilon: op.epsilon,
        order: if layout == Layout::Plain { ChannelOrder::First } else { ChannelOrder::Last },
    };
    let isas = cpu.isas;
    Ok(direct(format!("group_norm_f32_{}", isas.best()), move |b| {
        norm.run(isas, b.team(), b.input(0), b.input(1), b.input(2), b.output(0));
    }))
}
