//! The values of the graph that is being built: names, subgraphs' views of outer values, and the forms of quantized ones.
//!
//! # Quantized values
//! In an ONNX model `QLinearConv` and its like name the scale and zero point of each operand beside it, so one stored
//! tensor could be read with several. In the graph they belong to the value's type, and a node that reads such a value
//! sees real numbers. A value of the model is therefore kept in up to several forms: *raw* (plain integers) and *typed*
//! (integers with a [`Quantization`]), each made when first asked for:
//! - A result of a `QLinear` node is typed with that node's output parameters; reading it with equal parameters costs
//!   nothing. So is the input of a graph that only `QLinear` nodes read, and a copy of a constant (which shares its bytes).
//! - The result of `QuantizeLinear` with equal constant parameters becomes typed by a [`Requantize`] of the real numbers.
//! - Otherwise raw becomes typed by [`DequantizeLinear`] whose result is typed, and typed becomes raw by
//!   [`QuantizeLinear`] with the type's own parameters: both give the very integers that went in.
//!
//! Subgraphs capture values in their raw form, and constants as constants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use armet_graph::ops::{BinaryKind, DequantizeLinear, QuantizeLinear, Requantize, UnaryKind, numbers};
use armet_graph::{Graph, InferInput, InferInputs, NodeId, Op, TensorType, ValueId, ValueType};
use armet_tensor::{ElementType, Quantization, Shape, Tensor};

use super::types;

/// A graph under construction, and the names in it.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) graph: Graph,
    names: HashMap<String, ValueId>,
    /// Names of all values, also of those that the model does not name, with the last number given to likes of it.
    taken: HashMap<String, usize>,
    /// Other forms of values.
    forms: HashMap<ValueId, Vec<ValueId>>,
    /// Values whose type is not a mere guess.
    known: HashSet<ValueId>,
    /// Declared types.
    pub(super) hints: HashMap<String, ValueType>,
    /// Values of the graph outside, each with the input that stands for it here.
    pub(super) captures: Vec<(ValueId, ValueId)>,
    /// `QuantizeLinear` nodes that a typed form bypasses.
    bypassed: Vec<NodeId>,
    /// Whether it is a subgraph, whose inputs arrive raw.
    nested: bool,
}

impl Scope {
    pub(super) fn new(name: &str, nested: bool) -> Self {
        Self { graph: Graph::new(name), nested, ..Self::default() }
    }

    /// The value with this name, when this very graph has it.
    pub(super) fn local(&self, name: &str) -> Option<ValueId> {
        self.names.get(name).copied()
    }

    /// Gives a value its name in the model; `false` when the name is taken.
    pub(super) fn bind(&mut self, name: &str, id: ValueId) -> bool {
        self.names.insert(name.to_owned(), id).is_none()
    }

