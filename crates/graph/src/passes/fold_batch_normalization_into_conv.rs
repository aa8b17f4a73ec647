//! A `BatchNormalization` with constant statistics behind a Conv, `ConvTranspose` or matrix product goes into the weights
//! and the bias.

use super::{PassContext, affine, facts};
use crate::{Graph, GraphError, Op};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut rewrites = 0;
    for id in facts::node_ids(graph) {
        let Some(node) = graph.get_node(id) else { continue };
        let Some(affine) = affine::of_batch_normalization(graph, node) else { continue };
        // BatchNormalization's channels are axis 1, those of a matrix product its last axis.
        let axis_fits = match facts::producer(graph, affine.data).map(|(_, node)| &node.op) {
            Some(Op::MatMul(_)) => facts::rank(graph, affine.data) == Some(2),
            _ => true,
        };
        if axis_fits && affine::fold_into_producer(graph, id, &affine) {
            rewrites += 1;
        }
    }
    Ok(rewrites)
}

#[cfg(test)]
mod tests {
    use crate::ops::{BatchNormalization, ConvTranspose};
    use crate::passes::testing::{Build, becomes, conv, matmul, stays};
    use crate::{Graph, Op, ValueId};

    const PASS: &[&str] = &["fold_batch_normalization_into_conv"];

    fn normalized(
        shape: &[usize],
        op: impl Into<Op>,
        weights: &[usize],
        channels: usize,
        twice: bool,
    ) -> Graph {
        let mut b = Build::new();
        let x = b.input("x", shape);
        let w = b.weights(weights);
        let y = b.node("y", op, &[x, w]);
        let constants: Vec<ValueId> = (0..4).map(|_| b.weights(&[channels])).collect();
        let inputs = [&[y], &constants[..]].concat();
        let z = b.node("z", BatchNormalization { epsilon: 0.01 }, &inputs);
        if twice { b.finish(&[y, z]) } else { b.finish(&[z]) }
    }

    #[test]
    fn behind_a_conv() {
        let graph = normalized(&[1, 2, 3, 3], conv(), &[2, 2, 1, 1], 2, false);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2,3,3]
          z: float32[1,2,3,3] = Conv(x, c1_scaled float32[2,2,1,1] {0.69563824, 0.848318, 1.3294353, 0.75602263}, y_bias float32[2] {0.67114264, -0.36364284}) auto_pad=NOTSET, group=1 // y + z
          output z
        ");
    }

    #[test]
    fn behind_a_grouped_transposed_conv() {
        let op = ConvTranspose { group: 2, ..Default::default() };
        let graph = normalized(&[1, 4, 2, 2], op, &[4, 3, 2, 2], 6, false);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,4,2,2]
          z: float32[1,6,3,3] = ConvTranspose(x, c1_scaled float32[4,3,2,2] {1.7127601, 2.0886793, 2.5610864, ..}, y_bias float32[6] {-0.9849754, -0.35931093, 0.24931946, -0.079858854, 0.34807625, 0.519644}) auto_pad=NOTSET, group=2 // y + z
          output z
        ");
    }

    #[test]
    fn behind_a_matrix_product() {
        let graph = normalized(&[2, 3], matmul(), &[3, 4], 4, false);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3]
          z: float32[2,4] = MatMul(x, c1_scaled float32[3,4] {0.77836144, 1.3999001, 0.9510916, ..}, y_bias float32[4] {0.59415555, 0.5994378, 0.3507069, 0.97664344}) transpose_a=0, transpose_b=0, alpha=1 // y + z
          output z
        ");
    }

    #[test]
    fn not_when_the_sum_is_a_result_too() {
        stays(&normalized(&[1, 2, 3, 3], conv(), &[2, 2, 1, 1], 2, true), PASS);
    }

    #[test]
    fn not_along_another_axis() {
        stays(&normalized(&[2, 3, 5], matmul(), &[2, 5, 4], 3, false), PASS);
    }
}
