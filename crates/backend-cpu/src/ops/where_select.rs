//! Elements of one input or of the other.

use armet_kernels::elementwise::{self, Broadcast};
use armet_runtime::{Lowered, NodeView, Unsupported};

use super::support::{element_size, operand_shape, shapes, unquantized};
use crate::{Cpu, direct};

pub(crate) fn lower(cpu: Cpu, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    let layout = node.output_layout(0)?;
    let rank = node.output_shape(0)?.len();
    let operand = |index| operand_shape(node, index, rank, layout);
    let plan = Broadcast::new(&[&operand(0)?, &operand(1)?, &operand(2)?]).map_err(shapes)?;
    let isas = cpu.isas;
    // Elements are only moved, so their width is all that matters.
    match element_size(node.element(1)?)? {
        1 => Ok(direct("select_1", move |b| {
            elementwise::select::<u8>(
                isas,
                b.team(),
                &plan,
                b.bytes(0),
                (b.bytes(1), b.bytes(2)),
                b.output(0),
            );
        })),
        4 => Ok(direct("select_4", move |b| {
            elementwise::select::<u32>(
                isas,
                b.team(),
                &plan,
                b.bytes(0),
                (b.input(1), b.input(2)),
                b.output(0),
            );
        })),
        8 => Ok(direct("select_8", move |b| {
            elementwise::select::<u64>(
                isas,
                b.team(),
                &plan,
                b.bytes(0),
                (b.input(1), b.input(2)),
                b.output(0),
            );
        })),
        _ => Err(Unsupported::ElementType(node.element(1)?)),
    }
}
