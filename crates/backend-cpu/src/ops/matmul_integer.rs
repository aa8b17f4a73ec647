//! Matrix products of 8-bit integers, summed in int32.

use armet_kernels::gemm_int8::{Int8Epilogue, Int8Output, Int8Slice, Stage, gemm_int8};
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Layout};

use super::quantized::pack_matrix;
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
    let signed = match node.element(0)? {
        ElementType::I8 => true,
        ElementType::U8 => false,
        other => return Err(Unsupported::ElementType(other)),
    };
    if !matches!(weights.element(), ElementType::I8 | ElementType::U8) {
        return Err(Unsupported::ElementType(weights.element()));
    }
    // The zero point of A comes from its own quantization in each run, one for the whole tensor.
    if node.has_input(2) && node.shape(2)?.elements() != 1 {
        return Err(Unsupported::Quantization("A has a zero point per row".into()));
    }
    let zeros: Vec<i32> = match node.constant(3) {
        Some(tensor) => {
            let ints = tensor.to_i64().ok_or(Unsupported::ElementType(tensor.element()))?;
            ints.into_iter().map(|z| z as i32).collect()
        }
        None if node.has_input(3) => return Err(Unsupported::NotConstant("zero point of B")),
        None => Vec::new(),
    };
    let zeros = if zeros.iter().all(|&z| z == 0) { Vec::new() } else { zeros };
    let m = a.elements() / k;
    let isas = cpu.isas;
    let name = node.node().name.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let matrix = pack_matrix(context, isas, &name, &weights, (k, n), (n, 1), &zeros)?;
        let scratch = matrix.scratch_length(m, signed);
        Ok((matrix.kernel().to_owned(), scratch, move |b: &mut Bindings<'_>| {
            let zero = b.optional_bytes(2).and_then(|z| z.first().copied());
            let zero = zero.map_or(0, |z| if signed { i32::from(z as i8) } else { i32::from(z) });
            let left = if signed { Int8Slice::I8(b.input(0)) } else { Int8Slice::U8(b.input(0)) };
            let epilogue = Int8Epilogue { bias: &[], stage: Stage::Raw };
            let (y, scratch) = (b.output::<i32>(0), b.scratch());
            gemm_int8(b.team(), m, (left, k, zero), &matrix, &epilogue, (Int8Output::I32(y), n), scratch);
        }))
    }))
}
