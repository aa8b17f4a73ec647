//! How passes are tested: a small graph before and behind one pass, as text; the same results for seeded inputs; types
//! that inference agrees with.

use armet_tensor::{ElementType, Tensor};

use super::{ALL, PassContext};
use crate::{Graph, Numbers, Op, TensorType, Value, ValueId, evaluate_graph, infer, text};

/// Builds small graphs.
pub(super) struct Build {
    pub(super) graph: Graph,
    numbers: Numbers,
    constants: usize,
}

impl Build {
    pub(super) fn new() -> Self {
        Self { graph: Graph::new("test"), numbers: Numbers::new(1), constants: 0 }
    }

    pub(super) fn input(&mut self, name: &str, shape: &[usize]) -> ValueId {
        self.graph.add_input(name, TensorType::fixed(ElementType::F32, shape))
    }

    /// A constant of seeded numbers between 0.25 and 1.25.
    pub(super) fn weights(&mut self, shape: &[usize]) -> ValueId {
        let tensor = self.numbers.floats(shape, 0.25, 1.25);
        self.constant(tensor)
    }

    pub(super) fn constant(&mut self, tensor: Tensor) -> ValueId {
        self.constants += 1;
        self.graph.add_constant(format!("c{}", self.constants), tensor)
    }

    pub(super) fn number(&mut self, value: f32) -> ValueId {
        self.constant(Tensor::scalar(value))
    }

    pub(super) fn floats(&mut self, values: &[f32]) -> ValueId {
        self.constant(Tensor::vector(values))
    }

    pub(super) fn ints(&mut self, values: &[i64]) -> ValueId {
        self.constant(Tensor::vector(values))
    }

    pub(super) fn node(&mut self, name: &str, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.graph.add(name, op, inputs.iter().map(|v| Some(*v)))
    }

    pub(super) fn finish(mut self, outputs: &[ValueId]) -> Graph {
        for &value in outputs {
            let name = self.graph.value(value).name.clone();
            self.graph.add_output(name, value);
        }
        infer::infer(&mut self.graph).expect("the test's graph is well typed");
        self.graph
    }
}

/// Seeded inputs for a graph; symbolic dimensions become 2.
fn inputs_of(graph: &Graph) -> Vec<Value> {
    let mut numbers = Numbers::new(7);
    let inputs = graph.inputs().iter();
    inputs
        .map(|&input| {
            let ty = graph.value(input).ty.tensor().expect("inputs are tensors");
            let shape: Vec<usize> =
                ty.dims.as_ref().expect("ranked").iter().map(|d| d.fixed().unwrap_or(2)).collect();
            numbers.tensor(ty.element, shape).into()
        })
        .collect()
}

/// Largest difference of two results, as a share of the larger magnitude.
pub(super) fn difference(a: &Value, b: &Value) -> f64 {
    let (a, b) = (a.tensor().expect("a tensor"), b.tensor().expect("a tensor"));
    assert_eq!((a.element(), a.shape()), (b.element(), b.shape()));
    let numbers = |t: &Tensor| crate::ops::numbers::to_f64(t).expect("numbers");
    let (a, b) = (numbers(a), numbers(b));
    let scale = a.iter().fold(1e-30f64, |m, v| m.max(v.abs()));
    a.iter().zip(&b).fold(0.0, |m, (a, b)| m.max((a - b).abs() / scale))
}

/// Runs passes by name on a graph and checks that results and types stay right; gives rewrites and the text after.
pub(super) fn apply(graph: &Graph, names: &[&str]) -> (usize, String) {
    let mut after = graph.clone();
    let context = PassContext { layout: None };
    let mut rewrites = 0;
    for name in names {
        let pass = ALL.iter().find(|pass| pass.name == *name).expect("a pass of the list");
        rewrites += (pass.run)(&mut after, &context).expect("the pass runs");
    }
    check(graph, &after, 1e-5);
    (rewrites, text::to_text(&after))
}

/// Checks that a rewritten graph has right types and gives the same results.
pub(super) fn check(before: &Graph, after: &Graph, tolerance: f64) {
    let mut inferred = after.clone();
    infer::infer(&mut inferred).expect("the rewritten graph is well typed");
    for (_, node) in after.nodes() {
        for value in node.outputs.iter().flatten() {
            assert_eq!(after.value(*value).ty, inferred.value(*value).ty, "{}", after.value(*value).name);
        }
    }
    let inputs = inputs_of(before);
    let wanted = evaluate_graph(before, &inputs, 3).expect("the graph runs");
    let given = evaluate_graph(after, &inputs, 3).expect("the rewritten graph runs");
    for (index, (wanted, given)) in wanted.iter().zip(&given).enumerate() {
        let difference = difference(wanted, given);
        assert!(difference <= tolerance, "output {index} differs by {difference}\n{}", text::to_text(after));
    }
}

/// A pass turns a graph into this text.
macro_rules! becomes {
    ($graph:expr, $names:expr, @$expected:literal) => {
        let (rewrites, text) = $crate::passes::testing::apply(&$graph, $names);
        assert!(rewrites > 0, "nothing was rewritten:\n{text}");
        insta::assert_snapshot!(text, @$expected);
    };
}
pub(super) use becomes;

/// A pass leaves a graph as it is.
pub(super) fn stays(graph: &Graph, names: &[&str]) {
    let (rewrites, after) = apply(graph, names);
    assert_eq!((rewrites, after), (0, text::to_text(graph)));
}

/// A Conv with one group, no padding and strides of one.
pub(super) fn conv() -> crate::ops::Conv {
    crate::ops::Conv { group: 1, ..Default::default() }
}

pub(super) fn matmul() -> crate::ops::MatMul {
    crate::ops::MatMul { transpose_a: false, transpose_b: false, alpha: 1.0, activation: None }
}

pub(super) fn binary(kind: crate::ops::BinaryKind) -> crate::ops::Binary {
    crate::ops::Binary { kind }
}

pub(super) fn unary(kind: crate::ops::UnaryKind) -> crate::ops::Unary {
    crate::ops::Unary { kind }
}
