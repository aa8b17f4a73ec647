//! An activation behind a Conv, `ConvTranspose` or `MatMul` whose result nothing else reads is applied by that node.

use super::{PassContext, facts, rewrite};
use crate::ops::UnaryKind;
use crate::{Graph, GraphError, NodeId, Op};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    Ok(ids.into_iter().filter(|id| fuse(graph, *id).is_some()).count())
}

fn is_activation(kind: UnaryKind) -> bool {
    use UnaryKind::{
        Clip, Elu, Gelu, HardSigmoid, HardSwish, LeakyRelu, Mish, Relu, Sigmoid, Silu, Softplus, Swish, Tanh,
    };
    matches!(
        kind,
        Relu | Clip { .. }
            | LeakyRelu { .. }
            | Silu
            | Swish { .. }
            | HardSwish
            | HardSigmoid { .. }
            | Sigmoid
            | Tanh
            | Gelu { .. }
            | Mish
            | Elu { .. }
            | Softplus
    )
}

fn fuse(graph: &mut Graph, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let output = node.output()?;
    if !facts::element(graph, output)?.is_float() {
        return None;
    }
    let mut op = node.op.clone();
    let slot = match &mut op {
        Op::Conv(op) => &mut op.activation,
        Op::ConvTranspose(op) => &mut op.activation,
        Op::MatMul(op) => &mut op.activation,
        _ => return None,
    };
    let next = facts::only_consumer(graph, output)?;
    let Op::Unary(unary) = &graph.node(next).op else { return None };
    if slot.is_some() || !is_activation(unary.kind) {
        return None;
    }
    *slot = Some(unary.kind);
    *graph.node_mut(id).op = op;
    rewrite::take_over(graph, id, next);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::UnaryKind;
    use crate::passes::testing::{Build, becomes, conv, matmul, stays, unary};

    const PASS: &[&str] = &["fuse_activation_into_conv"];

    #[test]
    fn into_conv_and_matmul() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let w = b.weights(&[2, 2, 1, 1]);
        let v = b.weights(&[3, 2]);
        let y = b.node("conv", conv(), &[x, w]);
        let y = b.node("relu", unary(UnaryKind::Relu), &[y]);
        let y = b.node("matmul", matmul(), &[y, v]);
        let y = b.node("gelu", unary(UnaryKind::Gelu { tanh: false }), &[y]);
        let y = b.node("tanh", unary(UnaryKind::Tanh), &[y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2,3,3]
          relu: float32[1,2,3,3] = Conv(x, c1 float32[2,2,1,1] {0.8165615, 0.9957817, 1.2210027, 0.6943592}) auto_pad=NOTSET, group=1, activation=Relu // conv + relu
          gelu: float32[1,2,3,2] = MatMul(relu, c2 float32[3,2] {0.69426465, 1.0128944, 1.1273487, 0.7730672, 0.53550863, 1.0439966}) transpose_a=0, transpose_b=0, alpha=1, activation=Gelu(approximate=none) // matmul + gelu
          tanh: float32[1,2,3,2] = Tanh(gelu)
          output tanh
        ");
    }

    #[test]
    fn not_functions_that_are_no_activations() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let w = b.weights(&[2, 2, 1, 1]);
        let y = b.node("conv", conv(), &[x, w]);
        let y = b.node("y", unary(UnaryKind::Floor), &[y]);
        stays(&b.finish(&[y]), PASS);
    }
}
