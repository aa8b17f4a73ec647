//! Lets values lie as the backend's kernels want them, and converts only at the borders.
//!
//! The nodes are walked in order. Where a kernel wants channels last, its result lies so; nodes that take any layout pass
//! that on; nodes that do not get a plain copy. A value is converted once for each layout that somebody reads. Constants
//! are laid out here, for free. Graph inputs and results stay plain.

use std::collections::HashMap;

use armet_tensor::{Layout, Tensor, strides};

use super::{LayoutChoice, LayoutPreference, PassContext, remove_dead_code};
use crate::ops::{ConvertLayout, Op};
use crate::{Graph, GraphError, NodeId, ValueId, ValueType};

pub(super) fn run(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize, GraphError> {
    let Some(preference) = context.layout else { return Ok(0) };
    let mut walk = Walk { graph, copies: HashMap::new(), converted: 0 };
    for id in walk.graph.order()? {
        walk.node(id, preference);
    }
    walk.results();
    let converted = walk.converted;
    // A Transpose of which only the other layout is read is left without a reader.
    remove_dead_code::run(graph, context)?;
    Ok(converted)
}

struct Walk<'a> {
    graph: &'a mut Graph,
    /// The same value in another layout than its own.
    copies: HashMap<(ValueId, Layout), ValueId>,
    converted: usize,
}

/// Which inputs of a node that takes any layout are data: the others are axes, sizes and limits.
fn data_inputs(op: &Op, count: usize) -> std::ops::Range<usize> {
    match op {
        Op::Binary(_) => 0..2,
        Op::Where(_) => 0..3,
        Op::Concat(_) => 0..count,
        _ => 0..1,
    }
}

