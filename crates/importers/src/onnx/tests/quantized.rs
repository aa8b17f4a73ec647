//! Operators that name scales and zero points: as typed values they compute what their definition says.

use armet_graph::ops::numbers;
use armet_tensor::Quantization;

use super::*;

struct Builder {
    nodes: Vec<NodeProto>,
    constants: Vec<(String, Tensor)>,
    dynamic: Vec<(String, Tensor)>,
}

impl Builder {
    fn new() -> Self {
        Self { nodes: vec![], constants: vec![], dynamic: vec![] }
    }

    /// A scale and a zero point with names that begin with `name`.
    fn parameters(&mut self, name: &str, scale: Tensor, zero: Tensor) -> [String; 2] {
        let names = [format!("{name}_scale"), format!("{name}_zero")];
        self.constants.push((names[0].clone(), scale));
        self.constants.push((names[1].clone(), zero));
        names
    }

    fn u8(&mut self, name: &str, scale: f32, zero: u8) -> [String; 2] {
        self.parameters(name, Tensor::scalar(scale), Tensor::scalar(zero))
    }

    fn add(
        &mut self,
        op: &str,
        domain: &str,
        inputs: &[&str],
        output: &str,
        attributes: Vec<AttributeProto>,
    ) {
        self.nodes.push(NodeProto { domain: domain.into(), ..node(op, inputs, &[output], attributes) });
    }

    fn import(&self, constant: bool, inputs: &[(&str, &Tensor)], output: &str) -> Graph {
        let mut infos: Vec<_> = inputs.iter().map(|(n, t)| info_like(n, t)).collect();
        let (mut initializer, mut more) = (vec![], vec![]);
        for (name, tensor) in &self.constants {
            if constant {
                initializer.push(tensor_proto(name, tensor));
            } else {
                more.push(info_like(name, tensor));
            }
        }
        infos.append(&mut more);
        let mut graph = graph(infos, self.nodes.clone(), &[output]);
        graph.initializer = initializer;
        graph.initializer.extend(self.dynamic.iter().map(|(n, t)| tensor_proto(n, t)));
        imported(&model(13, graph)).graph
    }

    /// Evaluates with parameters as constants, and as inputs; both must give the same.
    fn evaluate(&self, inputs: &[(&str, &Tensor)], output: &str) -> Tensor {
        let mut values: Vec<Tensor> = inputs.iter().map(|(_, t)| (*t).clone()).collect();
        let first = evaluate(&self.import(true, inputs, output), &values).remove(0);
        values.extend(self.constants.iter().map(|(_, t)| t.clone()));
        let second = evaluate(&self.import(false, inputs, output), &values).remove(0);
        assert_eq!(numbers::to_i128(&first), numbers::to_i128(&second));
        first
    }
}

#[test]
fn a_convolution_with_a_scale_per_channel() {
    let mut b = Builder::new();
    b.u8("x", 0.5, 10);
    b.parameters("w", Tensor::vector(&[0.25f32, 0.5]), Tensor::vector(&[0i8, 0]));
    b.u8("y", 1.0, 100);
    b.dynamic.push(("w".into(), Tensor::new([2, 1, 1], &[4i8, -2]).unwrap()));
    b.dynamic.push(("bias".into(), Tensor::vector(&[8i32, -4])));
    let inputs = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero", "bias"];
    b.add("QLinearConv", "", &inputs, "y", vec![]);
    let x = Tensor::new([1, 1, 2], &[10u8, 30]).unwrap();
    // Real input 0 and 10; weights 1 and -1; bias 8*0.5*0.25 = 1 and -4*0.5*0.5 = -1.
    let y = b.evaluate(&[("x", &x)], "y");
    assert_eq!(y.shape().dims(), [1, 2, 2]);
    assert_eq!(y.expect::<u8>().as_ref(), [101, 111, 99, 89]);
    // With constant parameters everything is in the types.
    let graph = b.import(true, &[("x", &x)], "y");
    let ops: Vec<&str> = graph.nodes().map(|(_, n)| n.op.name()).collect();
    assert_eq!(ops, ["Conv"]);
    let (_, conv) = graph.nodes().next().unwrap();
    let q = |i: usize| graph.value(conv.input(i).unwrap()).ty.tensor().unwrap().quantization.clone();
    assert_eq!(q(0).as_deref(), Some(&Quantization::per_tensor(0.5, 10)));
    let bias = q(2).unwrap();
    assert_eq!(
        (bias.scale.as_slice(), bias.zero_point.as_slice(), bias.axis),
        (&[0.125, 0.25][..], &[0, 0][..], Some(0))
    );
}

