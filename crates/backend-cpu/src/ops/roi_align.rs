//! Regions of pictures brought to one size.

use armet_graph::ops::RoiAlign;
use armet_kernels::layout::ChannelOrder;
use armet_kernels::sample::{Region, RegionAlign};
use armet_runtime::{Lowered, NodeView, RunError, Unsupported};
use armet_tensor::{ElementType, Layout};

use super::support::{same_layout, unquantized};
use crate::{Cpu, fallible};

pub(crate) fn lower(cpu: Cpu, op: &RoiAlign, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let layout = same_layout(node)?;
    for index in 1..3 {
        if node.layout(index)? != Layout::Plain {
            return Err(Unsupported::Layout(node.layout(index)?));
        }
    }
    let wanted = [ElementType::F32, ElementType::F32, ElementType::I64];
    for (index, wanted) in wanted.into_iter().enumerate() {
        if node.element(index)? != wanted {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    let shape = node.shape(0)?;
    let &[batch, channels, height, width] = shape.dims() else {
        return Err(Unsupported::Rank(shape.len()));
    };
    if u32::try_from(height * width).is_err() {
        return Err(Unsupported::Shapes("a plane has too many elements".into()));
    }
    let align = RegionAlign {
        batch,
        channels,
        size: [height, width],
        output: [op.output_height, op.output_width],
        sampling_ratio: op.sampling_ratio,
        scale: op.spatial_scale,
        max: op.max,
        half_pixel: op.half_pixel,
        order: if layout == Layout::Plain { ChannelOrder::First } else { ChannelOrder::Last },
    };
    let count = node.output_shape(0)?[0];
    let (isas, name) = (cpu.isas, node.node().name.clone());
    Ok(fallible(format!("roi_align_f32_{}", isas.best()), 0, move |b| {
        let (corners, pictures): (&[f32], &[i64]) = (b.input(1), b.input(2));
        let corners = corners.as_chunks::<4>().0;
        let region = |index: usize| Region { picture: pictures[index], corners: corners[index] };
        let y = b.output(0);
        align
            .run(isas, b.team(), (count, &region), b.input(0), y)
            .map_err(|e| RunError::Kernel { node: name.clone(), reason: e.to_string() })
    }))
}