    /// A name that no other value has.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let Some(last) = self.taken.get_mut(wanted) else {
            self.taken.insert(wanted.to_owned(), 1);
            return wanted.to_owned();
        };
        let mut count = *last;
        let name = loop {
            count += 1;
            let name = format!("{wanted}_{count}");
            if !self.taken.contains_key(&name) {
                break name;
            }
        };
        self.taken.insert(wanted.to_owned(), count);
        self.taken.insert(name.clone(), 1);
        name
    }

    /// A constant.
    pub(super) fn constant(&mut self, wanted: &str, tensor: Tensor) -> ValueId {
        let name = self.fresh(wanted);
        let id = self.graph.add_constant(name, tensor);
        self.known.insert(id);
        id
    }

    /// An input.
    pub(super) fn input(&mut self, wanted: &str, ty: ValueType, known: bool) -> ValueId {
        let name = self.fresh(wanted);
        let id = self.graph.add_input(name, ty);
        if known {
            self.known.insert(id);
        }
        id
    }

    /// A value that a node will give.
    pub(super) fn result(&mut self, wanted: &str) -> ValueId {
        let name = self.fresh(wanted);
        let (ty, known) = match self.hints.get(wanted) {
            Some(ty) => (ty.clone(), true),
            None => (TensorType::unranked(ElementType::F32).into(), false),
        };
        let id = self.graph.add_value(name, ty);
        if known {
            self.known.insert(id);
        }
        id
    }

    /// Whether a value's type is known.
    pub(super) fn is_known(&self, id: ValueId) -> bool {
        self.known.contains(&id)
    }

    /// A value's tensor type, when it is known.
    pub(super) fn tensor_type(&self, id: ValueId) -> Option<&TensorType> {
        self.graph.value(id).ty.tensor().filter(|_| self.is_known(id))
    }

    /// How a value's integers stand for real numbers.
    pub(super) fn quantization(&self, id: ValueId) -> Option<&Arc<Quantization>> {
        self.graph.value(id).ty.tensor()?.quantization.as_ref()
    }

    /// Makes a value a quantized one.
    pub(super) fn set_quantization(&mut self, id: ValueId, element: ElementType, q: Arc<Quantization>) {
        if let ValueType::Tensor(ty) = &mut self.graph.value_mut(id).ty {
            ty.element = element;
            ty.quantization = Some(q);
        }
        self.known.insert(id);
    }

    /// Adds a node and gives its outputs the types that follow from its inputs, as far as they do.
    /// Returns the outputs whose declared types conflict, with the declaration.
    pub(super) fn node(
        &mut self,
        name: &str,
        op: Op,
        inputs: Vec<Option<ValueId>>,
        outputs: &[Option<ValueId>],
    ) -> Vec<(ValueId, TensorType)> {
        let id = self.graph.add_node(name, op, inputs, outputs.iter().copied());
        let Some(types) = self.infer(id) else {
            self.guess_element(id);
            return Vec::new();
        };
        let mut conflicts = Vec::new();
        for (output, found) in outputs.iter().zip(types) {
            let Some(output) = *output else { continue };
            let known = !self.known.insert(output);
            let value = self.graph.value_mut(output);
            match (&mut value.ty, found) {
                (ValueType::Tensor(old), ValueType::Tensor(found)) if old.quantization.is_some() => {
                    old.dims = found.dims;
                }
                (ValueType::Tensor(old), ValueType::Tensor(found)) => {
                    let declared = std::mem::replace(old, found);
                    if known && types::conflict(&declared, old) {
                        conflicts.push((output, declared));
                    }
                }
                (old, found) => *old = found,
            }
        }
        conflicts
    }

    fn infer(&self, id: NodeId) -> Option<Vec<ValueType>> {
        let node = self.graph.node(id);
        let types = node.inputs.iter().map(|v| match v {
            // Operators see quantized values as real numbers.
            Some(v) => match &self.graph.value(*v).ty {
                _ if !self.is_known(*v) => Err(()),
                ValueType::Tensor(t) if t.quantization.is_some() => {
                    let dims = t.dims.clone();
                    let real = TensorType { element: ElementType::F32, dims, quantization: None };
                    Ok(Some(ValueType::Tensor(real)))
                }
                other => Ok(Some(other.clone())),
            },
            None => Ok(None),
        });
        let types: Vec<Option<ValueType>> = types.collect::<Result<_, ()>>().ok()?;
        let inputs: Vec<Option<InferInput<'_>>> = node
            .inputs
            .iter()
            .zip(&types)
            .map(|(v, ty)| {
                Some(InferInput { ty: ty.as_ref()?, value: self.graph.constant((*v)?), entries: None })
            })
            .collect();
        let types = node.op.operator().infer(&InferInputs(&inputs)).ok()?;
        // Types of many dimensions would be copied from node to node; none is real.
        let fits =
            |t: &ValueType| t.tensor().and_then(TensorType::rank).is_none_or(|r| r <= types::LARGEST_RANK);
        types.iter().all(fits).then_some(types)
    }

    /// Where the shape of the first result needs data or ranks that are not known, its element type is known still.
    fn guess_element(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        if let Op::If(armet_graph::ops::If { then_branch: body, .. })
        | Op::Loop(armet_graph::ops::Loop { body, .. }) = &node.op
        {
            let first = usize::from(matches!(node.op, Op::Loop(_)));
            let results = body.outputs().iter().skip(first);
            let types: Vec<ValueType> = results.map(|o| body.value(o.value).ty.without_shapes()).collect();
            for (output, ty) in node.outputs.clone().into_iter().zip(types) {
                if let Some(output) = output.filter(|v| !self.known.contains(v)) {
                    self.graph.value_mut(output).ty = ty;
                    self.known.insert(output);
                }
            }
            return;
        }
        let Some(output) = node.output().filter(|v| !self.is_known(*v)) else { return };
        let of = |index: usize| node.input(index).and_then(|v| self.tensor_type(v)).map(|t| t.element);
        let element = match &node.op {
            Op::Cast(op) => Some(op.to),
            Op::BitCast(op) => Some(op.to),
            Op::MelWeightMatrix(op) => Some(op.element),
            Op::ConstantOfShape(op) => Some(op.value.element()),
            Op::Shape(_) | Op::Size(_) | Op::NonZero(_) | Op::ArgReduce(_) | Op::NonMaxSuppression(_) => {
                Some(ElementType::I64)
            }
            Op::Unary(op) if matches!(op.kind, UnaryKind::IsNan | UnaryKind::IsInf { .. }) => {
                Some(ElementType::Bool)
            }
            Op::Binary(op) if is_comparison(op.kind) => Some(ElementType::Bool),
            // Whoever asked for it knew no more of the second input than is known here.
            Op::CastLike(_) => None,
            Op::Where(_) | Op::DequantizeLinear(_) => of(1),
            Op::OneHot(_) => of(2),
            Op::MatMulInteger(_) | Op::ConvInteger(_) => Some(ElementType::I32),
            Op::QuantizeLinear(_) | Op::DynamicQuantizeLinear(_) => None,
            Op::Random(op) => op.element.or_else(|| of(0)),
            _ => of(0),
        };
        if let Some(element) = element {
            self.graph.value_mut(output).ty = TensorType::unranked(element).into();
            self.known.insert(output);
        }
    }

    /// The plain integers of a value; the value itself when it is not quantized.
    pub(super) fn raw(&mut self, id: ValueId) -> ValueId {
        let Some(q) = self.quantization(id).cloned() else { return id };
        if let Some(raw) = self.form(id, None) {
            return raw;
        }
        let element = self.graph.value(id).ty.tensor().map_or(ElementType::U8, |t| t.element);
        let name = stem(&self.graph.value(id).name).to_owned();
        let axis = q.axis.map_or(1, |a| a as i64);
        let raw = if let Some(tensor) = self.graph.constant(id).cloned() {
            self.constant(&format!("{name}.stored"), tensor)
        } else {
            let [scale, zero] = self.parameters(&name, &q, element);
            let raw = self.result(&format!("{name}.stored"));
            let op = QuantizeLinear {
                axis,
                block_size: q.block.unwrap_or(0),
                element: Some(element),
                saturate: true,
                precision: None,
            };
            let inputs = vec![Some(id), Some(scale), Some(zero)];
            self.node(&format!("{name}.stored"), op.into(), inputs, &[Some(raw)]);
            raw
        };
        self.forms.entry(id).or_default().push(raw);
        raw
    }

    fn form(&self, id: ValueId, q: Option<&Quantization>) -> Option<ValueId> {
        let same = |v: &ValueId| self.quantization(*v).map(Arc::as_ref) == q;
        self.forms.get(&id)?.iter().copied().find(|v| same(v))
    }

    /// The value with its integers standing for real numbers in this way.
    pub(super) fn typed(&mut self, id: ValueId, element: ElementType, q: &Arc<Quantization>) -> ValueId {
        if self.quantization(id) == Some(q) {
            return id;
        }
        if let Some(typed) = self.form(id, Some(q)) {
            return typed;
        }
        let raw = self.raw(id);
        let name = stem(&self.graph.value(id).name).to_owned();
        if let Some(tensor) = self.graph.constant(raw).cloned() {
            let typed = self.constant(&format!("{name}.real"), tensor);
            self.set_quantization(typed, element, q.clone());
            self.forms.entry(id).or_default().push(typed);
            return typed;
        }
        let is_input = self.graph.producer(raw).is_none() && !self.nested;
        if raw == id && is_input && self.graph.consumers(raw).is_empty() {
            self.set_quantization(id, element, q.clone());
            return id;
        }
        let typed = self.result(&format!("{name}.real"));
        self.set_quantization(typed, element, q.clone());
        if let Some((node, real)) = self.quantized_from(raw, element, q) {
            self.node(&format!("{name}.real"), Requantize.into(), vec![Some(real)], &[Some(typed)]);
            self.bypassed.push(node);
        } else {
            let [scale, zero] = self.parameters(&name, q, element);
            let op =
                DequantizeLinear { axis: q.axis.map_or(1, |a| a as i64), block_size: q.block.unwrap_or(0) };
            let inputs = vec![Some(raw), Some(scale), Some(zero)];
            self.node(&format!("{name}.real"), op.into(), inputs, &[Some(typed)]);
        }
        self.forms.entry(id).or_default().push(typed);
        typed
    }

    /// The `QuantizeLinear` node that gave a value with these parameters, and the real numbers that it read.
    fn quantized_from(
        &self,
        id: ValueId,
        element: ElementType,
        q: &Quantization,
    ) -> Option<(NodeId, ValueId)> {
        let producer = self.graph.producer(id)?;
        let node = self.graph.node(producer);
        let Op::QuantizeLinear(op) = &node.op else { return None };
        let scale = self.graph.constant(node.input(1)?)?;
        let zero = node.input(2).map(|z| self.graph.constant(z));
        let zero = match zero {
            Some(None) => return None,
            Some(Some(zero)) => Some(zero),
            None => None,
        };
        let stored = zero.map(Tensor::element).or(op.element).unwrap_or(ElementType::U8);
        let same = quantization(scale, zero, Some(op.axis), op.block_size)?;
        (stored == element && same == *q).then_some((producer, node.input(0)?))
    }

    /// Constants for a scale and a zero point.
    fn parameters(&mut self, name: &str, q: &Quantization, element: ElementType) -> [ValueId; 2] {
        let shape = if q.axis.is_none() { Shape::scalar() } else { Shape::from([q.scale.len()]) };
        let zeros: Vec<i128> = q.zero_point.iter().map(|&z| i128::from(z)).collect();
        let scale = Tensor::new(shape.clone(), &q.scale).ok();
        let zero = numbers::from_i128(element, shape, &zeros).ok();
        let scale = scale.unwrap_or_else(|| Tensor::scalar(q.scale[0]));
        let zero = zero.unwrap_or_else(|| Tensor::scalar(0u8));
        [self.constant(&format!("{name}.scale"), scale), self.constant(&format!("{name}.zero_point"), zero)]
    }

    /// Drops the nodes that typed forms have made useless.
    pub(super) fn drop_bypassed(&mut self) {
        for id in std::mem::take(&mut self.bypassed) {
            let outputs = self.graph.get_node(id).and_then(armet_graph::Node::output);
            if outputs.is_some_and(|v| self.graph.consumers(v).is_empty() && !self.graph.is_output(v)) {
                self.graph.remove_node(id);
            }
        }
    }
}

