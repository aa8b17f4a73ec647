//! Heads of attention among the axes of values: where exporters put them beside each other and where apart.

use armet_tensor::ElementType;

use super::{facts, rewrite};
use crate::ops::Reshape;
use crate::{Dim, Graph, Op, TensorType, ValueId};

/// Where heads are found with the elements of each side by side.
#[derive(Clone, Copy)]
pub(super) struct Source {
    /// `[batch, heads, length, size]`, or `[batch, length, heads, size]` when heads are beside each other.
    pub(super) value: ValueId,
    /// Heads and their size, when they are beside each other.
    pub(super) beside: Option<(usize, usize)>,
}

impl Source {
    pub(super) fn plain(value: ValueId) -> Self {
        Self { value, beside: None }
    }
}

pub(super) fn is_transpose(op: &Op, perm: &[usize]) -> bool {
    matches!(op, Op::Transpose(op) if op.perm == perm)
}

/// The number of heads and their size, at these of four axes, when both are known.
pub(super) fn heads_and_size(graph: &Graph, value: ValueId, axes: [usize; 2]) -> Option<(usize, usize)> {
    let dims = facts::dims(graph, value).filter(|dims| dims.len() == 4)?;
    let (heads, size) = (dims[axes[0]].fixed()?, dims[axes[1]].fixed()?);
    (heads > 0 && size > 0).then_some((heads, size))
}

/// What a Transpose to heads before positions was made of, or the value itself.
pub(super) fn source(graph: &Graph, value: ValueId) -> Source {
    transposed(graph, value, &[0, 2, 1, 3]).unwrap_or(Source::plain(value))
}

pub(super) fn transposed(graph: &Graph, value: ValueId, perm: &[usize]) -> Option<Source> {
    let (_, node) = facts::producer(graph, value)?;
    if !is_transpose(&node.op, perm) {
        return None;
    }
    let value = node.input(0)?;
    Some(Source { value, beside: Some(heads_and_size(graph, value, [2, 3])?) })
}

/// The value with heads beside each other in its last axis, or as it is where they are apart.
pub(super) fn side_by_side(graph: &mut Graph, source: Source) -> ValueId {
    let Some((heads, size)) = source.beside else { return source.value };
    let width = heads * size;
    if let Some((_, node)) = facts::producer(graph, source.value)
        && matches!(node.op, Op::Reshape(_))
        && let Some(value) = node.input(0)
        && let (Some([batch, length, own]), Some(apart)) =
            (facts::dims(graph, value), facts::dims(graph, source.value))
        && own.is(width)
        && facts::same_dims(&[batch.clone(), length.clone()], &apart[..2])
    {
        return value;
    }
    let dims: Vec<Dim> = facts::dims(graph, source.value).unwrap_or_default()[..2].to_vec();
    let name = rewrite::derived(graph, source.value, "beside");
    let shape = rewrite::int_vector(graph, format!("{name}_shape"), &[0, 0, width as i64]);
    let ty = TensorType::new(ElementType::F32, dims.into_iter().chain([Dim::Fixed(width)]));
    rewrite::insert(graph, name, Reshape { allow_zero: false }, &[Some(source.value), Some(shape)], ty).1
}
