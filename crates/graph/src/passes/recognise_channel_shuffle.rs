//! Channels split into groups, the two axes exchanged and joined again (Reshape, Transpose, Reshape) become one
//! `ChannelShuffle`, which moves elements once in whatever layout they lie.

use super::heads::is_transpose;
use super::{PassContext, facts, rewrite};
use crate::ops::ChannelShuffle;
use crate::{Graph, GraphError, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| recognise(graph, *id).is_some()).count())
}

/// What a reshape is made of.
fn reshaped(op: &Op, input: Option<ValueId>) -> Option<ValueId> {
    matches!(op, Op::Reshape(_)).then_some(input?)
}

fn recognise(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let (turned, output) = (reshaped(&node.op, node.input(0))?, node.output()?);
    let (_, transpose) = facts::sole_producer(graph, turned)?;
    let apart = transpose.input(0)?;
    let (_, first) = facts::sole_producer(graph, apart)?;
    let x = reshaped(&first.op, first.input(0))?;
    let (dims, split) = (facts::dims(graph, x)?, facts::dims(graph, apart)?);
    let mut perm: Vec<usize> = (0..split.len()).collect();
    let [_, channels, ..] = dims else { return None };
    let [batch, groups, each, ..] = split else { return None };
    perm.swap(1, 2);
    let (groups, each) = (groups.fixed()?, each.fixed()?);
    let pixels = |dims: &[crate::Dim]| -> Option<usize> { dims.iter().map(crate::Dim::fixed).product() };
    let same_pixels = facts::same_dims(&dims[2..], &split[3..])
        || pixels(&dims[2..]).is_some_and(|count| Some(count) == pixels(&split[3..]));
    if !is_transpose(&transpose.op, &perm)
        || !facts::same_dim(batch, &dims[0])
        || !channels.is(groups.checked_mul(each)?)
        || !same_pixels
        || !facts::same_type(graph, x, output)
        || groups <= 1
        || each <= 1
    {
        return None;
    }
    rewrite::become_op(graph, id, ChannelShuffle { groups }, &[Some(x)]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Reshape, Transpose};
    use crate::passes::testing::{Build, becomes, stays};

    const PASS: &[&str] = &["recognise_channel_shuffle"];

    /// The values between and behind.
    fn spelled(b: &mut Build, split: &[i64], perm: &[usize], joined: &[i64]) -> [ValueId; 2] {
        let reshape = Reshape { allow_zero: false };
        let x = b.input("x", &[2, 6, 3, 5]);
        let shape = b.ints(split);
        let apart = b.node("apart", reshape.clone(), &[x, shape]);
        let turned = b.node("turned", Transpose { perm: perm.to_vec() }, &[apart]);
        let shape = b.ints(joined);
        [turned, b.node("y", reshape, &[turned, shape])]
    }

    #[test]
    fn with_a_picture_of_one_axis_or_two() {
        let mut b = Build::new();
        let [_, y] = spelled(&mut b, &[2, 2, 3, 3, 5], &[0, 2, 1, 3, 4], &[2, 6, 3, 5]);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input x: float32[2,6,3,5]
          y: float32[2,6,3,5] = ChannelShuffle(x) groups=2 // y + apart + turned
          output y
        ");
        let mut b = Build::new();
        let [_, y] = spelled(&mut b, &[0, 3, 2, -1], &[0, 2, 1, 3], &[2, 6, 3, 5]);
        becomes!(b.finish(&[y]), PASS, @r"
        graph test
          input x: float32[2,6,3,5]
          y: float32[2,6,3,5] = ChannelShuffle(x) groups=3 // y + apart + turned
          output y
        ");
    }

    #[test]
    fn not_with_other_axes_or_shapes() {
        for (split, perm, joined) in [
            (&[2, 2, 3, 3, 5][..], &[1, 0, 2, 3, 4][..], &[2, 6, 3, 5][..]),
            (&[2, 2, 3, 3, 5], &[0, 1, 3, 2, 4], &[2, 6, 3, 5]),
            (&[2, 2, 3, 3, 5], &[0, 2, 1, 3, 4], &[2, 3, 6, 5]),
            (&[1, 4, 3, 3, 5], &[0, 2, 1, 3, 4], &[2, 6, 3, 5]),
        ] {
            let mut b = Build::new();
            let [_, y] = spelled(&mut b, split, perm, joined);
            stays(&b.finish(&[y]), PASS);
        }
    }

    #[test]
    fn not_where_a_value_between_is_read() {
        let mut b = Build::new();
        let values = spelled(&mut b, &[2, 2, 3, 3, 5], &[0, 2, 1, 3, 4], &[2, 6, 3, 5]);
        stays(&b.finish(&values), PASS);
    }
}
