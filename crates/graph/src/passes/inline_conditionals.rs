//! An If whose condition is a constant is replaced by the nodes of the branch that it takes.

use super::{PassContext, facts, fold_constants};
use crate::{Graph, GraphError, NodeId, Op, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut rewrites = 0;
    loop {
        let mut inlined = 0;
        for id in facts::node_ids(graph) {
            if let Some(taken) = constant_condition(graph, id) {
                inline(graph, id, taken);
                inlined += 1;
            }
        }
        if inlined == 0 {
            return Ok(rewrites);
        }
        rewrites += inlined;
        // The branch may hold further conditionals, and the values around it are better known now.
        fold_constants::fold_all(graph)?;
    }
}

fn constant_condition(graph: &Graph, id: NodeId) -> Option<bool> {
    let node = graph.get_node(id)?;
    if !matches!(node.op, Op::If(_)) {
        return None;
    }
    facts::ints(graph, node.input(0)?)?.first().map(|c| *c != 0)
}

fn inline(graph: &mut Graph, id: NodeId, taken: bool) {
    let Some(node) = graph.remove_node(id) else { return };
    let Op::If(conditional) = node.op else { return };
    let branch = if taken { *conditional.then_branch } else { *conditional.else_branch };
    let mut outer: Vec<Option<ValueId>> = vec![None; branch.values().len()];
    for (index, &input) in branch.inputs().iter().enumerate() {
        outer[input.index()] = node.inputs.get(index + 1).copied().flatten();
    }
    for inner in branch.value_ids() {
        if outer[inner.index()].is_none() {
            let value = branch.value(inner);
            let copy = graph.add_value(value.name.clone(), value.ty.clone());
            graph.value_mut(copy).constant.clone_from(&value.constant);
            outer[inner.index()] = Some(copy);
        }
    }
    let mapped = |value: &Option<ValueId>| value.and_then(|v| outer[v.index()]);
    for (_, inner) in branch.nodes() {
        let copy = graph.add_node(
            inner.name.clone(),
            inner.op.clone(),
            inner.inputs.iter().map(mapped),
            inner.outputs.iter().map(mapped),
        );
        graph.node_mut(copy).absorbed.clone_from(&inner.absorbed);
    }
    for (result, given) in node.outputs.iter().zip(branch.outputs()) {
        if let (Some(result), Some(given)) = (result, outer[given.value.index()]) {
            graph.replace_uses(*result, given);
        }
    }
}

#[cfg(test)]
mod tests {
    use armet_tensor::{Bool, ElementType, Tensor};

    use crate::ops::{If, UnaryKind};
    use crate::passes::testing::{Build, becomes, stays, unary};
    use crate::{Graph, TensorType, ValueId};

    const PASS: &[&str] = &["inline_conditionals"];

    /// A branch that captures one value and applies a function to it.
    fn branch(kind: UnaryKind) -> Box<Graph> {
        let mut graph = Graph::new("branch");
        let captured = graph.add_input("captured", TensorType::fixed(ElementType::F32, &[2]));
        let inner = graph.add("inner", unary(kind), [Some(captured)]);
        graph.add_output("inner", inner);
        graph.add_output("captured", captured);
        Box::new(graph)
    }

    fn conditional(b: &mut Build, condition: ValueId, x: ValueId) -> [ValueId; 2] {
        let op = If { then_branch: branch(UnaryKind::Exp), else_branch: branch(UnaryKind::Abs) };
        let outputs = ["y", "z"].map(|name| b.graph.add_value(name, TensorType::unranked(ElementType::F32)));
        b.graph.add_node("if", op, [Some(condition), Some(x)], outputs.map(Some));
        outputs
    }

    #[test]
    fn the_taken_branch_stands_in_place() {
        let mut b = Build::new();
        let x = b.input("x", &[2]);
        let no = b.constant(Tensor::scalar(Bool::from(false)));
        let outputs = conditional(&mut b, no, x);
        let graph = b.finish(&outputs);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2]
          inner: float32[2] = Abs(x)
          output y = inner
          output z = x
        ");
    }

    #[test]
    fn not_when_the_condition_arrives_at_run_time() {
        let mut b = Build::new();
        let x = b.input("x", &[2]);
        let condition = b.graph.add_input("condition", TensorType::fixed(ElementType::Bool, &[]));
        let outputs = conditional(&mut b, condition, x);
        stays(&b.finish(&outputs), PASS);
    }
}
