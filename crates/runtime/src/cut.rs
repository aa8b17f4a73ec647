//! Where a stage ends: which nodes it runs, which values decide what follows, and the graph that is left.

use std::collections::{HashMap, HashSet};

use armet_graph::{Graph, InferError, NodeId, Op, TensorType, ValueId, ValueType};
use armet_tensor::ElementType;

use crate::CompileError;

/// Values larger than this do not decide a continuation: the node that needs them is evaluated instead.
const LARGEST_DECIDER: usize = 1024;

/// Which nodes this stage runs, and what the rest takes over.
pub(crate) struct Cut {
    pub(crate) run: Vec<NodeId>,
    /// Nodes of `run` whose results have shapes that arrive at run time.
    pub(crate) dynamic: HashSet<NodeId>,
    pub(crate) rest: Vec<NodeId>,
    pub(crate) deciders: HashSet<ValueId>,
}

/// Takes the nodes behind the cut out of `graph`; gives them as a graph of their own, and the values it needs.
pub(crate) fn split_rest(graph: &mut Graph, cut: &Cut) -> (Graph, Vec<ValueId>) {
    let mut rest = graph.clone();
    for &id in &cut.run {
        rest.remove_node(id);
    }
    let own: HashSet<ValueId> =
        cut.rest.iter().flat_map(|&id| rest.node(id).outputs.iter().flatten().copied()).collect();
    let reads = cut.rest.iter().flat_map(|&id| rest.node(id).inputs.iter().flatten().copied());
    let mut seen = HashSet::new();
    let handed = reads
        .chain(rest.outputs().iter().map(|o| o.value))
        .filter(|v| !own.contains(v) && rest.constant(*v).is_none() && seen.insert(*v))
        .collect();
    for &id in &cut.rest {
        graph.remove_node(id);
    }
    (rest, handed)
}

fn is_concrete(ty: &ValueType) -> bool {
    match ty {
        ValueType::Tensor(ty) => ty.shape().is_some(),
        ValueType::Sequence(_) | ValueType::Optional(_) => true,
    }
}

/// Decides which nodes this stage runs: those whose results have known shapes, and those that must run for their
/// results to get known.
pub(crate) fn find_cut(
    graph: &Graph,
    cuts: &[(NodeId, InferError)],
    repeats: bool,
) -> Result<Cut, CompileError> {
    let reasons: HashMap<NodeId, &InferError> = cuts.iter().map(|(id, reason)| (*id, reason)).collect();
    let mut cut =
        Cut { run: Vec::new(), dynamic: HashSet::new(), rest: Vec::new(), deciders: HashSet::new() };
    let mut ready: Vec<bool> = graph.value_ids().map(|v| graph.constant(v).is_some()).collect();
    for &input in graph.inputs() {
        ready[input.index()] = true;
    }
    for id in graph.order()? {
        let node = graph.node(id);
        if !node.inputs.iter().flatten().all(|v| ready[v.index()]) {
            cut.rest.push(id);
            continue;
        }
        let decided_by = match (&node.op, reasons.get(&id)) {
            (Op::If(_), _) if node.input(0).is_some_and(|v| graph.constant(v).is_none()) => node.input(0),
            // In a loop such values differ from turn to turn: moving elements costs less than to plan anew.
            (op, Some(InferError::NeedsValue(_))) if repeats && only_moves(op) => None,
            (_, Some(InferError::NeedsValue(index))) => node.input(*index),
            _ => None,
        };
        if let Some(decider) = decided_by {
            let ty = graph.value(decider).ty.tensor().filter(|ty| ty.element != ElementType::String);
            let bytes = ty.and_then(TensorType::byte_len);
            if bytes.is_some_and(|n| n <= LARGEST_DECIDER) && graph.constant(decider).is_none() {
                cut.deciders.insert(decider);
                cut.rest.push(id);
                continue;
            }
        }
        let concrete = !reasons.contains_key(&id)
            && node.outputs.iter().flatten().all(|v| is_concrete(&graph.value(*v).ty));
        cut.run.push(id);
        if concrete {
            for output in node.outputs.iter().flatten() {
                ready[output.index()] = true;
            }
        } else {
            cut.dynamic.insert(id);
        }
    }
    if !cut.rest.is_empty() && cut.deciders.is_empty() && cut.dynamic.is_empty() {
        let (id, reason) = cuts
            .iter()
            .find(|(id, _)| cut.rest.contains(id))
            .map_or((cut.rest[0], "an input is never computed".to_owned()), |(id, e)| (*id, e.to_string()));
        let node = graph.node(id);
        return Err(CompileError::Unplannable { node: node.name.clone(), operator: node.op.name(), reason });
    }
    Ok(cut)
}

fn only_moves(op: &Op) -> bool {
    matches!(
        op,
        Op::Slice(_)
            | Op::Reshape(_)
            | Op::Expand(_)
            | Op::Tile(_)
            | Op::Range(_)
            | Op::ConstantOfShape(_)
            | Op::Squeeze(_)
            | Op::Unsqueeze(_)
            | Op::Split(_)
            | Op::Pad(_)
    )
}
