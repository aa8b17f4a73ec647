//! Nodes that no result of the graph needs are removed, outputs that nobody reads are no longer asked for, and contents
//! of constants that nobody reads are let go.

use super::PassContext;
use crate::{Graph, GraphError, NodeId, ValueId};

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    Ok(sweep(graph))
}

/// Removes everything that is not needed; gives the number of nodes removed.
pub(super) fn sweep(graph: &mut Graph) -> usize {
    let mut needed = vec![false; graph.values().len()];
    let mut pending: Vec<ValueId> = graph.outputs().iter().map(|o| o.value).collect();
    let mut live: std::collections::HashSet<NodeId> = std::collections::HashSet::new();
    while let Some(value) = pending.pop() {
        if std::mem::replace(&mut needed[value.index()], true) {
            continue;
        }
        if let Some(id) = graph.producer(value)
            && live.insert(id)
        {
            pending.extend(graph.node(id).inputs.iter().flatten());
        }
    }
    let mut removed = 0;
    let ids: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    for id in ids {
        if !live.contains(&id) {
            graph.remove_node(id);
            removed += 1;
            continue;
        }
        let count = graph.node(id).outputs.len();
        for index in 0..count {
            if let Some(output) = graph.node(id).outputs[index]
                && !needed[output.index()]
                && count > 1
            {
                graph.set_output(id, index, None);
            }
        }
        let wanted = graph.node(id).outputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        graph.truncate_outputs(id, wanted);
    }
    for value in graph.value_ids() {
        if !needed[value.index()] && !graph.inputs().contains(&value) && graph.constant(value).is_some() {
            graph.value_mut(value).constant = None;
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use crate::ops::{Split, UnaryKind};
    use crate::passes::testing::{Build, becomes, unary};

    #[test]
    fn unread_nodes_and_outputs() {
        let mut b = Build::new();
        let x = b.input("x", &[3, 2]);
        let unread = b.node("unread", unary(UnaryKind::Abs), &[x]);
        b.node("behind", unary(UnaryKind::Abs), &[unread]);
        let parts: Vec<_> = ["one", "two", "three"]
            .map(|name| b.graph.add_value(name, crate::TensorType::unranked(armet_tensor::ElementType::F32)))
            .to_vec();
        let split = Split { axis: 0, parts: 3 };
        b.graph.add_node("split", split, [Some(x)], parts.iter().map(|v| Some(*v)));
        let graph = b.finish(&[parts[1]]);
        becomes!(graph, &["remove_dead_code"], @r"
        graph test
          input x: float32[3,2]
          _, two: float32[1,2] = Split(x) axis=0, num_outputs=3 // split
          output two
        ");
    }
}
