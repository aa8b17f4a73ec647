//! The model as a whole: scopes, initializers, nodes in order, subgraphs, results.

use std::collections::{BTreeMap, HashSet};

use armet_graph::ops::CustomOperators;
use armet_graph::{Dim, Graph, Output, TensorType, ValueId, ValueType};
use armet_tensor::{ElementType, Tensor};

use super::error::{ImportError, Reason, TensorProblem, UnsupportedItem, Warning};
use super::functions::Functions;
use super::node::{NodeReader, Problem};
use super::proto::{GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};
use super::tensor::TensorReader;
use super::values::Scope;
use super::{ImportOptions, ops, order, types};
use crate::Limits;

/// Versions of operator sets, by domain.
pub(super) type Opsets = BTreeMap<String, i64>;

/// One name for each domain that has several.
pub(super) fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

/// The last version of the file format that is known.
const NEWEST_FORMAT: i64 = 14;

/// The operator sets that a model names.
pub(super) fn opsets(model: &ModelProto) -> (Opsets, Vec<Warning>) {
    let mut warnings = Vec::new();
    let entries = model.opset_import.iter().map(|o| (domain(&o.domain).to_owned(), o.version));
    let mut opsets: Opsets = entries.collect();
    // Files before IR version 3 did not say; operator set 1 was the only one.
    opsets.entry(String::new()).or_insert_with(|| {
        warnings.push(Warning::MissingOpset { domain: String::new(), assumed: 1 });
        1
    });
    for (domain, &version) in &opsets {
        if let Some(known) = ops::newest(domain).filter(|known| version > *known) {
            warnings.push(Warning::NewerOpset { domain: domain.clone(), version, known });
        }
    }
    if model.ir_version > NEWEST_FORMAT {
        warnings.push(Warning::NewerFormat { version: model.ir_version, known: NEWEST_FORMAT });
    }
    if !model.training_info.is_empty() {
        warnings.push(Warning::TrainingInfo);
    }
    (opsets, warnings)
}

/// A subgraph that has become a graph.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) graph: Graph,
    /// Values of the graph outside, each with the input that stands for it.
    pub(super) captures: Vec<(ValueId, ValueId)>,
}

/// Builds the graph.
pub(super) struct Importer<'m> {
    limits: &'m Limits,
    tensors: TensorReader<'m>,
    functions: Functions<'m>,
    custom: Option<&'m CustomOperators>,
    /// Inputs that stay such though the file has values for them.
    inputs: &'m [String],
    opsets: &'m Opsets,
    /// From the model's graph to the innermost subgraph.
    scopes: Vec<Scope>,
    /// Nodes seen so far.
    nodes: usize,
    /// Functions that are being written out.
    depth: usize,
    /// Bytes of the functions that have been written out.
    copied: usize,
    unsupported: Vec<UnsupportedItem>,
    warnings: Vec<Warning>,
}

impl<'m> Importer<'m> {
    pub(super) fn new(
        model: &'m ModelProto,
        options: &'m ImportOptions<'m>,
        opsets: &'m Opsets,
        warnings: Vec<Warning>,
    ) -> Self {
        Self {
            limits: &options.limits,
            tensors: TensorReader::new(options.external, &options.limits),
            functions: Functions::new(&model.functions),
            custom: options.custom,
            inputs: options.inputs,
            opsets,
            scopes: Vec::new(),
            nodes: 0,
            depth: 0,
            copied: 0,
            unsupported: Vec::new(),
            warnings,
        }
    }

