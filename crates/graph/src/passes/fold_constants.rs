//! Nodes whose inputs are all constants are evaluated, and integer values that follow from concrete shapes become
//! constants, so that the shape arithmetic which exporters leave behind (Shape, Gather, Concat, Reshape) disappears.
//!
//! A result much larger than its inputs is left to run time (an Expand of one number to a picture), and so is
//! `DequantizeLinear`: quantized weights stay small until `qdq_to_typed_values` has decided about them.

use super::PassContext;
use crate::infer::{Inference, infer};
use crate::{Graph, GraphError, NodeId, Op, TensorType, Value, ValueId, evaluate_node, is_foldable};

/// Results up to this many bytes are always folded.
const SMALL: usize = 1 << 20;
/// Larger results are folded when they are at most this many times their inputs.
const GROWTH: usize = 4;

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    fold_all(graph)
}

/// Folds until nothing more follows; types are inferred on the way.
pub(super) fn fold_all(graph: &mut Graph) -> Result<usize, GraphError> {
    let mut rewrites = 0;
    loop {
        let Inference { cuts, known } = infer(graph)?;
        for (value, tensor) in known {
            let Some(producer) = graph.producer(value) else { continue };
            graph.set_constant(value, tensor);
            remove_if_idle(graph, producer);
            rewrites += 1;
        }
        let folded = fold_nodes(graph, &|op| !matches!(op, Op::DequantizeLinear(_)))?;
        rewrites += folded;
        // What folding learnt tells inference more only where inference had to stop.
        if folded == 0 || cuts.is_empty() {
            return Ok(rewrites);
        }
    }
}

/// Evaluates the foldable nodes that `wanted` names, in order.
pub(super) fn fold_nodes(graph: &mut Graph, wanted: &dyn Fn(&Op) -> bool) -> Result<usize, GraphError> {
    let mut folded = 0;
    for id in graph.order()? {
        if !graph.node(id).inputs.is_empty() && is_foldable(graph, id) && wanted(&graph.node(id).op) {
            folded += usize::from(fold(graph, id));
        }
    }
    Ok(folded)
}

fn fold(graph: &mut Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let bytes = |value: ValueId| graph.constant(value).map_or(0, |t| t.bytes().len());
    let given: usize = node.inputs.iter().flatten().map(|v| bytes(*v)).sum();
    let limit = SMALL.max(given.saturating_mul(GROWTH));
    let outputs: Vec<Option<ValueId>> = node.outputs.to_vec();
    let expected: Option<usize> =
        outputs.iter().flatten().map(|v| graph.value(*v).ty.tensor().and_then(TensorType::byte_len)).sum();
    if expected.is_none_or(|bytes| bytes > limit) {
        return false;
    }
    let inputs: Vec<Option<Value>> =
        node.inputs.iter().map(|v| v.and_then(|v| graph.constant(v)).map(|t| t.clone().into())).collect();
    let inputs: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
    // A node that cannot be evaluated stays: whoever runs it is told what is wrong with it.
    let Ok(results) = evaluate_node(graph, id, &inputs, 0) else { return false };
    if results.len() < outputs.len() || results.iter().any(|r| r.tensor().is_none()) {
        return false;
    }
    for (output, result) in outputs.iter().zip(results) {
        if let (Some(output), Value::Tensor(tensor)) = (output, result) {
            graph.set_constant(*output, tensor);
        }
    }
    graph.remove_node(id);
    true
}

fn remove_if_idle(graph: &mut Graph, id: NodeId) {
    if graph.get_node(id).is_some_and(|node| node.outputs.iter().all(Option::is_none)) {
        graph.remove_node(id);
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::{BinaryKind, Cast, Concat, ConstantOfShape, Expand, Gather, Reshape, ShapeOf};
    use crate::passes::testing::{Build, becomes, binary, stays};
    use crate::{Dim, TensorType};
    use armet_tensor::{ElementType, Tensor};

    const PASS: &[&str] = &["fold_constants"];

    #[test]
    fn shape_arithmetic_and_constants() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 4]);
        let zero = b.ints(&[0]);
        let rest = b.ints(&[-1]);
        let two = b.floats(&[2.0]);
        let four = b.floats(&[4.0]);
        let shape = b.node("shape", ShapeOf { start: 0, end: None }, &[x]);
        let first = b.node("first", Gather { axis: 0 }, &[shape, zero]);
        let target = b.node("target", Concat { axis: 0 }, &[first, rest]);
        let y = b.node("y", Reshape { allow_zero: false }, &[x, target]);
        let eight = b.node("eight", binary(BinaryKind::Mul), &[two, four]);
        let z = b.node("z", binary(BinaryKind::Add), &[y, eight]);
        let graph = b.finish(&[z]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3,4]
          y: float32[2,12] = Reshape(x, target int64[2] {2, -1}) allowzero=0
          z: float32[2,12] = Add(y, eight float32[1] {8})
          output z
        ");
    }

    #[test]
    fn shapes_that_pass_through_real_numbers_are_found_in_rounds() {
        let mut b = Build::new();
        let x = b.input("x", &[4, 6]);
        let half = b.floats(&[0.5]);
        let shape = b.node("shape", ShapeOf { start: 1, end: None }, &[x]);
        let float = b.node("float", Cast { to: ElementType::F32, saturate: true }, &[shape]);
        let halved = b.node("halved", binary(BinaryKind::Mul), &[float, half]);
        let length = b.node("length", Cast { to: ElementType::I64, saturate: true }, &[halved]);
        let ones = ConstantOfShape { value: Tensor::vector(&[1i64]) };
        let ones = b.node("ones", ones, &[length]);
        let doubled = b.node("doubled", ShapeOf { start: 0, end: None }, &[ones]);
        let graph = b.finish(&[doubled]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[4,6]
          output doubled = int64[1] {3}
        ");
    }

    #[test]
    fn what_would_grow_large_is_left_to_run_time() {
        let mut b = Build::new();
        let one = b.floats(&[1.0]);
        let shape = b.ints(&[1024, 1024]);
        let y = b.node("y", Expand, &[one, shape]);
        stays(&b.finish(&[y]), PASS);
    }

    #[test]
    fn free_dimensions_stay_free() {
        let mut b = Build::new();
        let ty = TensorType::new(ElementType::F32, [Dim::symbol("n"), Dim::Fixed(2)]);
        let x = b.graph.add_input("x", ty);
        let y = b.node("y", ShapeOf { start: 0, end: Some(1) }, &[x]);
        let z = b.node("z", ShapeOf { start: 1, end: None }, &[x]);
        let graph = b.finish(&[y, z]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[n,2]
          y: int64[1] = Shape(x) start=0, end=1
          output y
          output z = int64[1] {2}
        ");
    }
}
