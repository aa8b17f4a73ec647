//! `LayerNormalization` and `RMSNormalization` that exporters spell out (mean, difference, mean of squares, root, quotient,
//! scale, bias) become one node.

use armet_tensor::Shape;

use super::patterns;
use super::{PassContext, facts, rewrite};
use crate::ops::{BinaryKind, LayerNormalization, ReduceKind, UnaryKind};
use crate::{Graph, GraphError, Node, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| recognise(graph, *id).is_some()).count())
}

/// A mean over trailing axes that keeps them.
struct Mean {
    of: ValueId,
    axis: usize,
}

/// `x / sqrt(mean(x^2) + epsilon)` before it is said what x is.
struct Normalized {
    numerator: ValueId,
    squares: Mean,
    epsilon: f64,
}

fn recognise(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let normalized = quotient(graph, node)?;
    let (squared, axis) = (square_of(graph, normalized.squares.of)?, normalized.squares.axis);
    if squared != normalized.numerator {
        return None;
    }
    let centred = match patterns::binary(graph, squared) {
        Some((BinaryKind::Sub, x, mean)) => {
            trailing_mean(graph, mean).filter(|mean| mean.of == x && mean.axis == axis).map(|_| x)
        }
        _ => None,
    };
    let data = centred.unwrap_or(squared);
    let output = node.output()?;
    if !facts::same_type(graph, data, output) {
        return None;
    }
    let op = LayerNormalization {
        axis: axis as i64,
        epsilon: normalized.epsilon as f32,
        root_mean_square: centred.is_none(),
    };
    rewrite::become_op(graph, id, op, &[Some(data)]);
    if take_constant(graph, id, BinaryKind::Mul, axis, 1).is_some() {
        take_constant(graph, id, BinaryKind::Add, axis, 2);
    }
    Some(())
}

/// `numerator / sqrt(mean + epsilon)`, or times the reciprocal of the root.
fn quotient(graph: &Graph, node: &Node) -> Option<Normalized> {
    let Op::Binary(op) = &node.op else { return None };
    let (a, b) = (node.input(0)?, node.input(1)?);
    let found = |numerator: ValueId, variance: ValueId| {
        let (mean, epsilon) = patterns::plus_number(graph, variance)?;
        Some(Normalized { numerator, squares: trailing_mean(graph, mean)?, epsilon })
    };
    match op.kind {
        BinaryKind::Div => found(a, root_of(graph, b)?),
        BinaryKind::Mul => match (inverse_root_of(graph, b), inverse_root_of(graph, a)) {
            (Some(variance), _) => found(a, variance),
            (None, Some(variance)) => found(b, variance),
            _ => None,
        },
        _ => None,
    }
}

fn root_of(graph: &Graph, value: ValueId) -> Option<ValueId> {
    if let Some((UnaryKind::Sqrt, argument)) = patterns::unary(graph, value) {
        return Some(argument);
    }
    power_of(graph, value, 0.5)
}

fn power_of(graph: &Graph, value: ValueId, exponent: f64) -> Option<ValueId> {
    match patterns::binary(graph, value)? {
        (BinaryKind::Pow, base, power) if facts::scalar(graph, power) == Some(exponent) => Some(base),
        _ => None,
    }
}

fn inverse_root_of(graph: &Graph, value: ValueId) -> Option<ValueId> {
    if let Some((UnaryKind::Reciprocal, root)) = patterns::unary(graph, value) {
        return root_of(graph, root);
    }
    match patterns::binary(graph, value)? {
        (BinaryKind::Div, one, root) if facts::scalar(graph, one) == Some(1.0) => root_of(graph, root),
        _ => power_of(graph, value, -0.5),
    }
}

fn square_of(graph: &Graph, value: ValueId) -> Option<ValueId> {
    match patterns::binary(graph, value)? {
        (BinaryKind::Mul, a, b) if a == b => Some(a),
        _ => power_of(graph, value, 2.0),
    }
}

fn trailing_mean(graph: &Graph, value: ValueId) -> Option<Mean> {
    let (_, node) = facts::producer(graph, value)?;
    let Op::Reduce(op) = &node.op else { return None };
    let of = node.input(0)?;
    let rank = facts::rank(graph, of)?;
    let mut axes: Vec<i64> = facts::ints(graph, node.input(1)?)?;
    for axis in &mut axes {
        *axis += if *axis < 0 { rank as i64 } else { 0 };
    }
    axes.sort_unstable();
    let first = usize::try_from(*axes.first()?).ok()?;
    let trailing = axes.iter().copied().eq(first as i64..rank as i64);
    (op.kind == ReduceKind::Mean && op.keep_dims && trailing).then_some(Mean { of, axis: first })
}

