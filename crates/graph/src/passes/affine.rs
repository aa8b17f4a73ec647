//! `x * scale + shift` per channel: what `BatchNormalization` and arithmetic with constants come to, and how a Conv,
//! `ConvTranspose` or `MatMul` before it takes it into its weights and bias.

use super::{facts, rewrite};
use crate::ops::BinaryKind;
use crate::{Graph, Node, NodeId, Op, ValueId};

/// `x * scale + shift`; one number for all channels or one for each.
pub(super) struct Affine {
    pub(super) data: ValueId,
    pub(super) scale: Vec<f64>,
    pub(super) shift: Vec<f64>,
}

/// A `BatchNormalization` whose statistics are constants.
pub(super) fn of_batch_normalization(graph: &Graph, node: &Node) -> Option<Affine> {
    let Op::BatchNormalization(op) = &node.op else { return None };
    let constant = |index: usize| facts::numbers(graph, node.input(index)?);
    let (gain, bias, mean, variance) = (constant(1)?, constant(2)?, constant(3)?, constant(4)?);
    let channels = gain.len();
    if channels == 0 || [bias.len(), mean.len(), variance.len()].iter().any(|n| *n != channels) {
        return None;
    }
    let scale: Vec<f64> =
        gain.iter().zip(&variance).map(|(g, v)| g / (v + f64::from(op.epsilon)).sqrt()).collect();
    let shift = bias.iter().zip(&mean).zip(&scale).map(|((b, m), s)| b - m * s).collect();
    Some(Affine { data: node.input(0)?, scale, shift })
}

/// Arithmetic of a value with a constant that differs along the channel axis at most. `channel` tells that axis from
/// the rank of the value.
pub(super) fn of_arithmetic(
    graph: &Graph,
    node: &Node,
    channel: impl Fn(usize) -> Option<usize>,
) -> Option<Affine> {
    let Op::Binary(op) = &node.op else { return None };
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (data, constant, reversed) = match (graph.constant(a), graph.constant(b)) {
        (None, Some(_)) => (a, b, false),
        (Some(_), None) => (b, a, true),
        _ => return None,
    };
    let rank = facts::rank(graph, data)?;
    let axis = channel(rank)?;
    let tensor = facts::plain_constant(graph, constant)?;
    let lead = rank.checked_sub(tensor.shape().len())?;
    if !tensor.element().is_float()
        || tensor.is_empty()
        || tensor.shape().iter().enumerate().any(|(i, d)| *d != 1 && i + lead != axis)
    {
        return None;
    }
    let values = facts::numbers(graph, constant)?;
    let all = |f: &dyn Fn(f64) -> f64| values.iter().map(|v| f(*v)).collect::<Vec<f64>>();
    let (scale, shift) = match (op.kind, reversed) {
        (BinaryKind::Mul, _) => (values, vec![0.0]),
        (BinaryKind::Div, false) if values.iter().all(|v| *v != 0.0) => (all(&|v| 1.0 / v), vec![0.0]),
        (BinaryKind::Add, _) => (vec![1.0], values),
        (BinaryKind::Sub, false) => (vec![1.0], all(&|v| -v)),
        (BinaryKind::Sub, true) => (vec![-1.0], values),
        _ => return None,
    };
    Some(Affine { data, scale, shift })
}

/// Which channel of the result an element of the weights serves.
struct Weights {
    value: ValueId,
    channels: usize,
    channel_of: Box<dyn Fn(usize) -> usize>,
}

