//! Lets values lie as the backend's kernels want them, and converts only at the borders.
//!
//! The backend says of each node which layouts it takes. Nodes that take any layout, so long as all their data lies
//! alike, are given the one that makes the fewest bytes be moved: first each connected region of them as a whole, then
//! node by node. A transposition may read and write either layout, so one that only exchanges NCHW and NHWC beside a
//! border costs nothing. Graph inputs and results stay plain.
//!
//! A constant's tensor is in logical order whatever its layout says; it is laid out when its bytes are made ready.

use super::{PassContext, remove_dead_code};
use crate::{Graph, GraphError};

mod apply;
mod choose;
mod roles;
mod unite;

pub(super) fn run(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize, GraphError> {
    let Some(preference) = context.layout else { return Ok(0) };
    let roles = roles::Roles::new(graph, preference)?;
    let labels = choose::choose(graph, &roles);
    let converted = apply::apply(graph, &roles, &labels);
    let united = unite::unite(graph, &roles);
    remove_dead_code::sweep(graph);
    Ok(converted - united)
}

#[cfg(test)]
mod tests {
    use armet_tensor::Layout;

    use crate::ops::{BinaryKind, Conv, GlobalPool, PoolKind, Reshape, Softmax, Transpose, UnaryKind};
    use crate::passes::testing::{Build, binary, check, conv, matmul, unary};
    use crate::passes::{LayoutChoice, LayoutPreference, PassOptions, run_layout};
    use crate::text::to_text;
    use crate::{Graph, NodeId, Op};

    struct ConvsWantChannelsLast;

    impl LayoutPreference for ConvsWantChannelsLast {
        fn preference(&self, graph: &Graph, id: NodeId) -> LayoutChoice {
            let last = Layout::ChannelsLast;
            match &graph.node(id).op {
                Op::Conv(op) if op.group == 1 => LayoutChoice::Required { input: last, output: last },
                // Stands for a first convolution that reads pictures as they come.
                Op::Conv(_) => LayoutChoice::Required { input: Layout::Plain, output: last },
                Op::Unary(_) | Op::Binary(_) | Op::GlobalPool(_) | Op::Reshape(_) => LayoutChoice::Any,
                Op::Transpose(_) => LayoutChoice::AnyInput,
                _ => LayoutChoice::PlainOnly,
            }
        }
    }

    /// The text of the graph with layouts, which must compute what it did.
    fn laid_out(graph: &Graph) -> String {
        let mut after = graph.clone();
        let options = PassOptions { layout: Some(&ConvsWantChannelsLast), ..PassOptions::default() };
        run_layout(&mut after, &options).unwrap();
        check(graph, &after, 0.0);
        to_text(&after)
    }

    #[test]
    fn conversions_stand_at_the_borders_only() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 2, 3]);
        let w = b.weights(&[2, 2, 1, 1]);
        let (depthwise, bias) = (b.weights(&[2, 1, 1, 1]), b.weights(&[2, 1, 1]));
        let map = b.weights(&[2, 2, 3]);
        let y = b.node("first", Conv { group: 2, ..conv() }, &[x, depthwise]);
        let y = b.node("relu", unary(UnaryKind::Relu), &[y]);
        let y = b.node("bias", binary(BinaryKind::Add), &[y, bias]);
        let y = b.node("map", binary(BinaryKind::Mul), &[map, y]);
        let y = b.node("second", conv(), &[y, w]);
        let y = b.node("softmax", Softmax { axis: 3, log: false, flatten: false }, &[y]);
        let graph = b.finish(&[y]);
        insta::assert_snapshot!(laid_out(&graph), @r"
        graph test
          input x: float32[1,2,2,3]
          first: float32[1,2,2,3] @channels-last = Conv(x, c2 float32[2,1,1,1] {0.69426465, 1.0128944}) auto_pad=NOTSET, group=2
          relu: float32[1,2,2,3] @channels-last = Relu(first)
          bias: float32[1,2,2,3] @channels-last = Add(relu, c3 float32[2,1,1] {1.1273487, 0.7730672})
          map: float32[1,2,2,3] @channels-last = Mul(c4@channels-last float32[1,2,2,3] @channels-last {0.53550863, 1.0439966, 0.65414214, ..}, bias)
          second: float32[1,2,2,3] @channels-last = Conv(map, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) auto_pad=NOTSET, group=1
          second@plain: float32[1,2,2,3] = ConvertLayout(second)
          softmax: float32[1,2,2,3] = Softmax(second@plain) axis=3, flatten=0
          output softmax
        ");
    }

    #[test]
    fn transpositions_and_joined_axes_beside_a_border_are_free() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 2]);
        let w = b.weights(&[2, 2, 1, 1]);
        let shape = b.ints(&[1, 2, 6]);
        let y = b.node("in", Transpose { perm: vec![0, 3, 1, 2] }, &[x]);
        let y = b.node("conv", conv(), &[y, w]);
        let y = b.node("join", Reshape { allow_zero: false }, &[y, shape]);
        let y = b.node("out", Transpose { perm: vec![0, 2, 1] }, &[y]);
        let graph = b.finish(&[y]);
        insta::assert_snapshot!(laid_out(&graph), @r"
        graph test
          input x: float32[1,2,3,2]
          in: float32[1,2,2,3] @channels-last = Transpose(x) perm=[0, 3, 1, 2]
          conv: float32[1,2,2,3] @channels-last = Conv(in, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) auto_pad=NOTSET, group=1
          join: float32[1,2,6] @channels-last = Reshape(conv, c2 int64[3] {1, 2, 6}) allowzero=0
          out: float32[1,6,2] = Transpose(join) perm=[0, 2, 1]
          output out
        ");
    }

    #[test]
    fn channels_are_divided_where_they_lie() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 2]);
        let w = b.weights(&[6, 2, 1, 1]);
        let heads = b.ints(&[1, 2, 3, 3, 2]);
        let joined = b.ints(&[1, 2, 3, 6]);
        let y = b.node("conv", conv(), &[x, w]);
        let first = b.node("first", Reshape { allow_zero: false }, &[y, heads]);
        let first = b.node("heads", Transpose { perm: vec![0, 1, 3, 4, 2] }, &[first]);
        let second = b.node("second", Reshape { allow_zero: false }, &[y, joined]);
        let second = b.node("pixels", Transpose { perm: vec![0, 3, 1, 2] }, &[second]);
        let graph = b.finish(&[first, second]);
        insta::assert_snapshot!(laid_out(&graph), @r"
        graph test
          input x: float32[1,2,3,2]
          x@channels-last: float32[1,2,3,2] @channels-last = ConvertLayout(x)
          conv: float32[1,6,3,2] @channels-last = Conv(x@channels-last, c1 float32[6,2,1,1] {0.8165615, 0.9957817, 1.2210027, ..}) auto_pad=NOTSET, group=1
          first_renamed: float32[1,3,2,6] = Transpose(conv) perm=[0, 2, 3, 1]
          first_parts: float32[1,3,2,2,3] = Reshape(first_renamed, first_parts_shape int64[5] {1, 3, 2, 2, 3}) allowzero=0 // first
          heads: float32[1,2,3,2,3] = Transpose(first_parts) perm=[0, 3, 1, 2, 4]
          second_renamed: float32[1,3,2,6] = Transpose(conv) perm=[0, 2, 3, 1]
          second_parts: float32[1,6,2,3] = Reshape(second_renamed, second_parts_shape int64[4] {1, 6, 2, 3}) allowzero=0 // second
          output heads
          output pixels = second_parts
        ");
    }

    #[test]
    fn a_gate_of_channels_is_not_converted() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 2]);
        let w = b.weights(&[2, 2, 1, 1]);
        let y = b.node("conv", conv(), &[x, w]);
        let pooled = b.node("pool", GlobalPool { kind: PoolKind::Average }, &[y]);
        let gate = b.node("squeeze", conv(), &[pooled, w]);
        let y = b.node("y", binary(BinaryKind::Mul), &[y, gate]);
        let graph = b.finish(&[y]);
        insta::assert_snapshot!(laid_out(&graph), @r"
        graph test
          input x: float32[1,2,3,2]
          x@channels-last: float32[1,2,3,2] @channels-last = ConvertLayout(x)
          conv: float32[1,2,3,2] @channels-last = Conv(x@channels-last, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) auto_pad=NOTSET, group=1
          pool: float32[1,2,1,1] @channels-last = GlobalAveragePool(conv)
          squeeze: float32[1,2,1,1] @channels-last = Conv(pool, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) auto_pad=NOTSET, group=1
          y: float32[1,2,3,2] @channels-last = Mul(conv, squeeze)
          y@plain: float32[1,2,3,2] = ConvertLayout(y)
          output y = y@plain
        ");
    }

    #[test]
    fn nodes_between_plain_ones_stay_plain_whatever_joins_them() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 1, 3]);
        let wide = b.input("wide", &[1, 2, 50, 3]);
        let (w, v) = (b.weights(&[2, 2, 1, 1]), b.weights(&[3, 3]));
        let small = b.node("small", conv(), &[x, w]);
        let y = b.node("before", matmul(), &[wide, v]);
        let y = b.node("add", binary(BinaryKind::Add), &[y, small]);
        let y = b.node("relu", unary(UnaryKind::Relu), &[y]);
        let y = b.node("behind", matmul(), &[y, v]);
        let graph = b.finish(&[y]);
        insta::assert_snapshot!(laid_out(&graph), @r"
        graph test
          input x: float32[1,2,1,3]
          input wide: float32[1,2,50,3]
          before: float32[1,2,50,3] = MatMul(wide, c2 float32[3,3] {0.69426465, 1.0128944, 1.1273487, ..}) transpose_a=0, transpose_b=0, alpha=1
          x@channels-last: float32[1,2,1,3] @channels-last = ConvertLayout(x)
          small: float32[1,2,1,3] @channels-last = Conv(x@channels-last, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) auto_pad=NOTSET, group=1
          small@plain: float32[1,2,1,3] = ConvertLayout(small)
          add: float32[1,2,50,3] = Add(before, small@plain)
          relu: float32[1,2,50,3] = Relu(add)
          behind: float32[1,2,50,3] = MatMul(relu, c2 float32[3,3] {0.69426465, 1.0128944, 1.1273487, ..}) transpose_a=0, transpose_b=0, alpha=1
          output behind
        ");
    }
}
