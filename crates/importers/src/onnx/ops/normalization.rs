//! Normalizations and softmax.

use armet_graph::ValueId;
use armet_graph::ops::{
    ArgKind, ArgReduce, Binary, BinaryKind, Cast, Flatten, Identity, InstanceNormalization,
    LayerNormalization, OneHot, Pool, PoolKind, Reduce, ReduceKind, Reshape, ShapeOf, Softmax, Squeeze,
    Unary, UnaryKind, Unsqueeze, Where, window::AutoPad,
};
use armet_tensor::ElementType;

use super::{Entry, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("LayerNormalization", 17, |n| layer(n, false)),
    onnx("RMSNormalization", 23, |n| layer(n, true)),
    // ONNX Runtime keeps this one in ONNX's own domain.
    onnx("SimplifiedLayerNormalization", 1, |n| layer(n, true)),
    onnx("InstanceNormalization", 1, |n| {
        n.ignore(&["consumed_inputs"]);
        let op = InstanceNormalization { epsilon: n.float_or("epsilon", 1e-5)?, groups: None };
        let inputs = n.inputs(3)?;
        n.emit(op, inputs)
    }),
    onnx("GroupNormalization", 18, group_by_group),
    onnx("GroupNormalization", 21, group),
    onnx("LpNormalization", 1, lp),
    onnx("MeanVarianceNormalization", 9, mean_variance),
    onnx("LRN", 1, local_response),
    onnx("Softmax", 1, |n| softmax(n, false)),
    onnx("LogSoftmax", 1, |n| softmax(n, true)),
    onnx("Hardmax", 1, hardmax_of_rows),
    onnx("Hardmax", 13, |n| {
        let axis = n.int_or("axis", -1)?;
        let x = n.input(0)?;
        let hot = hardmax(n, x, axis);
        n.emit(Identity, vec![Some(hot)])
    }),
];

fn layer(n: &mut NodeReader<'_, '_>, root_mean_square: bool) -> Read {
    // The precision of the sums in between, which is always single here.
    n.ignore(&["stash_type"]);
    let op = LayerNormalization {
        axis: n.int_or("axis", -1)?,
        epsilon: n.float_or("epsilon", 1e-5)?,
        root_mean_square,
    };
    let inputs = n.inputs(2)?;
    n.emit(op, inputs)
}

fn groups(n: &NodeReader<'_, '_>) -> Read<(usize, f32)> {
    n.ignore(&["stash_type"]);
    let groups = n.size_or("num_groups", 0)?;
    if groups == 0 {
        return Err(Invalid::MissingAttribute("num_groups").into());
    }
    Ok((groups, n.float_or("epsilon", 1e-5)?))
}

fn group(n: &mut NodeReader<'_, '_>) -> Read {
    let (groups, epsilon) = groups(n)?;
    let inputs = n.inputs(3)?;
    n.emit(InstanceNormalization { epsilon, groups: Some(groups) }, inputs)
}

/// Before version 21 scale and bias belonged to groups: each group is a channel of a tensor that is shaped so.
fn group_by_group(n: &mut NodeReader<'_, '_>) -> Read {
    let (groups, epsilon) = groups(n)?;
    let inputs = n.inputs(3)?;
    let x = n.input(0)?;
    let shape = n.vector("groups", &[0, groups as i64, -1]);
    let split = n.step("split", Reshape { allow_zero: false }, vec![Some(x), Some(shape)]);
    let normal = InstanceNormalization { epsilon, groups: None };
    let normal = n.step("normalized", normal, vec![Some(split), inputs[1], inputs[2]]);
    let shape = n.step("shape", ShapeOf { start: 0, end: None }, vec![Some(x)]);
    n.emit(Reshape { allow_zero: false }, vec![Some(normal), Some(shape)])
}

fn reduce(n: &mut NodeReader<'_, '_>, suffix: &str, kind: ReduceKind, x: ValueId, axes: ValueId) -> ValueId {
    let op = Reduce { kind, keep_dims: true, noop_with_empty_axes: false };
    n.step(suffix, op, vec![Some(x), Some(axes)])
}

fn pair(n: &mut NodeReader<'_, '_>, suffix: &str, kind: BinaryKind, a: ValueId, b: ValueId) -> ValueId {
    n.step(suffix, Binary { kind }, vec![Some(a), Some(b)])
}

/// Division by the norm; where it is zero the result is zero.
fn lp(n: &mut NodeReader<'_, '_>) -> Read {
    let kind = match n.int_or("p", 2)? {
        1 => ReduceKind::L1,
        2 => ReduceKind::L2,
        _ => return Err(n.unsupported("p")),
    };
    let axis = n.int_or("axis", -1)?;
    let (x, axes) = (n.input(0)?, n.vector("axes", &[axis]));
    let norm = reduce(n, "norm", kind, x, axes);
    let (zero, one) = (n.number_like("zero", x, 0.0), n.number_like("one", x, 1.0));
    let is_zero = pair(n, "is_zero", BinaryKind::Equal, norm, zero);
    let divisor = n.step("divisor", Where, vec![Some(is_zero), Some(one), Some(norm)]);
    n.emit(Binary { kind: BinaryKind::Div }, vec![Some(x), Some(divisor)])
}

