//! A Pad with zeros before a Conv, and one that cannot change the result of a pooling, goes into the padding of the
//! windows.

use super::{PassContext, facts, rewrite};
use crate::ops::window::AutoPad;
use crate::ops::{PadMode, Pool, PoolKind, UnaryKind};
use crate::{Graph, GraphError, Node, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| fold(graph, *id).is_some()).count())
}

/// Margins of the spatial axes (all begins, then all ends), the value that fills them, and what is padded.
struct Margins {
    data: ValueId,
    pads: Vec<usize>,
    value: f64,
}

fn margins(graph: &Graph, node: &Node) -> Option<Margins> {
    let Op::Pad(op) = &node.op else { return None };
    if op.mode != PadMode::Constant {
        return None;
    }
    let data = node.input(0)?;
    let rank = facts::rank(graph, data).filter(|rank| *rank >= 3)?;
    let given = facts::ints(graph, node.input(1)?)?;
    let axes: Vec<i64> = match node.input(3) {
        Some(axes) => facts::ints(graph, axes)?,
        None => (0..rank as i64).collect(),
    };
    if given.len() != 2 * axes.len() {
        return None;
    }
    let mut all = vec![0; 2 * rank];
    for (i, axis) in axes.iter().enumerate() {
        let axis = usize::try_from(if *axis < 0 { axis + rank as i64 } else { *axis }).ok()?;
        *all.get_mut(axis).filter(|_| axis < rank)? = usize::try_from(given[i]).ok()?;
        all[rank + axis] = usize::try_from(given[axes.len() + i]).ok()?;
    }
    if [0, 1, rank, rank + 1].iter().any(|axis| all[*axis] != 0) {
        return None;
    }
    let pads = [&all[2..rank], &all[rank + 2..]].concat();
    let value = node.input(2).map_or(Some(0.0), |v| facts::scalar(graph, v))?;
    Some(Margins { data, pads, value })
}

fn fold(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    if !matches!(node.op, Op::Conv(_) | Op::Pool(_)) {
        return None;
    }
    let (pad, before) = facts::sole_producer(graph, node.input(0)?)?;
    let margins = margins(graph, before)?;
    let sum = |own: &[usize]| -> Vec<usize> {
        margins.pads.iter().enumerate().map(|(i, p)| p + own.get(i).copied().unwrap_or(0)).collect()
    };
    let mut op = node.op.clone();
    match &mut op {
        Op::Conv(conv) if margins.value == 0.0 => {
            conv.pads = match conv.auto_pad {
                AutoPad::NotSet => sum(&conv.pads),
                AutoPad::Valid => margins.pads.clone(),
                _ => return None,
            };
            conv.auto_pad = AutoPad::NotSet;
        }
        Op::Pool(pool) => pad_pool(graph, pool, &margins)?,
        _ => return None,
    }
    *graph.node_mut(id).op = op;
    rewrite::absorb(graph, id, pad);
    graph.set_input(id, 0, Some(margins.data));
    graph.remove_node(pad);
    Some(())
}

fn pad_pool(graph: &Graph, pool: &mut Pool, margins: &Margins) -> Option<()> {
    let own = pool.pads.iter().any(|p| *p != 0);
    let plain = matches!(pool.auto_pad, AutoPad::NotSet | AutoPad::Valid)
        && pool.dilations.iter().all(|d| *d == 1)
        && !pool.ceil_mode
        && (!own || pool.auto_pad == AutoPad::Valid);
    // A window in the padding alone has no meaning.
    let spatial = pool.kernel.len();
    let within = margins.pads.iter().enumerate().all(|(i, p)| *p < pool.kernel[i % spatial]);
    if !plain || spatial == 0 || margins.pads.len() != 2 * spatial || !within {
        return None;
    }
    match pool.kind {
        // The padding of maximum pooling never wins, so it may stand for margins that never win.
        PoolKind::Max if margins.value <= f64::from(f32::MIN) => {}
        PoolKind::Max if margins.value == 0.0 && never_negative(graph, margins.data) => {}
        PoolKind::Average if margins.value == 0.0 => pool.count_include_pad = true,
        _ => return None,
    }
    pool.pads.clone_from(&margins.pads);
    pool.auto_pad = AutoPad::NotSet;
    Some(())
}

fn never_negative(graph: &Graph, value: ValueId) -> bool {
    let Some((_, node)) = facts::producer(graph, value) else { return false };
    let kind = match &node.op {
        Op::Unary(op) => Some(op.kind),
        Op::Conv(op) => op.activation,
        _ => None,
    };
    match kind {
        Some(UnaryKind::Relu | UnaryKind::Sigmoid | UnaryKind::HardSigmoid { .. } | UnaryKind::Abs) => true,
        Some(UnaryKind::Clip { min, .. }) => min >= 0.0,
        _ => false,
    }
}
