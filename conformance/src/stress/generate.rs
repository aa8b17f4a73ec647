//! Small valid graphs from seeds.
//!
//! A graph grows node by node. A node is an operator's own case with some inputs replaced by values that are there, or
//! a few nodes as exporters write them (an activation, a normalization, quantization and back). What an operator refuses
//! on these very values is left out again, so every graph is valid, and every number is known while it grows.
//!
//! Numbers begin as multiples of a quarter. Where only sums and products were taken, they are exact in any order, and the
//! value is marked so; operators with steps (rounding, comparing, sorting, quantizing) are only put behind exact values, since
//! behind others a last bit may decide.

use armet_graph::ops::window::AutoPad;
use armet_graph::ops::{
    BatchNormalization, Binary, BinaryKind, Concat, Conv, DequantizeLinear, LayerNormalization, MatMul, Pad,
    PadMode, QuantizeLinear, Reduce, ReduceKind, Reshape, Softmax, Transpose, Unary, UnaryKind,
};
use armet_graph::{Case, Context, Graph, Numbers, Op, OpKind, TensorType, Value, ValueId, ValueType};
use armet_tensor::{ElementType, Tensor};

mod transformers;

use super::exact::{MOST_ELEMENTS, has_steps, is_exact, is_tame, keeps_exact};

/// A graph, and inputs for it.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The graph; some dimensions of inputs may be names.
    pub graph: Graph,
    /// Values for its inputs, in order.
    pub inputs: Vec<Value>,
}

struct Known {
    id: ValueId,
    value: Value,
    exact: bool,
}

struct Builder {
    graph: Graph,
    random: Numbers,
    known: Vec<Known>,
    inputs: Vec<Value>,
    nodes: usize,
}

/// The graph of a seed.
pub fn generate(seed: u64) -> Sample {
    let mut builder = Builder {
        graph: Graph::new(format!("seed {seed}")),
        random: Numbers::new(seed),
        known: Vec::new(),
        inputs: Vec::new(),
        nodes: 0,
    };
    let shapes: [&[usize]; 8] =
        [&[1, 4, 6, 5], &[2, 8, 5, 7], &[1, 16, 4, 4], &[2, 3, 8], &[4, 6], &[1, 5, 8], &[3, 4], &[7]];
    for _ in 0..builder.random.int(1, 2) {
        let shape = shapes[builder.random.int(0, 7) as usize];
        let value = builder.quarters(shape);
        builder.add_input(value);
    }
    let wanted = builder.random.int(2, 14) as usize;
    for _ in 0..wanted * 12 {
        if builder.nodes >= wanted {
            break;
        }
        match builder.random.int(0, 9) {
            0..=3 => builder.idiom(),
            _ => builder.case(),
        };
    }
    builder.finish()
}

