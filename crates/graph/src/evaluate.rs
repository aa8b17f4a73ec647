//! Evaluation by meaning: the reference backend, the constant folder, and the oracle of every test.

use std::collections::HashMap;

use armet_tensor::Tensor;

use crate::ops::numbers;
use crate::{EvaluateError, Graph, GraphError, NodeId, Op, Value, ValueId, ValueType};

/// What an operator may need to know besides its inputs.
#[derive(Debug, Clone)]
pub struct Context {
    /// Number of outputs that the node has, counting unwanted ones before the last wanted one.
    pub outputs: usize,
    /// Seed of random operators that have none of their own.
    pub seed: u64,
}

impl Default for Context {
    fn default() -> Self {
        Self { outputs: 1, seed: 0 }
    }
}

/// Real numbers in place of quantized integers.
fn dequantized(ty: &ValueType, value: &Value) -> Result<Option<Value>, EvaluateError> {
    let (Some(q), Value::Tensor(tensor)) = (ty.tensor().and_then(|t| t.quantization.as_ref()), value) else {
        return Ok(None);
    };
    numbers::dequantize(tensor, q).map(|t| Some(Value::Tensor(t)))
}

/// Evaluates one node on these input values, converting quantized values to real numbers and back.
///
/// # Errors
/// See [`EvaluateError`].
pub fn evaluate_node(
    graph: &Graph,
    id: NodeId,
    inputs: &[Option<&Value>],
    seed: u64,
) -> Result<Vec<Value>, EvaluateError> {
    let node = graph.node(id);
    let mut converted: Vec<Option<Value>> = Vec::with_capacity(inputs.len());
    for (value, input) in node.inputs.iter().zip(inputs) {
        converted.push(match (value, input) {
            (Some(value), Some(input)) => dequantized(&graph.value(*value).ty, input)?,
            _ => None,
        });
    }
    let inputs: Vec<Option<&Value>> =
        inputs.iter().zip(&converted).map(|(original, real)| real.as_ref().or(*original)).collect();
    let context = Context { outputs: node.outputs.len(), seed };
    let mut outputs = node.op.operator().evaluate(&inputs, &context)?;
    for (value, output) in node.outputs.iter().zip(&mut outputs) {
        let Some(ty) = value.and_then(|v| graph.value(v).ty.tensor()) else { continue };
        if let (Some(q), Value::Tensor(tensor)) = (&ty.quantization, &*output) {
            *output = numbers::quantize(tensor, ty.element, q)?.into();
        }
    }
    Ok(outputs)
}

/// Evaluates a whole graph by meaning.
///
/// # Errors
/// When an input is missing or a node cannot be evaluated.
pub fn evaluate_graph(graph: &Graph, inputs: &[Value], seed: u64) -> Result<Vec<Value>, GraphError> {
    let values = evaluate_all(graph, inputs, seed)?;
    graph
        .outputs()
        .iter()
        .map(|o| values.get(&o.value).cloned().ok_or_else(|| GraphError::MissingInput(o.name.clone())))
        .collect()
}

/// Evaluates a whole graph by meaning and gives every value.
///
/// # Errors
/// When an input is missing or a node cannot be evaluated.
pub fn evaluate_all(
    graph: &Graph,
    inputs: &[Value],
    seed: u64,
) -> Result<HashMap<ValueId, Value>, GraphError> {
    let mut values: HashMap<ValueId, Value> = HashMap::new();
    for id in graph.value_ids() {
        if let Some(constant) = graph.constant(id) {
            values.insert(id, constant.clone().into());
        }
    }
    for (index, &id) in graph.inputs().iter().enumerate() {
        let value =
            inputs.get(index).ok_or_else(|| GraphError::MissingInput(graph.value(id).name.clone()))?;
        values.insert(id, value.clone());
    }
    for id in graph.order()? {
        let node = graph.node(id);
        let inputs: Vec<Option<&Value>> =
            node.inputs.iter().map(|v| v.and_then(|v| values.get(&v))).collect();
        let outputs =
            evaluate_node(graph, id, &inputs, seed.wrapping_add(id.index() as u64)).map_err(|source| {
                GraphError::Evaluate { node: node.name.clone(), operator: node.op.name(), source }
            })?;
        for (value, output) in node.outputs.iter().zip(outputs) {
            if let Some(value) = value {
                values.insert(*value, output);
            }
        }
    }
    Ok(values)
}

/// The tensor of an operator's input.
///
/// # Errors
/// When it is missing or no tensor.
pub(crate) fn tensor<'a>(inputs: &[Option<&'a Value>], index: usize) -> Result<&'a Tensor, EvaluateError> {
    optional(inputs, index).ok_or(EvaluateError::MissingInput(index))
}

/// The tensor of an operator's optional input.
pub(crate) fn optional<'a>(inputs: &[Option<&'a Value>], index: usize) -> Option<&'a Tensor> {
    inputs.get(index).copied().flatten().and_then(Value::tensor)
}

/// An operator's input of any kind.
///
/// # Errors
/// When it is missing.
pub(crate) fn value<'a>(inputs: &[Option<&'a Value>], index: usize) -> Result<&'a Value, EvaluateError> {
    inputs.get(index).copied().flatten().ok_or(EvaluateError::MissingInput(index))
}

/// The items of an operator's input that is a sequence.
///
/// # Errors
/// When it is missing or no sequence.
pub(crate) fn sequence<'a>(inputs: &[Option<&'a Value>], index: usize) -> Result<&'a [Value], EvaluateError> {
    value(inputs, index)?.sequence().ok_or(EvaluateError::MissingInput(index))
}

/// Whether a node's result can be computed before running: it is a function of constants alone.
pub fn is_foldable(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.op.is_deterministic()
        && !matches!(node.op, Op::If(_) | Op::Loop(_) | Op::FlexAttention(_) | Op::ConvertLayout(_))
        && node.inputs.iter().flatten().all(|v| graph.constant(*v).is_some())
}
