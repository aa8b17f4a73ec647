//! Mul, Add, Sub or Div with a constant per channel, behind a Conv, `ConvTranspose` or `MatMul`, goes into the weights and
//! the bias (one factor for a whole `MatMul` into its `alpha`).

use super::{PassContext, affine, facts};
use crate::{Graph, GraphError, Op};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut rewrites = 0;
    for id in facts::node_ids(graph) {
        let Some(node) = graph.get_node(id) else { continue };
        let Op::Binary(_) = &node.op else { continue };
        let of_product =
            node.inputs.iter().flatten().any(|v| {
                facts::producer(graph, *v).is_some_and(|(_, node)| matches!(node.op, Op::MatMul(_)))
            });
        let channel = |rank: usize| if of_product { rank.checked_sub(1) } else { (rank > 1).then_some(1) };
        let Some(affine) = affine::of_arithmetic(graph, node, channel) else { continue };
        rewrites += usize::from(affine::fold_into_producer(graph, id, &affine));
    }
    Ok(rewrites)
}

#[cfg(test)]
mod tests {
    use crate::ops::BinaryKind;
    use crate::passes::testing::{Build, becomes, binary, conv, matmul, stays};

    const PASS: &[&str] = &["fold_scale_into_conv"];

    #[test]
    fn a_row_of_arithmetic_behind_a_conv() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let w = b.weights(&[4, 1, 1, 1]);
        let bias = b.weights(&[4]);
        let mut y = b.node("y", crate::ops::Conv { group: 2, ..conv() }, &[x, w, bias]);
        let per_channel = b.weights(&[1, 4, 1, 1]);
        let three_axes = b.weights(&[4, 1, 1]);
        let number = b.number(2.0);
        y = b.node("mul", binary(BinaryKind::Mul), &[y, per_channel]);
        y = b.node("add", binary(BinaryKind::Add), &[three_axes, y]);
        y = b.node("div", binary(BinaryKind::Div), &[y, number]);
        y = b.node("from", binary(BinaryKind::Sub), &[number, y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2,3,3]
          from: float32[1,4,3,3] = Conv(x, c1_scaled float32[4,1,1,1] {-0.21863787, -0.5197964, -0.39935467, -0.2969845}, c2_scaled float32[4] {1.4616387, 1.0812314, 1.2882942, 1.4608338}) auto_pad=NOTSET, group=2 // y + mul + add + div + from
          output from
        ");
    }

    #[test]
    fn behind_a_matrix_product() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 2, 3]);
        let w = b.weights(&[3, 4]);
        let scale = b.number(0.5);
        let bias = b.weights(&[4]);
        let mut y = b.node("y", matmul(), &[x, w]);
        y = b.node("mul", binary(BinaryKind::Mul), &[y, scale]);
        y = b.node("add", binary(BinaryKind::Add), &[y, bias]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,2,3]
          add: float32[2,2,4] = MatMul(x, c1 float32[3,4] {0.8165615, 0.9957817, 1.2210027, ..}, y_bias float32[4] {0.7049379, 0.78007895, 0.68596536, 0.41703498}) transpose_a=0, transpose_b=0, alpha=0.5 // y + mul + add
          output add
        ");
    }

    #[test]
    fn not_along_another_axis_and_not_a_divisor() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let w = b.weights(&[3, 2, 1, 1]);
        let per_column = b.weights(&[3]);
        let per_channel = b.weights(&[1, 3, 1, 1]);
        let y = b.node("y", conv(), &[x, w]);
        let y = b.node("mul", binary(BinaryKind::Mul), &[y, per_column]);
        let z = b.node("z", conv(), &[x, w]);
        let z = b.node("div", binary(BinaryKind::Div), &[per_channel, z]);
        stays(&b.finish(&[y, z]), PASS);
    }
}
