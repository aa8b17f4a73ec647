//! One node as its reader sees it: typed attributes, inputs, and the nodes of the graph that it becomes.
//!
//! Attributes that a reader does not ask for are reported as unsupported, so nothing in a model is passed over.

use std::cell::RefCell;
use std::sync::Arc;

use armet_graph::{Op, TensorType, ValueId, ValueType};
use armet_tensor::{Element, ElementType, Quantization, Shape, Tensor};

use super::error::{ImportError, Invalid, Reason};
use super::importer::{Branch, Importer, Opsets, node_name};
use super::ops::{Entry, Forms};
use super::proto::{AttributeProto, NodeProto, attribute_type as kind};
use super::types;
use super::values::stem;

/// Why a node was not read.
#[derive(Debug)]
pub(super) enum Problem {
    /// There is no operator for it.
    Unsupported(Reason),
    /// It contradicts its operator's definition.
    Invalid(Invalid),
    /// The import cannot go on.
    Import(ImportError),
}

impl From<ImportError> for Problem {
    fn from(error: ImportError) -> Self {
        Self::Import(error)
    }
}

impl From<Invalid> for Problem {
    fn from(problem: Invalid) -> Self {
        Self::Invalid(problem)
    }
}

impl From<Reason> for Problem {
    fn from(reason: Reason) -> Self {
        Self::Unsupported(reason)
    }
}

/// What readers return.
pub(super) type Read<T = ()> = Result<T, Problem>;

/// Reads one node.
pub(super) struct NodeReader<'a, 'm> {
    importer: &'a mut Importer<'m>,
    node: &'a NodeProto,
    opsets: &'a Opsets,
    version: i64,
    entry: &'static Entry,
    name: String,
    seen: RefCell<Vec<bool>>,
    /// Set while a node that only moves elements reads quantized ones: its results are of the same kind.
    moved: Option<(ElementType, Arc<Quantization>)>,
}

impl<'a, 'm> NodeReader<'a, 'm> {
    pub(super) fn new(
        importer: &'a mut Importer<'m>,
        node: &'a NodeProto,
        opsets: &'a Opsets,
        version: i64,
        entry: &'static Entry,
    ) -> Self {
        let seen = RefCell::new(vec![false; node.attribute.len()]);
        Self { importer, node, opsets, version, entry, name: node_name(node), seen, moved: None }
    }

    /// Runs the reader for the node's operator.
    pub(super) fn read(mut self) -> Read {
        if self.entry.forms == Forms::Kept {
            self.moved = self.common_quantization()?;
        }
        (self.entry.read)(&mut self)?;
        let unseen = self.seen.borrow().iter().position(|seen| !seen);
        match unseen.map(|at| &self.node.attribute[at]) {
            Some(a) => Err(Reason::Attribute { name: a.name.clone(), value: shortened(a) }.into()),
            None => Ok(()),
        }
    }

    /// The quantization of the elements that a moving node reads, when all that are quantized or have a quantized
    /// companion share one for the whole tensor.
    fn common_quantization(&mut self) -> Read<Option<(ElementType, Arc<Quantization>)>> {
        let mut common = None;
        for index in 0..self.node.input.len().min(self.entry.data_inputs()) {
            let Some(id) = self.value(index)? else { continue };
            let scope = self.importer.scope();
            let Some(q) = scope.quantization(id).filter(|q| q.is_per_tensor()).cloned() else {
                return Ok(None);
            };
            let Some(element) = scope.tensor_type(id).map(|t| t.element) else { return Ok(None) };
            match &common {
                None => common = Some((element, q)),
                Some(first) if *first == (element, q) => {}
                Some(_) => return Ok(None),
            }
        }
        Ok(common)
    }

