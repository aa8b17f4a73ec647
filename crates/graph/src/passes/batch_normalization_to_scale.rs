//! A `BatchNormalization` that stands alone becomes a product and a sum with constants per channel, which join other
//! elementwise work.

use armet_tensor::Shape;

use super::{PassContext, affine, facts, rewrite};
use crate::ops::{Binary, BinaryKind};
use crate::{Graph, GraphError, NodeId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| split(graph, *id).is_some()).count())
}

fn split(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let affine = affine::of_batch_normalization(graph, node)?;
    let output = node.output()?;
    let rank = facts::rank(graph, affine.data).filter(|rank| *rank >= 2)?;
    let element = facts::element(graph, affine.data).filter(|e| e.is_float())?;
    if graph.value(affine.data).ty.tensor()?.quantization.is_some() {
        return None;
    }
    let channels = affine.scale.len();
    let shape: Shape = (0..rank).map(|axis| if axis == 1 { channels } else { 1 }).collect();
    let name = node.name.clone();
    let ty = graph.value(output).ty.clone();
    let scale = rewrite::constant(graph, format!("{name}_scale"), element, shape.clone(), &affine.scale)?;
    let shift = rewrite::constant(graph, format!("{name}_shift"), element, shape, &affine.shift)?;
    let mul = Binary { kind: BinaryKind::Mul };
    let (_, product) =
        rewrite::insert(graph, format!("{name}_mul"), mul, &[Some(affine.data), Some(scale)], ty);
    rewrite::become_op(graph, id, Binary { kind: BinaryKind::Add }, &[Some(product), Some(shift)]);
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::ops::BatchNormalization;
    use crate::passes::testing::{Build, becomes};

    #[test]
    fn a_product_and_a_sum() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 2]);
        let [scale, bias, mean, variance] = std::array::from_fn(|_| b.weights(&[3]));
        let y = b.node("y", BatchNormalization { epsilon: 0.1 }, &[x, scale, bias, mean, variance]);
        let graph = b.finish(&[y]);
        becomes!(graph, &["batch_normalization_to_scale"], @r"
        graph test
          input x: float32[2,3,2]
          y_mul: float32[2,3,2] = Mul(x, y_scale float32[1,3,1] {0.7634429, 1.1466676, 1.2491637})
          y: float32[2,3,2] = Add(y_mul, y_shift float32[1,3,1] {-0.16630712, -0.19218644, 0.3439564})
          output y
        ");
    }
}
