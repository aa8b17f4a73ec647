//! Matrix products: weights packed once when they are known, otherwise packed in each run.

use armet_graph::ops::{Gemm, MatMul};
use armet_kernels::gemm::{self, MatMulOperand, PackedMatrix};
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Shape, Tensor, strides};

use super::epilogue::Fused;
use super::quantized::{self, is_quantized};
use super::support::unquantized;
use crate::{Cpu, packed};

/// A batch of matrices: leading dimensions, rows, columns, and the strides of the last two.
struct Matrices {
    batch: Vec<usize>,
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

fn matrices(shape: &Shape, transposed: bool, left: bool) -> Matrices {
    // NumPy: a vector is a row on the left and a column on the right.
    let (batch, rows, columns) = match shape.dims() {
        [] => (vec![], 1, 1),
        [n] if left => (vec![], 1, *n),
        [n] => (vec![], *n, 1),
        [batch @ .., rows, columns] => (batch.to_vec(), *rows, *columns),
    };
    if transposed && shape.len() > 1 {
        Matrices { batch, rows: columns, columns: rows, row_stride: 1, column_stride: columns }
    } else {
        Matrices { batch, rows, columns, row_stride: columns, column_stride: 1 }
    }
}

fn only_f32(node: NodeView<'_>) -> Result<(), Unsupported> {
    unquantized(node)?;
    for index in [0, 1] {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    Ok(())
}

pub(crate) fn lower(cpu: Cpu, op: &MatMul, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    if is_quantized(node) {
        return quantized::matmul(cpu, op, node);
    }
    only_f32(node)?;
    let (a_shape, b_shape) = (node.shape(0)?, node.shape(1)?);
    let a = matrices(&a_shape, op.transpose_a, true);
    let b = matrices(&b_shape, op.transpose_b, false);
    if a.columns != b.rows {
        return Err(Unsupported::Shapes(format!("inner lengths {} and {} differ", a.columns, b.rows)));
    }
    let fused = Fused::new(node, op.activation, b.columns)?;
    let one_matrix = b.batch.iter().product::<usize>() == 1;
    let flat = a.column_stride == 1 && b.batch.len() <= a.batch.len().max(1);
    if let (Some(weights), true, true) = (node.constant(1), one_matrix, flat) {
        let m = a.batch.iter().product::<usize>() * a.rows;
        return Ok(constant(cpu, weights.clone(), m, b, op.alpha, fused));
    }
    batched(cpu, a, b, op.alpha, fused)
}

/// The product with one constant matrix: all rows of A at once.
fn constant(cpu: Cpu, weights: Tensor, m: usize, b: Matrices, alpha: f32, fused: Fused) -> Lowered {
    let (k, n) = (b.rows, b.columns);
    let isas = cpu.isas;
    packed(move |context: &CompileContext<'_>| {
        let form = format!("gemm {k}x{n} {} {} {alpha} {isas:?}", b.row_stride, b.column_stride);
        let matrix = context.packs.get(&weights, &form, || -> Result<_, CompileError> {
            let mut values = weights.expect::<f32>();
            if alpha != 1.0 {
                values.to_mut().iter_mut().for_each(|v| *v *= alpha);
            }
            Ok(PackedMatrix::pack(isas, k, n, &values, b.row_stride, b.column_stride))
        })?;
        let kernel = matrix.kernel_name().to_owned();
        Ok((kernel, 0, move |b: &mut Bindings<'_>| {
            let epilogue = fused.epilogue(b);
            gemm::gemm(b.team(), m, b.input(0), k, &matrix, b.output(0), n, &epilogue);
        }))
    })
}

/// Products whose right side is not known before running, or differs along the batch.
fn batched(cpu: Cpu, a: Matrices, b: Matrices, alpha: f32, fused: Fused) -> Result<Lowered, Unsupported> {
    let batch = Shape::broadcast(&a.batch, &b.batch)
        .ok_or_else(|| Unsupported::Shapes("batch dimensions do not broadcast".into()))?;
    let (m, k, n) = (a.rows, a.columns, b.columns);
    let starts = |own: &[usize], size: usize, index: usize| -> usize {
        let (out, own_strides) = (strides(&batch), strides(own));
        let offset = batch.len() - own.len();
        let at = |i: usize| if own[i] == 1 { 0 } else { index / out[i + offset] % batch[i + offset] };
        (0..own.len()).map(|i| at(i) * own_strides[i]).sum::<usize>() * size
    };
    let offsets: Vec<[usize; 3]> = (0..batch.elements())
        .map(|i| [starts(&a.batch, m * k, i), starts(&b.batch, k * n, i), i * m * n])
        .collect();
    let transposed = a.column_stride != 1 && k > 1;
    let product = gemm::MatMul::new(cpu.isas, m, k, n, transposed);
    Ok(packed(move |context: &CompileContext<'_>| {
        let scratch = product.scratch_len(context.threads) * size_of::<f32>();
        Ok((product.kernel_name().to_owned(), scratch, move |bind: &mut Bindings<'_>| {
            let epilogue = fused.epilogue(bind);
            let left = MatMulOperand {
                data: bind.input(0),
                row_stride: a.row_stride,
                column_stride: a.column_stride,
            };
            let right = MatMulOperand {
                data: bind.input(1),
                row_stride: b.row_stride,
                column_stride: b.column_stride,
            };
            let (y, scratch) = (bind.output(0), bind.scratch());
            product.run(bind.team(), alpha, left, right, y, n, &offsets, &epilogue, scratch);
        }))
    }))
}

/// `alpha * A' * B' + beta * C`; passes turn most into `MatMul`.
pub(crate) fn lower_gemm(cpu: Cpu, op: &Gemm, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    only_f32(node)?;
    if node.has_input(2) {
        let n = node.output_shape(0)?.last().copied().unwrap_or(0);
        let bias = node.shape(2)?;
        if op.beta != 1.0 || bias.elements() != n || bias.last() != Some(&n) {
            return Err(Unsupported::Shapes("C is no vector with one element per column".into()));
        }
    }
    let as_matmul = MatMul {
        transpose_a: op.transpose_a,
        transpose_b: op.transpose_b,
        alpha: op.alpha,
        activation: None,
    };
    lower(cpu, &as_matmul, node)
}
