//! Reshape, Flatten, Squeeze, Unsqueeze, and a Transpose that moves only axes of length one, become one Reshape with a
//! constant shape; of several in a row the last reads what the first read.

use super::{PassContext, facts, rewrite};
use crate::ops::Reshape;
use crate::{Dim, Graph, GraphError, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| merge(graph, *id).is_some()).count())
}

/// Whether a node gives the elements of its first input in the same order under another shape.
fn keeps_elements(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    match &node.op {
        Op::Reshape(_) | Op::Flatten(_) | Op::Squeeze(_) | Op::Unsqueeze(_) => true,
        Op::Transpose(op) => {
            let Some(dims) = node.input(0).and_then(|v| facts::dims(graph, v)) else { return false };
            let reversed: Vec<usize> = (0..dims.len()).rev().collect();
            let perm = if op.perm.is_empty() { &reversed } else { &op.perm };
            let long: Vec<usize> =
                perm.iter().copied().filter(|axis| dims.get(*axis).is_some_and(|d| !d.is(1))).collect();
            long.is_sorted()
        }
        _ => false,
    }
}

/// The shape input that gives these dimensions whatever the input is.
fn target(dims: &[Dim]) -> Option<(Vec<i64>, bool)> {
    let free = dims.iter().filter(|d| d.fixed().is_none()).count();
    let empty = dims.iter().any(|d| d.is(0));
    if free > 1 || (free == 1 && empty) {
        return None;
    }
    let shape = dims.iter().map(|d| d.fixed().map_or(Some(-1), |n| i64::try_from(n).ok()));
    Some((shape.collect::<Option<_>>()?, empty))
}

/// The value at the beginning of a row of reshapes.
fn origin(graph: &Graph, mut value: ValueId) -> ValueId {
    while let Some((id, node)) = facts::producer(graph, value)
        && keeps_elements(graph, id)
        && let Some(input) = node.input(0)
    {
        value = input;
    }
    value
}

fn merge(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    if !keeps_elements(graph, id) {
        return None;
    }
    let (input, output) = (node.input(0)?, node.output()?);
    let (shape, allow_zero) = target(facts::dims(graph, output)?)?;
    let origin = origin(graph, input);
    let canonical = matches!(&node.op, Op::Reshape(_))
        && origin == input
        && node.input(1).and_then(|v| facts::ints(graph, v)).is_some_and(|given| given == shape);
    if canonical {
        return None;
    }
    let types = |v: ValueId| graph.value(v).ty.tensor().map(|t| (t.element, t.quantization.clone()));
    if types(origin) != types(output) {
        return None;
    }
    if facts::same_shape(graph, origin, output) {
        graph.replace_uses(output, origin);
        rewrite::discard(graph, id);
        return Some(());
    }
    let name = rewrite::derived(graph, output, "shape");
    let constant = rewrite::int_vector(graph, name, &shape);
    rewrite::become_op(graph, id, Reshape { allow_zero }, &[Some(origin), Some(constant)]);
    Some(())
}

#[cfg(test)]
mod tests {
    use armet_tensor::ElementType;

    use crate::ops::{Concat, Flatten, Reshape, ShapeOf, Squeeze, Transpose, Unsqueeze};
    use crate::passes::testing::{Build, becomes, stays};
    use crate::{Dim, TensorType};

    const PASS: &[&str] = &["merge_reshapes"];

    #[test]
    fn a_row_becomes_one() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 1, 1]);
        let axes = b.ints(&[2, 3]);
        let front = b.ints(&[0]);
        let y = b.node("transpose", Transpose { perm: vec![0, 2, 3, 1] }, &[x]);
        let y = b.node("flatten", Flatten { axis: 1 }, &[y]);
        let y = b.node("unsqueeze", Unsqueeze, &[y, front]);
        let z = b.node("squeeze", Squeeze, &[x, axes]);
        let z = b.node("back", Unsqueeze, &[z, axes]);
        let graph = b.finish(&[y, z]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3,1,1]
          unsqueeze: float32[1,2,3] = Reshape(x, unsqueeze_shape int64[3] {1, 2, 3}) allowzero=0 // unsqueeze + flatten + transpose
          output unsqueeze
          output back = x
        ");
    }

    #[test]
    fn one_free_dimension_is_inferred_at_run_time() {
        let mut b = Build::new();
        let ty = TensorType::new(ElementType::F32, [Dim::symbol("n"), Dim::Fixed(2), Dim::Fixed(3)]);
        let x = b.graph.add_input("x", ty);
        let shape = b.node("shape", ShapeOf { start: 0, end: Some(1) }, &[x]);
        let six = b.ints(&[6]);
        let target = b.node("target", Concat { axis: 0 }, &[shape, six]);
        let y = b.node("y", Reshape { allow_zero: false }, &[x, target]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[n,2,3]
          y: float32[n,6] = Reshape(x, y_shape int64[2] {-1, 6}) allowzero=0 // y + shape + target
          output y
        ");
    }

    #[test]
    fn not_a_transpose_that_moves_elements() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let shape = b.ints(&[6]);
        let y = b.node("transpose", Transpose { perm: vec![1, 0] }, &[x]);
        let y = b.node("y", Reshape { allow_zero: false }, &[y, shape]);
        stays(&b.finish(&[y]), PASS);
    }
}
