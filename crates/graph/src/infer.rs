//! Types of all values, from the types of the inputs: concrete, symbolic, or cut where data decides.

use armet_tensor::{ElementType, Shape, Tensor};
use smallvec::SmallVec;

use crate::{Dim, Graph, GraphError, InferError, NodeId, Op, TensorType, Value, ValueId, ValueType};

mod entries;

pub use entries::Entry;

/// Integer values longer than this are not followed through shape arithmetic.
const LONGEST_FOLLOWED: usize = 1024;

/// More dimensions than any tensor has; a hostile model could ask for millions, and types are copied from node to node.
const LARGEST_RANK: usize = 64;

/// One input as inference sees it.
#[derive(Debug, Clone, Copy)]
pub struct InferInput<'a> {
    /// Its type; quantized values are shown as `float32`.
    pub ty: &'a ValueType,
    /// Its contents, when known.
    pub value: Option<&'a Tensor>,
    /// Its contents as far as they are known, for integer vectors and scalars.
    pub entries: Option<&'a [Entry]>,
}

/// The inputs of a node as inference sees them.
#[derive(Debug, Clone, Copy)]
pub struct InferInputs<'a>(pub &'a [Option<InferInput<'a>>]);

impl<'a> InferInputs<'a> {
    /// Number of inputs, left-out ones between others included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this input is there.
    pub fn has(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(Option::is_some)
    }

    /// The type of an input of any kind.
    ///
    /// # Errors
    /// When it is missing.
    pub fn value_type(&self, index: usize) -> Result<&'a ValueType, InferError> {
        let input = self.0.get(index).copied().flatten();
        input.map(|i| i.ty).ok_or(InferError::MissingInput(index))
    }

    /// The type of a tensor input.
    ///
    /// # Errors
    /// When it is missing or no tensor.
    pub fn tensor(&self, index: usize) -> Result<&'a TensorType, InferError> {
        self.value_type(index)?.tensor().ok_or(InferError::MissingInput(index))
    }

    /// The type of the items of an input that is a sequence.
    ///
    /// # Errors
    /// When it is missing or no sequence.
    pub fn items(&self, index: usize) -> Result<&'a ValueType, InferError> {
        match self.value_type(index)? {
            ValueType::Sequence(items) => Ok(items),
            other => Err(InferError::Mismatch(format!("input {index} must be a sequence, not {other}"))),
        }
    }

    /// The element type of an input.
    ///
    /// # Errors
    /// When it is missing or no tensor.
    pub fn element(&self, index: usize) -> Result<ElementType, InferError> {
        Ok(self.tensor(index)?.element)
    }

    /// The dimensions of an input.
    ///
    /// # Errors
    /// When it is missing, or [`InferError::NeedsRank`].
    pub fn dims(&self, index: usize) -> Result<&'a [Dim], InferError> {
        self.tensor(index)?.dims.as_deref().ok_or(InferError::NeedsRank(index))
    }

    /// The contents of an input.
    ///
    /// # Errors
    /// When it is missing, or [`InferError::NeedsValue`].
    pub fn value(&self, index: usize) -> Result<&'a Tensor, InferError> {
        let input = self.0.get(index).copied().flatten().ok_or(InferError::MissingInput(index))?;
        input.value.ok_or(InferError::NeedsValue(index))
    }

    /// The contents of an integer input.
    ///
    /// # Errors
    /// When it is missing or holds no integers, or [`InferError::NeedsValue`].
    pub fn ints(&self, index: usize) -> Result<Vec<i64>, InferError> {
        let tensor = self.value(index)?;
        tensor.to_i64().ok_or_else(|| {
            InferError::Mismatch(format!("input {index} must hold integers, not {}", tensor.element()))
        })
    }

    /// The contents of an integer input, each entry a number or a symbolic dimension.
    ///
    /// # Errors
    /// When it is missing, or [`InferError::NeedsValue`] when nothing is known of it.
    pub fn entries(&self, index: usize) -> Result<Vec<Entry>, InferError> {
        let input = self.0.get(index).copied().flatten().ok_or(InferError::MissingInput(index))?;
        match (input.value, input.entries) {
            (Some(_), _) => Ok(self.ints(index)?.into_iter().map(Entry::Int).collect()),
            (None, Some(entries)) => Ok(entries.to_vec()),
            (None, None) => Err(InferError::NeedsValue(index)),
        }
    }

    /// The contents of a float input, converted.
    ///
    /// # Errors
    /// When it is missing or holds no numbers, or [`InferError::NeedsValue`].
    pub fn floats(&self, index: usize) -> Result<Vec<f64>, InferError> {
        let tensor = self.value(index)?;
        crate::ops::numbers::to_f64(tensor).map_err(|_| {
            InferError::Mismatch(format!("input {index} must hold numbers, not {}", tensor.element()))
        })
    }
}

