//! Edits that passes share. Each keeps the names of the model's nodes, so that reports can say what became of them.

use armet_tensor::Tensor;

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
    graph.remove_node(last);
    graph.set_output(keeper, 0, output);
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

/// The name of a node's output, for a value that takes its part.
pub(super) fn derived(graph: &Graph, value: ValueId, suffix: &str) -> String {
    format!("{}_{suffix}", graph.value(value).name)
}

/// Makes a node another operator over other inputs, giving the same output.
pub(super) fn become_op(graph: &mut Graph, id: NodeId, op: impl Into<Op>, inputs: &[Option<ValueId>]) {
    *graph.node_mut(id).op = op.into();
    graph.truncate_inputs(id, 0);
    for (index, &input) in inputs.iter().enumerate() {
        graph.set_input(id, index, input);
    }
}

/// An int64 vector constant.
pub(super) fn int_vector(graph: &mut Graph, name: String, ints: &[i64]) -> ValueId {
    graph.add_constant(name, Tensor::vector(ints))
}
