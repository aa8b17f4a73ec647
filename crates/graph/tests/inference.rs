//! Shape arithmetic as exporters write it, followed by inference: with names for dimensions, and with numbers.

use armet_graph::infer::{Inference, infer};
use armet_graph::ops::{
    Binary, BinaryKind, Cast, Concat, ConstantOfShape, Expand, Gather, If, NonZero, Pad, PadMode, Range,
    Reduce, ReduceKind, Reshape, ShapeOf, Slice, Split, Squeeze, Transpose, Unary, UnaryKind, Unsqueeze,
    Where,
};
use armet_graph::{Dim, Graph, InferError, Op, TensorType, ValueId};
use armet_tensor::{Bool, ElementType, Tensor};

/// A graph that grows by one node at a time.
struct Builder {
    graph: Graph,
    count: usize,
}

impl Builder {
    fn new() -> Self {
        Self { graph: Graph::new("test"), count: 0 }
    }

    fn input(&mut self, element: ElementType, dims: &[&str]) -> ValueId {
        let dims = dims.iter().map(|dim| dim.parse().map_or_else(|_| Dim::symbol(dim), Dim::Fixed));
        self.graph.add_input("input", TensorType::new(element, dims))
    }

    fn constant(&mut self, tensor: Tensor) -> ValueId {
        self.graph.add_constant("constant", tensor)
    }

    fn ints(&mut self, values: &[i64]) -> ValueId {
        self.constant(Tensor::vector(values))
    }

    fn node(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.count += 1;
        self.graph.add(format!("node {}", self.count), op, inputs.iter().map(|v| Some(*v)))
    }

    fn shape(&mut self, of: ValueId) -> ValueId {
        self.node(ShapeOf { start: 0, end: None }, &[of])
    }

    /// One dimension of a value, as a vector of one entry: Shape, Gather, Unsqueeze.
    fn dim(&mut self, of: ValueId, axis: i64) -> ValueId {
        let (shape, index) = (self.shape(of), self.constant(Tensor::scalar(axis)));
        let dim = self.node(Gather { axis: 0 }, &[shape, index]);
        let axes = self.ints(&[0]);
        self.node(Unsqueeze, &[dim, axes])
    }

    fn join(&mut self, parts: &[ValueId]) -> ValueId {
        self.node(Concat { axis: 0 }, parts)
    }

    fn reshape(&mut self, data: ValueId, shape: ValueId) -> ValueId {
        self.node(Reshape { allow_zero: false }, &[data, shape])
    }

    fn binary(&mut self, kind: BinaryKind, a: ValueId, b: ValueId) -> ValueId {
        self.node(Binary { kind }, &[a, b])
    }

    fn infer(&mut self) -> Inference {
        infer(&mut self.graph).expect("the graph of a test is well formed")
    }

    fn show(&self, value: ValueId) -> String {
        self.graph.value(value).ty.to_string()
    }
}

fn known(inference: &Inference, value: ValueId) -> Option<Vec<i64>> {
    inference.known.iter().find(|(id, _)| *id == value).and_then(|(_, tensor)| tensor.to_i64())
}

#[test]
fn a_flattening_view_keeps_the_batch_by_name() {
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["batch", "64", "7", "7"]);
    let (batch, rest) = (b.dim(x, 0), b.ints(&[-1]));
    let shape = b.join(&[batch, rest]);
    let y = b.reshape(x, shape);
    assert!(b.infer().cuts.is_empty());
    assert_eq!(b.show(y), "float32[batch,3136]");
}

#[test]
fn attention_heads_are_split_and_joined_by_name() {
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["batch", "sequence", "768"]);
    let (batch, sequence) = (b.dim(x, 0), b.dim(x, 1));
    let heads = b.ints(&[12, 64]);
    let shape = b.join(&[batch, sequence, heads]);
    let split = b.reshape(x, shape);
    let moved = b.node(Transpose { perm: vec![0, 2, 1, 3] }, &[split]);
    let back = b.node(Transpose { perm: vec![0, 2, 1, 3] }, &[moved]);
    let (batch, sequence) = (b.dim(back, 0), b.dim(back, 1));
    let open = b.ints(&[-1]);
    let shape = b.join(&[batch, sequence, open]);
    let joined = b.reshape(back, shape);
    assert!(b.infer().cuts.is_empty());
    assert_eq!(b.show(moved), "float32[batch,12,sequence,64]");
    assert_eq!(b.show(joined), "float32[batch,sequence,768]");
}

#[test]
fn arithmetic_on_dimensions_follows_names_and_numbers_alike() {
    let build = |height: &str| {
        let mut b = Builder::new();
        let x = b.input(ElementType::F32, &["1", "8", height, "6"]);
        let (height, two) = (b.dim(x, 2), b.ints(&[2]));
        let half = b.binary(BinaryKind::Div, height, two);
        let three = b.ints(&[3]);
        let more = b.binary(BinaryKind::Add, half, three);
        let minus = b.ints(&[-1]);
        let less = b.binary(BinaryKind::Add, more, minus);
        let y = b.node(ConstantOfShape { value: Tensor::vector(&[0.0f32]) }, &[less]);
        b.infer();
        b.graph.value(y).ty.tensor().unwrap().dims.clone().unwrap()[0].clone()
    };
    let named = build("height");
    assert_eq!(named.to_string(), "(floor(height/2)+2)");
    for height in [0usize, 1, 5, 64] {
        assert_eq!(named.substitute(&|_| Some(height)), build(&height.to_string()));
    }
}

