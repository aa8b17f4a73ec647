//! Elements limited to a range that arrives at run time.

use armet_kernels::elementwise::{NumberUnary, unary_number};
use armet_runtime::{Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::support::{same_layout, unquantized};
use crate::{Cpu, direct};

pub(crate) fn lower(cpu: Cpu, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    same_layout(node)?;
    let element = node.element(0)?;
    if element != ElementType::F32 {
        return Err(Unsupported::ElementType(element));
    }
    let isas = cpu.isas;
    Ok(direct(format!("clip_f32_{}", isas.best()), move |b| {
        let limit = |index: usize, otherwise: f32| {
            b.optional_input::<f32>(index).and_then(|v| v.first().copied()).unwrap_or(otherwise)
        };
        let (min, max) = (limit(1, f32::MIN), limit(2, f32::MAX));
        let y = b.output(0);
        unary_number::<f32>(isas, b.team(), NumberUnary::Clip { min, max }, b.input(0), y);
    }))
}