    /// Imports the model's graph.
    pub(super) fn model(mut self, graph: &GraphProto) -> Result<(Graph, Vec<Warning>), ImportError> {
        self.scopes.push(Scope::new(&graph.name, false));
        self.declare(graph)?;
        let dense = graph.initializer.iter().map(|t| t.name.as_str());
        let initialized: HashSet<&str> =
            dense.chain(graph.sparse_initializer.iter().map(sparse_name)).collect();
        for input in &graph.input {
            if initialized.contains(input.name.as_str()) && !self.inputs.contains(&input.name) {
                continue;
            }
            let unnamed = |axis| Dim::symbol(&format!("{}_{axis}", input.name));
            let ty = input.r#type.as_ref().and_then(|t| types::value_type(t, &unnamed));
            let known = ty.is_some();
            let ty = ty.unwrap_or_else(|| TensorType::unranked(ElementType::F32).into());
            let id = self.scope().input(&input.name, ty, known);
            self.bind(&input.name, id)?;
        }
        let opsets = self.opsets;
        let scope = self.contents(graph, opsets)?;
        if !self.unsupported.is_empty() {
            return Err(ImportError::Unsupported(self.unsupported));
        }
        self.compare_declared(&scope);
        Ok((scope.graph, self.warnings))
    }

    /// Notes declared types that contradict what follows from the nodes once shapes are followed through the whole model.
    fn compare_declared(&mut self, scope: &Scope) {
        let is_noted = |name: &str| {
            let noted = |w: &Warning| matches!(w, Warning::DeclaredType { name: noted, .. } if noted == name);
            self.warnings.iter().any(noted)
        };
        let mut declared: Vec<(&String, &TensorType, ValueId)> = scope
            .hints
            .iter()
            .filter_map(|(name, ty)| Some((name, ty.tensor()?, scope.local(name)?)))
            .filter(|(name, _, id)| scope.graph.producer(*id).is_some() && !is_noted(name))
            .collect();
        if declared.is_empty() {
            return;
        }
        declared.sort_by_key(|(_, _, id)| *id);
        let mut inferred = scope.graph.clone();
        // What contradicts itself is told when the model is compiled.
        if armet_graph::infer::infer(&mut inferred).is_err() {
            return;
        }
        for (name, declared, id) in declared {
            let found = inferred.value(id).ty.tensor().filter(|found| found.quantization.is_none());
            if let Some(found) = found.filter(|found| types::conflict(declared, found)) {
                let (declared, found) = (Box::new(declared.clone()), Box::new(found.clone()));
                self.warnings.push(Warning::DeclaredType { name: name.clone(), declared, found });
            }
        }
    }

    /// Imports a subgraph that is given values of these types, where they are known. The values that it uses from outside
    /// become inputs behind its own.
    pub(super) fn body(
        &mut self,
        graph: &GraphProto,
        given: &[Option<ValueType>],
        opsets: &Opsets,
    ) -> Result<Branch, ImportError> {
        self.scopes.push(Scope::new(&graph.name, true));
        self.declare(graph)?;
        for (input, given) in graph.input.iter().zip(given) {
            let declared = input.r#type.as_ref().and_then(|t| types::value_type(t, &|_| Dim::Unknown));
            let ty = types::given(declared, given.clone());
            let known = ty.is_some();
            let ty = ty.unwrap_or_else(|| TensorType::unranked(ElementType::F32).into());
            let id = self.scope().input(&input.name, ty, known);
            self.bind(&input.name, id)?;
        }
        let scope = self.contents(graph, opsets)?;
        Ok(Branch { graph: scope.graph, captures: scope.captures })
    }

    /// Declared types and constants of the innermost graph.
    fn declare(&mut self, graph: &GraphProto) -> Result<(), ImportError> {
        for info in graph.value_info.iter().chain(&graph.output) {
            let ty = info.r#type.as_ref().and_then(|t| types::value_type(t, &|_| Dim::Unknown));
            if let Some(ty) = ty {
                self.scope().hints.insert(info.name.clone(), ty);
            }
        }
        let (inputs, outermost) = (self.inputs, self.scopes.len() == 1);
        let is_input = |name: &str| {
            let asked = outermost && inputs.iter().any(|input| input == name);
            asked && graph.input.iter().any(|input| input.name == name)
        };
        for tensor in graph.initializer.iter().filter(|tensor| !is_input(&tensor.name)) {
            let value = self.tensor(tensor, &tensor.name)?;
            let id = self.scope().constant(&tensor.name, value);
            self.bind(&tensor.name, id)?;
        }
        for tensor in graph.sparse_initializer.iter().filter(|tensor| !is_input(sparse_name(tensor))) {
            let name = sparse_name(tensor);
            let value = self.sparse_tensor(tensor, name)?;
            let id = self.scope().constant(name, value);
            self.bind(name, id)?;
        }
        Ok(())
    }

