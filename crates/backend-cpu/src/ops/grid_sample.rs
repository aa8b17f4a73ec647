//! Sampling at given places.

use armet_graph::ops::{GridMode, GridPadding, GridSample};
use armet_kernels::layout::ChannelOrder;
use armet_kernels::sample as kernel;
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout};

use super::support::{same_layout, unquantized};
use crate::{Cpu, direct_with_scratch};

pub(crate) fn lower(cpu: Cpu, op: &GridSample, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let layout = same_layout(node)?;
    if node.layout(1)? != Layout::Plain {
        return Err(Unsupported::Layout(node.layout(1)?));
    }
    for index in 0..2 {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    let (shape, output) = (node.shape(0)?, node.output_shape(0)?);
    if !(3..=5).contains(&shape.len()) {
        return Err(Unsupported::Rank(shape.len()));
    }
    if u32::try_from(shape[2..].iter().product::<usize>()).is_err() {
        return Err(Unsupported::Shapes("a plane has too many elements".into()));
    }
    let sample = kernel::GridSample {
        batch: shape[0],
        channels: shape[1],
        lengths: shape[2..].iter().copied().collect(),
        places: output[2..].iter().product(),
        interpolation: match op.mode {
            GridMode::Nearest => kernel::GridInterpolation::Nearest,
            GridMode::Linear => kernel::GridInterpolation::Linear,
            GridMode::Cubic => kernel::GridInterpolation::Cubic,
        },
        padding: match op.padding {
            GridPadding::Zeros => kernel::GridPadding::Zeros,
            GridPadding::Border => kernel::GridPadding::Border,
            GridPadding::Reflection => kernel::GridPadding::Reflection,
        },
        align_corners: op.align_corners,
        order: if layout == Layout::Plain { ChannelOrder::First } else { ChannelOrder::Last },
    };
    let isas = cpu.isas;
    let scratch = sample.scratch_length() * size_of::<u64>();
    Ok(direct_with_scratch(format!("grid_sample_f32_{}", isas.best()), scratch, move |b| {
        let (y, scratch) = (b.output(0), b.scratch());
        sample.run(isas, b.team(), b.input(0), b.input(1), y, scratch);
    }))
}
