//! Control flow.

use std::collections::{HashMap, HashSet};

use armet_graph::ops::{Binary, BinaryKind, Gather, If, Loop, ShapeOf, Slice, Squeeze, Transpose};
use armet_graph::{Graph, Output, TensorType, ValueId, ValueType};
use armet_tensor::{Bool, ElementType, Tensor};

use super::{Entry, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::importer::Branch;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("If", 1, conditional),
    onnx("Loop", 1, repeat),
    onnx("Scan", 8, scan_batches),
    onnx("Scan", 9, scan),
];

/// Both branches get the same inputs: all values that either uses from outside, in the order of first use.
fn conditional(n: &mut NodeReader<'_, '_>) -> Read {
    let condition = n.input(0)?;
    let then_branch = n.body("then_branch", &[])?;
    let else_branch = n.body("else_branch", &[])?;
    let wanted = n.output_count();
    for branch in [&then_branch, &else_branch] {
        let given = branch.graph.outputs().len();
        if given != wanted {
            return Err(Invalid::Other(format!("a branch has {given} results, the node has {wanted}")).into());
        }
    }
    let mut seen = HashSet::new();
    let captures = then_branch.captures.iter().chain(&else_branch.captures).map(|(value, _)| *value);
    let outer: Vec<ValueId> = captures.filter(|value| seen.insert(*value)).collect();
    let then_branch = with_inputs(n, then_branch, &outer);
    let else_branch = with_inputs(n, else_branch, &outer);
    let op = If { then_branch: Box::new(then_branch), else_branch: Box::new(else_branch) };
    let inputs = std::iter::once(condition).chain(outer).map(Some).collect();
    n.emit(op, inputs)
}

fn with_inputs(n: &mut NodeReader<'_, '_>, branch: Branch, outer: &[ValueId]) -> Graph {
    let mut graph = branch.graph;
    let inner: HashMap<ValueId, ValueId> = branch.captures.into_iter().collect();
    let mut inputs = Vec::with_capacity(outer.len());
    for &value in outer {
        inputs.push(if let Some(inner) = inner.get(&value) {
            *inner
        } else {
            // The other branch uses it; here it is an input that nothing reads.
            let (name, ty) = n.describe(value);
            graph.add_value(name, ty)
        });
    }
    graph.set_inputs(inputs);
    graph
}

/// The type of a loop's condition and that of its counter.
fn scalar(element: ElementType) -> ValueType {
    TensorType::fixed(element, &[]).into()
}

fn repeat(n: &mut NodeReader<'_, '_>) -> Read {
    let inputs: Vec<Option<ValueId>> =
        (0..n.input_count().max(2)).map(|i| n.optional(i)).collect::<Read<_>>()?;
    let carried = inputs.len() - 2;
    if let Some(missing) = inputs[2..].iter().position(Option::is_none) {
        return Err(Invalid::MissingInput(2 + missing).into());
    }
    let mut types = vec![Some(scalar(ElementType::I64)), Some(scalar(ElementType::Bool))];
    for &value in inputs[2..].iter().flatten() {
        types.push(n.known_type(value));
    }
    let body = n.body_of_types("body", &types)?;
    check_results(n, &body.graph, carried)?;
    let outer = body.captures.iter().map(|(value, _)| Some(*value));
    let inputs = inputs.into_iter().chain(outer).collect();
    n.emit(Loop { body: Box::new(body.graph), carried }, inputs)
}

fn check_results(n: &NodeReader<'_, '_>, body: &Graph, carried: usize) -> Read {
    let (given, wanted) = (body.outputs().len(), 1 + n.output_count().max(carried));
    if given < wanted {
        return Err(Invalid::Other(format!("the body has {given} results, {wanted} are needed")).into());
    }
    Ok(())
}

/// A body whose own inputs are states and parts of sequences, made one of Loop.
struct ScanBody {
    body: Loop,
    /// Values of the graph outside that the body uses besides the sequences.
    outer: Vec<ValueId>,
}

