//! What each node asks of the layouts around it.

use armet_tensor::Layout;

use super::super::{LayoutChoice, LayoutPreference, facts, merge_transposes};
use crate::{Dim, Graph, GraphError, Node, NodeId, Op, ValueId};

/// How a node stands to layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Data and results in stated layouts.
    Fixed {
        /// Layout of the first input.
        input: Layout,
        /// Layout of the results and of a tensor added to them.
        output: Layout,
    },
    /// Data and results all in the node's label.
    Follows,
    /// Input as it comes, result in the node's label.
    Permutes,
    /// Input as it comes, result plain.
    Reads,
}

const PLAIN: Role = Role::Fixed { input: Layout::Plain, output: Layout::Plain };

/// The layout of a value that somebody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// This one.
    Layout(Layout),
    /// As it comes.
    Any,
}

/// The roles of all nodes.
pub(super) struct Roles {
    /// The nodes in order.
    pub(super) order: Vec<NodeId>,
    roles: Vec<Role>,
}

/// Layouts that were chosen, by node.
pub(super) struct Labels(Vec<Layout>);

impl Labels {
    pub(super) fn plain(roles: &Roles) -> Self {
        Self(vec![Layout::Plain; roles.roles.len()])
    }

    pub(super) fn of(&self, id: NodeId) -> Layout {
        self.0[id.index()]
    }

    pub(super) fn set(&mut self, id: NodeId, layout: Layout) {
        self.0[id.index()] = layout;
    }
}

impl Roles {
    pub(super) fn new(graph: &Graph, preference: &dyn LayoutPreference) -> Result<Self, GraphError> {
        let order = graph.order()?;
        let count = order.iter().map(|id| id.index() + 1).max().unwrap_or(0);
        let mut roles = vec![PLAIN; count];
        for &id in &order {
            roles[id.index()] = role(graph, id, preference.preference(graph, id));
        }
        Ok(Self { order, roles })
    }

    pub(super) fn of(&self, id: NodeId) -> Role {
        self.roles[id.index()]
    }

    /// The layout in which a value is made.
    pub(super) fn made(&self, graph: &Graph, labels: &Labels, value: ValueId) -> Layout {
        let Some(producer) = graph.producer(value).filter(|_| has_channels(graph, value)) else {
            return Layout::Plain;
        };
        match self.of(producer) {
            Role::Fixed { output, .. } => output,
            Role::Follows | Role::Permutes => labels.of(producer),
            Role::Reads => Layout::Plain,
        }
    }

    /// The layout in which a node wants one of its inputs.
    pub(super) fn wanted(&self, graph: &Graph, labels: &Labels, id: NodeId, index: usize) -> Want {
        let node = graph.node(id);
        let Some(value) = node.input(index).filter(|v| has_channels(graph, *v)) else { return Want::Any };
        match self.of(id) {
            Role::Fixed { input, output } => match index {
                0 => Want::Layout(input),
                3 if matches!(node.op, Op::Conv(_) | Op::MatMul(_)) => Want::Layout(output),
                _ => Want::Layout(Layout::Plain),
            },
            Role::Follows if is_full_operand(graph, node, index, value) => Want::Layout(labels.of(id)),
            Role::Follows => Want::Layout(Layout::Plain),
            Role::Permutes | Role::Reads => Want::Any,
        }
    }
}

/// Whether a value has a channel axis that a layout can move.
pub(super) fn has_channels(graph: &Graph, value: ValueId) -> bool {
    facts::rank(graph, value).is_some_and(|rank| rank > 2)
}

/// Which inputs of a node that takes any layout are data: the others are axes, sizes and limits.
pub(super) fn data_inputs(node: &Node) -> std::ops::Range<usize> {
    match &node.op {
        Op::Binary(_) => 0..2,
        Op::Where(_) => 0..3,
        Op::Concat(_) => 0..node.inputs.len(),
        _ => 0..1,
    }
}

/// Whether an input is data of the result's rank, and no shorter operand that is broadcast.
fn is_full_operand(graph: &Graph, node: &Node, index: usize, value: ValueId) -> bool {
    let is_data = data_inputs(node).contains(&index) && graph.constant(value).is_none();
    let shape_alone = matches!(node.op, Op::Reshape(_));
    is_data
        && (shape_alone || node.output().is_some_and(|v| facts::rank(graph, v) == facts::rank(graph, value)))
}

fn role(graph: &Graph, id: NodeId, choice: LayoutChoice) -> Role {
    match choice {
        LayoutChoice::Required { input, output } => Role::Fixed { input, output },
        LayoutChoice::Any if can_follow(graph, graph.node(id)) => Role::Follows,
        LayoutChoice::AnyInput => match merge_transposes::permutation(graph, id) {
            Some(_) => Role::Permutes,
            None => Role::Reads,
        },
        LayoutChoice::Any | LayoutChoice::PlainOnly => PLAIN,
    }
}

/// Whether the data of a node can lie with channels last at all.
fn can_follow(graph: &Graph, node: &Node) -> bool {
    let Some(rank) = node.output().and_then(|v| facts::rank(graph, v)) else { return false };
    if rank < 3 || node.outputs.iter().flatten().any(|v| facts::rank(graph, *v) != Some(rank)) {
        return false;
    }
    if matches!(node.op, Op::Reshape(_)) {
        return keeps_channels(graph, node);
    }
    data_inputs(node).filter_map(|index| node.input(index)).all(|value| {
        let own = facts::rank(graph, value);
        own == Some(rank)
            || graph.constant(value).is_some_and(|t| t.shape().len() < rank)
            || facts::shape(graph, value).is_some_and(|s| s.len() < rank && keeps_order(&s, rank))
    })
}

/// Whether a Reshape only joins or divides spatial axes.
fn keeps_channels(graph: &Graph, node: &Node) -> bool {
    let dims = |value: Option<ValueId>| -> Option<&[Dim]> { facts::dims(graph, value?) };
    match (dims(node.input(0)), dims(node.output())) {
        (Some([n, c, _, ..]), Some([m, d, _, ..])) => facts::same_dim(n, m) && facts::same_dim(c, d),
        _ => false,
    }
}

/// Whether the bytes of a plain value, its shape filled up to `rank` with ones, are also those of its channels-last form.
pub(super) fn keeps_order(shape: &[usize], rank: usize) -> bool {
    let missing = rank.saturating_sub(shape.len());
    let length = |axis: usize| if axis < missing { 1 } else { shape[axis - missing] };
    let long: Vec<usize> =
        Layout::ChannelsLast.permutation(rank).into_iter().filter(|&axis| length(axis) != 1).collect();
    long.is_sorted()
}
