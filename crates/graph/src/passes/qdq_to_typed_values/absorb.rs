//! Which nodes read and write typed values themselves.
//!
//! - Conv and `MatMul` sum products of integers: data and weights are typed, the bias may be; the result is typed when
//!   it is quantized next.
//! - Arithmetic, functions of one number and averages work on integers when inputs and result are all typed.
//! - Movements of data (Reshape, Transpose, Slice, Concat, maximum pooling, nearest Resize ...) move the integers: the
//!   result has the storage of the input, and what wants another storage requantizes it.

use super::{State, facts, rewrite, typed_like};
use crate::ops::{BinaryKind, PadMode, PoolKind, Requantize, ResizeMode};
use crate::{Graph, Node, NodeId, Op, ValueId};

/// Lets one node work on typed values where it can; gives the number of rewrites.
pub(super) fn absorb(graph: &mut Graph, state: &mut State, id: NodeId) -> usize {
    let Some(node) = graph.get_node(id) else { return 0 };
    let done = match &node.op {
        Op::Conv(_) | Op::MatMul(_) => sum_of_products(graph, state, id),
        Op::Concat(_) => concat(graph, state, id),
        op if is_movement(op, node) => movement(graph, state, id),
        op if is_elementwise(op) => elementwise(graph, state, id),
        _ => None,
    };
    usize::from(done.is_some())
}

/// The typed value behind a real one, when it is 8 bits wide and has one scale.
fn byte(graph: &Graph, state: &State, value: ValueId) -> Option<ValueId> {
    let typed = bytes(graph, state, value)?;
    facts::quantization(graph, typed)?.is_per_tensor().then_some(typed)
}

/// The typed value behind a real one, when it is 8 bits wide.
fn bytes(graph: &Graph, state: &State, value: ValueId) -> Option<ValueId> {
    let typed = state.typed(value)?;
    let element = facts::element(graph, typed)?;
    (element.is_integer() && element.bits() == 8).then_some(typed)
}

/// The quantizer that alone reads a real value, and its typed result.
fn quantizer(graph: &Graph, state: &State, value: ValueId) -> Option<(NodeId, ValueId)> {
    let id = facts::only_consumer(graph, value)?;
    let typed = *state.quantizers.get(&id)?;
    (graph.get_node(id)?.input(0) == Some(value)).then_some((id, typed))
}

/// A quantizer whose result is 8 bits wide and has one scale.
fn byte_quantizer(graph: &Graph, state: &State, value: ValueId) -> Option<(NodeId, ValueId)> {
    let (id, typed) = quantizer(graph, state, value)?;
    let element = facts::element(graph, typed)?;
    let one_scale = facts::quantization(graph, typed)?.is_per_tensor();
    (element.bits() == 8 && one_scale).then_some((id, typed))
}

/// `id` gives what the quantizer of its result gave.
fn quantize_result(graph: &mut Graph, state: &mut State, id: NodeId, quantizer: NodeId) {
    state.quantizers.remove(&quantizer);
    rewrite::take_over(graph, id, quantizer);
}

fn sum_of_products(graph: &mut Graph, state: &mut State, id: NodeId) -> Option<()> {
    let node = graph.node(id);
    if node.input(3).is_some() {
        return None;
    }
    let data = byte(graph, state, node.input(0)?)?;
    let weights = bytes(graph, state, node.input(1)?)?;
    let output = node.output()?;
    let channels = match &node.op {
        Op::Conv(_) => 0,
        Op::MatMul(op) => facts::rank(graph, weights)?.checked_sub(if op.transpose_b { 2 } else { 1 })?,
        _ => return None,
    };
    let scales = facts::quantization(graph, weights)?;
    if scales.block.is_some() || scales.axis.is_some_and(|axis| axis != channels) {
        return None;
    }
    let bias = match node.input(2) {
        None => None,
        Some(bias) => match state.typed(bias) {
            Some(typed) => Some(typed),
            None => Some(facts::plain_constant(graph, bias).map(|_| bias)?),
        },
    };
    graph.set_input(id, 0, Some(data));
    graph.set_input(id, 1, Some(weights));
    if bias.is_some() {
        graph.set_input(id, 2, bias);
    }
    if let Some((quantizer, _)) = byte_quantizer(graph, state, output) {
        quantize_result(graph, state, id, quantizer);
    }
    Some(())
}

fn is_elementwise(op: &Op) -> bool {
    match op {
        Op::Unary(_) => true,
        Op::Binary(op) => {
            use BinaryKind::{Add, Max, Min, Mul, Sub};
            matches!(op.kind, Add | Sub | Mul | Min | Max)
        }
        Op::Pool(op) => op.kind == PoolKind::Average,
        Op::GlobalPool(op) => !matches!(op.kind, PoolKind::Lp { .. }),
        _ => false,
    }
}