/// What names of helper values begin with: a name, cut when it is so long that many helpers would multiply it.
pub(super) fn stem(name: &str) -> &str {
    name.char_indices().nth(200).map_or(name, |(at, _)| &name[..at])
}

fn is_comparison(kind: BinaryKind) -> bool {
    use BinaryKind::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    matches!(kind, Equal | Less | Greater | LessOrEqual | GreaterOrEqual)
}

/// The quantization that constant parameters stand for; `None` when they do not fit each other.
/// `axis` is where scales differ when there is more than one.
pub(super) fn quantization(
    scale: &Tensor,
    zero: Option<&Tensor>,
    axis: Option<i64>,
    block: usize,
) -> Option<Quantization> {
    let scale: Vec<f32> = numbers::to_f64(scale).ok()?.into_iter().map(|v| v as f32).collect();
    let zeros = match zero {
        Some(zero) => numbers::to_i128(zero).ok()?,
        None => vec![0; scale.len()],
    };
    let mut zero_point = zeros.into_iter().map(|z| i32::try_from(z).ok()).collect::<Option<Vec<i32>>>()?;
    if zero_point.len() == 1 {
        zero_point = vec![zero_point[0]; scale.len()];
    }
    if scale.is_empty() || zero_point.len() != scale.len() {
        return None;
    }
    if scale.len() == 1 {
        return Some(Quantization { scale, zero_point, axis: None, block: None });
    }
    // Blocks give a scale per block and index of the other axes, which a flat list cannot say.
    if block != 0 {
        return None;
    }
    let axis = usize::try_from(axis?).ok()?;
    Some(Quantization { scale, zero_point, axis: Some(axis), block: None })
}