    /// All attributes of the node.
    pub(super) fn attributes(&self) -> &'a [AttributeProto] {
        &self.node.attribute
    }

    /// Domain and name of the node's operator.
    pub(super) fn identity(&self) -> (String, String) {
        (self.node.domain.clone(), self.node.op_type.clone())
    }

    /// The tensor that an attribute holds.
    pub(super) fn free_tensor(&mut self, a: &AttributeProto) -> Read<Tensor> {
        let proto = a.t.as_ref().ok_or(Invalid::Other(format!("attribute {} is no tensor", a.name)))?;
        let of = format!("{} of node {}", a.name, self.name);
        Ok(self.importer.tensor(proto, &of)?)
    }

    /// The version of the node's operator set.
    pub(super) fn version(&self) -> i64 {
        self.version
    }

    // Attributes.

    fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        let at = self.node.attribute.iter().position(|a| a.name == name)?;
        self.seen.borrow_mut()[at] = true;
        Some(&self.node.attribute[at])
    }

    /// Marks attributes as read that do not change what the node computes.
    pub(super) fn ignore(&self, names: &[&str]) {
        for name in names {
            let _ = self.attribute(name);
        }
    }

    /// Whether an attribute is there, without reading it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.node.attribute.iter().any(|a| a.name == name)
    }

    /// Files of the first versions leave the kind out; otherwise it must be the wanted one.
    fn of_kind(a: &AttributeProto, wanted: i32, name: &'static str, expected: &'static str) -> Read {
        if a.r#type == wanted || a.r#type == kind::UNDEFINED {
            return Ok(());
        }
        Err(Invalid::AttributeType { name, expected }.into())
    }

    /// A whole number.
    pub(super) fn int(&self, name: &'static str) -> Read<Option<i64>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::INT, name, "whole number")?;
        Ok(Some(a.i.unwrap_or(0)))
    }

    /// A whole number, or its default.
    pub(super) fn int_or(&self, name: &'static str, default: i64) -> Read<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// A whole number that must be there.
    pub(super) fn required_int(&self, name: &'static str) -> Read<i64> {
        Ok(self.int(name)?.ok_or(Invalid::MissingAttribute(name))?)
    }

    /// A number that may not be negative.
    pub(super) fn size_or(&self, name: &'static str, default: usize) -> Read<usize> {
        let Some(value) = self.int(name)? else { return Ok(default) };
        usize::try_from(value).map_err(|_| self.refuse(name, "must not be negative").into())
    }

    /// A flag.
    pub(super) fn flag(&self, name: &'static str, default: bool) -> Read<bool> {
        Ok(self.int_or(name, i64::from(default))? != 0)
    }

    /// A real number.
    pub(super) fn float(&self, name: &'static str) -> Read<Option<f32>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::FLOAT, name, "number")?;
        Ok(Some(a.f.unwrap_or(0.0)))
    }

    /// A real number, or its default.
    pub(super) fn float_or(&self, name: &'static str, default: f32) -> Read<f32> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// Whole numbers.
    pub(super) fn ints(&self, name: &'static str) -> Read<Option<Vec<i64>>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::INTS, name, "list of whole numbers")?;
        Ok(Some(a.ints.clone()))
    }

    /// Numbers that may not be negative; none when the attribute is not there.
    pub(super) fn sizes(&self, name: &'static str) -> Read<Vec<usize>> {
        let Some(values) = self.ints(name)? else { return Ok(Vec::new()) };
        let sizes = values.into_iter().map(usize::try_from).collect::<Result<Vec<usize>, _>>();
        sizes.map_err(|_| match self.attribute(name) {
            Some(a) => Reason::Attribute { name: name.into(), value: shortened(a) }.into(),
            None => Invalid::MissingAttribute(name).into(),
        })
    }

    /// Real numbers.
    pub(super) fn floats(&self, name: &'static str) -> Read<Option<Vec<f32>>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::FLOATS, name, "list of numbers")?;
        Ok(Some(a.floats.clone()))
    }

    /// A word.
    pub(super) fn word(&self, name: &'static str) -> Read<Option<&'a str>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::STRING, name, "word")?;
        let text = std::str::from_utf8(a.s.as_deref().unwrap_or_default());
        Ok(Some(text.map_err(|_| Invalid::AttributeType { name, expected: "word" })?))
    }

    /// Words.
    pub(super) fn words(&self, name: &'static str) -> Read<Option<Vec<String>>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::STRINGS, name, "list of words")?;
        let texts = a.strings.iter().map(|s| String::from_utf8(s.to_vec()));
        let texts = texts.collect::<Result<Vec<_>, _>>();
        Ok(Some(texts.map_err(|_| Invalid::AttributeType { name, expected: "list of words" })?))
    }

    /// A word from a closed list.
    pub(super) fn choice<T: Copy>(&self, name: &'static str, default: T, choices: &[(&str, T)]) -> Read<T> {
        let Some(word) = self.word(name)? else { return Ok(default) };
        let found = choices.iter().find(|(w, _)| *w == word);
        found.map(|(_, value)| *value).ok_or_else(|| self.unsupported(name))
    }

    /// A tensor.
    pub(super) fn tensor(&mut self, name: &'static str) -> Read<Option<Tensor>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::TENSOR, name, "tensor")?;
        let Some(proto) = &a.t else {
            return Err(Invalid::AttributeType { name, expected: "tensor" }.into());
        };
        let of = format!("{name} of node {}", self.name);
        Ok(Some(self.importer.tensor(proto, &of)?))
    }

    /// The dense tensor that a sparse one stands for.
    pub(super) fn sparse_tensor(&mut self, name: &'static str) -> Read<Option<Tensor>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::SPARSE_TENSOR, name, "sparse tensor")?;
        let Some(proto) = &a.sparse_tensor else {
            return Err(Invalid::AttributeType { name, expected: "sparse tensor" }.into());
        };
        let of = format!("{name} of node {}", self.name);
        Ok(Some(self.importer.sparse_tensor(proto, &of)?))
    }

    /// An element type.
    pub(super) fn element(&self, name: &'static str) -> Read<Option<ElementType>> {
        let Some(number) = self.int(name)? else { return Ok(None) };
        let element = i32::try_from(number).ok().and_then(types::element);
        element.map(Some).ok_or_else(|| self.refuse(name, "is no element type").into())
    }

    /// A type.
    pub(super) fn type_attribute(&self, name: &'static str) -> Read<Option<ValueType>> {
        let Some(a) = self.attribute(name) else { return Ok(None) };
        Self::of_kind(a, kind::TYPE, name, "type")?;
        let ty = a.tp.as_ref().and_then(|tp| types::value_type(tp, &|_| armet_graph::Dim::Unknown));
        ty.map(Some).ok_or_else(|| Invalid::AttributeType { name, expected: "type of a value" }.into())
    }

    /// A subgraph, imported, that is given these values of the graph outside, with those that it uses besides.
    pub(super) fn body(&mut self, name: &'static str, given: &[Option<ValueId>]) -> Read<Branch> {
        let types: Vec<Option<ValueType>> =
            given.iter().map(|value| value.and_then(|value| self.known_type(value))).collect();
        self.body_of_types(name, &types)
    }

    /// As [`Self::body`], by the types of what it is given, where they are known.
    pub(super) fn body_of_types(&mut self, name: &'static str, given: &[Option<ValueType>]) -> Read<Branch> {
        let a = self.attribute(name).ok_or(Invalid::MissingAttribute(name))?;
        Self::of_kind(a, kind::GRAPH, name, "graph")?;
        let Some(graph) = &a.g else { return Err(Invalid::AttributeType { name, expected: "graph" }.into()) };
        if graph.input.len() != given.len() {
            let (has, gets) = (graph.input.len(), given.len());
            return Err(Invalid::Other(format!("{name} has {has} inputs, the node gives it {gets}")).into());
        }
        Ok(self.importer.body(graph, given, self.opsets)?)
    }

    /// The attribute has a value that there is no operator for.
    pub(super) fn unsupported(&self, name: &'static str) -> Problem {
        let value = self.attribute(name).map(shortened).unwrap_or_default();
        Reason::Attribute { name: name.into(), value }.into()
    }

    /// The attribute has a value that cannot be.
    pub(super) fn refuse(&self, name: &'static str, what: &'static str) -> Invalid {
        let value = self.attribute(name).map(shortened).unwrap_or_default();
        Invalid::AttributeValue { name, value, what }
    }

    /// Fails when an attribute has another value than the only one that is supported.
    pub(super) fn only(&self, name: &'static str, value: i64) -> Read {
        match self.int(name)? {
            Some(found) if found != value => Err(self.unsupported(name)),
            _ => Ok(()),
        }
    }

    // Inputs.

    /// Number of inputs that the node names.
    pub(super) fn input_count(&self) -> usize {
        self.node.input.len()
    }

    /// Whether an input is given.
    pub(super) fn has_input(&self, index: usize) -> bool {
        self.node.input.get(index).is_some_and(|n| !n.is_empty())
    }

    /// An input in whatever form it is in.
    fn value(&mut self, index: usize) -> Read<Option<ValueId>> {
        match self.node.input.get(index) {
            Some(name) if !name.is_empty() => Ok(Some(self.importer.value(self.node, name)?)),
            _ => Ok(None),
        }
    }

    /// An input, when it is given.
    pub(super) fn optional(&mut self, index: usize) -> Read<Option<ValueId>> {
        let Some(id) = self.value(index)? else { return Ok(None) };
        if self.moved.is_some() && index < self.entry.data_inputs() {
            return Ok(Some(id));
        }
        Ok(Some(self.importer.scope().raw(id)))
    }

    /// An input that must be there.
    pub(super) fn input(&mut self, index: usize) -> Read<ValueId> {
        Ok(self.optional(index)?.ok_or(Invalid::MissingInput(index))?)
    }

    /// All inputs; the first `required` must be there.
    pub(super) fn inputs(&mut self, required: usize) -> Read<Vec<Option<ValueId>>> {
        if let Some(missing) = (0..required).find(|&i| !self.has_input(i)) {
            return Err(Invalid::MissingInput(missing).into());
        }
        (0..self.input_count()).map(|i| self.optional(i)).collect()
    }

    /// The contents of an input, when it is a constant.
    pub(super) fn constant(&mut self, index: usize) -> Read<Option<Tensor>> {
        let Some(id) = self.value(index)? else { return Ok(None) };
        Ok(self.importer.scope().graph.constant(id).cloned())
    }

    /// The type of a value, when it is known.
    pub(super) fn type_of(&mut self, id: ValueId) -> Option<TensorType> {
        self.importer.scope().tensor_type(id).cloned()
    }

    /// The type of a value of any kind, when it is known.
    pub(super) fn known_type(&mut self, id: ValueId) -> Option<ValueType> {
        let scope = self.importer.scope();
        scope.is_known(id).then(|| scope.graph.value(id).ty.clone())
    }

    /// Name and type of a value.
    pub(super) fn describe(&mut self, id: ValueId) -> (String, ValueType) {
        let value = self.importer.scope().graph.value(id);
        (value.name.clone(), value.ty.clone())
    }

    /// The number of dimensions of a value, when it is known.
    pub(super) fn rank(&mut self, id: ValueId) -> Option<usize> {
        self.type_of(id)?.rank()
    }

    /// The quantization of an input, when it has one.
    pub(super) fn quantization(&mut self, index: usize) -> Read<Option<(ValueId, Arc<Quantization>)>> {
        let Some(id) = self.value(index)? else { return Ok(None) };
        Ok(self.importer.scope().quantization(id).cloned().map(|q| (id, q)))
    }

    /// An input with its integers standing for real numbers in this way.
    pub(super) fn typed(
        &mut self,
        index: usize,
        element: ElementType,
        q: &Arc<Quantization>,
    ) -> Read<ValueId> {
        let id = self.value(index)?.ok_or(Invalid::MissingInput(index))?;
        Ok(self.importer.scope().typed(id, element, q))
    }

    /// Says something of this node that does not keep the model from running.
    pub(super) fn warn(&mut self, warning: impl FnOnce(String) -> super::error::Warning) {
        let warning = warning(self.name.clone());
        self.importer.warn(warning);
    }

    // Results.

    /// Number of outputs that the node names.
    pub(super) fn output_count(&self) -> usize {
        self.node.output.len()
    }

    /// Whether an output is wanted.
    pub(super) fn wants(&self, index: usize) -> bool {
        self.node.output.get(index).is_some_and(|n| !n.is_empty())
    }

    /// Fails when outputs from this one on are wanted.
    pub(super) fn no_outputs_from(&self, first: usize) -> Read {
        match (first..self.output_count()).find(|&i| self.wants(i)) {
            Some(index) => Err(Reason::Output(index).into()),
            None => Ok(()),
        }
    }

    /// The value for an output of the model's node.
    pub(super) fn output(&mut self, index: usize) -> Read<Option<ValueId>> {
        let Some(name) = self.node.output.get(index).filter(|n| !n.is_empty()) else { return Ok(None) };
        let id = self.importer.scope().result(name);
        self.importer.bind(name, id)?;
        Ok(Some(id))
    }

    /// The value for an output whose integers stand for real numbers.
    pub(super) fn quantized_output(
        &mut self,
        index: usize,
        element: ElementType,
        q: Arc<Quantization>,
    ) -> Read<ValueId> {
        let id = self.output(index)?.ok_or(Invalid::MissingOutput(index))?;
        self.importer.scope().set_quantization(id, element, q);
        Ok(id)
    }

    /// Adds the node that gives all the outputs of the model's node.
    pub(super) fn emit(&mut self, op: impl Into<Op>, inputs: Vec<Option<ValueId>>) -> Read {
        let mut outputs = Vec::with_capacity(self.output_count());
        for index in 0..self.output_count() {
            let output = self.output(index)?;
            if let (Some(id), Some((element, q))) = (output, self.moved.clone())
                && (index == 0 || self.entry.all_outputs_moved())
            {
                self.importer.scope().set_quantization(id, element, q);
            }
            outputs.push(output);
        }
        self.emit_to(op, inputs, &outputs);
        Ok(())
    }

    /// Adds the node with the model's name that gives these values.
    pub(super) fn emit_to(
        &mut self,
        op: impl Into<Op>,
        inputs: Vec<Option<ValueId>>,
        outputs: &[Option<ValueId>],
    ) {
        self.importer.emit(&self.name, op.into(), inputs, outputs);
    }

    /// Adds a node before the main one, with one result.
    pub(super) fn step(&mut self, suffix: &str, op: impl Into<Op>, inputs: Vec<Option<ValueId>>) -> ValueId {
        let name = format!("{}/{suffix}", stem(&self.name));
        let output = self.importer.scope().result(&name);
        self.importer.emit(&name, op.into(), inputs, &[Some(output)]);
        output
    }

    /// A value that a node of this one will give, of the type that another one is declared to have.
    pub(super) fn value_like(&mut self, suffix: &str, like: ValueId) -> ValueId {
        let name = format!("{}/{suffix}", stem(&self.name));
        let scope = self.importer.scope();
        let ty = scope.graph.value(like).ty.without_shapes();
        let id = scope.result(&name);
        scope.graph.value_mut(id).ty = ty;
        id
    }

    /// Adds a node before the main one, with several results.
    pub(super) fn steps<const N: usize>(
        &mut self,
        suffixes: [&str; N],
        op: impl Into<Op>,
        input: ValueId,
    ) -> [ValueId; N] {
        let outputs = suffixes.map(|s| self.importer.scope().result(&format!("{}/{s}", stem(&self.name))));
        let name = format!("{}/{}", stem(&self.name), suffixes[0]);
        self.importer.emit(&name, op.into(), vec![Some(input)], &outputs.map(Some));
        outputs
    }

    /// Adds a constant.
    pub(super) fn add_constant(&mut self, suffix: &str, tensor: Tensor) -> ValueId {
        let name = format!("{}/{suffix}", stem(&self.name));
        self.importer.scope().constant(&name, tensor)
    }

    /// Makes a constant of the model's first output.
    pub(super) fn emit_constant(&mut self, tensor: Tensor) -> Read {
        let Some(name) = self.node.output.first().filter(|n| !n.is_empty()) else { return Ok(()) };
        let id = self.importer.scope().constant(name, tensor);
        Ok(self.importer.bind(name, id)?)
    }

    /// Adds a constant vector.
    pub(super) fn vector<T: Element>(&mut self, suffix: &str, values: &[T]) -> ValueId {
        self.add_constant(suffix, Tensor::vector(values))
    }

    /// Adds a constant number of the type that another value has, single precision when that is not known.
    pub(super) fn number_like(&mut self, suffix: &str, like: ValueId, value: f64) -> ValueId {
        let element = self.type_of(like).map_or(ElementType::F32, |t| t.element);
        let tensor = armet_graph::ops::numbers::from_f64(element, Shape::scalar(), &[value]);
        self.add_constant(suffix, tensor.unwrap_or_else(|_| Tensor::scalar(value as f32)))
    }
}

/// An attribute's value for a report.
pub(super) fn shortened(a: &AttributeProto) -> String {
    let mut text = match a.r#type {
        kind::FLOAT => a.f.unwrap_or(0.0).to_string(),
        kind::INT => a.i.unwrap_or(0).to_string(),
        kind::STRING => String::from_utf8_lossy(a.s.as_deref().unwrap_or_default()).into_owned(),
        kind::FLOATS => format!("{:?}", &a.floats[..a.floats.len().min(20)]),
        kind::INTS => format!("{:?}", &a.ints[..a.ints.len().min(20)]),
        kind::STRINGS => format!("{} words", a.strings.len()),
        kind::TENSOR => "a tensor".into(),
        kind::GRAPH => "a graph".into(),
        kind::TYPE => "a type".into(),
        other => format!("something of kind {other}"),
    };
    if let Some((at, _)) = text.char_indices().nth(80) {
        text.truncate(at);
        text.push_str("...");
    }
    text
}