fn weights(graph: &Graph, node: &Node) -> Option<Weights> {
    let value = node.input(1)?;
    let shape = facts::shape(graph, value)?;
    let count = shape.elements().max(1);
    match &node.op {
        Op::Conv(_) => {
            let channels = *shape.first()?;
            let inner = count / channels.max(1);
            Some(Weights { value, channels, channel_of: Box::new(move |i| i / inner) })
        }
        Op::ConvTranspose(op) => {
            let (inputs, of_group) = (*shape.first()?, *shape.get(1)?);
            let groups = op.group.max(1);
            let inner = count / (inputs * of_group).max(1);
            let per_group = (inputs / groups).max(1);
            let channel_of =
                move |i: usize| i / (inner * of_group) / per_group * of_group + i / inner % of_group;
            Some(Weights { value, channels: of_group * groups, channel_of: Box::new(channel_of) })
        }
        Op::MatMul(op) if shape.len() >= 2 => {
            let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
            if op.transpose_b {
                Some(Weights { value, channels: rows, channel_of: Box::new(move |i| i / columns % rows) })
            } else {
                Some(Weights { value, channels: columns, channel_of: Box::new(move |i| i % columns) })
            }
        }
        _ => None,
    }
}

/// Whether a node is a Conv, `ConvTranspose` or `MatMul` to whose sum nothing has been applied yet.
pub(super) fn is_bare(node: &Node) -> bool {
    match &node.op {
        Op::Conv(op) => op.activation.is_none() && node.input(3).is_none(),
        Op::ConvTranspose(op) => op.activation.is_none(),
        Op::MatMul(op) => op.activation.is_none() && node.input(3).is_none(),
        _ => false,
    }
}

/// Takes the affine function that `last` is into the node before it, when that is possible.
pub(super) fn fold_into_producer(graph: &mut Graph, last: NodeId, affine: &Affine) -> bool {
    fold(graph, last, affine).is_some()
}

fn fold(graph: &mut Graph, last: NodeId, affine: &Affine) -> Option<()> {
    let (id, node) = facts::sole_producer(graph, affine.data)?;
    if !is_bare(node) {
        return None;
    }
    let weights = weights(graph, node)?;
    let element = facts::element(graph, weights.value)?;
    let channels = weights.channels;
    let fits = |n: usize| n == 1 || n == channels;
    if !element.is_float() || channels == 0 || !fits(affine.scale.len()) || !fits(affine.shift.len()) {
        return None;
    }
    let at = |v: &[f64], i: usize| v[if v.len() == 1 { 0 } else { i }];
    let scales = affine.scale.iter().any(|s| *s != 1.0);
    // One factor for all is the product's own factor where there is one: no weights are rewritten.
    let factor = match &node.op {
        Op::MatMul(_) if affine.scale.iter().all(|s| *s == affine.scale[0]) => Some(affine.scale[0]),
        _ => None,
    };
    let scaled = if scales && factor.is_none() {
        let tensor = facts::plain_constant(graph, weights.value)?;
        let values: Vec<f64> = facts::numbers(graph, weights.value)?
            .iter()
            .enumerate()
            .map(|(i, w)| w * at(&affine.scale, (weights.channel_of)(i)))
            .collect();
        Some((tensor.shape().clone(), values))
    } else {
        None
    };
    let bias_value = node.input(2);
    let bias = match bias_value {
        Some(value) => facts::numbers(graph, value)?,
        None => vec![0.0; channels],
    };
    if bias.len() != channels {
        return None;
    }
    let bias: Vec<f64> =
        (0..channels).map(|i| bias[i] * at(&affine.scale, i) + at(&affine.shift, i)).collect();
    let weights_name = rewrite::derived(graph, weights.value, "scaled");
    let bias_name = match bias_value {
        Some(value) => rewrite::derived(graph, value, "scaled"),
        None => format!("{}_bias", node.name),
    };
    if let Some((shape, values)) = scaled {
        let value = rewrite::constant(graph, weights_name, element, shape, &values)?;
        graph.set_input(id, 1, Some(value));
    }
    if let (Some(factor), Op::MatMul(op)) = (factor, graph.node_mut(id).op) {
        op.alpha = (f64::from(op.alpha) * factor) as f32;
    }
    if bias_value.is_some() || bias.iter().any(|b| *b != 0.0) {
        let value = rewrite::constant(graph, bias_name, element, [channels], &bias)?;
        graph.set_input(id, 2, Some(value));
    }
    rewrite::take_over(graph, id, last);
    Some(())
}
