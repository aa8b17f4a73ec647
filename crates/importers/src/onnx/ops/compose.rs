//! Small nodes that operators without one of their own are said with.

use armet_graph::ValueId;
use armet_graph::ops::{
    Binary, BinaryKind, Cast, Concat, Gather, Reduce, ReduceKind, Reshape, ShapeOf, Unary, UnaryKind,
};
use armet_tensor::ElementType;

use crate::onnx::node::NodeReader;

/// A function of one number.
pub(super) fn unary(n: &mut NodeReader<'_, '_>, suffix: &str, kind: UnaryKind, x: ValueId) -> ValueId {
    n.step(suffix, Unary { kind }, vec![Some(x)])
}

/// A function of two numbers.
pub(super) fn binary(
    n: &mut NodeReader<'_, '_>,
    suffix: &str,
    kind: BinaryKind,
    a: ValueId,
    b: ValueId,
) -> ValueId {
    n.step(suffix, Binary { kind }, vec![Some(a), Some(b)])
}

/// A function of a number and a constant of its type.
pub(super) fn with_number(
    n: &mut NodeReader<'_, '_>,
    suffix: &str,
    kind: BinaryKind,
    a: ValueId,
    number: f64,
) -> ValueId {
    let number = n.number_like(&format!("{suffix}/by"), a, number);
    binary(n, suffix, kind, a, number)
}

/// Conversion to an element type.
pub(super) fn cast(n: &mut NodeReader<'_, '_>, suffix: &str, to: ElementType, x: ValueId) -> ValueId {
    n.step(suffix, Cast { to, saturate: true }, vec![Some(x)])
}

/// A reduction over all axes, to a scalar.
pub(super) fn reduce_all(n: &mut NodeReader<'_, '_>, suffix: &str, kind: ReduceKind, x: ValueId) -> ValueId {
    n.step(suffix, all(kind), vec![Some(x)])
}

/// The operator that reduces over all axes, to a scalar.
pub(super) fn all(kind: ReduceKind) -> Reduce {
    Reduce { kind, keep_dims: false, noop_with_empty_axes: false }
}

/// A constant shape for the same elements.
pub(super) fn reshape(n: &mut NodeReader<'_, '_>, suffix: &str, x: ValueId, shape: &[i64]) -> ValueId {
    let shape = n.vector(&format!("{suffix}/shape"), shape);
    n.step(suffix, Reshape { allow_zero: false }, vec![Some(x), Some(shape)])
}

/// A number that is a scalar or a vector of one, as an int64 scalar.
pub(super) fn whole_scalar(n: &mut NodeReader<'_, '_>, suffix: &str, x: ValueId) -> ValueId {
    let wide = cast(n, &format!("{suffix}/wide"), ElementType::I64, x);
    reshape(n, suffix, wide, &[])
}

/// Dimensions `start..end` of a value, as a vector.
pub(super) fn dims(
    n: &mut NodeReader<'_, '_>,
    suffix: &str,
    x: ValueId,
    start: i64,
    end: Option<i64>,
) -> ValueId {
    n.step(suffix, ShapeOf { start, end }, vec![Some(x)])
}

/// One dimension of a value, as a scalar.
pub(super) fn dim(n: &mut NodeReader<'_, '_>, suffix: &str, x: ValueId, axis: i64) -> ValueId {
    let end = if axis == -1 { None } else { Some(axis + 1) };
    let vector = dims(n, &format!("{suffix}/vector"), x, axis, end);
    reshape(n, suffix, vector, &[])
}

/// Vectors one after the other.
pub(super) fn concat(n: &mut NodeReader<'_, '_>, suffix: &str, axis: i64, parts: &[ValueId]) -> ValueId {
    n.step(suffix, Concat { axis }, parts.iter().map(|&part| Some(part)).collect())
}

/// Entries of the first axis.
pub(super) fn gather(n: &mut NodeReader<'_, '_>, suffix: &str, x: ValueId, at: ValueId) -> ValueId {
    n.step(suffix, Gather { axis: 0 }, vec![Some(x), Some(at)])
}

/// The element type of a value, single precision when it is not known.
pub(super) fn element(n: &mut NodeReader<'_, '_>, x: ValueId) -> ElementType {
    n.type_of(x).map_or(ElementType::F32, |ty| ty.element)
}
