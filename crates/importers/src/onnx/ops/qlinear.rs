//! Operators on quantized tensors that name scale and zero point of every operand.
//!
//! Each becomes the ordinary operator on typed values (see [`crate::onnx::values`]). Parameters that are no constants
//! cannot be part of a type; then the operator stands between dequantization and quantization, which means the same.

use std::sync::Arc;

use armet_graph::ops::{
    Binary, BinaryKind, Concat, DequantizeLinear, Gemm, GlobalPool, PoolKind, QuantizeLinear, Reduce,
    ReduceKind, Softmax, Unary, UnaryKind, Where,
};
use armet_graph::{Op, ValueId};
use armet_tensor::{ElementType, Quantization, Tensor};

use super::convolution::conv;
use super::microsoft::{channels_first, channels_last};
use super::{Entry, microsoft, onnx, pooling, products};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};
use crate::onnx::values;

pub(super) const ENTRIES: &[Entry] = &[
    onnx("QLinearConv", 10, q_conv),
    onnx("QLinearMatMul", 10, q_matmul),
    microsoft("QGemm", q_gemm),
    microsoft("QLinearAdd", |n| q_binary(n, BinaryKind::Add)),
    microsoft("QLinearMul", |n| q_binary(n, BinaryKind::Mul)),
    microsoft("QLinearSigmoid", |n| q_unary(n, Unary { kind: UnaryKind::Sigmoid })),
    microsoft("QLinearLeakyRelu", |n| {
        let alpha = n.float_or("alpha", 0.01)?;
        q_unary(n, Unary { kind: UnaryKind::LeakyRelu { alpha } })
    }),
    microsoft("QLinearSoftmax", |n| {
        // The version of ONNX's own Softmax that it follows.
        let flatten = n.int_or("opset", 13)? < 13;
        let axis = n.int_or("axis", if flatten { 1 } else { -1 })?;
        q_unary(n, Softmax { axis, log: false, flatten })
    }),
    microsoft("QLinearGlobalAveragePool", |n| {
        let (x, _) = real(n, at(0))?;
        planes(n, GlobalPool { kind: PoolKind::Average }, vec![Some(x)], 3, 4)
    }),
    microsoft("QLinearAveragePool", |n| {
        let op = pooling::attributes(n, PoolKind::Average)?;
        let (x, _) = real(n, at(0))?;
        planes(n, op, vec![Some(x)], 3, 4)
    }),
    microsoft("QLinearConv", q_conv),
    microsoft("QLinearReduceMean", q_reduce_mean),
    microsoft("QLinearConcat", q_concat),
    microsoft("QLinearWhere", q_where),
];

/// Where an operand's tensor, scale and zero point are among the inputs.
#[derive(Clone, Copy)]
struct Operand {
    tensor: usize,
    scale: usize,
    zero: usize,
    /// Where scales differ when there are several.
    axis: Option<i64>,
}

/// Operands usually stand as three inputs in a row.
const fn at(first: usize) -> Operand {
    Operand { tensor: first, scale: first + 1, zero: first + 2, axis: None }
}

type Typed = (ElementType, Arc<Quantization>);

/// The type that constant parameters give.
fn parameters(
    n: &mut NodeReader<'_, '_>,
    scale: usize,
    zero: usize,
    axis: Option<i64>,
) -> Read<Option<Typed>> {
    let (scale, given) = (n.constant(scale)?, n.has_input(zero));
    let zero = n.constant(zero)?;
    let Some(scale) = scale.filter(|s| s.element() == ElementType::F32 && given == zero.is_some()) else {
        return Ok(None);
    };
    let element = zero.as_ref().map_or(ElementType::U8, Tensor::element);
    let q = values::quantization(&scale, zero.as_ref(), axis, 0);
    Ok(q.map(|q| (element, Arc::new(q))))
}

/// The real numbers of an operand, and its type when it is part of the value.
fn real(n: &mut NodeReader<'_, '_>, operand: Operand) -> Read<(ValueId, Option<Typed>)> {
    if let Some((element, q)) = parameters(n, operand.scale, operand.zero, operand.axis)? {
        let id = n.typed(operand.tensor, element, &q)?;
        return Ok((id, Some((element, q))));
    }
    let raw = n.input(operand.tensor)?;
    let scale = n.input(operand.scale)?;
    let zero = n.optional(operand.zero)?;
    let op = DequantizeLinear { axis: operand.axis.unwrap_or(0), block_size: 0 };
    let id = n.step(&format!("real_{}", operand.tensor), op, vec![Some(raw), Some(scale), zero]);
    Ok((id, None))
}

/// Adds the operator, its result quantized by the parameters that are these inputs.
fn finish(
    n: &mut NodeReader<'_, '_>,
    op: impl Into<Op>,
    inputs: Vec<Option<ValueId>>,
    scale: usize,
    zero: usize,
) -> Read {
    if let Some((element, q)) = parameters(n, scale, zero, None)? {
        let output = n.quantized_output(0, element, q)?;
        n.emit_to(op, inputs, &[Some(output)]);
        return Ok(());
    }
    let y = n.step("real", op, inputs);
    let scale = n.input(scale)?;
    let zero = n.optional(zero)?;
    let op = QuantizeLinear { axis: 1, block_size: 0, element: None, saturate: true, precision: None };
    n.emit(op, vec![Some(y), Some(scale), zero])
}

