//! Values, nodes and the edits that keep them consistent.

use std::collections::HashMap;

use armet_tensor::{Layout, Tensor};
use smallvec::SmallVec;

use crate::{GraphError, Op, TensorType, ValueType};

/// Names a value of one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

/// Names a node of one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl ValueId {
    /// Position in [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// A number that is unique in its graph.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value: graph input, constant, or a node's result.
#[derive(Debug, Clone)]
pub struct ValueDef {
    /// Name in the model; unique by construction of importers, not relied upon.
    pub name: String,
    /// What is known of its type.
    pub ty: ValueType,
    /// Its contents, when they are known before running.
    pub constant: Option<Tensor>,
    /// How it lies in memory; shapes stay logical.
    pub layout: Layout,
    producer: Option<NodeId>,
    consumers: SmallVec<[NodeId; 2]>,
}

/// One use of an operator.
#[derive(Debug, Clone)]
pub struct Node {
    /// Name in the model, or the name of the node it came from.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// What it reads; `None` for an optional input left out.
    pub inputs: SmallVec<[Option<ValueId>; 4]>,
    /// What it gives; `None` for an optional output nobody wants.
    pub outputs: SmallVec<[Option<ValueId>; 1]>,
    /// Model nodes that this node stands for besides its own name, in order: what passes fused into it.
    pub absorbed: Vec<String>,
}

impl Node {
    /// The input with this index, when it is there.
    pub fn input(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }

    /// The first output.
    pub fn output(&self) -> Option<ValueId> {
        self.outputs.first().copied().flatten()
    }
}

/// A named result of a graph.
#[derive(Debug, Clone)]
pub struct Output {
    /// The name users ask for.
    pub name: String,
    /// The value that it is.
    pub value: ValueId,
}