impl Walk<'_> {
    fn rank(&self, value: ValueId) -> Option<usize> {
        self.graph.value(value).ty.tensor()?.rank()
    }

    fn layout(&self, value: ValueId) -> Layout {
        self.graph.value(value).layout
    }

    fn node(&mut self, id: NodeId, preference: &dyn LayoutPreference) {
        match preference.preference(self.graph, id) {
            LayoutChoice::Required { input, output } => {
                self.read(id, 0, input);
                if matches!(self.graph.node(id).op, Op::Conv(_) | Op::MatMul(_)) {
                    self.read(id, 3, output);
                }
                self.write(id, output);
            }
            LayoutChoice::Any => self.follow(id),
            LayoutChoice::AnyInput => self.write(id, Layout::Plain),
            LayoutChoice::PlainOnly => self.plain(id),
        }
    }

    fn plain(&mut self, id: NodeId) {
        for index in 0..self.graph.node(id).inputs.len() {
            self.read(id, index, Layout::Plain);
        }
    }

    /// Makes a node read one of its inputs in a layout.
    fn read(&mut self, id: NodeId, index: usize, layout: Layout) {
        if let Some(value) = self.graph.node(id).input(index) {
            let copy = self.in_layout(value, layout);
            if copy != value {
                self.graph.set_input(id, index, Some(copy));
            }
        }
    }

    fn write(&mut self, id: NodeId, layout: Layout) {
        for output in self.graph.node(id).outputs.clone().into_iter().flatten() {
            if self.rank(output).is_some_and(|rank| rank > 2) {
                self.graph.value_mut(output).layout = layout;
            }
        }
    }

    /// The value in a layout: itself, a copy made before, or a new one.
    fn in_layout(&mut self, value: ValueId, layout: Layout) -> ValueId {
        if self.layout(value) == layout || self.rank(value).is_none_or(|rank| rank < 3) {
            return value;
        }
        if let Some(&copy) = self.copies.get(&(value, layout)) {
            return copy;
        }
        let definition = self.graph.value(value);
        let name = format!("{}@{}", definition.name, layout.name());
        let ty = definition.ty.clone();
        let copy = self.graph.add_value(name.clone(), ty);
        self.graph.value_mut(copy).layout = layout;
        let producer = self.graph.producer(value).map(|id| self.graph.node(id).clone());
        match producer {
            // A transposition can write either layout, so no second one is needed.
            Some(node) if matches!(node.op, Op::Transpose(_)) => {
                self.graph.add_node(node.name, node.op, node.inputs, [Some(copy)]);
            }
            _ => {
                self.converted += 1;
                self.graph.add_node(name, ConvertLayout, [Some(value)], [Some(copy)]);
            }
        }
        self.copies.insert((value, layout), copy);
        copy
    }

    /// A node that takes any layout takes that of its inputs, when all of them can lie so.
    fn follow(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        let data: Vec<(usize, ValueId)> = data_inputs(&node.op, node.inputs.len())
            .filter_map(|index| Some((index, node.input(index)?)))
            .collect();
        let rank = node.output().and_then(|v| self.rank(v));
        let wanted = data.iter().any(|(_, v)| self.layout(*v) == Layout::ChannelsLast);
        let (true, Some(rank)) = (wanted, rank.filter(|&rank| rank > 2)) else { return self.plain(id) };
        if !data.iter().all(|(_, value)| self.can_follow(*value, rank)) {
            return self.plain(id);
        }
        for (index, value) in data {
            let copy = if self.graph.constant(value).is_some() {
                self.constant(value, rank)
            } else if self.rank(value) == Some(rank) {
                self.in_layout(value, Layout::ChannelsLast)
            } else {
                value
            };
            self.graph.set_input(id, index, Some(copy));
        }
        self.write(id, Layout::ChannelsLast);
    }

    /// Whether a value can be an operand beside channels-last values of this rank.
    fn can_follow(&self, value: ValueId, rank: usize) -> bool {
        self.graph.constant(value).is_some_and(|t| t.shape().len() <= rank)
            || self.rank(value) == Some(rank)
            || self.shape(value).is_some_and(|shape| shape.len() < rank && keeps_order(&shape, rank))
    }

    fn shape(&self, value: ValueId) -> Option<Vec<usize>> {
        self.graph.value(value).ty.shape().map(|s| s.to_vec())
    }

    /// A constant operand beside channels-last values: itself when its bytes lie alike, or laid out anew.
    fn constant(&mut self, value: ValueId, rank: usize) -> ValueId {
        let Some(tensor) = self.graph.constant(value).cloned() else { return value };
        if keeps_order(tensor.shape(), rank) {
            return value;
        }
        if let Some(&copy) = self.copies.get(&(value, Layout::ChannelsLast)) {
            return copy;
        }
        let mut shape = tensor.shape().clone();
        while shape.len() < rank {
            shape.insert(0, 1);
        }
        let Some(laid_out) = relaid(&tensor, &shape) else { return value };
        let name = format!("{}@{}", self.graph.value(value).name, Layout::ChannelsLast.name());
        let quantization = self.graph.value(value).ty.tensor().and_then(|t| t.quantization.clone());
        let copy = self.graph.add_constant(name, laid_out);
        let definition = self.graph.value_mut(copy);
        definition.layout = Layout::ChannelsLast;
        if let ValueType::Tensor(ty) = &mut definition.ty {
            ty.quantization = quantization;
        }
        self.copies.insert((value, Layout::ChannelsLast), copy);
        copy
    }

    fn results(&mut self) {
        let mut outputs = self.graph.outputs().to_vec();
        for output in &mut outputs {
            output.value = self.in_layout(output.value, Layout::Plain);
        }
        self.graph.set_outputs(outputs);
    }
}

/// Whether the bytes of a plain value, its shape filled up to `rank` with ones, are also those of its channels-last form.
fn keeps_order(shape: &[usize], rank: usize) -> bool {
    let missing = rank.saturating_sub(shape.len());
    let length = |axis: usize| if axis < missing { 1 } else { shape[axis - missing] };
    let long: Vec<usize> =
        Layout::ChannelsLast.permutation(rank).into_iter().filter(|&axis| length(axis) != 1).collect();
    long.is_sorted()
}

