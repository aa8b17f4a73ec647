//! Writes chosen layouts into the graph: layouts of values, conversions at the borders, constants laid out.

use std::collections::HashMap;

use armet_tensor::{Layout, Quantization};

use super::super::{facts, rewrite};
use super::roles::{Labels, Role, Roles, Want, data_inputs, keeps_order};
use crate::ops::ConvertLayout;
use crate::{Graph, NodeId, TensorType, ValueId, ValueType};

/// Gives the number of conversions.
pub(super) fn apply(graph: &mut Graph, roles: &Roles, labels: &Labels) -> usize {
    for &id in &roles.order {
        for output in graph.node(id).outputs.clone().into_iter().flatten() {
            let layout = roles.made(graph, labels, output);
            graph.value_mut(output).layout = layout;
        }
    }
    let mut copies = Copies::default();
    for &id in &roles.order {
        for index in 0..graph.node(id).inputs.len() {
            let Want::Layout(layout) = roles.wanted(graph, labels, id, index) else { continue };
            let Some(value) = graph.node(id).input(index) else { continue };
            if graph.constant(value).is_none() {
                let read = copies.in_layout(graph, value, layout);
                graph.set_input(id, index, Some(read));
            }
        }
        if roles.of(id) == Role::Follows && labels.of(id) == Layout::ChannelsLast {
            lay_out_constants(graph, &mut copies, id);
        }
    }
    let mut outputs = graph.outputs().to_vec();
    for output in &mut outputs {
        if graph.constant(output.value).is_none() {
            output.value = copies.in_layout(graph, output.value, Layout::Plain);
        }
    }
    graph.set_outputs(outputs);
    copies.converted
}

fn lay_out_constants(graph: &mut Graph, copies: &mut Copies, id: NodeId) {
    let node = graph.node(id);
    let Some(rank) = node.output().and_then(|v| facts::rank(graph, v)) else { return };
    for index in data_inputs(node) {
        let Some(value) = graph.node(id).input(index) else { continue };
        if let Some(laid_out) = copies.constant(graph, value, rank) {
            graph.set_input(id, index, Some(laid_out));
        }
    }
}

/// Values in other layouts than those in which they are made.
#[derive(Default)]
struct Copies {
    made: HashMap<(ValueId, Layout, usize), ValueId>,
    converted: usize,
}

impl Copies {
    fn in_layout(&mut self, graph: &mut Graph, value: ValueId, layout: Layout) -> ValueId {
        let definition = graph.value(value);
        let rank = facts::rank(graph, value).unwrap_or(0);
        if definition.layout == layout || rank < 3 {
            return value;
        }
        if let Some(&copy) = self.made.get(&(value, layout, rank)) {
            return copy;
        }
        let (name, ty) = (format!("{}@{}", definition.name, layout.name()), definition.ty.clone());
        let (_, copy) = rewrite::insert(graph, name, ConvertLayout, &[Some(value)], ty);
        graph.value_mut(copy).layout = layout;
        self.converted += 1;
        self.made.insert((value, layout, rank), copy);
        copy
    }

    /// A constant beside channels-last values of this rank, when its bytes must lie otherwise than they do.
    fn constant(&mut self, graph: &mut Graph, value: ValueId, rank: usize) -> Option<ValueId> {
        let tensor = graph.constant(value)?.clone();
        if keeps_order(tensor.shape(), rank) {
            return None;
        }
        let key = (value, Layout::ChannelsLast, rank);
        if let Some(&copy) = self.made.get(&key) {
            return Some(copy);
        }
        let missing = rank - tensor.shape().len();
        let mut shape = vec![1; missing];
        shape.extend_from_slice(tensor.shape());
        let tensor = tensor.reshape(shape).ok()?;
        let quantization = facts::quantization(graph, value).map(|q| {
            let axis = q.axis.map(|axis| axis + missing);
            std::sync::Arc::new(Quantization { axis, ..Quantization::clone(q) })
        });
        let name = format!("{}@{}", graph.value(value).name, Layout::ChannelsLast.name());
        let ty = TensorType { quantization, ..TensorType::fixed(tensor.element(), tensor.shape()) };
        let copy = graph.add_constant(name, tensor);
        let definition = graph.value_mut(copy);
        definition.layout = Layout::ChannelsLast;
        definition.ty = ValueType::Tensor(ty);
        self.made.insert(key, copy);
        Some(copy)
    }
}