/// A model, or the body of a control-flow operator.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Name in the model.
    pub name: String,
    values: Vec<ValueDef>,
    nodes: Vec<Option<Node>>,
    inputs: Vec<ValueId>,
    outputs: Vec<Output>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a value that nothing gives yet.
    pub fn add_value(&mut self, name: impl Into<String>, ty: impl Into<ValueType>) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        self.values.push(ValueDef {
            name: name.into(),
            ty: ty.into(),
            constant: None,
            layout: Layout::Plain,
            producer: None,
            consumers: SmallVec::new(),
        });
        id
    }

    /// Adds an input.
    pub fn add_input(&mut self, name: impl Into<String>, ty: impl Into<ValueType>) -> ValueId {
        let id = self.add_value(name, ty);
        self.inputs.push(id);
        id
    }

    /// Adds a value with known contents.
    pub fn add_constant(&mut self, name: impl Into<String>, tensor: Tensor) -> ValueId {
        let id = self.add_value(name, TensorType::fixed(tensor.element(), tensor.shape()));
        self.values[id.index()].constant = Some(tensor);
        id
    }

    /// Adds a node with one new output named like the node; returns that output.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        op: impl Into<Op>,
        inputs: impl IntoIterator<Item = Option<ValueId>>,
    ) -> ValueId {
        let name = name.into();
        let element = armet_tensor::ElementType::F32;
        let output = self.add_value(name.clone(), TensorType::unranked(element));
        self.add_node(name, op, inputs, [Some(output)]);
        output
    }

    /// Adds a node that gives existing values.
    pub fn add_node(
        &mut self,
        name: impl Into<String>,
        op: impl Into<Op>,
        inputs: impl IntoIterator<Item = Option<ValueId>>,
        outputs: impl IntoIterator<Item = Option<ValueId>>,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let node = Node {
            name: name.into(),
            op: op.into(),
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
            absorbed: Vec::new(),
        };
        for &value in node.inputs.iter().flatten() {
            self.values[value.index()].consumers.push(id);
        }
        for &value in node.outputs.iter().flatten() {
            self.values[value.index()].producer = Some(id);
        }
        self.nodes.push(Some(node));
        id
    }

    /// Makes a value a result of the graph.
    pub fn add_output(&mut self, name: impl Into<String>, value: ValueId) {
        self.outputs.push(Output { name: name.into(), value });
    }

    /// The inputs in order.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// Replaces the list of inputs.
    pub fn set_inputs(&mut self, inputs: Vec<ValueId>) {
        self.inputs = inputs;
    }

    /// The results in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Replaces the list of results.
    pub fn set_outputs(&mut self, outputs: Vec<Output>) {
        self.outputs = outputs;
    }

    /// Whether a value is a result of the graph.
    pub fn is_output(&self, value: ValueId) -> bool {
        self.outputs.iter().any(|o| o.value == value)
    }

    /// A value.
    pub fn value(&self, id: ValueId) -> &ValueDef {
        &self.values[id.index()]
    }

    /// A value, to be changed.
    pub fn value_mut(&mut self, id: ValueId) -> &mut ValueDef {
        &mut self.values[id.index()]
    }

    /// All values, also those nothing uses any more.
    pub fn values(&self) -> &[ValueDef] {
        &self.values
    }

    /// Names of all values.
    pub fn value_ids(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.values.len() as u32).map(ValueId)
    }

    /// The contents of a value, when known before running.
    pub fn constant(&self, id: ValueId) -> Option<&Tensor> {
        self.value(id).constant.as_ref()
    }

    /// Makes a value a constant; the node that gave it no longer does.
    pub fn set_constant(&mut self, id: ValueId, tensor: Tensor) {
        if let Some(producer) = self.values[id.index()].producer.take()
            && let Some(node) = self.nodes[producer.index()].as_mut()
        {
            for output in &mut node.outputs {
                if *output == Some(id) {
                    *output = None;
                }
            }
        }
        let value = self.value_mut(id);
        let quantization = value.ty.tensor().and_then(|t| t.quantization.clone());
        let mut ty = TensorType::fixed(tensor.element(), tensor.shape());
        ty.quantization = quantization;
        value.ty = ty.into();
        value.constant = Some(tensor);
    }

    /// The node that gives a value.
    pub fn producer(&self, id: ValueId) -> Option<NodeId> {
        self.value(id).producer
    }

    /// The nodes that read a value; a node that reads it twice is there twice.
    pub fn consumers(&self, id: ValueId) -> &[NodeId] {
        &self.value(id).consumers
    }

    /// A node.
    ///
    /// # Panics
    /// When it has been removed.
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes[id.index()].as_ref().expect("the node has not been removed")
    }

    /// A node, when it is still there.
    pub fn get_node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// A node's operator, to be changed.
    ///
    /// # Panics
    /// When the node has been removed.
    pub fn node_mut(&mut self, id: NodeId) -> NodeMut<'_> {
        let node = self.nodes[id.index()].as_mut().expect("the node has not been removed");
        NodeMut { name: &mut node.name, op: &mut node.op, absorbed: &mut node.absorbed }
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    /// All nodes in order of creation.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().filter_map(|(i, n)| Some((NodeId(i as u32), n.as_ref()?)))
    }

    /// Changes one input of a node, adding places for left-out inputs before it.
    pub fn set_input(&mut self, id: NodeId, index: usize, value: Option<ValueId>) {
        let node = self.nodes[id.index()].as_mut().expect("the node has not been removed");
        while node.inputs.len() <= index {
            node.inputs.push(None);
        }
        let old = std::mem::replace(&mut node.inputs[index], value);
        if let Some(old) = old {
            let consumers = &mut self.values[old.index()].consumers;
            if let Some(at) = consumers.iter().position(|&c| c == id) {
                consumers.remove(at);
            }
        }
        if let Some(value) = value {
            self.values[value.index()].consumers.push(id);
        }
    }

    /// Keeps the first `count` inputs of a node.
    pub fn truncate_inputs(&mut self, id: NodeId, count: usize) {
        for index in count..self.node(id).inputs.len() {
            self.set_input(id, index, None);
        }
        let node = self.nodes[id.index()].as_mut().expect("the node has not been removed");
        node.inputs.truncate(count);
    }

    /// Makes a node give another value in place of one of its outputs.
    pub fn set_output(&mut self, id: NodeId, index: usize, value: Option<ValueId>) {
        let node = self.nodes[id.index()].as_mut().expect("the node has not been removed");
        while node.outputs.len() <= index {
            node.outputs.push(None);
        }
        if let Some(old) = std::mem::replace(&mut node.outputs[index], value) {
            self.values[old.index()].producer = None;
        }
        if let Some(value) = value {
            self.values[value.index()].producer = Some(id);
        }
    }

    /// Keeps the first `count` outputs of a node.
    pub fn truncate_outputs(&mut self, id: NodeId, count: usize) {
        for index in count..self.node(id).outputs.len() {
            self.set_output(id, index, None);
        }
        let node = self.nodes[id.index()].as_mut().expect("the node has not been removed");
        node.outputs.truncate(count);
    }

    /// Every reader of `old`, and every result that was `old`, uses `new` instead.
    pub fn replace_uses(&mut self, old: ValueId, new: ValueId) {
        if old == new {
            return;
        }
        let consumers = std::mem::take(&mut self.values[old.index()].consumers);
        for &id in &consumers {
            if let Some(node) = self.nodes[id.index()].as_mut() {
                for input in &mut node.inputs {
                    if *input == Some(old) {
                        *input = Some(new);
                    }
                }
            }
        }
        self.values[new.index()].consumers.extend(consumers);
        for output in &mut self.outputs {
            if output.value == old {
                output.value = new;
            }
        }
    }

    /// Removes a node; its outputs stay as values that nothing gives.
    pub fn remove_node(&mut self, id: NodeId) -> Option<Node> {
        let node = self.nodes.get_mut(id.index())?.take()?;
        for &value in node.inputs.iter().flatten() {
            self.values[value.index()].consumers.retain(|c| *c != id);
        }
        for &value in node.outputs.iter().flatten() {
            let slot = &mut self.values[value.index()].producer;
            if *slot == Some(id) {
                *slot = None;
            }
        }
        Some(node)
    }

    /// The nodes in an order in which every value is given before it is read; ties keep the order of creation.
    ///
    /// # Errors
    /// When nodes depend on each other in a ring.
    pub fn order(&self) -> Result<Vec<NodeId>, GraphError> {
        let mut waiting: HashMap<NodeId, usize> = HashMap::new();
        let mut ready = std::collections::BinaryHeap::new();
        for (id, node) in self.nodes() {
            let count = node.inputs.iter().flatten().filter(|v| self.producer(**v).is_some()).count();
            if count == 0 {
                ready.push(std::cmp::Reverse(id));
            } else {
                waiting.insert(id, count);
            }
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(std::cmp::Reverse(id)) = ready.pop() {
            order.push(id);
            for &output in self.node(id).outputs.iter().flatten() {
                for &consumer in self.consumers(output) {
                    if let Some(count) = waiting.get_mut(&consumer) {
                        *count -= 1;
                        if *count == 0 {
                            waiting.remove(&consumer);
                            ready.push(std::cmp::Reverse(consumer));
                        }
                    }
                }
            }
        }
        match waiting.keys().min() {
            Some(&id) => Err(GraphError::Cycle(self.node(id).name.clone())),
            None => Ok(order),
        }
    }
}

/// The parts of a node that may be changed in place.
#[derive(Debug)]
pub struct NodeMut<'a> {
    /// Its name.
    pub name: &'a mut String,
    /// Its operator.
    pub op: &'a mut Op,
    /// Names of the model nodes it stands for.
    pub absorbed: &'a mut Vec<String>,
}
