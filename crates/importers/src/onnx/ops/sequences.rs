//! Lists of tensors, and values that may not be there.

use armet_graph::ops::{
    ConcatFromSequence, Identity, Loop, Optional, OptionalKind, Sequence, SequenceKind, SplitToSequence,
};
use armet_graph::{Output, TensorType, ValueId, ValueType};
use armet_tensor::{Bool, ElementType, Tensor};

use super::{Entry, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("SequenceEmpty", 11, |n| {
        let element = n.element("dtype")?.unwrap_or(ElementType::F32);
        n.emit(Sequence { kind: SequenceKind::Empty { element } }, Vec::new())
    }),
    onnx("SequenceConstruct", 11, |n| {
        let inputs = n.inputs(n.input_count().max(1))?;
        n.emit(Sequence { kind: SequenceKind::Construct }, inputs)
    }),
    onnx("SequenceAt", 11, |n| listed(n, SequenceKind::At, 2)),
    onnx("SequenceInsert", 11, |n| listed(n, SequenceKind::Insert, 2)),
    onnx("SequenceErase", 11, |n| listed(n, SequenceKind::Erase, 1)),
    onnx("SequenceLength", 11, |n| listed(n, SequenceKind::Length, 1)),
    onnx("SplitToSequence", 11, |n| {
        let op = SplitToSequence { axis: n.int_or("axis", 0)?, keep_dims: n.flag("keepdims", true)? };
        let inputs = n.inputs(1)?;
        n.emit(op, inputs)
    }),
    onnx("ConcatFromSequence", 11, |n| {
        let op = ConcatFromSequence { axis: n.required_int("axis")?, new_axis: n.flag("new_axis", false)? };
        let sequence = n.input(0)?;
        n.emit(op, vec![Some(sequence)])
    }),
    onnx("SequenceMap", 17, map),
    onnx("Optional", 15, |n| {
        let ty = n.type_attribute("type")?;
        let given = n.optional(0)?;
        if given.is_none() && ty.is_none() {
            return Err(Invalid::MissingAttribute("type").into());
        }
        let inputs = given.map(Some).into_iter().collect();
        n.emit(Optional { kind: OptionalKind::Make { ty } }, inputs)
    }),
    onnx("OptionalGetElement", 15, |n| {
        let given = n.input(0)?;
        match n.known_type(given) {
            // What is no optional is surely there.
            Some(ValueType::Tensor(_) | ValueType::Sequence(_)) => n.emit(Identity, vec![Some(given)]),
            _ => n.emit(Optional { kind: OptionalKind::GetElement }, vec![Some(given)]),
        }
    }),
    onnx("OptionalHasElement", 15, |n| {
        let Some(given) = n.optional(0)? else { return n.emit_constant(Tensor::scalar(Bool(0))) };
        match n.known_type(given) {
            Some(ValueType::Tensor(_) | ValueType::Sequence(_)) => n.emit_constant(Tensor::scalar(Bool(1))),
            _ => n.emit(Optional { kind: OptionalKind::HasElement }, vec![Some(given)]),
        }
    }),
];

fn listed(n: &mut NodeReader<'_, '_>, kind: SequenceKind, required: usize) -> Read {
    let inputs = n.inputs(required)?;
    n.emit(Sequence { kind }, inputs)
}

/// A loop over the items of the first list: those of other lists and all other inputs are read beside them, and each
/// result makes a list.
fn map(n: &mut NodeReader<'_, '_>) -> Read {
    let inputs: Vec<ValueId> = n.inputs(n.input_count().max(1))?.into_iter().flatten().collect();
    let mut types = Vec::new();
    for &value in &inputs {
        types.push(n.known_type(value));
    }
    let is_list = |ty: &Option<ValueType>| match ty {
        Some(ValueType::Sequence(_)) => Ok(true),
        Some(_) => Ok(false),
        None => Err(()),
    };
    let lists: Vec<bool> = types
        .iter()
        .map(is_list)
        .collect::<Result<_, ()>>()
        .map_err(|()| Reason::Other("it is not known which of its inputs are sequences"))?;
    if !lists[0] {
        return Err(Invalid::Other("the first input must be a sequence".into()).into());
    }
    let given: Vec<Option<ValueType>> = types
        .iter()
        .map(|ty| match ty {
            Some(ValueType::Sequence(item)) => Some((**item).clone()),
            other => other.clone(),
        })
        .collect();
    let branch = n.body_of_types("body", &given)?;
    let results = branch.graph.outputs().to_vec();
    if n.output_count() > results.len() {
        return Err(Invalid::Other("the body has too few results".into()).into());
    }
    let mut graph = branch.graph;
    let own = graph.inputs().to_vec();
    let scalar = |element| TensorType::fixed(element, &[]);
    let turn = graph.add_value("turn", scalar(ElementType::I64));
    let condition = graph.add_value("condition", scalar(ElementType::Bool));
    let mut body_inputs = vec![turn, condition];
    let go_on = graph.add_constant("go_on", Tensor::scalar(Bool(1)));
    let mut body_outputs = vec![Output { name: "go_on".into(), value: go_on }];
    let mut loop_inputs: Vec<Option<ValueId>> = Vec::new();
    for result in &results {
        let (name, ty) = (result.name.clone(), graph.value(result.value).ty.clone());
        let element = ty.tensor().map_or(ElementType::F32, |t| t.element);
        let list = ValueType::Sequence(Box::new(ty.without_shapes()));
        let before = graph.add_value(format!("{name}.before"), list.clone());
        let after = graph.add_value(format!("{name}.list"), list);
        let insert = Sequence { kind: SequenceKind::Insert };
        graph.add_node(name.clone(), insert, [Some(before), Some(result.value)], [Some(after)]);
        body_inputs.push(before);
        body_outputs.push(Output { name, value: after });
        let empty = Sequence { kind: SequenceKind::Empty { element } };
        loop_inputs.push(Some(n.step("empty", empty, Vec::new())));
    }
    for ((&item, &is_list), ty) in own.iter().zip(&lists).zip(types.into_iter().flatten()) {
        if is_list {
            let name = graph.value(item).name.clone();
            let list = graph.add_value(format!("{name}.list"), ty);
            graph.add_node(name, Sequence { kind: SequenceKind::At }, [Some(list), Some(turn)], [Some(item)]);
            body_inputs.push(list);
        } else {
            body_inputs.push(item);
        }
    }
    body_inputs.extend_from_slice(&own[inputs.len()..]);
    graph.set_inputs(body_inputs);
    graph.set_outputs(body_outputs);
    let turns = n.step("turns", Sequence { kind: SequenceKind::Length }, vec![Some(inputs[0])]);
    let outer = inputs.into_iter().chain(branch.captures.into_iter().map(|(value, _)| value));
    let given = [Some(turns), None].into_iter().chain(loop_inputs).chain(outer.map(Some)).collect();
    n.emit(Loop { body: Box::new(graph), carried: results.len() }, given)
}
