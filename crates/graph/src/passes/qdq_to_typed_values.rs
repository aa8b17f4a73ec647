//! `QuantizeLinear` and `DequantizeLinear` with constant parameters become part of the values' types: the integers that
//! they give and take are typed as the real numbers that they stand for, and nodes read and write them directly.
//!
//! Meaning is kept bit for bit: a node over typed values is the real-valued operator on dequantized inputs, its result
//! quantized. Nodes that have no business with integers keep reading real numbers, which `Requantize` makes.

use std::collections::HashMap;
use std::sync::Arc;

use armet_tensor::{ElementType, Quantization};

use super::{PassContext, facts, fold_constants, remove_dead_code, rewrite};
use crate::ops::support::quantization;
use crate::ops::{Requantize, numbers};
use crate::{Graph, GraphError, Node, NodeId, Op, TensorType, ValueId, ValueType};

mod absorb;

pub(super) fn run(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize, GraphError> {
    let mut state = mark(graph);
    let mut rewrites = state.real.len();
    for id in graph.order()? {
        rewrites += absorb::absorb(graph, &mut state, id);
    }
    for id in facts::node_ids(graph) {
        rewrites += usize::from(settle(graph, &state, id).is_some());
    }
    // Weights of nodes that work on real numbers were left quantized until here.
    rewrites += fold_constants::fold_nodes(graph, &|_| true)?;
    remove_dead_code::sweep(graph);
    Ok(rewrites)
}

/// What is known while nodes are rewritten.
#[derive(Default)]
struct State {
    /// For real-valued results of `DequantizeLinear`: the typed integers that they are made of.
    real: HashMap<ValueId, ValueId>,
    /// `QuantizeLinear` nodes whose results are typed.
    quantizers: HashMap<NodeId, ValueId>,
}

impl State {
    /// The typed value that stands for a real one.
    fn typed(&self, value: ValueId) -> Option<ValueId> {
        self.real.get(&value).copied()
    }
}

/// The quantization that a `QuantizeLinear` or `DequantizeLinear` says.
fn parameters(graph: &Graph, node: &Node) -> Option<Quantization> {
    let (axis, block) = match &node.op {
        // Typed values are made in single precision.
        Op::QuantizeLinear(op) if op.precision.is_none_or(|p| p == ElementType::F32) => {
            (op.axis, op.block_size)
        }
        Op::DequantizeLinear(op) => (op.axis, op.block_size),
        _ => return None,
    };
    let scale = facts::plain_constant(graph, node.input(1)?)?;
    let zero_point = match node.input(2) {
        Some(zero) => Some(facts::plain_constant(graph, zero)?),
        None => None,
    };
    if scale.element() != ElementType::F32 || scale.is_empty() {
        return None;
    }
    let shape = match facts::shape(graph, node.input(0)?) {
        Some(shape) => shape,
        None if scale.len() == 1 => armet_tensor::Shape::scalar(),
        None => return None,
    };
    quantization::parameters(node.op.name(), &shape, (axis, block), scale, zero_point).ok()
}

/// Types every integer value that only stands for real numbers, and says which values those are.
fn mark(graph: &mut Graph) -> State {
    let mut state = State::default();
    for value in graph.value_ids() {
        let Some(found) = standing_for_real(graph, value) else { continue };
        let readers = graph.consumers(value).to_vec();
        for reader in readers {
            if let Some(real) = graph.node(reader).output() {
                state.real.insert(real, value);
            }
        }
        if let Some(id) = graph.producer(value) {
            state.quantizers.insert(id, value);
        }
        if let ValueType::Tensor(ty) = &mut graph.value_mut(value).ty {
            ty.quantization = Some(Arc::new(found));
        }
    }
    state
}

/// The quantization of an integer value, when everything that gives it and reads it agrees.
fn standing_for_real(graph: &Graph, value: ValueId) -> Option<Quantization> {
    let ty = graph.value(value).ty.tensor()?;
    if !ty.element.is_integer() || ty.quantization.is_some() {
        return None;
    }
    let given = match facts::producer(graph, value) {
        Some((_, node)) => {
            let of_real = facts::element(graph, node.input(0)?)? == ElementType::F32;
            if !of_real || !matches!(node.op, Op::QuantizeLinear(_)) {
                return None;
            }
            Some(parameters(graph, node)?)
        }
        None => None,
    };
    let readers = graph.consumers(value);
    if given.is_none() && (readers.is_empty() || graph.is_output(value)) {
        return None;
    }
    let mut said = given;
    for &reader in readers {
        let node = graph.node(reader);
        let reads_as_data = node.input(0) == Some(value)
            && node.inputs.iter().flatten().filter(|v| **v == value).count() == 1;
        if !matches!(node.op, Op::DequantizeLinear(_)) || !reads_as_data {
            return None;
        }
        let own = parameters(graph, node)?;
        if said.as_ref().is_some_and(|said| *said != own) {
            return None;
        }
        said = Some(own);
    }
    said
}

/// Makes what is left of `QuantizeLinear` and `DequantizeLinear` over typed values `Requantize`, or a constant.
fn settle(graph: &mut Graph, state: &State, id: NodeId) -> Option<()> {
    let node = graph.get_node(id)?;
    let (input, output) = (node.input(0)?, node.output()?);
    match &node.op {
        Op::DequantizeLinear(_) => {
            let typed = state.typed(output)?;
            if graph.consumers(output).is_empty() && !graph.is_output(output) {
                graph.remove_node(id);
            } else if let Some(tensor) = graph.constant(typed) {
                let real = numbers::dequantize(tensor, facts::quantization(graph, typed)?).ok()?;
                graph.set_constant(output, real);
                graph.remove_node(id);
            } else {
                rewrite::become_op(graph, id, Requantize, &[Some(typed)]);
            }
        }
        Op::QuantizeLinear(_) => {
            state.quantizers.get(&id)?;
            let source = state.typed(input).unwrap_or(input);
            rewrite::become_op(graph, id, Requantize, &[Some(source)]);
        }
        _ => return None,
    }
    Some(())
}

/// A new value that stores what `like` means as `storage` does.
fn typed_like(graph: &mut Graph, name: String, like: ValueId, storage: ValueId) -> Option<ValueId> {
    let dims = graph.value(like).ty.tensor()?.dims.clone();
    let (element, quantization) =
        graph.value(storage).ty.tensor().map(|ty| (ty.element, ty.quantization.clone()))?;
    Some(graph.add_value(name, TensorType { element, dims, quantization }))
}

#[cfg(test)]
mod tests {
    use armet_tensor::Tensor;

    use crate::ops::{BinaryKind, Concat, DequantizeLinear, QuantizeLinear, Reshape, Softmax, UnaryKind};
    use crate::passes::testing::{Build, becomes, binary, conv, matmul, stays, unary};
    use crate::{Graph, Op, ValueId};

    const PASS: &[&str] = &["qdq_to_typed_values"];

    fn dequantize_op(axis: i64) -> DequantizeLinear {
        DequantizeLinear { axis, block_size: 0 }
    }

    /// Quantizes to uint8.
    fn quantize(b: &mut Build, name: &str, x: ValueId, scale: f32, zero: u8) -> ValueId {
        let parameters = [b.number(scale), b.constant(Tensor::scalar(zero))];
        let op = QuantizeLinear { axis: 1, block_size: 0, element: None, saturate: true, precision: None };
        b.node(name, op, &[x, parameters[0], parameters[1]])
    }

    fn dequantize(b: &mut Build, name: &str, x: ValueId, scale: f32, zero: u8) -> ValueId {
        let parameters = [b.number(scale), b.constant(Tensor::scalar(zero))];
        b.node(name, dequantize_op(1), &[x, parameters[0], parameters[1]])
    }

    /// There and back again, as quantized models have it around every value.
    fn rounded(b: &mut Build, name: &str, x: ValueId, scale: f32, zero: u8) -> ValueId {
        let stored = quantize(b, &format!("{name}_q"), x, scale, zero);
        dequantize(b, &format!("{name}_r"), stored, scale, zero)
    }

    fn weights(b: &mut Build) -> (ValueId, ValueId) {
        let stored = b.constant(Tensor::new([2, 2, 1, 1], &[3i8, -7, 100, -128]).unwrap());
        let scales = b.floats(&[0.01, 0.02]);
        let zeros = b.constant(Tensor::vector(&[0i8, 0]));
        let bias = b.constant(Tensor::vector(&[1000i32, -500]));
        let bias_scales = b.floats(&[0.0005, 0.001]);
        let w = b.node("w", dequantize_op(0), &[stored, scales, zeros]);
        let bias = b.node("bias", dequantize_op(0), &[bias, bias_scales]);
        (w, bias)
    }

    #[test]
    fn a_conv_with_scales_per_channel() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2, 3, 3]);
        let x = rounded(&mut b, "x", x, 0.05, 128);
        let (w, bias) = weights(&mut b);
        let op = crate::ops::Conv { activation: Some(UnaryKind::Relu), ..conv() };
        let y = b.node("y", op, &[x, w, bias]);
        let y = rounded(&mut b, "y", y, 0.02, 0);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2,3,3]
          x_q: uint8[1,2,3,3] scale 0.05 zero 128 = Requantize(x)
          y_q: uint8[1,2,3,3] scale 0.02 zero 0 = Conv(x_q, c5 int8[2,2,1,1] scales along axis 0 {3, -7, 100, -128}, c8 int32[2] scales along axis 0 {1000, -500}) auto_pad=NOTSET, group=1, activation=Relu // y + y_q
          y_r: float32[1,2,3,3] = Requantize(y_q)
          output y_r
        ");
    }

    #[test]
    fn arithmetic_and_functions() {
        let mut b = Build::new();
        let x = b.input("x", &[4]);
        let x = rounded(&mut b, "x", x, 0.05, 128);
        let sigmoid = b.node("sigmoid", unary(UnaryKind::Sigmoid), &[x]);
        let sigmoid = rounded(&mut b, "sigmoid", sigmoid, 1.0 / 256.0, 0);
        let y = b.node("y", binary(BinaryKind::Mul), &[x, sigmoid]);
        let y = quantize(&mut b, "y_q", y, 0.03, 20);
        let graph = b.finish(&[y]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[4]
          x_q: uint8[4] scale 0.05 zero 128 = Requantize(x)
          sigmoid_q: uint8[4] scale 0.00390625 zero 0 = Sigmoid(x_q) // sigmoid + sigmoid_q
          y_q: uint8[4] scale 0.03 zero 20 = Mul(x_q, sigmoid_q) // y + y_q
          output y_q
        ");
    }

    #[test]
    fn movements_keep_the_storage() {
        let mut b = Build::new();
        let x = b.input("x", &[2, 3]);
        let x = rounded(&mut b, "x", x, 0.05, 128);
        let shape = b.ints(&[3, 2]);
        let same = b.node("same", Reshape { allow_zero: false }, &[x, shape]);
        let same = quantize(&mut b, "same_q", same, 0.05, 128);
        let other = b.node("other", Reshape { allow_zero: false }, &[x, shape]);
        let other = quantize(&mut b, "other_q", other, 0.1, 100);
        let real = b.node("real", Reshape { allow_zero: false }, &[x, shape]);
        let graph = b.finish(&[same, other, real]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[2,3]
          x_q: uint8[2,3] scale 0.05 zero 128 = Requantize(x)
          x_r: float32[2,3] = Requantize(x_q)
          same_q: uint8[3,2] scale 0.05 zero 128 = Reshape(x_q, c5 int64[2] {3, 2}) allowzero=0 // same + same_q
          other_stored: uint8[3,2] scale 0.05 zero 128 = Reshape(x_q, c5 int64[2] {3, 2}) allowzero=0 // other
          other_q: uint8[3,2] scale 0.1 zero 100 = Requantize(other_stored) // other_q + other
          real: float32[3,2] = Reshape(x_r, c5 int64[2] {3, 2}) allowzero=0
          output same_q
          output other_q
          output real
        ");
    }

    #[test]
    fn parts_of_a_concat_are_brought_to_its_storage() {
        let mut b = Build::new();
        let (x, y) = (b.input("x", &[1, 2]), b.input("y", &[1, 3]));
        let x = rounded(&mut b, "x", x, 0.05, 128);
        let y = rounded(&mut b, "y", y, 0.02, 128);
        let z = b.node("z", Concat { axis: 1 }, &[x, y]);
        let z = rounded(&mut b, "z", z, 0.05, 128);
        let alike = b.node("alike", Concat { axis: 1 }, &[x, z]);
        let w = b.constant(Tensor::new([7, 1], &[1u8, 2, 3, 4, 5, 6, 7]).unwrap());
        let w = dequantize(&mut b, "w", w, 0.5, 3);
        let product = b.node("product", matmul(), &[alike, w]);
        let graph = b.finish(&[product]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2]
          input y: float32[1,3]
          x_q: uint8[1,2] scale 0.05 zero 128 = Requantize(x)
          y_q: uint8[1,3] scale 0.02 zero 128 = Requantize(y)
          y_r_stored: uint8[1,3] scale 0.05 zero 128 = Requantize(y_q)
          z_q: uint8[1,5] scale 0.05 zero 128 = Concat(x_q, y_r_stored) axis=1 // z + z_q
          alike_stored: uint8[1,7] scale 0.05 zero 128 = Concat(x_q, z_q) axis=1 // alike
          product: float32[1,1] = MatMul(alike_stored, c13 uint8[7,1] scale 0.5 zero 3 {1, 2, 3, 4, 5, 6, 7}) transpose_a=0, transpose_b=0, alpha=1
          output product
        ");
    }

    #[test]
    fn nodes_over_real_numbers_keep_them() {
        let mut b = Build::new();
        let x = b.input("x", &[1, 2]);
        let real = rounded(&mut b, "x", x, 0.05, 128);
        let softmax = b.node("softmax", Softmax { axis: 1, log: false, flatten: false }, &[real]);
        let softmax = rounded(&mut b, "softmax", softmax, 1.0 / 256.0, 0);
        let w = b.constant(Tensor::new([2, 1], &[1u8, 2]).unwrap());
        let w = dequantize(&mut b, "w", w, 0.5, 3);
        let product = b.node("product", matmul(), &[x, w]);
        let graph = b.finish(&[softmax, product]);
        becomes!(graph, PASS, @r"
        graph test
          input x: float32[1,2]
          x_q: uint8[1,2] scale 0.05 zero 128 = Requantize(x)
          x_r: float32[1,2] = Requantize(x_q)
          softmax: float32[1,2] = Softmax(x_r) axis=1, flatten=0
          softmax_q: uint8[1,2] scale 0.00390625 zero 0 = Requantize(softmax)
          softmax_r: float32[1,2] = Requantize(softmax_q)
          product: float32[1,1] = MatMul(x, w float32[2,1] {-1, -0.5}) transpose_a=0, transpose_b=0, alpha=1
          output softmax_r
          output product
        ");
    }

    #[test]
    fn not_when_readers_disagree_or_read_the_integers() {
        fn graph(second: impl FnOnce(&mut Build, ValueId) -> ValueId) -> Graph {
            let mut b = Build::new();
            let x = b.input("x", &[4]);
            let stored = quantize(&mut b, "q", x, 0.05, 128);
            let first = dequantize(&mut b, "first", stored, 0.05, 128);
            let second = second(&mut b, stored);
            b.finish(&[first, second])
        }
        stays(&graph(|b, stored| dequantize(b, "second", stored, 0.06, 128)), PASS);
        let cast = Op::from(crate::ops::Cast { to: armet_tensor::ElementType::F32, saturate: true });
        stays(&graph(|b, stored| b.node("second", cast, &[stored])), PASS);
    }
}