fn elementwise(graph: &mut Graph, state: &mut State, id: NodeId) -> Option<()> {
    let node = graph.node(id);
    let inputs: Vec<ValueId> =
        node.inputs.iter().map(|value| value.and_then(|v| byte(graph, state, v))).collect::<Option<_>>()?;
    let (quantizer, _) = byte_quantizer(graph, state, node.output()?)?;
    for (index, input) in inputs.into_iter().enumerate() {
        graph.set_input(id, index, Some(input));
    }
    quantize_result(graph, state, id, quantizer);
    Some(())
}

fn is_movement(op: &Op, node: &Node) -> bool {
    match op {
        Op::Reshape(_)
        | Op::Flatten(_)
        | Op::Squeeze(_)
        | Op::Unsqueeze(_)
        | Op::Transpose(_)
        | Op::Slice(_)
        | Op::Split(_)
        | Op::Gather(_)
        | Op::Expand(_)
        | Op::Tile(_)
        | Op::ChannelShuffle(_)
        | Op::DepthToSpace(_)
        | Op::SpaceToDepth(_)
        | Op::Identity(_) => true,
        // A margin of zeros is stored as the zero point, exactly.
        Op::Pad(op) => op.mode != PadMode::Constant || node.input(2).is_none(),
        Op::Pool(op) => op.kind == PoolKind::Max && node.outputs.len() == 1,
        Op::Resize(op) => op.mode == ResizeMode::Nearest,
        _ => false,
    }
}

/// Whether nodes that read a real value would rather have integers.
fn wanted_typed(graph: &Graph, state: &State, value: ValueId) -> bool {
    let readers = graph.consumers(value);
    let wants = |id: &NodeId| match graph.get_node(*id) {
        Some(node) => {
            state.quantizers.contains_key(id)
                || matches!(node.op, Op::Conv(_) | Op::MatMul(_) | Op::Concat(_))
                || is_movement(&node.op, node)
        }
        None => false,
    };
    !graph.is_output(value) && !readers.is_empty() && readers.iter().all(wants)
}

fn movement(graph: &mut Graph, state: &mut State, id: NodeId) -> Option<()> {
    let node = graph.node(id);
    let typed = byte(graph, state, node.input(0)?)?;
    let outputs: Vec<(usize, ValueId)> =
        node.outputs.iter().enumerate().filter_map(|(index, v)| Some((index, (*v)?))).collect();
    if !outputs.iter().all(|(_, output)| wanted_typed(graph, state, *output)) {
        return None;
    }
    graph.set_input(id, 0, Some(typed));
    for (index, output) in outputs {
        give_typed(graph, state, (id, index), output, typed)?;
    }
    Some(())
}

/// A node's output becomes typed as `storage` is, and its readers are told.
fn give_typed(
    graph: &mut Graph,
    state: &mut State,
    (id, index): (NodeId, usize),
    output: ValueId,
    storage: ValueId,
) -> Option<()> {
    if let Some((quantizer, result)) = quantizer(graph, state, output)
        && facts::same_storage(graph, result, storage)
    {
        state.quantizers.remove(&quantizer);
        rewrite::absorb(graph, id, quantizer);
        graph.remove_node(quantizer);
        graph.set_output(id, index, Some(result));
        return Some(());
    }
    let name = rewrite::derived(graph, output, "stored");
    let moved = typed_like(graph, name, output, storage)?;
    graph.set_output(id, index, Some(moved));
    // Whoever still wants real numbers gets them behind the movement.
    let name = graph.value(output).name.clone();
    graph.add_node(name, Requantize, [Some(moved)], [Some(output)]);
    state.real.insert(output, moved);
    Some(())
}

/// Parts of a Concat that is quantized next are brought to its storage, each on its own; a Concat whose parts are all
/// stored alike is a movement.
fn concat(graph: &mut Graph, state: &mut State, id: NodeId) -> Option<()> {
    let node = graph.node(id);
    let output = node.output()?;
    let inputs: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
    let parts: Vec<Option<ValueId>> = inputs.iter().map(|v| byte(graph, state, *v)).collect();
    let first = (*parts.first()?)?;
    if parts.iter().all(|p| p.is_some_and(|p| facts::same_storage(graph, p, first)))
        && wanted_typed(graph, state, output)
    {
        for (index, part) in parts.into_iter().enumerate() {
            graph.set_input(id, index, part);
        }
        return give_typed(graph, state, (id, 0), output, first);
    }
    let (quantizer, result) = byte_quantizer(graph, state, output)?;
    for (index, (input, part)) in inputs.into_iter().zip(parts).enumerate() {
        let source = part.unwrap_or(input);
        let stored = if facts::same_storage(graph, source, result) {
            source
        } else {
            let name = rewrite::derived(graph, input, "stored");
            let stored = typed_like(graph, name.clone(), input, result)?;
            graph.add_node(name, Requantize, [Some(source)], [Some(stored)]);
            stored
        };
        graph.set_input(id, index, Some(stored));
    }
    quantize_result(graph, state, id, quantizer);
    Some(())
}
