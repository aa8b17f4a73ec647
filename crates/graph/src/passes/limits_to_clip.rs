//! Clip, Min and Max with constant limits become one function of one number; limits of limits are merged, and a lower
//! limit of zero alone is Relu.

use armet_tensor::ElementType;

use super::{PassContext, facts, rewrite};
use crate::ops::{BinaryKind, Unary, UnaryKind};
use crate::{Graph, GraphError, Node, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| limit(graph, *id).is_some()).count())
}

fn limit(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let (mut data, mut range) = limits(graph, node)?;
    let output = node.output()?;
    if !matches!(facts::element(graph, data)?, ElementType::F32 | ElementType::F16 | ElementType::Bf16) {
        return None;
    }
    let mut merged = false;
    if let Some((_, before)) = facts::sole_producer(graph, data)
        && let Some((source, inner)) = limits(graph, before)
    {
        // The outer limits limit the inner ones.
        range = (inner.0.max(range.0).min(range.1), inner.1.max(range.0).min(range.1));
        data = source;
        merged = true;
    }
    if range.0.is_nan() || range.1.is_nan() || !facts::same_shape(graph, data, output) {
        return None;
    }
    let kind = match range {
        (0.0, f64::INFINITY) => UnaryKind::Relu,
        (min, max) => UnaryKind::Clip { min: min as f32, max: max as f32 },
    };
    if !merged && matches!(&node.op, Op::Unary(op) if op.kind == kind) {
        return None;
    }
    rewrite::become_op(graph, id, Unary { kind }, &[Some(data)]);
    Some(())
}

/// What is limited, and to which range.
fn limits(graph: &Graph, node: &Node) -> Option<(ValueId, (f64, f64))> {
    let data = node.input(0)?;
    match &node.op {
        Op::Unary(op) => match op.kind {
            UnaryKind::Relu => Some((data, (0.0, f64::INFINITY))),
            UnaryKind::Clip { min, max } => Some((data, (f64::from(min), f64::from(max)))),
            _ => None,
        },
        Op::Clip(_) => {
            let limit = |index: usize, absent: f64| match node.input(index) {
                Some(value) => facts::scalar(graph, value),
                None => Some(absent),
            };
            // With contradicting limits the upper one wins.
            let (min, max) = (limit(1, f64::NEG_INFINITY)?, limit(2, f64::INFINITY)?);
            // NaN is no limit that could be merged with others.
            (!min.is_nan() && !max.is_nan()).then_some((data, (min.min(max), max)))
        }
        Op::Binary(op) => {
            let other = node.input(1)?;
            let (data, number) = match (facts::uniform(graph, data), facts::uniform(graph, other)) {
                (None, Some(number)) => (data, number),
                (Some(number), None) => (other, number),
                _ => return None,
            };
            if !facts::same_shape(graph, data, node.output()?) {
                return None;
            }
            match op.kind {
                BinaryKind::Max => Some((data, (number, f64::INFINITY))),
                BinaryKind::Min => Some((data, (f64::NEG_INFINITY, number))),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::UnaryKind;
    use crate::ops::{BinaryKind, Clip};
    use crate::passes::testing::{Build, becomes, binary, stays, unary};

    const PASS: &[&str] = &["limits_to_clip"];

    #[test]
    fn limits_in_a_row() {
        let mut b = Build::new();
        let x = b.input("x", &[4]);
        let (low, high, half) = (b.number(0.0), b.floats(&[6.0]), b.number(0.5));
        let y = b.node("max", binary(BinaryKind::Max), &[low, x]);
        let y = b.node("min", binary(BinaryKind::Min), &[y, high]);
        let z = b.node("clip", Clip, &[x, low, half]);
        let relu = b.node("relu", unary(UnaryKind::Relu), &[z]);
        let floor = b.graph.add("floor", Clip, [Some(x), Some(low), None]);
        let graph = b.finish(&[y, relu, floor]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[4]
          min: float32[4] = Clip(x) min=0, max=6 // min + max
          relu: float32[4] = Clip(x) min=0, max=0.5 // relu + clip
          floor: float32[4] = Relu(x)
          output min
          output relu
          output floor
        ");
    }

    #[test]
    fn not_limits_that_vary_or_arrive_at_run_time() {
        let mut b = Build::new();
        let x = b.input("x", &[2]);
        let limit = b.input("limit", &[]);
        let row = b.floats(&[1.0, 2.0]);
        let y = b.node("y", Clip, &[x, limit]);
        let z = b.node("z", binary(BinaryKind::Max), &[x, row]);
        stays(&b.finish(&[y, z]), PASS);
    }
}
