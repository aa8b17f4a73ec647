//! Matrix products.

use armet_graph::ops::{Det, Gemm, MatMul, MatMulInteger};

use super::{Entry, onnx};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("MatMul", 1, |n| {
        let inputs = n.inputs(2)?;
        n.emit(PLAIN, inputs)
    }),
    onnx("MatMulInteger", 10, |n| {
        let inputs = n.inputs(2)?;
        n.emit(MatMulInteger, inputs)
    }),
    onnx("Gemm", 1, gemm),
    onnx("Det", 11, |n| {
        let x = n.input(0)?;
        n.emit(Det, vec![Some(x)])
    }),
];

/// The plain product.
pub(super) const PLAIN: MatMul =
    MatMul { transpose_a: false, transpose_b: false, alpha: 1.0, activation: None };

/// Below version 7 an attribute allowed C to broadcast; now it always may.
fn gemm(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["broadcast"]);
    let op = attributes(n)?;
    let inputs = n.inputs(2)?;
    n.emit(op, inputs)
}

/// The attributes of a product of matrices.
pub(super) fn attributes(n: &NodeReader<'_, '_>) -> Read<Gemm> {
    Ok(Gemm {
        alpha: n.float_or("alpha", 1.0)?,
        beta: n.float_or("beta", 1.0)?,
        transpose_a: n.flag("transA", false)?,
        transpose_b: n.flag("transB", false)?,
    })
}
