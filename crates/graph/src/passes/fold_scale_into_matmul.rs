//! A Mul or Div by one number before or behind a `MatMul` goes into the `MatMul`'s `alpha`.

use super::{PassContext, facts, rewrite};
use crate::ops::BinaryKind;
use crate::{Graph, GraphError, Node, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut rewrites = 0;
    for id in facts::node_ids(graph) {
        while scale_input(graph, id, 0).is_some() || scale_input(graph, id, 1).is_some() {
            rewrites += 1;
        }
        while scale_output(graph, id).is_some() {
            rewrites += 1;
        }
    }
    Ok(rewrites)
}

/// `value * number`, where the number does not widen the value.
fn scaled(graph: &Graph, node: &Node) -> Option<(ValueId, f64)> {
    let Op::Binary(op) = &node.op else { return None };
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (value, number) = match (op.kind, facts::scalar(graph, a), facts::scalar(graph, b)) {
        (BinaryKind::Mul, None, Some(number)) => (a, number),
        (BinaryKind::Mul, Some(number), None) => (b, number),
        (BinaryKind::Div, None, Some(number)) if number != 0.0 => (a, 1.0 / number),
        _ => return None,
    };
    let output = node.output()?;
    (facts::element(graph, output)?.is_float() && facts::same_type(graph, value, output))
        .then_some((value, number))
}

fn multiply(graph: &mut Graph, id: NodeId, factor: f64) {
    if let Op::MatMul(op) = graph.node_mut(id).op {
        op.alpha = (f64::from(op.alpha) * factor) as f32;
    }
}

fn scale_input(graph: &mut Graph, id: NodeId, index: usize) -> Option<()> {
    let node = graph.get_node(id)?;
    if !matches!(node.op, Op::MatMul(_)) {
        return None;
    }
    let (before, producer) = facts::sole_producer(graph, node.input(index)?)?;
    let (value, factor) = scaled(graph, producer)?;
    multiply(graph, id, factor);
    rewrite::absorb(graph, id, before);
    graph.set_input(id, index, Some(value));
    graph.remove_node(before);
    Some(())
}

fn scale_output(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let Op::MatMul(op) = &node.op else { return None };
    if op.activation.is_some() || node.inputs.iter().skip(2).any(Option::is_some) {
        return None;
    }
    let product = node.output()?;
    let next = facts::only_consumer(graph, product)?;
    let (value, factor) = scaled(graph, graph.node(next))?;
    if value != product {
        return None;
    }
    multiply(graph, id, factor);
    rewrite::take_over(graph, id, next);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::BinaryKind;
    use crate::passes::testing::{Build, becomes, binary, matmul, stays};

    const PASS: &[&str] = &["fold_scale_into_matmul"];

    #[test]
    fn factors_on_all_sides() {
        let mut b = Build::new();
        let (q, k) = (b.input("q", &[2, 3, 4]), b.input("k", &[2, 4, 3]));
        let (two, eight, half) = (b.number(2.0), b.number(8.0), b.number(0.5));
        let q = b.node("q2", binary(BinaryKind::Mul), &[two, q]);
        let k = b.node("k2", binary(BinaryKind::Mul), &[k, half]);
        let y = b.node("y", matmul(), &[q, k]);
        let y = b.node("scaled", binary(BinaryKind::Div), &[y, eight]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input q: float32[2,3,4]
          input k: float32[2,4,3]
          scaled: float32[2,3,3] = MatMul(q, k) transpose_a=0, transpose_b=0, alpha=0.125 // y + q2 + k2 + scaled
          output scaled
        ");
    }

    #[test]
    fn not_factors_that_others_read_or_that_differ() {
        let mut b = Build::new();
        let (q, k) = (b.input("q", &[3, 4]), b.input("k", &[4, 3]));
        let (two, row) = (b.number(2.0), b.weights(&[3]));
        let q = b.node("q2", binary(BinaryKind::Mul), &[two, q]);
        let y = b.node("y", matmul(), &[q, k]);
        let z = b.node("z", binary(BinaryKind::Mul), &[y, row]);
        stays(&b.finish(&[q, z]), PASS);
    }
}
