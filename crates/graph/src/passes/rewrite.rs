//! Edits that passes share. Each keeps the names of the model's nodes, so that reports can say what became of them.

use armet_tensor::{ElementType, Shape, Tensor};

use crate::ops::numbers;
use crate::{Graph, NodeId, Op, ValueId, ValueType};

/// Records that `into` now does what `from` did as well.
pub(super) fn absorb(graph: &mut Graph, into: NodeId, from: NodeId) {
    let Some(node) = graph.get_node(from) else { return };
    let mut names = vec![node.name.clone()];
    names.extend(node.absorbed.iter().cloned());
    graph.node_mut(into).absorbed.extend(names);
}

/// A node whose first output is its input is removed: its readers read the input.
pub(super) fn bypass(graph: &mut Graph, id: NodeId, input: ValueId) {
    if let Some(output) = graph.node(id).output() {
        graph.replace_uses(output, input);
    }
    graph.remove_node(id);
}

/// `keeper` gives what `last` gave and stands for it; `last` is removed. The value between them loses its producer.
pub(super) fn take_over(graph: &mut Graph, keeper: NodeId, last: NodeId) {
    absorb(graph, keeper, last);
    let output = graph.node(last).output();
    let inputs = graph.node(last).inputs.clone();
    graph.remove_node(last);
    graph.set_output(keeper, 0, output);
    release(graph, inputs.into_iter().flatten());
}

/// Adds a node with one output of this type.
pub(super) fn insert(
    graph: &mut Graph,
    name: impl Into<String>,
    op: impl Into<Op>,
    inputs: &[Option<ValueId>],
    ty: impl Into<ValueType>,
) -> (NodeId, ValueId) {
    let name = name.into();
    let output = graph.add_value(name.clone(), ty);
    let id = graph.add_node(name, op, inputs.iter().copied(), [Some(output)]);
    (id, output)
}

/// Makes a node another operator over other inputs, giving the same output and standing for what only it needed.
pub(super) fn become_op(graph: &mut Graph, id: NodeId, op: impl Into<Op>, inputs: &[Option<ValueId>]) {
    let old = graph.node(id).inputs.clone();
    *graph.node_mut(id).op = op.into();
    graph.truncate_inputs(id, 0);
    for (index, &input) in inputs.iter().enumerate() {
        graph.set_input(id, index, input);
    }
    let names = release(graph, old.into_iter().flatten());
    graph.node_mut(id).absorbed.splice(0..0, names);
}

/// Removes the nodes that nobody needs once these values are no longer read; gives their names in order.
pub(super) fn release(graph: &mut Graph, values: impl IntoIterator<Item = ValueId>) -> Vec<String> {
    let mut pending: Vec<ValueId> = values.into_iter().collect();
    let mut removed = Vec::new();
    while let Some(value) = pending.pop() {
        let Some(id) = graph.producer(value) else { continue };
        let unread = |v: ValueId| graph.consumers(v).is_empty() && !graph.is_output(v);
        if graph.node(id).outputs.iter().flatten().all(|v| unread(*v))
            && let Some(node) = graph.remove_node(id)
        {
            pending.extend(node.inputs.into_iter().flatten());
            removed.push((id, node.name, node.absorbed));
        }
    }
    removed.sort_by_key(|(id, ..)| *id);
    removed.into_iter().flat_map(|(_, name, absorbed)| std::iter::once(name).chain(absorbed)).collect()
}

/// The name of a value that takes the part of another.
pub(super) fn derived(graph: &Graph, value: ValueId, suffix: &str) -> String {
    let name = &graph.value(value).name;
    if name.ends_with(&format!("_{suffix}")) { name.clone() } else { format!("{name}_{suffix}") }
}

/// An int64 vector constant.
pub(super) fn int_vector(graph: &mut Graph, name: String, ints: &[i64]) -> ValueId {
    graph.add_constant(name, Tensor::vector(ints))
}

/// A constant of these numbers; `None` where they cannot be stored so.
pub(super) fn constant(
    graph: &mut Graph,
    name: String,
    element: ElementType,
    shape: impl Into<Shape>,
    values: &[f64],
) -> Option<ValueId> {
    let tensor = numbers::from_f64(element, shape, values).ok()?;
    Some(graph.add_constant(name, tensor))
}

/// Removes a node and what only it needed.
pub(super) fn discard(graph: &mut Graph, id: NodeId) {
    if let Some(node) = graph.remove_node(id) {
        release(graph, node.inputs.into_iter().flatten());
    }
}