/// A bias is stored with the product of the scales that it meets, and zero as zero.
fn bias(
    n: &mut NodeReader<'_, '_>,
    index: usize,
    [a, b]: [(Operand, &Option<Typed>); 2],
    factor: f32,
) -> Read<Option<ValueId>> {
    if !n.has_input(index) {
        return Ok(None);
    }
    if let (Some((_, x)), Some((_, w))) = (a.1, b.1)
        && x.is_per_tensor()
    {
        let scale: Vec<f32> = w.scale.iter().map(|s| factor * x.scale[0] * s).collect();
        let axis = if scale.len() > 1 { Some(0) } else { None };
        let q = Quantization { zero_point: vec![0; scale.len()], scale, axis, block: None };
        return n.typed(index, ElementType::I32, &Arc::new(q)).map(Some);
    }
    let (x, w) = (n.input(a.0.scale)?, n.input(b.0.scale)?);
    let multiply = Binary { kind: BinaryKind::Mul };
    let mut scale = n.step("bias_scale", multiply.clone(), vec![Some(x), Some(w)]);
    if factor != 1.0 {
        let factor = n.number_like("factor", scale, f64::from(factor));
        scale = n.step("bias_factor", multiply, vec![Some(scale), Some(factor)]);
    }
    let raw = n.input(index)?;
    let op = DequantizeLinear { axis: 0, block_size: 0 };
    Ok(Some(n.step("real_bias", op, vec![Some(raw), Some(scale)])))
}

fn q_conv(n: &mut NodeReader<'_, '_>) -> Read {
    let (data, weights) = (at(0), Operand { axis: Some(0), ..at(3) });
    let op = conv(n, weights.tensor)?;
    let (x, x_type) = real(n, data)?;
    let (w, w_type) = real(n, weights)?;
    let b = bias(n, 8, [(data, &x_type), (weights, &w_type)], 1.0)?;
    planes(n, op, vec![Some(x), Some(w), b], 6, 7)
}

/// As [`finish`], for an operator on channels before spatial axes, where an attribute may say that data and result have
/// their channels last.
fn planes(
    n: &mut NodeReader<'_, '_>,
    op: impl Into<Op>,
    mut inputs: Vec<Option<ValueId>>,
    scale: usize,
    zero: usize,
) -> Read {
    if !n.flag("channels_last", false)? {
        return finish(n, op, inputs, scale, zero);
    }
    let x = n.input(0)?;
    let (first, back) = (channels_first(n, x)?, channels_last(n, x)?);
    inputs[0] = Some(n.step("planes", first, vec![inputs[0]]));
    let y = n.step("result", op, inputs);
    finish(n, back, vec![Some(y)], scale, zero)
}

/// Scales of A may differ by row, those of B by column.
fn q_matmul(n: &mut NodeReader<'_, '_>) -> Read {
    let (a, b) = (n.input(0)?, n.input(3)?);
    let rank = |r: Option<usize>, back: i64| r.map(|r| r as i64 - back).filter(|a| *a >= 0);
    let rows = rank(n.rank(a), 2);
    let columns = rank(n.rank(b), 1);
    let (a, _) = real(n, Operand { axis: rows, ..at(0) })?;
    let (b, _) = real(n, Operand { axis: columns, ..at(3) })?;
    finish(n, products::PLAIN, vec![Some(a), Some(b)], 6, 7)
}

fn q_gemm(n: &mut NodeReader<'_, '_>) -> Read {
    let op: Gemm = products::attributes(n)?;
    let (a, b) = (at(0), Operand { axis: Some(i64::from(!op.transpose_b)), ..at(3) });
    let (a_real, a_type) = real(n, a)?;
    let (b_real, b_type) = real(n, b)?;
    let c = bias(n, 6, [(a, &a_type), (b, &b_type)], op.alpha)?;
    let inputs = vec![Some(a_real), Some(b_real), c];
    if n.has_input(7) { finish(n, op, inputs, 7, 8) } else { n.emit(op, inputs) }
}

fn q_binary(n: &mut NodeReader<'_, '_>, kind: BinaryKind) -> Read {
    let (a, _) = real(n, at(0))?;
    let (b, _) = real(n, at(3))?;
    finish(n, Binary { kind }, vec![Some(a), Some(b)], 6, 7)
}

fn q_unary(n: &mut NodeReader<'_, '_>, op: impl Into<Op>) -> Read {
    let (x, _) = real(n, at(0))?;
    finish(n, op, vec![Some(x)], 3, 4)
}

fn q_reduce_mean(n: &mut NodeReader<'_, '_>) -> Read {
    let keep_dims = n.flag("keepdims", true)?;
    let axes = n.ints("axes")?;
    let (x, _) = real(n, at(0))?;
    let mut inputs = vec![Some(x)];
    if let Some(axes) = axes {
        inputs.push(Some(n.vector("axes", &axes)));
    }
    let op = Reduce { kind: ReduceKind::Mean, keep_dims, noop_with_empty_axes: false };
    finish(n, op, inputs, 3, 4)
}

/// Parameters of the result come first, then tensor, scale and zero point of each part.
fn q_concat(n: &mut NodeReader<'_, '_>) -> Read {
    let axis = n.required_int("axis")?;
    let count = n.input_count();
    if count < 5 || !(count - 2).is_multiple_of(3) {
        return Err(Invalid::Other(format!("{count} inputs are not two and some triples")).into());
    }
    let mut inputs = Vec::with_capacity(count / 3);
    for first in (2..count).step_by(3) {
        inputs.push(Some(real(n, at(first))?.0));
    }
    finish(n, Concat { axis }, inputs, 0, 1)
}

fn q_where(n: &mut NodeReader<'_, '_>) -> Read {
    let condition = n.input(0)?;
    let (x, _) = real(n, at(1))?;
    let (y, _) = real(n, at(4))?;
    finish(n, Where, vec![Some(condition), Some(x), Some(y)], 7, 8)
}