/// What inference learnt besides the types it wrote into the graph.
#[derive(Debug, Default)]
pub struct Inference {
    /// Nodes whose result types depend on data, with the reason, in order; nodes behind them are not listed.
    pub cuts: Vec<(NodeId, InferError)>,
    /// Contents of values that follow from shapes alone, where they are not constants of the graph already.
    pub known: Vec<(ValueId, Tensor)>,
}

struct Walk {
    values: Vec<Option<Tensor>>,
    entries: Vec<Option<Vec<Entry>>>,
}

/// Gives every value its type. Constants and the inputs' types are the starting point.
///
/// # Errors
/// When a node's inputs contradict its operator.
pub fn infer(graph: &mut Graph) -> Result<Inference, GraphError> {
    let count = graph.values().len();
    let mut walk = Walk { values: vec![None; count], entries: vec![None; count] };
    let mut result = Inference::default();
    let mut unknown = vec![false; count];
    for id in graph.order()? {
        let node = graph.node(id);
        let blocked = node.inputs.iter().flatten().any(|v| unknown[v.index()]);
        match infer_node(graph, id, &walk) {
            Ok(types) => {
                let outputs = graph.node(id).outputs.clone();
                if outputs.iter().skip(types.len()).any(Option::is_some) {
                    let node = graph.node(id);
                    let source = InferError::Mismatch(format!(
                        "the node names {} results, and {} gives only {}",
                        outputs.len(),
                        node.op.name(),
                        types.len()
                    ));
                    return Err(GraphError::Infer {
                        node: node.name.clone(),
                        operator: node.op.name(),
                        source,
                    });
                }
                for (output, ty) in outputs.iter().zip(types) {
                    if let Some(output) = *output {
                        set_type(graph, output, ty);
                    }
                }
                follow(graph, id, &mut walk, &mut result);
            }
            Err(source @ (InferError::NeedsValue(_) | InferError::NeedsRank(_))) => {
                for output in graph.node(id).outputs.clone().into_iter().flatten() {
                    unknown[output.index()] = true;
                    forget_shape(graph, output);
                }
                if !blocked {
                    result.cuts.push((id, source));
                }
            }
            // Behind a cut even element types are guesses: what contradicts them is judged when they are known.
            Err(_) if blocked => {
                for output in graph.node(id).outputs.clone().into_iter().flatten() {
                    unknown[output.index()] = true;
                    forget_shape(graph, output);
                }
            }
            Err(source) => {
                let node = graph.node(id);
                return Err(GraphError::Infer { node: node.name.clone(), operator: node.op.name(), source });
            }
        }
    }
    Ok(result)
}

/// Real numbers stand for quantized integers while types are inferred.
fn shown(ty: &ValueType) -> ValueType {
    match ty {
        ValueType::Tensor(t) if t.quantization.is_some() => ValueType::Tensor(TensorType {
            element: ElementType::F32,
            dims: t.dims.clone(),
            quantization: None,
        }),
        other => other.clone(),
    }
}

fn set_type(graph: &mut Graph, value: ValueId, ty: ValueType) {
    let slot = &mut graph.value_mut(value).ty;
    match (slot, ty) {
        (ValueType::Tensor(old), ValueType::Tensor(new)) if old.quantization.is_some() => old.dims = new.dims,
        (slot, ty) => *slot = ty,
    }
}

fn forget_shape(graph: &mut Graph, value: ValueId) {
    if let ValueType::Tensor(ty) = &mut graph.value_mut(value).ty {
        ty.dims = None;
    }
}