/// Takes the Mul or Add with a constant of the normalized shape that follows, as scale or bias.
fn take_constant(graph: &mut Graph, id: NodeId, kind: BinaryKind, axis: usize, index: usize) -> Option<()> {
    let given = graph.node(id).output()?;
    let next = facts::only_consumer(graph, given)?;
    let node = graph.node(next);
    let Op::Binary(op) = &node.op else { return None };
    let (a, b) = (node.input(0)?, node.input(1)?);
    let other = if a == given { b } else { a };
    let shape: Shape =
        facts::dims(graph, given)?[axis..].iter().map(crate::Dim::fixed).collect::<Option<_>>()?;
    let tensor = facts::plain_constant(graph, other)?;
    let lead = tensor.shape().len().checked_sub(shape.len())?;
    if op.kind != kind
        || !facts::same_type(graph, given, node.output()?)
        || tensor.shape()[lead..] != shape[..]
        || tensor.shape()[..lead].iter().any(|d| *d != 1)
    {
        return None;
    }
    let constant = if lead == 0 {
        other
    } else {
        let tensor = tensor.reshape(shape).ok()?;
        let name = rewrite::derived(graph, other, "flat");
        graph.add_constant(name, tensor)
    };
    graph.set_input(id, index, Some(constant));
    rewrite::take_over(graph, id, next);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Reduce;
    use crate::passes::testing::{Build, becomes, binary, stays, unary};

    const PASS: &[&str] = &["recognise_layer_normalization"];
    const MEAN: Reduce = Reduce { kind: ReduceKind::Mean, keep_dims: true, noop_with_empty_axes: false };

    fn mean_of_squares(b: &mut Build, value: ValueId, axis: i64) -> ValueId {
        let axes = b.ints(&[axis]);
        let two = b.number(2.0);
        let epsilon = b.number(0.001);
        let square = b.node("square", binary(BinaryKind::Pow), &[value, two]);
        let mean = b.node("variance", MEAN, &[square, axes]);
        b.node("sum", binary(BinaryKind::Add), &[mean, epsilon])
    }

    #[test]
    fn with_scale_and_bias() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 4]);
        let axes = b.ints(&[-1]);
        let (scale, bias) = (b.weights(&[4]), b.weights(&[1, 1, 4]));
        let mean = b.node("mean", MEAN, &[x, axes]);
        let centred = b.node("centred", binary(BinaryKind::Sub), &[x, mean]);
        let variance = mean_of_squares(&mut b, centred, 2);
        let root = b.node("root", unary(UnaryKind::Sqrt), &[variance]);
        let y = b.node("y", binary(BinaryKind::Div), &[centred, root]);
        let y = b.node("scaled", binary(BinaryKind::Mul), &[y, scale]);
        let y = b.node("shifted", binary(BinaryKind::Add), &[y, bias]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3,4]
          shifted: float32[2,3,4] = LayerNormalization(x, c2 float32[4] {0.8165615, 0.9957817, 1.2210027, 0.6943592}, c3_flat float32[4] {0.69426465, 1.0128944, 1.1273487, 0.7730672}) axis=2, epsilon=0.001 // y + mean + centred + square + variance + sum + root + scaled + shifted
          output shifted
        ");
    }

    #[test]
    fn root_mean_square() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 4]);
        let scale = b.weights(&[4]);
        let variance = mean_of_squares(&mut b, x, -1);
        let root = b.node("root", unary(UnaryKind::Sqrt), &[variance]);
        let inverse = b.node("inverse", unary(UnaryKind::Reciprocal), &[root]);
        let y = b.node("y", binary(BinaryKind::Mul), &[x, inverse]);
        let y = b.node("scaled", binary(BinaryKind::Mul), &[scale, y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,4]
          scaled: float32[2,4] = RMSNormalization(x, c1 float32[4] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) axis=1, epsilon=0.001 // y + square + variance + sum + root + inverse + scaled
          output scaled
        ");
    }

    #[test]
    fn not_over_an_axis_in_front() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 4]);
        let variance = mean_of_squares(&mut b, x, 1);
        let root = b.node("root", unary(UnaryKind::Sqrt), &[variance]);
        let y = b.node("y", binary(BinaryKind::Div), &[x, root]);
        stays(&b.finish(&[y]), PASS);
    }
}
