//! Nodes that give their input back are removed: Identity, Cast to the same type, movements of data that move nothing
//! given the shapes, arithmetic with neutral constants, Clip without limits.

use armet_tensor::ElementType;

use super::{PassContext, facts, rewrite};
use crate::ops::{BinaryKind, CoordinateMode, PoolKind, ReduceKind, UnaryKind};
use crate::{Dim, Graph, GraphError, Node, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut rewrites = 0;
    for id in facts::node_ids(graph) {
        rewrites += drop_empty_parts(graph, id);
        if let Some(input) = same_as(graph, graph.node(id)) {
            rewrite::bypass(graph, id, input);
            rewrites += 1;
        }
    }
    Ok(rewrites)
}

/// The input that a node gives back.
fn same_as(graph: &Graph, node: &Node) -> Option<ValueId> {
    let output = node.output()?;
    if node.outputs.iter().skip(1).flatten().any(|v| !graph.consumers(*v).is_empty() || graph.is_output(*v)) {
        return None;
    }
    if let Op::Binary(op) = &node.op {
        return neutral_arithmetic(graph, node, op.kind, output);
    }
    let input = node.input(0)?;
    if matches!(node.op, Op::Identity(_)) {
        return Some(input);
    }
    if !facts::same_type(graph, input, output) {
        // A type that is not known well enough still tells that a Cast changes nothing.
        return (matches!(node.op, Op::Cast(_)) && same_plain_element(graph, input, output)).then_some(input);
    }
    moves_nothing(graph, node).then_some(input)
}

fn same_plain_element(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    let (Some(a), Some(b)) = (graph.value(a).ty.tensor(), graph.value(b).ty.tensor()) else { return false };
    a.element == b.element && a.quantization.is_none() && b.quantization.is_none()
}

/// Whether a node whose result has the type of its first input gives that input back.
fn moves_nothing(graph: &Graph, node: &Node) -> bool {
    let all_ints = |index: usize, wanted: i64| {
        node.input(index)
            .is_none_or(|v| facts::ints(graph, v).is_some_and(|v| v.iter().all(|i| *i == wanted)))
    };
    let dims = node.input(0).and_then(|v| facts::dims(graph, v)).unwrap_or_default();
    match &node.op {
        Op::Cast(_)
        | Op::Reshape(_)
        | Op::Flatten(_)
        | Op::Squeeze(_)
        | Op::Unsqueeze(_)
        | Op::Expand(_)
        | Op::Tile(_)
        | Op::Split(_) => true,
        Op::Concat(_) => node.inputs.len() == 1,
        Op::Slice(_) => all_ints(4, 1),
        Op::Pad(_) => node.input(1).is_some() && all_ints(1, 0),
        Op::Transpose(op) => {
            let rank = dims.len();
            if op.perm.is_empty() { rank < 2 } else { op.perm.iter().enumerate().all(|(i, p)| i == *p) }
        }
        Op::DepthToSpace(op) => op.block_size == 1,
        Op::SpaceToDepth(op) => op.block_size == 1,
        Op::Resize(op) => {
            let odd =
                matches!(op.coordinate, CoordinateMode::TfCropAndResize | CoordinateMode::TfHalfPixelForNn);
            let ones =
                |v: ValueId| facts::numbers(graph, v).is_some_and(|s| s.iter().all(|scale| *scale == 1.0));
            !odd && match (node.input(2), node.input(3)) {
                (Some(scales), None) => ones(scales),
                (_, sizes) => sizes.is_some(),
            }
        }
        Op::GlobalPool(op) => !matches!(op.kind, PoolKind::Lp { .. }) && dims.iter().skip(2).all(|d| d.is(1)),
        Op::Pool(op) => {
            !matches!(op.kind, PoolKind::Lp { .. })
                && op.kernel.iter().chain(&op.strides).all(|n| *n == 1)
                && op.pads.iter().all(|n| *n == 0)
        }
        Op::Reduce(op) => {
            // The result has the shape of the input, so every reduced axis has length one: unless nothing is known of
            // the axes and the whole tensor has one element, which comes to the same.
            op.keep_dims
                && matches!(
                    op.kind,
                    ReduceKind::Sum | ReduceKind::Mean | ReduceKind::Max | ReduceKind::Min | ReduceKind::Prod
                )
                && (dims.iter().all(|d| d.is(1)) || reduces_ones(graph, node, dims))
        }
        Op::Clip(_) => {
            let absent = |index: usize, infinity: f64| {
                node.input(index).is_none_or(|v| facts::scalar(graph, v) == Some(infinity))
            };
            absent(1, f64::NEG_INFINITY) && absent(2, f64::INFINITY)
        }
        Op::Unary(op) => match op.kind {
            UnaryKind::Clip { min, max } => min == f32::NEG_INFINITY && max == f32::INFINITY,
            UnaryKind::Relu => node.input(0).is_some_and(|v| is_relu_of_something(graph, v)),
            _ => false,
        },
        _ => false,
    }
}