#[test]
fn products_sums_and_pools() {
    let mut b = Builder::new();
    b.u8("a", 0.5, 0);
    b.u8("b", 2.0, 1);
    b.u8("y", 0.5, 4);
    let operands = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"];
    let a = Tensor::new([1, 2], &[2u8, 4]).unwrap();
    let c = Tensor::new([2, 1], &[2u8, 3]).unwrap();
    b.add("QLinearMatMul", "", &operands, "y", vec![]);
    // Real a is 1, 2; real b is 2, 4: the product is 10.
    assert_eq!(b.evaluate(&[("a", &a), ("b", &c)], "y").expect::<u8>().as_ref(), [24]);

    for (op, wanted) in [("QLinearAdd", [10u8, 16]), ("QLinearMul", [8, 20])] {
        b.nodes.clear();
        b.add(op, "com.microsoft", &operands, "y", vec![]);
        let c = Tensor::new([1, 2], &[2u8, 3]).unwrap();
        assert_eq!(b.evaluate(&[("a", &a), ("b", &c)], "y").expect::<u8>().as_ref(), wanted, "{op}");
    }

    b.nodes.clear();
    let operands = ["y_scale", "y_zero", "a", "a_scale", "a_zero", "b", "b_scale", "b_zero"];
    b.add("QLinearConcat", "com.microsoft", &operands, "y", vec![int("axis", 0)]);
    let c = Tensor::new([1, 2], &[2u8, 3]).unwrap();
    assert_eq!(b.evaluate(&[("a", &a), ("b", &c)], "y").expect::<u8>().as_ref(), [6, 8, 8, 12]);

    b.nodes.clear();
    let operands = ["a", "a_scale", "a_zero", "y_scale", "y_zero"];
    b.add("QLinearGlobalAveragePool", "com.microsoft", &operands, "y", vec![int("channels_last", 0)]);
    let a = Tensor::new([1, 1, 2], &[2u8, 4]).unwrap();
    assert_eq!(b.evaluate(&[("a", &a)], "y").expect::<u8>().as_ref(), [7]);
}

#[test]
fn a_gemm_may_give_real_numbers() {
    let mut b = Builder::new();
    b.u8("a", 0.5, 0);
    b.parameters("b", Tensor::vector(&[1f32, 2.0]), Tensor::vector(&[0i8, 0]));
    b.dynamic.push(("w".into(), Tensor::new([2, 2], &[1i8, 2, 3, 4]).unwrap()));
    b.dynamic.push(("c".into(), Tensor::vector(&[2i32, 1])));
    let inputs = ["a", "a_scale", "a_zero", "w", "b_scale", "b_zero", "c"];
    b.add("QGemm", "com.microsoft", &inputs, "y", vec![int("transB", 1), float("alpha", 2.0)]);
    let a = Tensor::new([1, 2], &[2u8, 4]).unwrap();
    // Real a is 1, 2; the rows of w are 1, 2 and 6, 8; bias is 2*2*0.5*1 and 1*2*0.5*2.
    let graph = b.import(true, &[("a", &a)], "y");
    assert_close("QGemm", &evaluate(&graph, &[a]).remove(0), &f32s(&[1, 2], &[12., 46.]));
}

#[test]
fn one_value_is_read_with_two_scales() {
    let mut b = Builder::new();
    b.u8("first", 1.0, 0);
    b.u8("second", 2.0, 0);
    b.u8("y", 1.0, 0);
    let x = Tensor::new([1, 1, 1], &[7u8]).unwrap();
    let operands =
        ["x", "first_scale", "first_zero", "x", "second_scale", "second_zero", "y_scale", "y_zero"];
    b.add("QLinearAdd", "com.microsoft", &operands, "y", vec![]);
    assert_eq!(b.evaluate(&[("x", &x)], "y").expect::<u8>().as_ref(), [21]);
    // The result is typed; other operators see the plain integers.
    b.add("Add", "", &["y", "x"], "z", vec![]);
    assert_eq!(b.evaluate(&[("x", &x)], "z").expect::<u8>().as_ref(), [28]);
}

#[test]
fn moving_elements_keeps_their_meaning() {
    let mut b = Builder::new();
    b.u8("x", 0.1, 3);
    let x = f32s(&[1, 2, 1, 2], &[0.0, 0.5, 1.0, 1.5]);
    b.add("QuantizeLinear", "", &["x", "x_scale", "x_zero"], "q", vec![]);
    let unary = ["q", "x_scale", "x_zero", "x_scale", "x_zero"];
    b.add("QLinearLeakyRelu", "com.microsoft", &unary, "r", vec![]);
    b.add("MaxPool", "", &["r"], "m", vec![ints("kernel_shape", &[1, 2])]);
    b.add("Flatten", "", &["m"], "f", vec![]);
    b.add("DequantizeLinear", "", &["f", "x_scale", "x_zero"], "y", vec![]);
    let graph = b.import(true, &[("x", &x)], "y");
    let ops: Vec<&str> = graph.nodes().map(|(_, n)| n.op.name()).collect();
    assert!(!ops.contains(&"QuantizeLinear") && !ops.contains(&"DequantizeLinear"), "{ops:?}");
    assert_close("moved", &evaluate(&graph, std::slice::from_ref(&x)).remove(0), &f32s(&[1, 2], &[0.5, 1.5]));
    let integers = evaluate(&b.import(true, &[("x", &x)], "f"), &[x]).remove(0);
    assert_eq!(integers.expect::<u8>().as_ref(), [8, 18]);
}