    /// Nodes and results of the innermost graph, which is taken off the stack.
    fn contents(&mut self, graph: &GraphProto, opsets: &Opsets) -> Result<Scope, ImportError> {
        let level = self.scopes.len() - 1;
        let given = |name: &str| self.scopes.iter().any(|s| s.local(name).is_some());
        let order = order::order(&graph.node, &given)?;
        if order.iter().enumerate().any(|(i, &at)| i != at) {
            self.warnings.push(Warning::Unsorted(graph.name.clone()));
        }
        for at in order {
            self.node(&graph.node[at], opsets)?;
        }
        let mut outputs = Vec::with_capacity(graph.output.len());
        for output in &graph.output {
            let value = self.resolve(level, &output.name).ok_or_else(|| ImportError::UnknownValue {
                user: format!("graph {}", graph.name),
                name: output.name.clone(),
            })?;
            // What is inside a subgraph does not tell how the integers of its results are meant.
            let value = if level == 0 { value } else { self.scope().raw(value) };
            outputs.push(Output { name: output.name.clone(), value });
        }
        let mut scope = self.scopes.pop().expect("the scope was pushed by the caller");
        scope.graph.set_outputs(outputs);
        scope.drop_bypassed();
        Ok(scope)
    }

    /// Imports one node.
    pub(super) fn node(&mut self, node: &NodeProto, opsets: &Opsets) -> Result<(), ImportError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(self.too_large());
        }
        let domain = domain(&node.domain);
        let version = opsets.get(domain).copied();
        let custom = self.custom.and_then(|all| all.find(domain, &node.op_type, version.unwrap_or(1)));
        let entry = match ops::find(domain, &node.op_type, version.unwrap_or(1)) {
            _ if custom.is_some_and(|custom| custom.overrides) => &super::custom::ENTRY,
            Ok(entry) => entry,
            Err(_) if custom.is_some() && !self.defines(domain, node) => &super::custom::ENTRY,
            Err(reason) => {
                let Some(function) = self.functions.find(domain, &node.op_type, &node.overload) else {
                    return self.give_up(node, version, reason);
                };
                if self.depth >= self.limits.nesting {
                    return Err(self.too_large());
                }
                self.copied = self.copied.saturating_add(function.copied_bytes(node));
                if self.copied > self.limits.decoded_bytes {
                    return Err(self.too_large());
                }
                self.depth += 1;
                let (nodes, opsets) = function.write_out(node, self.nodes);
                for node in &nodes {
                    self.node(node, &opsets)?;
                }
                self.depth -= 1;
                return Ok(());
            }
        };
        let reader = NodeReader::new(self, node, opsets, version.unwrap_or(1), entry);
        let result = match custom {
            Some(custom) if std::ptr::eq(entry, &raw const super::custom::ENTRY) => {
                reader.read_custom(custom)
            }
            _ => reader.read(),
        };
        match result {
            Ok(()) => Ok(()),
            Err(Problem::Unsupported(reason)) => self.give_up(node, version, reason),
            Err(Problem::Invalid(problem)) => {
                Err(ImportError::Node { node: node_name(node), operator: node.op_type.clone(), problem })
            }
            Err(Problem::Import(error)) => Err(error),
        }
    }

    /// Whether the model itself defines the operator.
    fn defines(&self, domain: &str, node: &NodeProto) -> bool {
        self.functions.find(domain, &node.op_type, &node.overload).is_some()
    }

    fn too_large(&self) -> ImportError {
        ImportError::TooLarge { nodes: self.limits.nodes, nesting: self.limits.nesting }
    }

    /// Notes a node that cannot be imported; its results stand as values that nothing gives, so that the rest of the
    /// model is looked at too.
    fn give_up(&mut self, node: &NodeProto, version: Option<i64>, reason: Reason) -> Result<(), ImportError> {
        self.unsupported.push(UnsupportedItem {
            node: node_name(node),
            operator: node.op_type.clone(),
            domain: domain(&node.domain).to_owned(),
            opset: version.unwrap_or(0),
            reason,
        });
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            if self.scope().local(name).is_none() {
                let id = self.scope().result(name);
                self.bind(name, id)?;
            }
        }
        Ok(())
    }

    /// The innermost graph.
    pub(super) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("there is a scope while nodes are read")
    }

    /// Gives a value of the innermost graph its name.
    pub(super) fn bind(&mut self, name: &str, id: ValueId) -> Result<(), ImportError> {
        if self.scope().bind(name, id) { Ok(()) } else { Err(ImportError::DuplicateValue(name.to_owned())) }
    }

    /// The value with this name, of this graph or of one around it.
    pub(super) fn value(&mut self, user: &NodeProto, name: &str) -> Result<ValueId, ImportError> {
        let level = self.scopes.len() - 1;
        let unknown =
            || ImportError::UnknownValue { user: format!("node {}", node_name(user)), name: name.to_owned() };
        self.resolve(level, name).ok_or_else(unknown)
    }

    fn resolve(&mut self, level: usize, name: &str) -> Option<ValueId> {
        if let Some(id) = self.scopes[level].local(name) {
            return Some(id);
        }
        let outer = self.resolve(level.checked_sub(1)?, name)?;
        let outside = &mut self.scopes[level - 1];
        let outer = outside.raw(outer);
        let (constant, ty) = (outside.graph.constant(outer).cloned(), outside.graph.value(outer).ty.clone());
        let known = outside.is_known(outer);
        let scope = &mut self.scopes[level];
        let inner = if let Some(tensor) = constant {
            scope.constant(name, tensor)
        } else {
            let inner = scope.input(name, ty, known);
            scope.captures.push((outer, inner));
            inner
        };
        scope.bind(name, inner);
        Some(inner)
    }

    /// The tensor that a message describes.
    pub(super) fn tensor(&mut self, proto: &TensorProto, name: &str) -> Result<Tensor, ImportError> {
        let named = |problem: TensorProblem| ImportError::Tensor {
            name: name.to_owned(),
            problem: Box::new(problem),
        };
        self.tensors.read(proto).map_err(named)
    }

    /// The dense tensor that a sparse one stands for.
    pub(super) fn sparse_tensor(
        &mut self,
        proto: &SparseTensorProto,
        name: &str,
    ) -> Result<Tensor, ImportError> {
        let named = |problem| ImportError::Tensor { name: name.to_owned(), problem: Box::new(problem) };
        self.tensors.read_sparse(proto).map_err(named)
    }

    /// Notes what is worth saying.
    pub(super) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Adds a node to the innermost graph.
    pub(super) fn emit(
        &mut self,
        name: &str,
        op: armet_graph::Op,
        inputs: Vec<Option<ValueId>>,
        outputs: &[Option<ValueId>],
    ) {
        let conflicts = self.scope().node(name, op, inputs, outputs);
        for (id, declared) in conflicts {
            let value = self.scope().graph.value(id);
            if let ValueType::Tensor(found) = &value.ty {
                let (name, found) = (value.name.clone(), Box::new(found.clone()));
                let declared = Box::new(declared);
                self.warnings.push(Warning::DeclaredType { name, declared, found });
            }
        }
    }
}

/// What a node is called in reports.
pub(super) fn node_name(node: &NodeProto) -> String {
    if !node.name.is_empty() {
        return node.name.clone();
    }
    match node.output.iter().find(|o| !o.is_empty()) {
        Some(output) => output.clone(),
        None => node.op_type.clone(),
    }
}

/// The name of a sparse tensor is that of its values.
fn sparse_name(tensor: &SparseTensorProto) -> &str {
    tensor.values.as_ref().map_or("", |values| values.name.as_str())
}