#[test]
fn expansion_to_a_shape_with_minus_one_replaced() {
    // torch.Tensor.expand: Where(shape == -1, 1, shape).
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["1", "4"]);
    let like = b.input(ElementType::F32, &["batch", "4"]);
    let (batch, rest) = (b.dim(like, 0), b.ints(&[-1]));
    let wanted = b.join(&[batch, rest]);
    let (ones, minus) = (b.ints(&[1, 1]), b.ints(&[-1, -1]));
    let open = b.binary(BinaryKind::Equal, wanted, minus);
    let shape = b.node(Where, &[open, ones, wanted]);
    let y = b.node(Expand, &[x, shape]);
    assert!(b.infer().cuts.is_empty());
    assert_eq!(b.show(y), "float32[batch,4]");
}

#[test]
fn shapes_are_split_sliced_and_multiplied() {
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["batch", "3", "height", "5"]);
    let shape = b.shape(x);
    let lengths = b.ints(&[1, 3]);
    let (batch, rest) = (
        b.graph.add_value("batch", TensorType::unranked(ElementType::I64)),
        b.graph.add_value("rest", TensorType::unranked(ElementType::I64)),
    );
    let split = Split { axis: 0, parts: 2 };
    b.graph.add_node("split", split, [Some(shape), Some(lengths)], [Some(batch), Some(rest)]);
    let reduce = Reduce { kind: ReduceKind::Prod, keep_dims: true, noop_with_empty_axes: false };
    let size = b.node(reduce, &[rest]);
    let flat = b.join(&[batch, size]);
    let y = b.reshape(x, flat);
    let (begin, end) = (b.ints(&[2]), b.ints(&[i64::MAX]));
    let picture = b.node(Slice, &[shape, begin, end]);
    let z = b.node(ConstantOfShape { value: Tensor::vector(&[1i64]) }, &[picture]);
    assert!(b.infer().cuts.is_empty());
    assert_eq!(b.show(y), "float32[batch,height*15]");
    assert_eq!(b.show(z), "int64[height,5]");
}

#[test]
fn positions_have_the_length_of_the_sequence() {
    let mut b = Builder::new();
    let x = b.input(ElementType::I64, &["batch", "sequence"]);
    let axes = b.ints(&[0]);
    let length = b.dim(x, 1);
    let limit = b.node(Squeeze, &[length, axes]);
    let (start, delta) = (b.constant(Tensor::scalar(0i64)), b.constant(Tensor::scalar(1i64)));
    let positions = b.node(Range, &[start, limit, delta]);
    let row = b.node(Unsqueeze, &[positions, axes]);
    let shape = b.shape(x);
    let y = b.node(Expand, &[row, shape]);
    assert!(b.infer().cuts.is_empty());
    assert_eq!(b.show(positions), "int64[sequence]");
    assert_eq!(b.show(y), "int64[batch,sequence]");
}

/// Nearest upscaling as exporters of opset 10 wrote it: the size of a picture through real numbers.
fn upscaled(height: &str) -> (Builder, ValueId, ValueId) {
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["1", "3", height, "6"]);
    let shape = b.shape(x);
    let (begin, end) = (b.ints(&[2]), b.ints(&[4]));
    let size = b.node(Slice, &[shape, begin, end]);
    let real = b.node(Cast { to: ElementType::F32, saturate: true }, &[size]);
    let factor = b.constant(Tensor::scalar(1.5f32));
    let scaled = b.binary(BinaryKind::Mul, real, factor);
    let floor = b.node(Unary { kind: UnaryKind::Floor }, &[scaled]);
    let size = b.node(Cast { to: ElementType::I64, saturate: true }, &[floor]);
    let y = b.node(ConstantOfShape { value: Tensor::vector(&[0.0f32]) }, &[size]);
    (b, size, y)
}

#[test]
fn numbers_are_followed_through_real_arithmetic() {
    let (mut b, size, y) = upscaled("5");
    let inference = b.infer();
    assert!(inference.cuts.is_empty());
    assert_eq!(known(&inference, size), Some(vec![7, 9]));
    assert_eq!(b.show(y), "float32[7,9]");
}

#[test]
fn names_are_not_followed_through_real_arithmetic() {
    let (mut b, _, y) = upscaled("height");
    let inference = b.infer();
    assert_eq!(inference.cuts.len(), 1);
    assert_eq!(inference.cuts[0].1, InferError::NeedsValue(0));
    assert_eq!(b.show(y), "float32[..]");
}

