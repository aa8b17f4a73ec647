//! Which layout nodes that could have either get: the one with which fewer bytes are moved.

use std::collections::{BTreeSet, HashMap};

use armet_tensor::Layout;

use super::super::{facts, merge_transposes};
use super::roles::{Labels, Role, Roles, Want, data_inputs, has_channels, keeps_order};
use crate::{Graph, NodeId, TensorType, ValueId};

/// Cost of a conversion that moves nothing: without gain there is to be none.
const RENAMING: u64 = 1;
/// Cost of moving a value whose size is not known.
const UNKNOWN_SIZE: u64 = 1 << 16;
/// Rounds of improvement, node by node.
const ROUNDS: usize = 4;

pub(super) fn choose(graph: &Graph, roles: &Roles) -> Labels {
    let mut labels = Labels::plain(roles);
    follow_inputs(graph, roles, &mut labels);
    let costs = Costs { graph, roles };
    for region in regions(graph, roles) {
        let set = |labels: &mut Labels, layout: Layout| region.iter().for_each(|id| labels.set(*id, layout));
        let around = costs.around(&region);
        let first: Vec<Layout> = region.iter().map(|id| labels.of(*id)).collect();
        let mut best = (costs.total(&around, &labels), None);
        for layout in [Layout::Plain, Layout::ChannelsLast] {
            set(&mut labels, layout);
            let cost = costs.total(&around, &labels);
            if cost < best.0 {
                best = (cost, Some(layout));
            }
        }
        match best.1 {
            Some(layout) => set(&mut labels, layout),
            None => region.iter().zip(first).for_each(|(id, layout)| labels.set(*id, layout)),
        }
    }
    for round in 0..ROUNDS {
        let mut changed = false;
        let mut improve = |id: NodeId| changed |= costs.improve(id, &mut labels);
        if round % 2 == 0 {
            roles.order.iter().rev().for_each(|id| improve(*id));
        } else {
            roles.order.iter().for_each(|id| improve(*id));
        }
        if !changed {
            break;
        }
    }
    labels
}

fn is_free(role: Role) -> bool {
    matches!(role, Role::Follows | Role::Permutes)
}

/// The first guess: channels last goes on wherever it comes in.
fn follow_inputs(graph: &Graph, roles: &Roles, labels: &mut Labels) {
    for &id in &roles.order {
        if roles.of(id) != Role::Follows {
            continue;
        }
        let node = graph.node(id);
        let mut data = data_inputs(node).filter_map(|index| node.input(index));
        if data.any(|value| roles.made(graph, labels, value) == Layout::ChannelsLast) {
            labels.set(id, Layout::ChannelsLast);
        }
    }
}

/// Connected nodes that take any layout.
fn regions(graph: &Graph, roles: &Roles) -> Vec<Vec<NodeId>> {
    let mut region_of: HashMap<NodeId, usize> = HashMap::new();
    let mut regions: Vec<Vec<NodeId>> = Vec::new();
    for &start in &roles.order {
        if roles.of(start) != Role::Follows || region_of.contains_key(&start) {
            continue;
        }
        let (index, mut region, mut pending) = (regions.len(), Vec::new(), vec![start]);
        region_of.insert(start, index);
        while let Some(id) = pending.pop() {
            region.push(id);
            let node = graph.node(id);
            let before = data_inputs(node).filter_map(|i| graph.producer(node.input(i)?));
            let behind = node.outputs.iter().flatten().flat_map(|v| graph.consumers(*v).iter().copied());
            for next in before.chain(behind) {
                if roles.of(next) == Role::Follows && !region_of.contains_key(&next) {
                    region_of.insert(next, index);
                    pending.push(next);
                }
            }
        }
        regions.push(region);
    }
    regions
}

/// Values and transpositions whose cost depends on some labels.
struct Around {
    values: BTreeSet<ValueId>,
    transposes: BTreeSet<NodeId>,
}

struct Costs<'a> {
    graph: &'a Graph,
    roles: &'a Roles,
}

impl Costs<'_> {
    fn around(&self, nodes: &[NodeId]) -> Around {
        let mut around = Around { values: BTreeSet::new(), transposes: BTreeSet::new() };
        for &id in nodes {
            let node = self.graph.node(id);
            around.values.extend(data_inputs(node).filter_map(|index| node.input(index)));
            around.values.extend(node.outputs.iter().flatten());
            let readers = node.outputs.iter().flatten().flat_map(|v| self.graph.consumers(*v));
            around.transposes.extend(readers.filter(|id| self.roles.of(**id) == Role::Permutes));
            if self.roles.of(id) == Role::Permutes {
                around.transposes.insert(id);
            }
        }
        around
    }

    fn total(&self, around: &Around, labels: &Labels) -> u64 {
        let values: u64 = around.values.iter().map(|value| self.value(*value, labels)).sum();
        let transposes: u64 = around.transposes.iter().map(|id| self.transpose(*id, labels)).sum();
        values + transposes
    }

    /// Gives a node the other layout if that is cheaper.
    fn improve(&self, id: NodeId, labels: &mut Labels) -> bool {
        if !is_free(self.roles.of(id)) {
            return false;
        }
        let around = self.around(&[id]);
        let (now, before) = (labels.of(id), self.total(&around, labels));
        labels.set(id, if now == Layout::Plain { Layout::ChannelsLast } else { Layout::Plain });
        let better = self.total(&around, labels) < before;
        if !better {
            labels.set(id, now);
        }
        better
    }

    fn size(&self, value: ValueId) -> u64 {
        let bytes = self.graph.value(value).ty.tensor().and_then(TensorType::byte_len);
        bytes.map_or(UNKNOWN_SIZE, |n| n as u64 + RENAMING)
    }

    /// Bytes moved to give a value to all its readers.
    fn value(&self, value: ValueId, labels: &Labels) -> u64 {
        let graph = self.graph;
        if graph.constant(value).is_some() || !has_channels(graph, value) {
            return 0;
        }
        let made = self.roles.made(graph, labels, value);
        let disagrees = |id: &NodeId| {
            let inputs = graph.node(*id).inputs.iter().enumerate().filter(|(_, v)| **v == Some(value));
            inputs.map(|(index, _)| self.roles.wanted(graph, labels, *id, index)).any(|want| match want {
                Want::Layout(layout) => layout != made,
                Want::Any => false,
            })
        };
        let read_plain = graph.is_output(value) && made != Layout::Plain;
        if !read_plain && !graph.consumers(value).iter().any(disagrees) {
            return 0;
        }
        match facts::shape(graph, value) {
            Some(shape) if keeps_order(&shape, shape.len()) => RENAMING,
            _ => self.size(value),
        }
    }

    /// Bytes moved by a transposition.
    fn transpose(&self, id: NodeId, labels: &Labels) -> u64 {
        let graph = self.graph;
        let node = graph.node(id);
        let (Some(perm), Some(input)) = (merge_transposes::permutation(graph, id), node.input(0)) else {
            return UNKNOWN_SIZE;
        };
        let from = self.roles.made(graph, labels, input).permutation(perm.len());
        // The axes of the input in the order in which the result's memory has them.
        let read = labels.of(id).permutation(perm.len()).into_iter().map(|axis| perm[axis]);
        let place = |axis: usize| from.iter().position(|a| *a == axis);
        let long = |axis: &usize| facts::dims(graph, input).is_none_or(|dims| !dims[*axis].is(1));
        let places: Vec<Option<usize>> = read.filter(long).map(place).collect();
        if places.is_sorted() { 0 } else { self.size(input) }
    }
}