/// `(x - mean) / (standard deviation + 1e-9)`, as the standard defines it.
fn mean_variance(n: &mut NodeReader<'_, '_>) -> Read {
    let axes = n.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let (x, axes) = (n.input(0)?, n.vector("axes", &axes));
    let mean = reduce(n, "mean", ReduceKind::Mean, x, axes);
    let centred = pair(n, "centred", BinaryKind::Sub, x, mean);
    let square = pair(n, "square", BinaryKind::Mul, centred, centred);
    let variance = reduce(n, "variance", ReduceKind::Mean, square, axes);
    let deviation = n.step("deviation", Unary { kind: UnaryKind::Sqrt }, vec![Some(variance)]);
    let epsilon = n.number_like("epsilon", x, 1e-9);
    let deviation = pair(n, "divisor", BinaryKind::Add, deviation, epsilon);
    n.emit(Binary { kind: BinaryKind::Div }, vec![Some(centred), Some(deviation)])
}

/// `x / (bias + alpha * mean of the squares of neighbouring channels) ^ beta`; the mean is an average pooling whose
/// window is as long as `size`, beyond the last channel too.
fn local_response(n: &mut NodeReader<'_, '_>) -> Read {
    let size = n.size_or("size", 0)?;
    if size == 0 {
        return Err(Invalid::MissingAttribute("size").into());
    }
    let (alpha, beta) = (n.float_or("alpha", 1e-4)?, n.float_or("beta", 0.75)?);
    let bias = n.float_or("bias", 1.0)?;
    let x = n.input(0)?;
    let Some(spatial) = n.rank(x).map(|r| r.saturating_sub(2)) else {
        return Err(Reason::Input { index: 0, what: "must have a known rank" }.into());
    };
    let square = pair(n, "square", BinaryKind::Mul, x, x);
    let axes = n.vector("axes", &[1i64]);
    let planes = n.step("planes", Unsqueeze, vec![Some(square), Some(axes)]);
    let window = |first: usize, other: usize| -> Vec<usize> {
        std::iter::once(first).chain(std::iter::repeat_n(other, spatial)).collect()
    };
    let mut pads = window((size - 1) / 2, 0);
    pads.extend(window(size / 2, 0));
    let pool = Pool {
        kind: PoolKind::Average,
        kernel: window(size, 1),
        strides: Vec::new(),
        dilations: Vec::new(),
        pads,
        auto_pad: AutoPad::NotSet,
        ceil_mode: false,
        count_include_pad: true,
        column_major: false,
    };
    let mean = n.step("mean", pool, vec![Some(planes)]);
    let mean = n.step("flat", Squeeze, vec![Some(mean), Some(axes)]);
    let alpha = n.number_like("alpha", x, f64::from(alpha));
    let bias = n.number_like("bias", x, f64::from(bias));
    let beta = n.number_like("beta", x, f64::from(beta));
    let scaled = pair(n, "scaled", BinaryKind::Mul, mean, alpha);
    let base = pair(n, "base", BinaryKind::Add, scaled, bias);
    let divisor = pair(n, "divisor", BinaryKind::Pow, base, beta);
    n.emit(Binary { kind: BinaryKind::Div }, vec![Some(x), Some(divisor)])
}

/// Below version 13 all axes from the given one on counted as one, and the default axis was the second.
fn softmax(n: &mut NodeReader<'_, '_>, log: bool) -> Read {
    let old = n.version() < 13;
    let axis = n.int_or("axis", if old { 1 } else { -1 })?;
    let x = n.input(0)?;
    n.emit(Softmax { axis, log, flatten: old }, vec![Some(x)])
}

/// An indicator of the first largest element.
fn hardmax(n: &mut NodeReader<'_, '_>, x: ValueId, axis: i64) -> ValueId {
    let arg = ArgReduce { kind: ArgKind::Max, axis, keep_dims: false, select_last_index: false };
    let at = n.step("at", arg, vec![Some(x)]);
    let end = if axis == -1 { None } else { axis.checked_add(1) };
    let depth = n.step("depth", ShapeOf { start: axis, end }, vec![Some(x)]);
    let values = n.vector("values", &[0f32, 1.0]);
    let hot = n.step("hot", OneHot { axis }, vec![Some(at), Some(depth), Some(values)]);
    let to = n.type_of(x).map_or(ElementType::F32, |t| t.element);
    if to == ElementType::F32 { hot } else { n.step("stored", Cast { to, saturate: true }, vec![Some(hot)]) }
}

/// Below version 13 all axes from the given one on counted as one.
fn hardmax_of_rows(n: &mut NodeReader<'_, '_>) -> Read {
    let axis = n.int_or("axis", 1)?;
    let x = n.input(0)?;
    let rows = n.step("rows", Flatten { axis }, vec![Some(x)]);
    let hot = hardmax(n, rows, -1);
    let shape = n.step("shape", ShapeOf { start: 0, end: None }, vec![Some(x)]);
    n.emit(Reshape { allow_zero: true }, vec![Some(hot), Some(shape)])
}
