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
    if !facts::same_storage(graph, margins.data, before.output()?) {
        return None;
    }
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

#[cfg(test)]
mod tests {
    use crate::ops::{Pad, PadMode, Pool, PoolKind, UnaryKind};
    use crate::passes::testing::{Build, becomes, conv, stays, unary};

    const PASS: &[&str] = &["fold_pad_into_conv"];
    const CONSTANT: Pad = Pad { mode: PadMode::Constant };

    fn pool(kind: PoolKind) -> Pool {
        Pool {
            kind,
            kernel: vec![2, 2],
            strides: vec![2, 2],
            dilations: Vec::new(),
            pads: Vec::new(),
            auto_pad: crate::ops::window::AutoPad::NotSet,
            ceil_mode: false,
            count_include_pad: false,
            column_major: false,
        }
    }

    #[test]
    fn zeros_before_a_conv() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 1, 4, 4]);
        let pads = b.ints(&[0, 0, 0, 1, 0, 0, 2, 1]);
        let w = b.weights(&[1, 1, 3, 3]);
        let y = b.node("pad", CONSTANT, &[x, pads]);
        let y = b.node("y", crate::ops::Conv { pads: vec![1, 0, 0, 0], ..conv() }, &[y, w]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,1,4,4]
          y: float32[1,1,5,4] = Conv(x, c2 float32[1,1,3,3] {0.8165615, 0.9957817, 1.2210027, ..}) pads=[1, 1, 2, 1], auto_pad=NOTSET, group=1 // y + pad
          output y
        ");
    }

    #[test]
    fn zeros_before_average_pooling_count() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 1, 3, 3]);
        let pads = b.ints(&[0, 0, 0, 0, 0, 0, 1, 1]);
        let y = b.node("pad", CONSTANT, &[x, pads]);
        let y = b.node("y", pool(PoolKind::Average), &[y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,1,3,3]
          y: float32[1,1,2,2] = AveragePool(x) kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1], auto_pad=NOTSET, ceil_mode=0, count_include_pad=1 // y + pad
          output y
        ");
    }

    #[test]
    fn zeros_before_maximum_pooling_of_what_is_never_negative() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 1, 3, 3]);
        let pads = b.ints(&[0, 0, 0, 0, 0, 0, 1, 1]);
        let y = b.node("relu", unary(UnaryKind::Relu), &[x]);
        let y = b.node("pad", CONSTANT, &[y, pads]);
        let y = b.node("y", pool(PoolKind::Max), &[y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,1,3,3]
          relu: float32[1,1,3,3] = Relu(x)
          y: float32[1,1,2,2] = MaxPool(relu) kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1], auto_pad=NOTSET, ceil_mode=0, storage_order=0 // y + pad
          output y
        ");
    }

    #[test]
    fn not_zeros_that_may_be_the_maximum_nor_other_fillings() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 1, 3, 3]);
        let pads = b.ints(&[0, 0, 0, 0, 0, 0, 1, 1]);
        let w = b.weights(&[1, 1, 2, 2]);
        let y = b.node("pad", CONSTANT, &[x, pads]);
        let y = b.node("y", pool(PoolKind::Max), &[y]);
        let z = b.node("edge", Pad { mode: PadMode::Edge }, &[x, pads]);
        let z = b.node("z", conv(), &[z, w]);
        stays(&b.finish(&[y, z]), PASS);
    }
}
