//! An Add of a vector that is no constant, along the last axis of a `MatMul`'s result, becomes the `MatMul`'s bias.
//! (Constants are the business of `fold_scale_into_conv`.)

use super::{PassContext, facts, rewrite};
use crate::ops::BinaryKind;
use crate::{Graph, GraphError, NodeId, Op};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| fold(graph, *id).is_some()).count())
}

fn fold(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let Op::MatMul(op) = &node.op else { return None };
    let (product, weights) = (node.input(1).and(node.output())?, node.input(1)?);
    if op.activation.is_some() || node.inputs.iter().skip(2).any(Option::is_some) {
        return None;
    }
    let weight_dims = facts::dims(graph, weights)?;
    let columns = match weight_dims {
        [.., columns, _] if op.transpose_b => columns,
        [.., _, columns] if !op.transpose_b => columns,
        _ => return None,
    };
    let add = facts::only_consumer(graph, product)?;
    let sum = graph.node(add);
    let Op::Binary(binary) = &sum.op else { return None };
    let (a, b) = (sum.input(0)?, sum.input(1)?);
    let bias = if a == product { b } else { a };
    let vector = matches!(facts::dims(graph, bias)?, [length] if facts::same_dim(length, columns));
    let fits = vector
        && binary.kind == BinaryKind::Add
        && facts::element(graph, product)?.is_float()
        && facts::element(graph, bias) == facts::element(graph, product);
    if !fits {
        return None;
    }
    graph.set_input(id, 2, Some(bias));
    rewrite::take_over(graph, id, add);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::BinaryKind;
    use crate::passes::testing::{Build, becomes, binary, matmul, stays};

    const PASS: &[&str] = &["fold_add_into_matmul"];

    #[test]
    fn a_vector_becomes_the_bias() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let bias = b.input("bias", &[4]);
        let w = b.weights(&[3, 4]);
        let y = b.node("product", matmul(), &[x, w]);
        let y = b.node("y", binary(BinaryKind::Add), &[bias, y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3]
          input bias: float32[4]
          y: float32[2,4] = MatMul(x, c1 float32[3,4] {0.8165615, 0.9957817, 1.2210027, ..}, bias) transpose_a=0, transpose_b=0, alpha=1 // product + y
          output y
        ");
    }

    #[test]
    fn not_something_longer() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let other = b.input("other", &[2, 1]);
        let w = b.weights(&[3, 4]);
        let y = b.node("product", matmul(), &[x, w]);
        let y = b.node("y", binary(BinaryKind::Add), &[y, other]);
        stays(&b.finish(&[y]), PASS);
    }
}