/// Makes a body of Scan one of Loop: the turn's part of each sequence is cut out inside.
///
/// `sequences` are the axis and the direction of each; they are inputs of the new body behind the states.
fn scan_body(branch: Branch, states: usize, sequences: &[(i64, bool)]) -> ScanBody {
    let mut graph = branch.graph;
    let own = graph.inputs().to_vec();
    let turn = graph.add_value("turn", scalar(ElementType::I64));
    let condition = graph.add_value("condition", scalar(ElementType::Bool));
    let mut inputs = vec![turn, condition];
    inputs.extend_from_slice(&own[..states]);
    let mut backward = None;
    for (&part, &(axis, reversed)) in own[states..].iter().zip(sequences) {
        let part_type = graph.value(part).ty.clone();
        let whole = graph.add_value(format!("{}.whole", graph.value(part).name), part_type.without_shapes());
        let index = if reversed {
            *backward.get_or_insert_with(|| {
                // Positions that count from the end.
                let last = graph.add_constant("last", Tensor::scalar(-1i64));
                graph.add("backward", Binary { kind: BinaryKind::Sub }, [Some(last), Some(turn)])
            })
        } else {
            turn
        };
        let name = graph.value(part).name.clone();
        graph.add_node(name, Gather { axis }, [Some(whole), Some(index)], [Some(part)]);
        inputs.push(whole);
    }
    inputs.extend_from_slice(&own[states + sequences.len()..]);
    graph.set_inputs(inputs);
    let go_on = graph.add_constant("go_on", Tensor::scalar(Bool(1)));
    let mut outputs = vec![Output { name: "go_on".into(), value: go_on }];
    outputs.extend_from_slice(graph.outputs());
    graph.set_outputs(outputs);
    let outer = branch.captures.into_iter().map(|(value, _)| value).collect();
    ScanBody { body: Loop { body: Box::new(graph), carried: states }, outer }
}

/// The length of an axis of a value, as a scalar.
fn length(n: &mut NodeReader<'_, '_>, value: ValueId, axis: i64) -> ValueId {
    let end = if axis == -1 { None } else { Some(axis + 1) };
    let length = n.step("length", ShapeOf { start: axis, end }, vec![Some(value)]);
    n.step("turns", Squeeze, vec![Some(length)])
}

fn flags(n: &NodeReader<'_, '_>, name: &'static str, count: usize) -> Read<Vec<bool>> {
    let given = n.ints(name)?.unwrap_or_default();
    if !given.is_empty() && given.len() != count {
        return Err(n.refuse(name, "has another length than the list it is for").into());
    }
    Ok((0..count).map(|i| given.get(i).is_some_and(|d| *d != 0)).collect())
}

fn axes(n: &NodeReader<'_, '_>, name: &'static str, count: usize) -> Read<Vec<i64>> {
    let given = n.ints(name)?.unwrap_or_default();
    if !given.is_empty() && given.len() != count {
        return Err(n.refuse(name, "has another length than the list it is for").into());
    }
    Ok((0..count).map(|i| given.get(i).copied().unwrap_or(0)).collect())
}

/// The number of states, and of sequences, among this many inputs.
fn scan_counts(n: &NodeReader<'_, '_>, inputs: usize) -> Read<(usize, usize)> {
    let sequences =
        usize::try_from(n.required_int("num_scan_inputs")?).ok().filter(|&s| s > 0 && s <= inputs);
    let sequences = sequences.ok_or_else(|| n.refuse("num_scan_inputs", "is not the number of sequences"))?;
    Ok((inputs - sequences, sequences))
}

/// The type of a part of a sequence.
fn part_type(n: &mut NodeReader<'_, '_>, value: ValueId, axis: i64) -> Option<ValueType> {
    let mut ty = n.type_of(value)?;
    let dims = ty.dims.as_mut()?;
    let at = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis }).ok()?;
    if at < dims.len() {
        dims.remove(at);
    }
    Some(ty.into())
}

fn scan(n: &mut NodeReader<'_, '_>) -> Read {
    let inputs = n.inputs(n.input_count())?;
    let (states, sequences) = scan_counts(n, inputs.len())?;
    let inputs: Vec<ValueId> = inputs.into_iter().flatten().collect();
    let axes_in = axes(n, "scan_input_axes", sequences)?;
    let reversed = flags(n, "scan_input_directions", sequences)?;
    let mut types: Vec<Option<ValueType>> = inputs[..states].iter().map(|v| n.known_type(*v)).collect();
    for (&value, &axis) in inputs[states..].iter().zip(&axes_in) {
        types.push(part_type(n, value, axis));
    }
    let branch = n.body_of_types("body", &types)?;
    let stacked = branch.graph.outputs().len().checked_sub(states);
    let Some(stacked) = stacked.filter(|s| n.output_count() <= states + s) else {
        return Err(Invalid::Other("the body has too few results".into()).into());
    };
    let axes_out = axes(n, "scan_output_axes", stacked)?;
    let reversed_out = flags(n, "scan_output_directions", stacked)?;
    let ranks: Vec<Option<usize>> = branch.graph.outputs()[states..]
        .iter()
        .map(|o| branch.graph.value(o.value).ty.tensor().and_then(TensorType::rank))
        .collect();
    let each: Vec<(i64, bool)> = axes_in.iter().copied().zip(reversed).collect();
    let scan = scan_body(branch, states, &each);
    let turns = length(n, inputs[states], axes_in[0]);
    let given = [Some(turns), None].into_iter();
    let given = given.chain(inputs.into_iter().map(Some)).chain(scan.outer.into_iter().map(Some)).collect();
    let mut outputs = Vec::new();
    let mut turned = Vec::new();
    for index in 0..n.output_count() {
        let output = n.output(index)?;
        let at = index.wrapping_sub(states);
        let (axis, back) = if index < states { (0, false) } else { (axes_out[at], reversed_out[at]) };
        match output.filter(|_| axis != 0 || back) {
            None => outputs.push(output),
            Some(output) => {
                let plain = n.value_like(&format!("stacked{at}"), output);
                outputs.push(Some(plain));
                turned.push((plain, output, axis, back, ranks[at]));
            }
        }
    }
    n.emit_to(scan.body, given, &outputs);
    for (plain, output, axis, back, rank) in turned {
        let mut value = plain;
        if back {
            let inputs = [("starts", -1), ("ends", i64::MIN), ("axes", 0), ("steps", -1)];
            let inputs = inputs.map(|(name, number)| Some(n.vector(name, &[number])));
            let inputs = std::iter::once(Some(value)).chain(inputs).collect();
            if axis == 0 {
                n.emit_to(Slice, inputs, &[Some(output)]);
                continue;
            }
            value = n.step("reversed", Slice, inputs);
        }
        let rank = rank.map(|r| r + 1);
        let at = rank.and_then(|r| {
            usize::try_from(if axis < 0 { axis + r as i64 } else { axis }).ok().filter(|a| *a < r)
        });
        let (Some(rank), Some(at)) = (rank, at) else { return Err(n.unsupported("scan_output_axes")) };
        let mut perm: Vec<usize> = (1..rank).collect();
        perm.insert(at, 0);
        n.emit_to(Transpose { perm }, vec![Some(value)], &[Some(output)]);
    }
    Ok(())
}