fn reduces_ones(graph: &Graph, node: &Node, dims: &[Dim]) -> bool {
    let Some(axes) = node.input(1).and_then(|v| facts::ints(graph, v)) else { return false };
    let rank = dims.len() as i64;
    !axes.is_empty()
        && axes.iter().all(|a| {
            let axis = usize::try_from(if *a < 0 { a + rank } else { *a });
            axis.ok().and_then(|a| dims.get(a)).is_some_and(|d| d.is(1))
        })
}

fn is_relu_of_something(graph: &Graph, value: ValueId) -> bool {
    matches!(
        facts::producer(graph, value).map(|(_, node)| &node.op),
        Some(Op::Unary(op)) if op.kind == UnaryKind::Relu
    )
}

/// `x + 0`, `x - 0`, `x * 1`, `x / 1` and `x ^ 1`, where the constant does not widen the result.
fn neutral_arithmetic(graph: &Graph, node: &Node, kind: BinaryKind, output: ValueId) -> Option<ValueId> {
    let (a, b) = (node.input(0)?, node.input(1)?);
    let neutral = match kind {
        BinaryKind::Add | BinaryKind::Sub => 0.0,
        BinaryKind::Mul | BinaryKind::Div | BinaryKind::Pow => 1.0,
        _ => return None,
    };
    if facts::element(graph, output)? == ElementType::Bool {
        return None;
    }
    let is = |value: ValueId| facts::uniform(graph, value) == Some(neutral);
    if facts::same_type(graph, a, output) && is(b) {
        return Some(a);
    }
    let commutes = matches!(kind, BinaryKind::Add | BinaryKind::Mul);
    (commutes && facts::same_type(graph, b, output) && is(a)).then_some(b)
}

/// Parts of a Concat without elements are left out.
fn drop_empty_parts(graph: &mut Graph, id: NodeId) -> usize {
    let node = graph.node(id);
    let Op::Concat(op) = &node.op else { return 0 };
    let axis = op.axis;
    let empty = |value: &Option<ValueId>| {
        value.and_then(|v| facts::shape(graph, v)).is_some_and(|s| {
            let at = if axis < 0 { axis + s.len() as i64 } else { axis };
            usize::try_from(at).ok().and_then(|at| s.get(at)) == Some(&0)
        })
    };
    let kept: Vec<Option<ValueId>> = node.inputs.iter().filter(|v| !empty(v)).copied().collect();
    if kept.is_empty() || kept.len() == node.inputs.len() {
        return 0;
    }
    let op = node.op.clone();
    rewrite::become_op(graph, id, op, &kept);
    1
}

#[cfg(test)]
mod tests {
    use armet_tensor::ElementType;

    use crate::ops::{BinaryKind, UnaryKind};
    use crate::ops::{Cast, Concat, Expand, Identity, Reshape, Slice, Transpose};
    use crate::passes::testing::{Build, becomes, binary, stays, unary};

    const PASS: &[&str] = &["remove_identities"];

    #[test]
    fn what_moves_or_changes_nothing() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let shape = b.ints(&[2, 3]);
        let (zero, one) = (b.number(0.0), b.floats(&[1.0]));
        let (starts, ends) = (b.ints(&[0]), b.ints(&[i64::MAX]));
        let mut y = b.node("identity", Identity, &[x]);
        y = b.node("cast", Cast { to: ElementType::F32, saturate: true }, &[y]);
        y = b.node("reshape", Reshape { allow_zero: false }, &[y, shape]);
        y = b.node("expand", Expand, &[y, shape]);
        y = b.node("transpose", Transpose { perm: vec![0, 1] }, &[y]);
        y = b.node("slice", Slice, &[y, starts, ends]);
        y = b.node("concat", Concat { axis: 1 }, &[y]);
        y = b.node("add", binary(BinaryKind::Add), &[zero, y]);
        y = b.node("div", binary(BinaryKind::Div), &[y, one]);
        y = b.node("relu", unary(UnaryKind::Relu), &[y]);
        y = b.node("again", unary(UnaryKind::Relu), &[y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3]
          relu: float32[2,3] = Relu(x)
          output again = relu
        ");
    }

    #[test]
    fn empty_parts_of_a_concat() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let none = b.input("none", &[2, 0]);
        let y = b.node("y", Concat { axis: -1 }, &[x, none, x]);
        let z = b.node("z", Concat { axis: -1 }, &[none, x]);
        let graph = b.finish(&[y, z]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3]
          input none: float32[2,0]
          y: float32[2,6] = Concat(x, x) axis=-1
          output y
          output z = x
        ");
    }

    #[test]
    fn not_what_only_looks_so() {
        let mut b = Build::new();
        let x = b.input("x", &[3, 3]);
        let row = b.input("row", &[3]);
        let zeros = b.constant(armet_tensor::Tensor::new([1, 3], &[0f32; 3]).unwrap());
        let [starts, ends, axes, steps] = [-1, i64::MIN, 0, -1].map(|v| b.ints(&[v]));
        let reversed = b.node("reversed", Slice, &[x, starts, ends, axes, steps]);
        let transposed = b.node("transposed", Transpose { perm: vec![1, 0] }, &[x]);
        let widened = b.node("widened", binary(BinaryKind::Add), &[row, zeros]);
        let negated = b.node("negated", binary(BinaryKind::Sub), &[zeros, x]);
        stays(&b.finish(&[reversed, transposed, widened, negated]), PASS);
    }
}
