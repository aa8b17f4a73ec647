//! Operators that the model itself defines: a use is replaced by the nodes of the definition.

use std::collections::HashMap;

use prost::Message as _;

use super::importer::{Opsets, domain, node_name};
use super::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};

/// The functions of a model.
#[derive(Debug)]
pub(super) struct Functions<'m>(HashMap<(&'m str, &'m str, &'m str), &'m FunctionProto>);

/// One function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function<'m>(&'m FunctionProto);

impl<'m> Functions<'m> {
    pub(super) fn new(functions: &'m [FunctionProto]) -> Self {
        let key = |f: &'m FunctionProto| ((domain(&f.domain), f.name.as_str(), f.overload.as_str()), f);
        Self(functions.iter().map(key).collect())
    }

    pub(super) fn find(&self, domain: &str, name: &str, overload: &str) -> Option<Function<'m>> {
        self.0.get(&(domain, name, overload)).map(|f| Function(f))
    }
}

impl Function<'_> {
    /// About as many bytes as one use copies.
    pub(super) fn copied_bytes(self, user: &NodeProto) -> usize {
        let given: usize = user.attribute.iter().map(AttributeProto::encoded_len).sum();
        let names = node_name(user).len() + 8;
        self.0.node.iter().fold(0usize, |sum, node| {
            let values = node.input.len() + node.output.len() + 1;
            sum.saturating_add(node.encoded_len()).saturating_add(values * names).saturating_add(given)
        })
    }

    /// The nodes that stand for one use, and the operator sets that they are of. `unique` makes the names of values
    /// inside unlike all others.
    pub(super) fn write_out(self, user: &NodeProto, unique: usize) -> (Vec<NodeProto>, Opsets) {
        let prefix = format!("{}/{unique}/", node_name(user));
        let formal = |formal: &[String], actual: &[String]| {
            let actual = actual.iter().map(String::as_str).chain(std::iter::repeat(""));
            formal.iter().cloned().zip(actual.map(str::to_owned)).collect::<Vec<_>>()
        };
        let inputs = formal(&self.0.input, &user.input);
        // Results that the user does not want still need a name of their own.
        let outputs =
            formal(&self.0.output, &user.output).into_iter().filter(|(_, actual)| !actual.is_empty());
        let writer = Writer {
            names: inputs.into_iter().chain(outputs).collect(),
            given: user.attribute.iter().map(|a| (a.name.as_str(), a)).collect(),
            defaults: self.0.attribute_proto.iter().map(|a| (a.name.as_str(), a)).collect(),
            prefix,
        };
        let nodes = self.0.node.iter().map(|n| writer.node(n)).collect();
        let opsets = self.0.opset_import.iter().map(|o| (domain(&o.domain).to_owned(), o.version)).collect();
        (nodes, opsets)
    }
}

struct Writer<'a> {
    names: HashMap<String, String>,
    given: HashMap<&'a str, &'a AttributeProto>,
    defaults: HashMap<&'a str, &'a AttributeProto>,
    prefix: String,
}

impl Writer<'_> {
    fn name(&self, name: &str) -> String {
        match self.names.get(name) {
            _ if name.is_empty() => String::new(),
            Some(actual) => actual.clone(),
            None => format!("{}{name}", self.prefix),
        }
    }

    fn node(&self, node: &NodeProto) -> NodeProto {
        NodeProto {
            input: node.input.iter().map(|n| self.name(n)).collect(),
            output: node.output.iter().map(|n| self.name(n)).collect(),
            name: format!("{}{}", self.prefix, node_name(node)),
            op_type: node.op_type.clone(),
            attribute: node.attribute.iter().filter_map(|a| self.attribute(a)).collect(),
            domain: node.domain.clone(),
            overload: node.overload.clone(),
        }
    }

    /// An attribute with its reference to the function's own attributes resolved; `None` when the user did not give it.
    fn attribute(&self, attribute: &AttributeProto) -> Option<AttributeProto> {
        if !attribute.ref_attr_name.is_empty() {
            let wanted = attribute.ref_attr_name.as_str();
            let actual = self.given.get(wanted).or_else(|| self.defaults.get(wanted))?;
            return Some(AttributeProto { name: attribute.name.clone(), ..(*actual).clone() });
        }
        let mut attribute = attribute.clone();
        if let Some(graph) = &mut attribute.g {
            self.graph(graph);
        }
        attribute.graphs.iter_mut().for_each(|g| self.graph(g));
        Some(attribute)
    }

    fn graph(&self, graph: &mut GraphProto) {
        graph.node = graph.node.iter().map(|n| self.node(n)).collect();
        graph.initializer.iter_mut().for_each(|t| t.name = self.name(&t.name));
        for info in graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info) {
            info.name = self.name(&info.name);
        }
    }
}
