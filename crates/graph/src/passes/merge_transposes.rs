//! Transposes in a row become one, or none when they undo each other; so do two that undo each other around
//! elementwise nodes.

use super::{PassContext, facts, rewrite};
use crate::ops::{Binary, Transpose};
use crate::{Dim, Graph, GraphError, NodeId, Op, TensorType, ValueId, ValueType};

/// Elementwise nodes between two transposes that are looked through.
const LONGEST_ROW: usize = 8;

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let ids = facts::node_ids(graph);
    let mut rewrites = 0;
    for id in ids {
        rewrites += usize::from(merge(graph, id).is_some());
        rewrites += usize::from(undo_around_elementwise(graph, id).is_some());
    }
    Ok(rewrites)
}

/// The axes that a Transpose reads, in the order of its result.
pub(super) fn permutation(graph: &Graph, id: NodeId) -> Option<Vec<usize>> {
    let node = graph.get_node(id)?;
    let Op::Transpose(op) = &node.op else { return None };
    let rank = facts::rank(graph, node.input(0)?)?;
    if op.perm.is_empty() {
        return Some((0..rank).rev().collect());
    }
    (op.perm.len() == rank).then(|| op.perm.clone())
}

pub(super) fn is_identity(perm: &[usize]) -> bool {
    perm.iter().enumerate().all(|(i, p)| i == *p)
}

/// First `inner`, then `outer`.
pub(super) fn compose(inner: &[usize], outer: &[usize]) -> Option<Vec<usize>> {
    outer.iter().map(|axis| inner.get(*axis).copied()).collect()
}

pub(super) fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut out = vec![0; perm.len()];
    for (i, p) in perm.iter().enumerate() {
        out[*p] = i;
    }
    out
}

fn merge(graph: &mut Graph, id: NodeId) -> Option<()> {
    let outer = permutation(graph, id)?;
    let node = graph.node(id);
    let (input, output) = (node.input(0)?, node.output()?);
    let (before, inner_node) = facts::producer(graph, input)?;
    let source = inner_node.input(0)?;
    let perm = compose(&permutation(graph, before)?, &outer)?;
    // Storage that changes between rounds, and scales along an axis would have to move with it.
    let per_axis = facts::quantization(graph, input).is_some_and(|q| !q.is_per_tensor());
    if per_axis || !facts::same_storage(graph, source, input) || !facts::same_storage(graph, input, output) {
        return None;
    }
    if is_identity(&perm) {
        graph.replace_uses(output, source);
        rewrite::discard(graph, id);
    } else {
        rewrite::become_op(graph, id, Transpose { perm }, &[Some(source)]);
    }
    Some(())
}

/// Transpose, elementwise nodes, the inverse Transpose: both go, and the nodes between work on the axes in their first
/// order. Constants of the nodes between are permuted instead.
fn undo_around_elementwise(graph: &mut Graph, id: NodeId) -> Option<()> {
    let outer = permutation(graph, id)?;
    let rank = outer.len();
    let wanted = inverse(&outer);
    let output = graph.node(id).output()?;
    let mut row: Vec<(NodeId, usize)> = Vec::new();
    let mut at = graph.node(id).input(0)?;
    let (first, source) = loop {
        let (before, node) = facts::sole_producer(graph, at)?;
        if let Some(inner) = permutation(graph, before) {
            if inner != wanted || row.is_empty() {
                return None;
            }
            break (before, node.input(0)?);
        }
        let data = elementwise_input(graph, before, rank)?;
        row.push((before, data));
        if row.len() > LONGEST_ROW {
            return None;
        }
        at = node.input(data)?;
    };
    for (node, data) in row.iter().rev() {
        for index in 0..graph.node(*node).inputs.len() {
            if let Some(constant) = graph.node(*node).input(index).filter(|_| index != *data) {
                let permuted = permute_constant(graph, constant, &outer)?;
                graph.set_input(*node, index, Some(permuted));
            }
        }
        let result = graph.node(*node).output()?;
        let ty = permute_type(graph.value(result).ty.tensor()?, &outer)?;
        graph.value_mut(result).ty = ty;
    }
    let (entry, data) = *row.last()?;
    graph.set_input(entry, data, Some(source));
    if graph.consumers(graph.node(first).output()?).is_empty() {
        graph.remove_node(first);
    }
    let last = row.first()?.0;
    rewrite::absorb(graph, last, id);
    graph.remove_node(id);
    graph.set_output(last, 0, Some(output));
    Some(())
}

