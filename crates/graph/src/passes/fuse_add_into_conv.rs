//! An Add of two tensors of the same shape, one of them the bare result of a Conv or `MatMul` that nothing else reads,
//! is done by that Conv or `MatMul`: its fourth input.
//!
//! Of two candidates the later node takes the other's result. Nodes over quantized values keep their sums apart: their
//! results are rounded before they are added.

use super::{PassContext, affine, facts, rewrite};
use crate::ops::BinaryKind;
use crate::{Graph, GraphError, Node, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| fuse(graph, *id).is_some()).count())
}

fn fuse(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let Op::Binary(op) = &node.op else { return None };
    let (a, b, output) = (node.input(0)?, node.input(1)?, node.output()?);
    if op.kind != BinaryKind::Add
        || a == b
        || !facts::same_type(graph, a, output)
        || !facts::same_type(graph, b, output)
        || !facts::element(graph, output)?.is_float()
    {
        return None;
    }
    let (product, other) = match (candidate(graph, a), candidate(graph, b)) {
        (Some(x), Some(y)) if x > y => (x, b),
        (_, Some(y)) => (y, a),
        (Some(x), None) => (x, b),
        (None, None) => return None,
    };
    graph.set_input(product, 3, Some(other));
    rewrite::take_over(graph, product, id);
    Some(())
}

fn candidate(graph: &Graph, value: ValueId) -> Option<NodeId> {
    let (id, node) = facts::sole_producer(graph, value)?;
    let kind = matches!(node.op, Op::Conv(_) | Op::MatMul(_));
    (kind && affine::is_bare(node) && !is_quantized(graph, node)).then_some(id)
}

/// Whether a node works on quantized values, or will when `DequantizeLinear` before it is gone.
fn is_quantized(graph: &Graph, node: &Node) -> bool {
    node.inputs.iter().flatten().any(|value| {
        graph.value(*value).ty.tensor().is_some_and(|ty| ty.quantization.is_some())
            || facts::producer(graph, *value)
                .is_some_and(|(_, node)| matches!(node.op, Op::DequantizeLinear(_) | Op::Requantize(_)))
    })
}

#[cfg(test)]
mod tests {
    use super::BinaryKind;
    use crate::ops::UnaryKind;
    use crate::passes::testing::{Build, becomes, binary, conv, stays, unary};

    const PASS: &[&str] = &["fuse_add_into_conv"];

    #[test]
    fn the_later_conv_adds_the_earlier_ones_result() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let w = b.weights(&[2, 2, 1, 1]);
        let first = b.node("first", conv(), &[x, w]);
        let second = b.node("second", conv(), &[x, w]);
        let y = b.node("y", binary(BinaryKind::Add), &[second, first]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2,3,3]
          first: float32[1,2,3,3] = Conv(x, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) auto_pad=NOTSET, group=1
          y: float32[1,2,3,3] = Conv(x, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}, _, first) auto_pad=NOTSET, group=1 // second + y
          output y
        ");
    }

    #[test]
    fn a_shortcut_around_a_conv() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let w = b.weights(&[2, 2, 1, 1]);
        let relu = b.node("relu", unary(UnaryKind::Relu), &[x]);
        let y = b.node("conv", conv(), &[relu, w]);
        let y = b.node("y", binary(BinaryKind::Add), &[relu, y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2,3,3]
          relu: float32[1,2,3,3] = Relu(x)
          y: float32[1,2,3,3] = Conv(relu, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}, _, relu) auto_pad=NOTSET, group=1 // conv + y
          output y
        ");
    }

    #[test]
    fn not_with_broadcasting_nor_when_the_sum_is_read_elsewhere() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let row = b.input("row", &[1, 2, 1, 3]);
        let w = b.weights(&[2, 2, 1, 1]);
        let first = b.node("first", conv(), &[x, w]);
        let wide = b.node("wide", binary(BinaryKind::Add), &[first, row]);
        let second = b.node("second", conv(), &[x, w]);
        let y = b.node("y", binary(BinaryKind::Add), &[second, x]);
        stays(&b.finish(&[wide, second, y]), PASS);
    }
}