#[test]
fn pads_rearranged_as_a_table_are_followed() {
    // torch.nn.functional.pad: pads of the last axis first, made into begins and ends.
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["1", "2", "5", "6"]);
    let (given, four) = (b.ints(&[1, 2, 3, 4]), b.ints(&[4]));
    let none = b.node(ConstantOfShape { value: Tensor::vector(&[0i64]) }, &[four]);
    let all = b.join(&[given, none]);
    let pairs = b.ints(&[-1, 2]);
    let table = b.reshape(all, pairs);
    let (begin, end, axes, steps) = (b.ints(&[-1]), b.ints(&[i64::MIN]), b.ints(&[0]), b.ints(&[-1]));
    let reversed = b.node(Slice, &[table, begin, end, axes, steps]);
    let turned = b.node(Transpose { perm: vec![1, 0] }, &[reversed]);
    let flat = b.ints(&[-1]);
    let pads = b.reshape(turned, flat);
    let y = b.node(Pad { mode: PadMode::Constant }, &[x, pads]);
    let inference = b.infer();
    assert_eq!(known(&inference, pads), Some(vec![0, 0, 3, 1, 0, 0, 4, 2]));
    assert_eq!(b.show(y), "float32[1,2,12,9]");
}

#[test]
fn data_decides_where_it_must() {
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["4", "6"]);
    let shape = b.input(ElementType::I64, &["2"]);
    let found = b.node(NonZero, &[x]);
    let count = b.dim(found, 1);
    let listed = b.node(ConstantOfShape { value: Tensor::vector(&[0.0f32]) }, &[count]);
    let viewed = b.reshape(x, shape);
    let behind = b.node(Transpose { perm: vec![1, 0] }, &[viewed]);
    let inference = b.infer();
    assert_eq!(b.show(found), "int64[2,?]");
    assert_eq!(b.show(listed), "float32[?]");
    assert_eq!(b.show(viewed), "float32[..]");
    assert_eq!(b.show(behind), "float32[..]");
    let reasons: Vec<&InferError> = inference.cuts.iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons, [&InferError::NeedsValue(1)]);
}

#[test]
fn a_shape_partly_made_of_data_is_not_guessed() {
    let mut b = Builder::new();
    let x = b.input(ElementType::F32, &["4", "6"]);
    let given = b.input(ElementType::I64, &["1"]);
    let (first, open) = (b.dim(x, 0), b.ints(&[-1]));
    let shape = b.join(&[first, given, open]);
    let y = b.reshape(x, shape);
    assert_eq!(b.infer().cuts.len(), 1);
    assert_eq!(b.show(y), "float32[..]");
}

/// A branch that gives its input transposed or as it is.
fn branch(transposed: bool) -> Graph {
    let mut graph = Graph::new("branch");
    let x = graph.add_input("x", TensorType::unranked(ElementType::F32));
    let perm = if transposed { vec![1, 0] } else { vec![0, 1] };
    let y = graph.add("y", Transpose { perm }, [Some(x)]);
    graph.add_output("y", y);
    graph
}

#[test]
fn the_condition_decides_the_type_where_branches_differ() {
    let build = |dims: &[&str], condition: Option<bool>| {
        let mut b = Builder::new();
        let x = b.input(ElementType::F32, dims);
        let condition = match condition {
            Some(flag) => b.constant(Tensor::scalar(Bool::from(flag))),
            None => b.input(ElementType::Bool, &[]),
        };
        let y = b.node(
            If { then_branch: Box::new(branch(true)), else_branch: Box::new(branch(false)) },
            &[condition, x],
        );
        let cuts = b.infer().cuts;
        (b.show(y), cuts.into_iter().map(|(_, reason)| reason).collect::<Vec<_>>())
    };
    assert_eq!(build(&["n", "5"], Some(true)), ("float32[5,n]".to_owned(), vec![]));
    assert_eq!(build(&["n", "5"], Some(false)), ("float32[n,5]".to_owned(), vec![]));
    assert_eq!(build(&["n", "n"], None), ("float32[n,n]".to_owned(), vec![]));
    assert_eq!(build(&["n", "5"], None), ("float32[..]".to_owned(), vec![InferError::NeedsValue(0)]));
}

#[test]
fn a_branch_that_does_not_fit_waits_for_the_condition() {
    let rank_of_three = || {
        let mut graph = Graph::new("branch");
        let x = graph.add_input("x", TensorType::unranked(ElementType::F32));
        let y = graph.add("y", Transpose { perm: vec![2, 1, 0] }, [Some(x)]);
        graph.add_output("y", y);
        Box::new(graph)
    };
    let build = |condition: Option<bool>, else_branch: Box<Graph>| {
        let mut b = Builder::new();
        let x = b.input(ElementType::F32, &["4", "5"]);
        let condition = match condition {
            Some(flag) => b.constant(Tensor::scalar(Bool::from(flag))),
            None => b.input(ElementType::Bool, &[]),
        };
        b.node(If { then_branch: rank_of_three(), else_branch }, &[condition, x]);
        infer(&mut b.graph).map(|inference| inference.cuts.len())
    };
    assert_eq!(build(None, Box::new(branch(false))), Ok(1));
    assert_eq!(build(Some(false), Box::new(branch(false))), Ok(0));
    assert!(build(Some(true), Box::new(branch(false))).is_err());
}
