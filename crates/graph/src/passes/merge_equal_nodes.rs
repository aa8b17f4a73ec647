//! Nodes that compute the same from the same inputs become one, and so do small constants with the same contents.

use std::collections::HashMap;

use armet_tensor::{ElementType, Shape};

use super::{PassContext, rewrite};
use crate::ops::OpKind;
use crate::{Graph, GraphError, Node, NodeId, Op, ValueId};

/// Constants of at most this many bytes are compared.
const SMALL: usize = 64;

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut rewrites = merge_constants(graph);
    let mut seen: HashMap<(OpKind, Vec<Option<ValueId>>), Vec<NodeId>> = HashMap::new();
    for id in graph.order()? {
        let node = graph.node(id);
        if !node.op.is_deterministic() || matches!(node.op, Op::If(_) | Op::Loop(_) | Op::FlexAttention(_)) {
            continue;
        }
        let earlier = seen.entry((node.op.kind(), node.inputs.to_vec())).or_default();
        match earlier.iter().find(|other| same_work(graph, graph.node(**other), node)) {
            Some(&other) => {
                replace(graph, id, other);
                rewrites += 1;
            }
            None => earlier.push(id),
        }
    }
    Ok(rewrites)
}

/// Whether two nodes with the same inputs give the same results, in places that can be exchanged.
fn same_work(graph: &Graph, a: &Node, b: &Node) -> bool {
    // Kinds within a family (Add, Sub) differ in name, not in attributes.
    a.op.name() == b.op.name()
        && a.op.attributes() == b.op.attributes()
        && a.outputs.len() == b.outputs.len()
        && a.outputs.iter().zip(&b.outputs).all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => graph.value(*a).ty == graph.value(*b).ty,
            (_, None) => true,
            (None, Some(_)) => false,
        })
}

fn replace(graph: &mut Graph, id: NodeId, other: NodeId) {
    for (index, output) in graph.node(id).outputs.clone().into_iter().enumerate() {
        if let (Some(output), Some(kept)) = (output, graph.node(other).outputs[index]) {
            graph.replace_uses(output, kept);
        }
    }
    rewrite::absorb(graph, other, id);
    graph.remove_node(id);
}

fn merge_constants(graph: &mut Graph) -> usize {
    let mut seen: HashMap<(ElementType, Shape, Vec<u8>), ValueId> = HashMap::new();
    let mut merged = 0;
    for value in graph.value_ids() {
        if graph.consumers(value).is_empty() {
            continue;
        }
        let Some(tensor) = super::facts::plain_constant(graph, value) else { continue };
        if tensor.bytes().len() > SMALL || tensor.element() == ElementType::String {
            continue;
        }
        let key = (tensor.element(), tensor.shape().clone(), tensor.bytes().to_vec());
        match seen.get(&key) {
            Some(&kept) if !graph.is_output(value) => {
                graph.replace_uses(value, kept);
                merged += 1;
            }
            Some(_) => {}
            None => {
                seen.insert(key, value);
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use crate::ops::{BinaryKind, UnaryKind};
    use crate::passes::testing::{Build, becomes, binary, unary};

    const PASS: &[&str] = &["merge_equal_nodes"];

    #[test]
    fn equal_work_is_done_once() {
        let mut b = Build::new();
        let x = b.input("x", &[3]);
        let [one, same, other] = [1.0, 1.0, 2.0].map(|v| b.number(v));
        let a = b.node("a", binary(BinaryKind::Add), &[x, one]);
        let c = b.node("c", binary(BinaryKind::Add), &[x, same]);
        let d = b.node("d", binary(BinaryKind::Add), &[x, other]);
        let g = b.node("g", binary(BinaryKind::Sub), &[x, one]);
        let e = b.node("e", unary(UnaryKind::LeakyRelu { alpha: 0.5 }), &[c]);
        let f = b.node("f", unary(UnaryKind::LeakyRelu { alpha: 0.25 }), &[a]);
        let graph = b.finish(&[a, d, e, f, g]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[3]
          a: float32[3] = Add(x, c1 float32[] {1}) // a + c
          d: float32[3] = Add(x, c3 float32[] {2})
          g: float32[3] = Sub(x, c1 float32[] {1})
          e: float32[3] = LeakyRelu(a) alpha=0.5
          f: float32[3] = LeakyRelu(a) alpha=0.25
          output a
          output d
          output e
          output f
          output g
        ");
    }
}
