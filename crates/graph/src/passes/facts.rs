//! Questions that passes ask of a graph. Every answer is certain: "not known" counts as no.

use std::sync::Arc;

use armet_tensor::{ElementType, Quantization, Shape, Tensor};

use crate::ops::numbers;
use crate::{Dim, Graph, Node, NodeId, ValueId};

/// The nodes that are there now; a pass that walks them must expect some to vanish as it rewrites.
pub(super) fn node_ids(graph: &Graph) -> Vec<NodeId> {
    graph.nodes().map(|(id, _)| id).collect()
}

/// The dimensions of a tensor value, when its rank is known.
pub(super) fn dims(graph: &Graph, value: ValueId) -> Option<&[Dim]> {
    graph.value(value).ty.tensor()?.dims.as_deref()
}

/// The concrete shape of a value.
pub(super) fn shape(graph: &Graph, value: ValueId) -> Option<Shape> {
    graph.value(value).ty.shape()
}

/// The rank of a value.
pub(super) fn rank(graph: &Graph, value: ValueId) -> Option<usize> {
    dims(graph, value).map(<[Dim]>::len)
}

/// The stored element type of a tensor value.
pub(super) fn element(graph: &Graph, value: ValueId) -> Option<ElementType> {
    graph.value(value).ty.tensor().map(|ty| ty.element)
}

/// Whether two dimensions are surely equal.
pub(super) fn same_dim(a: &Dim, b: &Dim) -> bool {
    a == b && *a != Dim::Unknown
}

/// Whether two lists of dimensions are surely equal.
pub(super) fn same_dims(a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_dim(a, b))
}

/// Whether two values surely have the same shape.
pub(super) fn same_shape(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    matches!((dims(graph, a), dims(graph, b)), (Some(a), Some(b)) if same_dims(a, b))
}

/// Whether two values surely have the same shape, element type and quantization.
pub(super) fn same_type(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    same_storage(graph, a, b) && same_shape(graph, a, b)
}

/// Whether two values surely store real numbers alike: same element type and quantization.
pub(super) fn same_storage(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    let (Some(x), Some(y)) = (graph.value(a).ty.tensor(), graph.value(b).ty.tensor()) else { return false };
    x.element == y.element && x.quantization == y.quantization
}

/// The quantization of a value.
pub(super) fn quantization(graph: &Graph, value: ValueId) -> Option<&Arc<Quantization>> {
    graph.value(value).ty.tensor()?.quantization.as_ref()
}

/// The node that gives a value.
pub(super) fn producer(graph: &Graph, value: ValueId) -> Option<(NodeId, &Node)> {
    let id = graph.producer(value)?;
    Some((id, graph.node(id)))
}

/// The one node that reads a value, when nothing else needs it.
pub(super) fn only_consumer(graph: &Graph, value: ValueId) -> Option<NodeId> {
    match graph.consumers(value) {
        &[id] if !graph.is_output(value) => Some(id),
        _ => None,
    }
}

/// The node that gives a value which one place alone reads.
pub(super) fn sole_producer(graph: &Graph, value: ValueId) -> Option<(NodeId, &Node)> {
    only_consumer(graph, value)?;
    producer(graph, value)
}

/// A constant that is not quantized.
pub(super) fn plain_constant(graph: &Graph, value: ValueId) -> Option<&Tensor> {
    graph.constant(value).filter(|_| quantization(graph, value).is_none())
}

/// The contents of a constant, as double-precision numbers.
pub(super) fn numbers(graph: &Graph, value: ValueId) -> Option<Vec<f64>> {
    numbers::to_f64(plain_constant(graph, value)?).ok()
}

/// The contents of an integer constant.
pub(super) fn ints(graph: &Graph, value: ValueId) -> Option<Vec<i64>> {
    plain_constant(graph, value)?.to_i64()
}

/// The number that a constant with one element holds.
pub(super) fn scalar(graph: &Graph, value: ValueId) -> Option<f64> {
    let tensor = plain_constant(graph, value)?;
    if tensor.len() != 1 {
        return None;
    }
    numbers::to_f64(tensor).ok()?.first().copied()
}

/// The number that all elements of a constant are. Long constants are not searched.
pub(super) fn uniform(graph: &Graph, value: ValueId) -> Option<f64> {
    const LONGEST: usize = 1 << 16;
    let tensor = plain_constant(graph, value)?;
    if tensor.is_empty() || tensor.len() > LONGEST {
        return None;
    }
    let all = numbers::to_f64(tensor).ok()?;
    all.iter().all(|v| *v == all[0]).then_some(all[0])
}
