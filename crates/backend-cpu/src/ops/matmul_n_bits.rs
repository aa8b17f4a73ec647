//! Products by weights of few bits, which stay packed in memory.

use armet_graph::ops::{MatMulNBits, numbers};
use armet_kernels::nbits::{Prepared, Sizes, Weights};
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Tensor};

use super::support::{plain, shapes, unquantized};
use crate::{Cpu, packed};

pub(crate) fn lower(cpu: Cpu, op: &MatMulNBits, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    for index in [0, 4].into_iter().filter(|&index| node.has_input(index)) {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    if node.shape(1)?.elements() == 0 {
        return Err(shapes("there are no weights"));
    }
    let constant = |index: usize, what| node.constant(index).ok_or(Unsupported::NotConstant(what));
    let single = |numbers: Vec<f64>| -> Vec<f32> { numbers.into_iter().map(|v| v as f32).collect() };
    let scales = single(numbers::to_f64(constant(2, "scales")?).map_err(shapes)?);
    let given: Option<&Tensor> = if node.has_input(3) { Some(constant(3, "zero points")?) } else { None };
    let zeros = single(op.zeros(given).map_err(shapes)?);
    let sizes = Sizes { rows: op.rows, columns: op.columns, bits: op.bits, block: op.block };
    let m = node.shape(0)?.elements() / op.rows;
    let has_bias = node.has_input(4);
    let prepared = Prepared::new(cpu.isas, sizes);
    Ok(packed(move |context: &CompileContext<'_>| {
        let scratch = prepared.scratch_len(m, context.threads) * size_of::<f32>();
        Ok((prepared.kernel_name(), scratch, move |b: &mut Bindings<'_>| {
            let weights = Weights { packed: b.bytes(1), scales: &scales, zeros: &zeros };
            let bias = if has_bias { Some(b.input(4)) } else { None };
            let (y, scratch) = (b.output(0), b.scratch());
            prepared.run(b.team(), m, b.input(0), weights, bias, y, scratch);
        }))
    }))
}