/// The same numbers with channels last; the tensor's shape stays logical.
fn relaid(tensor: &Tensor, shape: &[usize]) -> Option<Tensor> {
    let size = tensor.element().byte_size()?;
    let order = Layout::ChannelsLast.permutation(shape.len());
    let from = strides(shape);
    let memory = Layout::ChannelsLast.physical(shape);
    let to = strides(&memory);
    let mut bytes = Vec::with_capacity(tensor.bytes().len());
    for place in 0..tensor.len() {
        let at: usize = (0..shape.len()).map(|i| place / to[i] % memory[i] * from[order[i]]).sum();
        bytes.extend_from_slice(&tensor.bytes()[at * size..(at + 1) * size]);
    }
    Tensor::from_bytes(tensor.element(), shape, &bytes).ok()
}

#[cfg(test)]
mod tests {
    use armet_tensor::ElementType;

    use super::super::{PassOptions, run_layout};
    use super::*;
    use crate::ops::{Binary, BinaryKind, Conv, Softmax, Transpose, Unary, UnaryKind};
    use crate::text::to_text;
    use crate::{Numbers, TensorType};

    struct ConvsWantChannelsLast;

    impl LayoutPreference for ConvsWantChannelsLast {
        fn preference(&self, graph: &Graph, id: NodeId) -> LayoutChoice {
            match &graph.node(id).op {
                Op::Conv(_) => {
                    LayoutChoice::Required { input: Layout::ChannelsLast, output: Layout::ChannelsLast }
                }
                Op::Unary(_) | Op::Binary(_) => LayoutChoice::Any,
                Op::Transpose(_) => LayoutChoice::AnyInput,
                _ => LayoutChoice::PlainOnly,
            }
        }
    }

    fn conv() -> Conv {
        Conv { group: 1, ..Conv::default() }
    }

    fn layouts(graph: &mut Graph) -> String {
        let options = PassOptions { layout: Some(&ConvsWantChannelsLast), ..PassOptions::default() };
        run_layout(graph, &options).unwrap();
        to_text(graph)
    }

    #[test]
    fn conversions_stand_at_the_borders_only() {
        let mut numbers = Numbers::new(1);
        let mut graph = Graph::new("net");
        let x = graph.add_input("x", TensorType::fixed(ElementType::F32, &[1, 2, 4, 3]));
        let w = graph.add_constant("w", numbers.floats([2, 2, 1, 1], -1.0, 1.0));
        let bias = graph.add_constant("bias", numbers.floats([2, 1, 1], -1.0, 1.0));
        let map = graph.add_constant("map", numbers.floats([2, 4, 3], -1.0, 1.0));
        let a = graph.add("a", conv(), [Some(x), Some(w)]);
        let b = graph.add("b", Unary { kind: UnaryKind::Relu }, [Some(a)]);
        let c = graph.add("c", Binary { kind: BinaryKind::Add }, [Some(b), Some(bias)]);
        let d = graph.add("d", Binary { kind: BinaryKind::Mul }, [Some(c), Some(map)]);
        let e = graph.add("e", conv(), [Some(d), Some(w)]);
        let f = graph.add("f", Softmax { axis: 3, log: false, flatten: false }, [Some(e)]);
        graph.add_output("f", f);
        let text = layouts(&mut graph);
        assert_eq!(text.matches("ConvertLayout").count(), 2, "{text}");
        assert_eq!(text.matches("@channels-last = ").count(), 6, "{text}");
    }

    #[test]
    fn a_transposition_beside_a_border_takes_the_conversion() {
        let mut numbers = Numbers::new(2);
        let mut graph = Graph::new("net");
        let x = graph.add_input("x", TensorType::fixed(ElementType::F32, &[1, 4, 3, 2]));
        let w = graph.add_constant("w", numbers.floats([2, 2, 1, 1], -1.0, 1.0));
        let a = graph.add("a", Transpose { perm: vec![0, 3, 1, 2] }, [Some(x)]);
        let b = graph.add("b", conv(), [Some(a), Some(w)]);
        let c = graph.add("c", Transpose { perm: vec![0, 2, 3, 1] }, [Some(b)]);
        graph.add_output("c", c);
        let text = layouts(&mut graph);
        assert_eq!(text.matches("ConvertLayout").count(), 0, "{text}");
        assert_eq!(text.matches("Transpose(").count(), 2, "{text}");
    }
}