/// The first version: a loop over the batch, which is the first axis of everything, around the loop over the sequences.
fn scan_batches(n: &mut NodeReader<'_, '_>) -> Read {
    if n.has_input(0) {
        return Err(Reason::Input { index: 0, what: "gives sequences lengths of their own" }.into());
    }
    let inputs: Vec<ValueId> = (1..n.input_count()).map(|i| n.input(i)).collect::<Read<_>>()?;
    let (states, sequences) = scan_counts(n, inputs.len())?;
    let reversed = flags(n, "directions", sequences)?;
    let mut types = Vec::new();
    for (index, &value) in inputs.iter().enumerate() {
        let of_batch = part_type(n, value, 0);
        types.push(match of_batch {
            Some(ValueType::Tensor(mut ty)) if index >= states => {
                ty.dims = ty.dims.map(|dims| dims.into_iter().skip(1).collect());
                Some(ty.into())
            }
            other => other,
        });
    }
    let branch = n.body_of_types("body", &types)?;
    let results = branch.graph.outputs().len();
    if results < states || n.output_count() > results {
        return Err(Invalid::Other("the body has too few results".into()).into());
    }
    let each: Vec<(i64, bool)> = reversed.into_iter().map(|back| (0, back)).collect();
    let scan = scan_body(branch, states, &each);
    let batch = length(n, inputs[0], 0);
    let turns = length(n, inputs[states], 1);
    // The loop over the batch carries nothing: all results of the inner loop are stacked.
    let mut graph = Graph::new("batch");
    let turn = graph.add_input("turn", scalar(ElementType::I64));
    graph.add_input("condition", scalar(ElementType::Bool));
    let inner_turns = graph.add_input("turns", scalar(ElementType::I64));
    let mut given = vec![Some(inner_turns), None];
    for &value in &inputs {
        let (name, ty) = n.describe(value);
        let whole = graph.add_input(name.clone(), ty.without_shapes());
        given.push(Some(graph.add(format!("{name}.item"), Gather { axis: 0 }, [Some(whole), Some(turn)])));
    }
    for &value in &scan.outer {
        let (name, ty) = n.describe(value);
        given.push(Some(graph.add_input(name, ty)));
    }
    let go_on = graph.add_constant("go_on", Tensor::scalar(Bool(1)));
    graph.add_output("go_on", go_on);
    let types = scan.body.body.outputs()[1..].iter().map(|o| scan.body.body.value(o.value));
    let types: Vec<(String, ValueType)> = types.map(|v| (v.name.clone(), v.ty.without_shapes())).collect();
    let outputs: Vec<ValueId> = types.into_iter().map(|(name, ty)| graph.add_value(name, ty)).collect();
    let name = graph.name.clone();
    graph.add_node(name, scan.body, given, outputs.iter().map(|v| Some(*v)));
    for value in outputs {
        let name = graph.value(value).name.clone();
        graph.add_output(name, value);
    }
    let outer = inputs.into_iter().chain(scan.outer);
    let given = [Some(batch), None, Some(turns)].into_iter().chain(outer.map(Some)).collect();
    n.emit(Loop { body: Box::new(graph), carried: 0 }, given)
}
