//! A mean or maximum over all spatial axes of pictures, and a pooling whose window is the whole picture, become global
//! pooling, which knows the channels-last layout.

use super::{PassContext, facts, rewrite};
use crate::ops::{GlobalPool, Pool, PoolKind, ReduceKind, Reshape};
use crate::{Dim, Graph, GraphError, Node, NodeId, Op, TensorType};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| convert(graph, *id).is_some()).count())
}

fn convert(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let kind = of_reduction(graph, node).or_else(|| of_pool(graph, node))?;
    let (input, output) = (node.input(0)?, node.output()?);
    let ty = graph.value(input).ty.tensor()?;
    let output_ty = graph.value(output).ty.tensor()?;
    if !ty.element.is_float() || ty.quantization.is_some() || output_ty.quantization.is_some() {
        return None;
    }
    let dims = ty.dims.as_deref()?;
    if facts::rank(graph, output)? == dims.len() {
        rewrite::become_op(graph, id, GlobalPool { kind }, &[Some(input)]);
        return Some(());
    }
    let (batch, channels) = (dims[0].clone(), dims[1].clone());
    let pooled = dims.iter().enumerate().map(|(i, d)| if i < 2 { d.clone() } else { Dim::Fixed(1) });
    let ty = TensorType::new(ty.element, pooled.collect::<Vec<_>>());
    let shape = [&batch, &channels].map(|d| d.fixed().map_or(Some(-1), |n| i64::try_from(n).ok()));
    let shape = [shape[0]?, shape[1]?];
    if shape == [-1, -1] || shape.contains(&0) {
        return None;
    }
    let name = graph.node(id).name.clone();
    let constant = rewrite::int_vector(graph, format!("{name}_shape"), &shape);
    let (_, pooled) = rewrite::insert(graph, format!("{name}_pool"), GlobalPool { kind }, &[Some(input)], ty);
    rewrite::become_op(graph, id, Reshape { allow_zero: false }, &[Some(pooled), Some(constant)]);
    Some(())
}

fn of_reduction(graph: &Graph, node: &Node) -> Option<PoolKind> {
    let Op::Reduce(op) = &node.op else { return None };
    let kind = match op.kind {
        ReduceKind::Mean => PoolKind::Average,
        ReduceKind::Max => PoolKind::Max,
        _ => return None,
    };
    // Rank 3 is as often a sequence as a signal.
    let rank = facts::rank(graph, node.input(0)?).filter(|rank| *rank >= 4)? as i64;
    let mut axes = facts::ints(graph, node.input(1)?)?;
    axes.iter_mut().for_each(|axis| *axis += if *axis < 0 { rank } else { 0 });
    axes.sort_unstable();
    axes.into_iter().eq(2..rank).then_some(kind)
}

fn of_pool(graph: &Graph, node: &Node) -> Option<PoolKind> {
    let Op::Pool(op) = &node.op else { return None };
    let Pool { kind, kernel, dilations, pads, .. } = op;
    let shape = facts::shape(graph, node.input(0)?)?;
    let whole = shape.len() == kernel.len() + 2
        && shape[2..] == kernel[..]
        && dilations.iter().all(|d| *d == 1)
        && pads.iter().all(|p| *p == 0);
    let result = facts::shape(graph, node.output()?)?;
    let one = result.iter().skip(2).all(|d| *d == 1);
    (whole && one && node.outputs.len() == 1 && !matches!(kind, PoolKind::Lp { .. })).then_some(*kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Reduce;
    use crate::passes::testing::{Build, becomes, stays};

    const PASS: &[&str] = &["reduce_to_global_pool"];

    fn mean(keep_dims: bool) -> Reduce {
        Reduce { kind: ReduceKind::Mean, keep_dims, noop_with_empty_axes: false }
    }

    #[test]
    fn means_over_pictures() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 4, 4]);
        let axes = b.ints(&[-1, 2]);
        let kept = b.node("kept", mean(true), &[x, axes]);
        let dropped = b.node("dropped", mean(false), &[x, axes]);
        let graph = b.finish(&[kept, dropped]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3,4,4]
          kept: float32[2,3,1,1] = GlobalAveragePool(x)
          dropped_pool: float32[2,3,1,1] = GlobalAveragePool(x)
          dropped: float32[2,3] = Reshape(dropped_pool, dropped_shape int64[2] {2, 3}) allowzero=0
          output kept
          output dropped
        ");
    }

    #[test]
    fn a_window_as_large_as_the_picture() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let pool = Pool {
            kind: PoolKind::Max,
            kernel: vec![3, 3],
            strides: vec![3, 3],
            dilations: Vec::new(),
            pads: Vec::new(),
            auto_pad: crate::ops::window::AutoPad::NotSet,
            ceil_mode: false,
            count_include_pad: false,
            column_major: false,
        };
        let y = b.node("y", pool, &[x]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2,3,3]
          y: float32[1,2,1,1] = GlobalMaxPool(x)
          output y
        ");
    }

    #[test]
    fn not_over_other_axes() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 4, 4]);
        let axes = b.ints(&[1, 2]);
        let y = b.node("y", mean(true), &[x, axes]);
        stays(&b.finish(&[y]), PASS);
    }
}
