//! Matrix products of 8-bit integers, summed in int32.

use armet_kernels::gemm_int8::{Int8Epilogue, Int8Output, Stage, gemm_int8};
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};
use armet_tensor::Layout;

use super::quantized::{Integers, pack_matrix};
use crate::{Cpu, packed};

pub(crate) fn lower(cpu: Cpu, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    let weights = node.constant(1).ok_or(Unsupported::NotConstant("B"))?.clone();
    let a = node.shape(0)?;
    if node.layout(0)? != Layout::Plain {
        return Err(Unsupported::Layout(node.layout(0)?));
    }
    let &[k, n] = weights.shape().dims() else { return Err(Unsupported::Rank(weights.shape().len())) };
    if a.last() != Some(&k) || k == 0 {
        return Err(Unsupported::Shapes(format!("inner lengths {:?} and {k} differ", a.last())));
    }
    let integers = Integers::of(node, &weights, "A has a zero point per row", "zero point of B")?;
    let m = a.elements() / k;
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let matrix = pack_matrix(context, isas, &name, &weights, (k, n), (n, 1), &integers.zeros)?;
        let scratch = matrix.scratch_length(m, integers.signed);
        Ok((matrix.kernel().to_owned(), scratch, move |b: &mut Bindings<'_>| {
            let (left, zero) = integers.data(b);
            let epilogue = Int8Epilogue { bias: &[], stage: Stage::Raw };
            let (y, scratch) = (b.output::<i32>(0), b.scratch());
            gemm_int8(b.team(), m, (left, k, zero), &matrix, &epilogue, (Int8Output::I32(y), n), scratch);
        }))
    }))
}