impl Builder {
    fn quarters(&mut self, shape: &[usize]) -> Value {
        let count: usize = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| self.random.int(-8, 8) as f32 / 4.0).collect();
        Tensor::new(shape, &values).expect("the count is the product of the shape").into()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.int(0, of.len() as i64 - 1) as usize]
    }

    fn add_input(&mut self, value: Value) -> usize {
        let ty = value.value_type().unwrap_or_else(|| TensorType::unranked(ElementType::F32).into());
        let id = self.graph.add_input(format!("input{}", self.inputs.len()), ty);
        self.inputs.push(value.clone());
        let exact = is_exact(&value);
        self.known.push(Known { id, value, exact });
        self.known.len() - 1
    }

    fn add_constant(&mut self, tensor: Tensor) -> usize {
        let id = self.graph.add_constant(format!("constant{}", self.graph.values().len()), tensor.clone());
        let value = Value::from(tensor);
        let exact = is_exact(&value);
        self.known.push(Known { id, value, exact });
        self.known.len() - 1
    }

    /// Adds a node where its operator takes these values; gives its results.
    fn node(&mut self, op: impl Into<Op>, inputs: &[Option<usize>], outputs: usize) -> Option<Vec<usize>> {
        let op = op.into();
        let all_exact = inputs.iter().flatten().all(|&i| self.known[i].exact);
        if !all_exact && has_steps(&op) {
            return None;
        }
        self.sure_node(op, inputs, outputs)
    }

    /// As [`Builder::node`], for uses that are known to be smooth.
    fn sure_node(&mut self, op: Op, inputs: &[Option<usize>], outputs: usize) -> Option<Vec<usize>> {
        let values: Vec<Option<&Value>> = inputs.iter().map(|i| i.map(|i| &self.known[i].value)).collect();
        let all_exact = inputs.iter().flatten().all(|&i| self.known[i].exact);
        let context = Context { outputs, seed: 0 };
        let results = op.operator().evaluate(&values, &context).ok()?;
        if results.len() < outputs || !results.iter().all(is_tame) {
            return None;
        }
        let ids: Vec<ValueId> = results
            .iter()
            .enumerate()
            .map(|(at, _)| {
                let ty: ValueType = TensorType::unranked(ElementType::F32).into();
                self.graph.add_value(format!("value{}_{at}", self.nodes), ty)
            })
            .collect();
        let given = inputs.iter().map(|i| i.map(|i| self.known[i].id));
        let exact = all_exact && keeps_exact(&op);
        self.graph.add_node(format!("node{}", self.nodes), op, given, ids.iter().map(|&id| Some(id)));
        self.nodes += 1;
        let first = self.known.len();
        for (id, value) in ids.into_iter().zip(results) {
            let exact = exact && is_exact(&value);
            self.known.push(Known { id, value, exact });
        }
        Some((first..self.known.len()).collect())
    }

    fn one(&mut self, op: impl Into<Op>, inputs: &[usize]) -> Option<usize> {
        let inputs: Vec<Option<usize>> = inputs.iter().map(|&i| Some(i)).collect();
        self.node(op, &inputs, 1)?.first().copied()
    }

    /// A float value of some rank; later ones are likelier.
    fn float(&mut self, rank: Option<usize>) -> Option<usize> {
        let fits: Vec<usize> = (0..self.known.len())
            .filter(|&i| {
                let tensor = self.known[i].value.tensor();
                tensor.is_some_and(|t| {
                    t.element() == ElementType::F32
                        && !t.is_empty()
                        && rank.is_none_or(|rank| t.shape().len() == rank)
                })
            })
            .collect();
        let from = if self.random.int(0, 2) == 0 { 0 } else { fits.len().saturating_sub(3) };
        let choice = fits.get(from..)?;
        (!choice.is_empty()).then(|| self.pick(choice))
    }

    fn shape(&self, at: usize) -> Vec<usize> {
        self.known[at].value.tensor().map(|t| t.shape().to_vec()).unwrap_or_default()
    }

    fn weights(&mut self, shape: &[usize]) -> usize {
        let value = self.quarters(shape);
        let tensor = value.tensor().cloned().expect("quarters make a tensor");
        self.add_constant(tensor)
    }

    fn number(&mut self, value: f32) -> usize {
        self.add_constant(Tensor::scalar(value))
    }

    /// An operator's case, some of its inputs replaced by what is there.
    fn case(&mut self) -> Option<()> {
        let kind = self.pick(OpKind::ALL);
        if matches!(kind, OpKind::Random | OpKind::ConvertLayout | OpKind::Requantize) {
            return None;
        }
        let cases = kind.cases();
        let at = self.random.int(0, cases.len() as i64 - 1) as usize;
        let Case { op, inputs, outputs, constants, .. } = cases.into_iter().nth(at)?;
        let mut given = Vec::with_capacity(inputs.len());
        for (index, input) in inputs.into_iter().enumerate() {
            let Some(tensor) = input else {
                given.push(None);
                continue;
            };
            let alike: Vec<usize> = (0..self.known.len())
                .filter(|&i| {
                    let known = self.known[i].value.tensor();
                    known.is_some_and(|t| {
                        t.element() == tensor.element() && t.shape().len() == tensor.shape().len()
                    })
                })
                .collect();
            let often = if index == 0 { 9 } else { 3 };
            let constant = constants.contains(&index);
            let at = if !alike.is_empty() && !constant && self.random.int(0, 9) < often {
                self.pick(&alike)
            } else if tensor.shape().checked_len().is_none_or(|count| count > MOST_ELEMENTS) {
                return None;
            } else if constant || index > 0 {
                self.add_constant(tensor)
            } else {
                self.add_input(tensor.into())
            };
            given.push(Some(at));
        }
        self.node(op, &given, outputs).map(|_| ())
    }

    /// A few nodes as exporters write them.
    fn idiom(&mut self) -> Option<()> {
        let unary = |kind| Unary { kind };
        let binary = |kind| Binary { kind };
        match self.random.int(0, 17) {
            0..=2 => {
                let x = self.float(Some(4))?;
                let channels = self.shape(x)[1];
                let (out, kernel) = (self.pick(&[1, 3, 8, 16]), self.pick(&[1, 1, 3]));
                let depthwise = self.random.int(0, 2) == 0;
                let group = if depthwise { channels } else { 1 };
                let out = if depthwise { channels } else { out };
                let w = self.weights(&[out, channels / group, kernel, kernel]);
                let bias = if self.random.int(0, 1) == 0 { Some(self.weights(&[out])) } else { None };
                let stride = self.pick(&[1, 1, 2]);
                let conv = Conv {
                    strides: vec![stride; 2],
                    dilations: vec![1; 2],
                    pads: vec![kernel / 2; 4],
                    auto_pad: AutoPad::NotSet,
                    group,
                    activation: None,
                };
                let y = *self.node(conv, &[Some(x), Some(w), bias], 1)?.first()?;
                match self.random.int(0, 3) {
                    0 => self.normalized(y)?,
                    1 => self.activated(y)?,
                    2 => {
                        let same: Vec<usize> = (0..y).filter(|&i| self.is_like(i, y)).collect();
                        if same.is_empty() {
                            y
                        } else {
                            let other = self.pick(&same);
                            let sum = self.one(binary(BinaryKind::Add), &[y, other])?;
                            self.activated(sum)?
                        }
                    }
                    _ => y,
                };
            }
            3 => {
                let x = self.float(None)?;
                self.activated(x)?;
            }
            4 => {
                let x = self.float(None)?;
                let shape = self.shape(x);
                let k = *shape.last()?;
                let n = self.pick(&[1, 5, 8]);
                let w = self.weights(&[k, n]);
                let plain = MatMul { transpose_a: false, transpose_b: false, alpha: 1.0, activation: None };
                let y = self.one(plain, &[x, w])?;
                let bias = if self.random.int(0, 2) == 0 {
                    let bias = self.quarters(&[n]);
                    self.add_input(bias)
                } else {
                    self.weights(&[n])
                };
                self.one(binary(BinaryKind::Add), &[bias, y])?;
            }
            5 => {
                let x = self.float(None)?;
                let rank = self.shape(x).len();
                let mut perm: Vec<usize> = (0..rank).collect();
                for i in (1..rank).rev() {
                    perm.swap(i, self.random.int(0, i as i64) as usize);
                }
                let mut back = vec![0; rank];
                perm.iter().enumerate().for_each(|(to, &from)| back[from] = to);
                let turned = self.one(Transpose { perm }, &[x])?;
                let done = self.activated(turned)?;
                self.one(Transpose { perm: back }, &[done])?;
            }
            6 => {
                let x = self.float(None)?;
                let shape = self.shape(x);
                let flat = self.add_constant(Tensor::vector(&[-1i64]));
                let y = self.one(Reshape { allow_zero: false }, &[x, flat])?;
                let shape: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
                let shape = self.add_constant(Tensor::vector(&shape));
                self.one(Reshape { allow_zero: false }, &[y, shape])?;
            }
            7 => {
                // Quantized and back, in powers of two, so that ties fall the same way everywhere.
                let x = self.float(None)?;
                let scale = self.number(0.25);
                let zero = self.add_constant(Tensor::scalar(3i8));
                let quantize =
                    QuantizeLinear { axis: 1, block_size: 0, element: None, saturate: true, precision: None };
                let q = self.one(quantize, &[x, scale, zero])?;
                let dequantize = DequantizeLinear { axis: 1, block_size: 0 };
                self.one(dequantize, &[q, scale, zero])?;
            }
            8 => {
                let x = self.float(None)?;
                let last = *self.shape(x).last()?;
                let (scale, bias) = (self.weights(&[last]), self.weights(&[last]));
                if self.random.int(0, 1) == 0 {
                    let norm = LayerNormalization { axis: -1, epsilon: 1e-2, root_mean_square: false };
                    self.one(norm, &[x, scale, bias])?;
                } else {
                    let axes = self.add_constant(Tensor::vector(&[-1i64]));
                    let mean =
                        Reduce { kind: ReduceKind::Mean, keep_dims: true, noop_with_empty_axes: false };
                    let center = self.one(mean.clone(), &[x, axes])?;
                    let moved = self.one(binary(BinaryKind::Sub), &[x, center])?;
                    let two = self.number(2.0);
                    let square = self.one(binary(BinaryKind::Pow), &[moved, two])?;
                    let variance = self.one(mean, &[square, axes])?;
                    let epsilon = self.number(1e-2);
                    let sum = self.one(binary(BinaryKind::Add), &[variance, epsilon])?;
                    let root = *self.sure_node(unary(UnaryKind::Sqrt).into(), &[Some(sum)], 1)?.first()?;
                    let unit = self.one(binary(BinaryKind::Div), &[moved, root])?;
                    let scaled = self.one(binary(BinaryKind::Mul), &[unit, scale])?;
                    self.one(binary(BinaryKind::Add), &[scaled, bias])?;
                }
            }
            9 => {
                let x = self.float(None)?;
                let rank = self.shape(x).len() as i64;
                if rank == 0 {
                    return None;
                }
                let axis = self.random.int(0, rank - 1);
                let other = self.float(Some(rank as usize))?;
                self.one(Concat { axis }, &[x, other, x])?;
            }
            10 => {
                let x = self.float(None)?;
                let y = self.float(None)?;
                let kind = self.pick(&[BinaryKind::Add, BinaryKind::Sub, BinaryKind::Mul, BinaryKind::Max]);
                self.one(binary(kind), &[x, y])?;
            }
            11 => {
                let x = self.float(Some(4))?;
                let ends = [0, 0, 1, 2, 0, 0, 0, 1];
                let pads = self.add_constant(Tensor::vector(&ends));
                let padded = self.one(Pad { mode: PadMode::Constant }, &[x, pads])?;
                let channels = self.shape(x)[1];
                let w = self.weights(&[3, channels, 3, 3]);
                let conv = Conv {
                    strides: vec![1; 2],
                    dilations: vec![1; 2],
                    pads: vec![0; 4],
                    auto_pad: AutoPad::NotSet,
                    group: 1,
                    activation: None,
                };
                self.one(conv, &[padded, w])?;
            }
            12 => {
                // What heads of attention are made of.
                let x = self.float(None)?;
                let rank = self.shape(x).len();
                let mut perm: Vec<usize> = (0..rank).collect();
                perm.swap(rank.checked_sub(2)?, rank - 1);
                let keys = self.one(Transpose { perm }, &[x])?;
                let plain = MatMul { transpose_a: false, transpose_b: false, alpha: 1.0, activation: None };
                let scores = self.one(plain.clone(), &[x, keys])?;
                let root = self.number(4.0);
                let scaled = self.one(binary(BinaryKind::Div), &[scores, root])?;
                let shares = self.one(Softmax { axis: -1, log: false, flatten: false }, &[scaled])?;
                self.one(plain, &[shares, x])?;
            }
            13 => self.attention()?,
            14 => {
                let x = self.float(Some(4))?;
                self.turned(x)?;
            }
            15 => {
                let x = self.float(None)?;
                self.root_mean_square(x)?;
            }
            16 => {
                let x = self.float(Some(4))?;
                let y = self.shuffled(x)?;
                self.activated(y)?;
            }
            _ => {
                let x = self.float(Some(4))?;
                self.normalized(x)?;
            }
        }
        Some(())
    }

    fn is_like(&self, i: usize, other: usize) -> bool {
        let ty = |i: usize| self.known[i].value.tensor().map(|t| (t.element(), t.shape().clone()));
        ty(i) == ty(other)
    }

    fn normalized(&mut self, x: usize) -> Option<usize> {
        let channels = *self.shape(x).get(1)?;
        let (scale, bias, mean) =
            (self.weights(&[channels]), self.weights(&[channels]), self.weights(&[channels]));
        let variance = Tensor::vector(&(0..channels).map(|i| 0.5 + i as f32 / 4.0).collect::<Vec<_>>());
        let variance = self.add_constant(variance);
        self.one(BatchNormalization { epsilon: 1e-3 }, &[x, scale, bias, mean, variance])
    }

    /// An activation, as one node or spelled out.
    fn activated(&mut self, x: usize) -> Option<usize> {
        let (unary, binary) = (|kind| Unary { kind }, |kind| Binary { kind });
        match self.random.int(0, 6) {
            0 => self.one(unary(UnaryKind::Relu), &[x]),
            1 => {
                let gate = self.one(unary(UnaryKind::Sigmoid), &[x])?;
                self.one(binary(BinaryKind::Mul), &[x, gate])
            }
            2 => {
                let gate = self.one(unary(UnaryKind::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 }), &[x])?;
                self.one(binary(BinaryKind::Mul), &[gate, x])
            }
            3 => {
                let root = self.number(std::f32::consts::SQRT_2);
                let (one, half) = (self.number(1.0), self.number(0.5));
                let scaled = self.one(binary(BinaryKind::Div), &[x, root])?;
                let erf = self.one(unary(UnaryKind::Erf), &[scaled])?;
                let sum = self.one(binary(BinaryKind::Add), &[erf, one])?;
                let product = self.one(binary(BinaryKind::Mul), &[x, sum])?;
                self.one(binary(BinaryKind::Mul), &[product, half])
            }
            4 => {
                let (three, six) = (self.number(3.0), self.number(6.0));
                let moved = self.one(binary(BinaryKind::Add), &[x, three])?;
                let limited = self.one(unary(UnaryKind::Clip { min: 0.0, max: 6.0 }), &[moved])?;
                let product = self.one(binary(BinaryKind::Mul), &[x, limited])?;
                self.one(binary(BinaryKind::Div), &[product, six])
            }
            5 => self.one(unary(UnaryKind::Tanh), &[x]),
            _ => self.one(unary(UnaryKind::LeakyRelu { alpha: 0.25 }), &[x]),
        }
    }

    /// Results are what nothing reads, and now and then something that is read as well.
    fn finish(mut self) -> Sample {
        let mut results: Vec<ValueId> = Vec::new();
        for at in 0..self.known.len() {
            let id = self.known[at].id;
            let made = self.graph.producer(id).is_some();
            if made && (self.graph.consumers(id).is_empty() || self.random.int(0, 9) == 0) {
                results.push(id);
            }
        }
        if results.is_empty() {
            results.extend(self.known.first().map(|known| known.id));
        }
        for (index, id) in results.into_iter().enumerate() {
            self.graph.add_output(format!("output{index}"), id);
        }
        if self.random.int(0, 2) == 0 {
            self.name_dims();
        }
        Sample { graph: self.graph, inputs: self.inputs }
    }

    /// Gives leading dimensions of inputs names, equal ones for equal lengths.
    fn name_dims(&mut self) {
        for &id in &self.graph.inputs().to_vec() {
            if let ValueType::Tensor(ty) = &mut self.graph.value_mut(id).ty
                && let Some(dim) = ty.dims.as_mut().and_then(|dims| dims.first_mut())
                && let Some(length) = dim.fixed()
            {
                *dim = armet_graph::Dim::symbol(&format!("n{length}"));
            }
        }
    }
}
