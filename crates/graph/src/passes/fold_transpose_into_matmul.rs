//! A Transpose that exchanges the last two axes of a `MatMul`'s operand becomes a flag of the `MatMul`.

use super::merge_transposes::permutation;
use super::{PassContext, facts, rewrite};
use crate::{Graph, GraphError, NodeId, Op};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut rewrites = 0;
    for id in facts::node_ids(graph) {
        rewrites += usize::from(fold(graph, id, 0).is_some()) + usize::from(fold(graph, id, 1).is_some());
    }
    Ok(rewrites)
}

fn fold(graph: &mut Graph, id: NodeId, index: usize) -> Option<()> {
    let node = graph.get_node(id)?;
    let Op::MatMul(op) = &node.op else { return None };
    let mut op = op.clone();
    let (transpose, producer) = facts::sole_producer(graph, node.input(index)?)?;
    let source = producer.input(0)?;
    let perm = permutation(graph, transpose)?;
    let rank = perm.len();
    let exchanges = rank >= 2
        && perm[rank - 2] == rank - 1
        && perm[rank - 1] == rank - 2
        && perm[..rank - 2].iter().enumerate().all(|(i, p)| i == *p);
    let per_axis = facts::quantization(graph, source).is_some_and(|q| !q.is_per_tensor());
    if !exchanges || per_axis || !facts::same_storage(graph, source, node.input(index)?) {
        return None;
    }
    let flag = if index == 0 { &mut op.transpose_a } else { &mut op.transpose_b };
    *flag = !*flag;
    *graph.node_mut(id).op = op.into();
    rewrite::absorb(graph, id, transpose);
    graph.set_input(id, index, Some(source));
    graph.remove_node(transpose);
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::ops::Transpose;
    use crate::passes::testing::{Build, becomes, matmul, stays};

    const PASS: &[&str] = &["fold_transpose_into_matmul"];

    #[test]
    fn of_both_operands() {
        let mut b = Build::new();
        let (q, k) = (b.input("q", &[2, 4, 3]), b.input("k", &[5, 4]));
        let q = b.node("qt", Transpose { perm: vec![0, 2, 1] }, &[q]);
        let k = b.node("kt", Transpose { perm: Vec::new() }, &[k]);
        let y = b.node("y", matmul(), &[q, k]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input q: float32[2,4,3]
          input k: float32[5,4]
          y: float32[2,3,5] = MatMul(q, k) transpose_a=1, transpose_b=1, alpha=1 // y + qt + kt
          output y
        ");
    }

    #[test]
    fn not_of_other_axes() {
        let mut b = Build::new();
        let (q, k) = (b.input("q", &[3, 2, 4]), b.input("k", &[4, 5]));
        let q = b.node("qt", Transpose { perm: vec![1, 0, 2] }, &[q]);
        let y = b.node("y", matmul(), &[q, k]);
        stays(&b.finish(&[y]), PASS);
    }
}
