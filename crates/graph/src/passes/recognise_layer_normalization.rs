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
    use armet_tensor::ElementType;

    use super::*;
    use crate::TensorType;
    use crate::ops::{Cast, Reduce, numbers};
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

    /// Root mean squares of a value in half precision, computed in single precision between two casts.
    fn between_casts(read: bool) -> Graph {
        let cast = |to| Cast { to, saturate: true };
        let mut b = Build::new();
        let x = b.graph.add_input("x", TensorType::fixed(ElementType::F16, &[2, 4]));
        let scale = numbers::from_f64(ElementType::F16, [4], &[0.5, 1.0, -2.0, 3.0]).unwrap();
        let scale = b.constant(scale);
        let wide = b.node("wide", cast(ElementType::F32), &[x]);
        let variance = mean_of_squares(&mut b, wide, -1);
        let root = b.node("root", unary(UnaryKind::Sqrt), &[variance]);
        let one = b.number(1.0);
        let inverse = b.node("inverse", binary(BinaryKind::Div), &[one, root]);
        let y = b.node("y", binary(BinaryKind::Mul), &[wide, inverse]);
        let y = b.node("narrow", cast(ElementType::F16), &[y]);
        let y = b.node("scaled", binary(BinaryKind::Mul), &[scale, y]);
        if read { b.finish(&[y, root]) } else { b.finish(&[y]) }
    }

    #[test]
    fn root_mean_square_between_casts() {
        becomes!(between_casts(false), PASS, @r"
        graph test
          input x: float16[2,4]
          wide: float32[2,4] = Cast(x) to=float32, saturate=1
          y: float32[2,4] = RMSNormalization(wide) axis=1, epsilon=0.001 // y + square + variance + sum + root + inverse
          narrow: float16[2,4] = Cast(y) to=float16, saturate=1
          scaled: float16[2,4] = Mul(c1 float16[4] {0.5, 1, -2, 3}, narrow)
          output scaled
        ");
    }

    #[test]
    fn a_root_that_others_read_stays_beside() {
        becomes!(between_casts(true), PASS, @r"
        graph test
          input x: float16[2,4]
          wide: float32[2,4] = Cast(x) to=float32, saturate=1
          square: float32[2,4] = Pow(wide, c3 float32[] {2})
          variance: float32[2,1] = ReduceMean(square, c2 int64[1] {-1}) keepdims=1, noop_with_empty_axes=0
          sum: float32[2,1] = Add(variance, c4 float32[] {0.001})
          root: float32[2,1] = Sqrt(sum)
          y: float32[2,4] = RMSNormalization(wide) axis=1, epsilon=0.001 // y + inverse
          narrow: float16[2,4] = Cast(y) to=float16, saturate=1
          scaled: float16[2,4] = Mul(c1 float16[4] {0.5, 1, -2, 3}, narrow)
          output scaled
          output root
        ");
    }

    #[test]
    fn not_of_another_numerator() {
        let mut b = Build::new();
        let (x, other) = (b.input("x", &[2, 4]), b.input("other", &[2, 4]));
        let variance = mean_of_squares(&mut b, x, -1);
        let root = b.node("root", unary(UnaryKind::Sqrt), &[variance]);
        let y = b.node("y", binary(BinaryKind::Div), &[other, root]);
        stays(&b.finish(&[y]), PASS);
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
