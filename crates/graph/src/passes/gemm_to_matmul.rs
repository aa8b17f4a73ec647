//! A Gemm becomes a `MatMul` with a bias, or with an added tensor, where its third input allows.

use super::{PassContext, facts, rewrite};
use crate::ops::{Gemm, MatMul};
use crate::{Dim, Graph, GraphError, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| convert(graph, *id).is_some()).count())
}

/// What becomes of Gemm's third input.
enum Addend {
    None,
    Bias(ValueId),
    Whole(ValueId),
}

fn convert(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let Op::Gemm(op) = &node.op else { return None };
    let op = op.clone();
    let (a, b, output) = (node.input(0)?, node.input(1)?, node.output()?);
    if !facts::element(graph, output)?.is_float() {
        return None;
    }
    let addend = match node.input(2) {
        None => Addend::None,
        Some(c) => addend(graph, &op, b, c, output)?,
    };
    let matmul = MatMul {
        transpose_a: op.transpose_a,
        transpose_b: op.transpose_b,
        alpha: op.alpha,
        activation: None,
    };
    let inputs = match addend {
        Addend::None => vec![Some(a), Some(b)],
        Addend::Bias(bias) => vec![Some(a), Some(b), Some(bias)],
        Addend::Whole(whole) => vec![Some(a), Some(b), None, Some(whole)],
    };
    rewrite::become_op(graph, id, matmul, &inputs);
    Some(())
}

fn addend(graph: &mut Graph, op: &Gemm, b: ValueId, c: ValueId, output: ValueId) -> Option<Addend> {
    let columns = facts::dims(graph, b)?.get(usize::from(!op.transpose_b))?.clone();
    let dims = facts::dims(graph, c)?;
    if op.beta == 1.0 {
        if dims.len() == 1 && facts::same_dim(&dims[0], &columns) {
            return Some(Addend::Bias(c));
        }
        if facts::plain_constant(graph, c).is_none() && facts::same_type(graph, c, output) {
            return Some(Addend::Whole(c));
        }
    }
    let columns = columns.fixed()?;
    let (last, leading) = match dims {
        [] => (&Dim::Fixed(1), &[][..]),
        [leading @ .., last] => (last, leading),
    };
    if leading.iter().any(|d| !d.is(1)) {
        return None;
    }
    let mut values = facts::numbers(graph, c)?;
    let element = facts::element(graph, c)?;
    if last.is(1) && values.len() == 1 {
        values = vec![values[0]; columns];
    }
    if values.len() != columns {
        return None;
    }
    values.iter_mut().for_each(|v| *v *= f64::from(op.beta));
    if values.iter().all(|v| *v == 0.0) {
        return Some(Addend::None);
    }
    let name = rewrite::derived(graph, c, "bias");
    Some(Addend::Bias(rewrite::constant(graph, name, element, [columns], &values)?))
}

#[cfg(test)]
mod tests {
    use super::Gemm;
    use crate::passes::testing::{Build, becomes, stays};

    const PASS: &[&str] = &["gemm_to_matmul"];

    fn gemm(alpha: f32, beta: f32) -> Gemm {
        Gemm { alpha, beta, transpose_a: false, transpose_b: true }
    }

    #[test]
    fn with_its_kinds_of_third_input() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let added = b.input("added", &[2, 4]);
        let w = b.weights(&[4, 3]);
        let (row, number) = (b.weights(&[1, 4]), b.number(2.0));
        let none = b.node("none", gemm(2.0, 1.0), &[x, w]);
        let scaled = b.node("scaled", gemm(1.0, 0.5), &[x, w, row]);
        let wide = b.node("wide", gemm(1.0, 1.0), &[x, w, number]);
        let whole = b.node("whole", gemm(1.0, 1.0), &[x, w, added]);
        let graph = b.finish(&[none, scaled, wide, whole]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3]
          input added: float32[2,4]
          none: float32[2,4] = MatMul(x, c1 float32[4,3] {0.8165615, 0.9957817, 1.2210027, ..}) transpose_a=0, transpose_b=1, alpha=2
          scaled: float32[2,4] = MatMul(x, c1 float32[4,3] {0.8165615, 0.9957817, 1.2210027, ..}, c2_bias float32[4] {0.35246894, 0.39003947, 0.34298268, 0.20851749}) transpose_a=0, transpose_b=1, alpha=1
          wide: float32[2,4] = MatMul(x, c1 float32[4,3] {0.8165615, 0.9957817, 1.2210027, ..}, c3_bias float32[4] {2, 2, 2, 2}) transpose_a=0, transpose_b=1, alpha=1
          whole: float32[2,4] = MatMul(x, c1 float32[4,3] {0.8165615, 0.9957817, 1.2210027, ..}, _, added) transpose_a=0, transpose_b=1, alpha=1
          output none
          output scaled
          output wide
          output whole
        ");
    }

    #[test]
    fn not_with_a_column() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let w = b.weights(&[4, 3]);
        let column = b.weights(&[2, 1]);
        let y = b.node("y", gemm(1.0, 1.0), &[x, w, column]);
        stays(&b.finish(&[y]), PASS);
    }
}