fn infer_node(graph: &Graph, id: NodeId, walk: &Walk) -> Result<Vec<ValueType>, InferError> {
    let node = graph.node(id);
    let types: SmallVec<[Option<ValueType>; 6]> =
        node.inputs.iter().map(|v| v.map(|v| shown(&graph.value(v).ty))).collect();
    let inputs: SmallVec<[Option<InferInput<'_>>; 6]> = node
        .inputs
        .iter()
        .zip(&types)
        .map(|(v, ty)| {
            let v = (*v)?;
            Some(InferInput {
                ty: ty.as_ref()?,
                value: graph.constant(v).or(walk.values[v.index()].as_ref()),
                entries: walk.entries[v.index()].as_deref(),
            })
        })
        .collect();
    let types = node.op.operator().infer(&InferInputs(&inputs))?;
    let rank = |ty: &ValueType| ty.tensor().and_then(TensorType::rank).unwrap_or(0);
    match types.iter().map(rank).max() {
        Some(rank) if rank > LARGEST_RANK => {
            Err(InferError::Mismatch(format!("a result has {rank} dimensions")))
        }
        _ => Ok(types),
    }
}

/// Follows contents through shape arithmetic: evaluates nodes whose inputs are all known, and follows integer vectors
/// entry by entry where some entries are names.
fn follow(graph: &Graph, id: NodeId, walk: &mut Walk, result: &mut Inference) {
    let node = graph.node(id);
    // The shape of each result, when it is small enough to be followed; quantized values are left alone.
    let followed = |v: &Option<ValueId>| -> Option<(ValueId, ElementType, Shape)> {
        let ty = graph.value((*v)?).ty.tensor().filter(|ty| ty.quantization.is_none())?;
        let shape = ty.shape().filter(|shape| shape.elements() <= LONGEST_FOLLOWED)?;
        Some(((*v)?, ty.element, shape))
    };
    let outputs: SmallVec<[Option<(ValueId, ElementType, Shape)>; 1]> =
        node.outputs.iter().map(followed).collect();
    if outputs.iter().all(Option::is_none) {
        return;
    }
    if let Some(tensors) = evaluate_known(graph, id, walk) {
        for (output, tensor) in outputs.into_iter().zip(tensors) {
            if let (Some((value, element, shape)), Some(tensor)) = (output, tensor)
                && (tensor.element(), tensor.shape()) == (element, &shape)
            {
                walk.values[value.index()] = Some(tensor.clone());
                result.known.push((value, tensor));
            }
        }
        return;
    }
    let read = |v: ValueId| -> Option<Vec<Entry>> {
        match known(graph, walk, v) {
            Some(tensor) => Some(tensor.to_i64()?.into_iter().map(Entry::Int).collect()),
            None => walk.entries[v.index()].clone(),
        }
    };
    let of_integers = |element| matches!(element, ElementType::I64 | ElementType::I32 | ElementType::Bool);
    if !outputs.iter().flatten().any(|(_, element, shape)| of_integers(*element) && shape.len() <= 1) {
        return;
    }
    let Some(propagated) = entries::propagate(graph, node, &read) else { return };
    for (output, entries) in outputs.into_iter().zip(propagated) {
        let Some((value, element, shape)) = output else { continue };
        if !of_integers(element) || shape.len() > 1 || entries.len() != shape.elements() {
            continue;
        }
        let ints: Option<Vec<i64>> = entries.iter().map(Entry::int).collect();
        match ints.and_then(|ints| entries::to_tensor(element, &shape, &ints)) {
            Some(tensor) => {
                walk.values[value.index()] = Some(tensor.clone());
                result.known.push((value, tensor));
            }
            None => walk.entries[value.index()] = Some(entries),
        }
    }
}

/// The contents of a value, when they are known and few.
fn known<'a>(graph: &'a Graph, walk: &'a Walk, value: ValueId) -> Option<&'a Tensor> {
    let tensor = graph.constant(value).or(walk.values[value.index()].as_ref())?;
    (tensor.len() <= LONGEST_FOLLOWED).then_some(tensor)
}

/// The results of a node whose inputs are all known.
fn evaluate_known(graph: &Graph, id: NodeId, walk: &Walk) -> Option<Vec<Option<Tensor>>> {
    let node = graph.node(id);
    // Folding leaves these to later passes, and so does inference.
    let left = matches!(
        node.op,
        Op::If(_) | Op::Loop(_) | Op::ConvertLayout(_) | Op::DequantizeLinear(_) | Op::Requantize(_)
    );
    if left || !node.op.is_deterministic() || node.inputs.iter().all(Option::is_none) {
        return None;
    }
    let plain = |v: &ValueId| graph.value(*v).ty.tensor().is_some_and(|ty| ty.quantization.is_none());
    if !node.inputs.iter().chain(&node.outputs).flatten().all(plain) {
        return None;
    }
    let inputs: Option<SmallVec<[Option<Value>; 4]>> = node
        .inputs
        .iter()
        .map(|v| v.map_or(Some(None), |v| Some(Some(known(graph, walk, v)?.clone().into()))))
        .collect();
    let inputs = inputs?;
    let inputs: SmallVec<[Option<&Value>; 4]> = inputs.iter().map(Option::as_ref).collect();
    // A node that cannot be evaluated is reported by whoever runs it.
    let outputs = crate::evaluate_node(graph, id, &inputs, 0).ok()?;
    Some(outputs.into_iter().map(|value| value.tensor().cloned()).collect())
}