/// Which input of an elementwise node is its data, when all others are constants that can be permuted with it.
fn elementwise_input(graph: &Graph, id: NodeId, rank: usize) -> Option<usize> {
    let node = graph.node(id);
    let output = node.output()?;
    if graph.value(output).ty.tensor()?.quantization.as_ref().is_some_and(|q| !q.is_per_tensor()) {
        return None;
    }
    let data = match &node.op {
        Op::Unary(_) | Op::Cast(_) | Op::Clip(_) => 0,
        Op::Binary(Binary { .. }) => {
            let constant = |index: usize| node.input(index).is_some_and(|v| graph.constant(v).is_some());
            match (constant(0), constant(1)) {
                (false, true) => 0,
                (true, false) => 1,
                _ => return None,
            }
        }
        _ => return None,
    };
    let fits = node.inputs.iter().enumerate().all(|(index, input)| match input {
        Some(value) if index == data => {
            facts::rank(graph, *value) == Some(rank) && facts::same_shape(graph, *value, output)
        }
        Some(value) => facts::plain_constant(graph, *value)
            .is_some_and(|t| t.len() == 1 || (t.shape().len() <= rank && t.element().byte_size().is_some())),
        None => true,
    });
    fits.then_some(data)
}

fn permute_type(ty: &TensorType, perm: &[usize]) -> Option<ValueType> {
    let dims: Option<Vec<Dim>> = perm.iter().map(|axis| ty.dims.as_ref()?.get(*axis).cloned()).collect();
    let mut permuted = TensorType::new(ty.element, dims?);
    permuted.quantization.clone_from(&ty.quantization);
    Some(permuted.into())
}

/// A constant that broadcasts against permuted values as the given one did before.
fn permute_constant(graph: &mut Graph, value: ValueId, perm: &[usize]) -> Option<ValueId> {
    let tensor = facts::plain_constant(graph, value)?.clone();
    if tensor.len() == 1 {
        return Some(value);
    }
    let mut shape = vec![1; perm.len() - tensor.shape().len()];
    shape.extend_from_slice(tensor.shape());
    let permuted = tensor.reshape(shape).ok()?.permuted(perm)?;
    let name = rewrite::derived(graph, value, "permuted");
    Some(graph.add_constant(name, permuted))
}

#[cfg(test)]
mod tests {
    use super::Transpose;
    use crate::ops::{BinaryKind, UnaryKind};
    use crate::passes::testing::{Build, becomes, binary, stays, unary};

    const PASS: &[&str] = &["merge_transposes"];

    fn transpose(perm: &[usize]) -> Transpose {
        Transpose { perm: perm.to_vec() }
    }

    #[test]
    fn rows() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 4]);
        let y = b.node("a", transpose(&[1, 2, 0]), &[x]);
        let z = b.node("b", transpose(&[1, 0, 2]), &[y]);
        let back = b.node("c", transpose(&[2, 0, 1]), &[y]);
        let graph = b.finish(&[z, back]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3,4]
          b: float32[4,3,2] = Transpose(x) perm=[2, 1, 0]
          output b
          output c = x
        ");
    }

    #[test]
    fn around_elementwise_nodes() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3, 4, 5]);
        let bias = b.weights(&[3]);
        let number = b.number(2.0);
        let mut y = b.node("in", transpose(&[0, 2, 3, 1]), &[x]);
        y = b.node("add", binary(BinaryKind::Add), &[bias, y]);
        y = b.node("relu", unary(UnaryKind::Relu), &[y]);
        y = b.node("mul", binary(BinaryKind::Mul), &[y, number]);
        y = b.node("out", transpose(&[0, 3, 1, 2]), &[y]);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3,4,5]
          add: float32[2,3,4,5] = Add(c1_permuted float32[1,3,1,1] {0.8165615, 0.9957817, 1.2210027}, x)
          relu: float32[2,3,4,5] = Relu(add)
          out: float32[2,3,4,5] = Mul(relu, c2 float32[] {2}) // mul + out
          output out
        ");
    }

    #[test]
    fn not_when_something_else_reads_between() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let y = b.node("in", transpose(&[1, 0]), &[x]);
        let y = b.node("relu", unary(UnaryKind::Relu), &[y]);
        let z = b.node("out", transpose(&[1, 0]), &[y]);
        stays(&b.finish(&[y, z]), PASS);
    }
}
