//! Fused operators that ONNX Runtime's optimizer writes into models.

use armet_graph::ValueId;
use armet_graph::ops::{
    Binary, BinaryKind, Cast, ConvTranspose, DynamicQuantizeLinear, GatherNd, Identity, Inverse,
    LayerNormalization, MatMul, MatMulInteger, Pad, PoolKind, Range, Reduce, ReduceKind, Split, Transpose,
    Trilu, Unary, UnaryKind, Unique, Unsqueeze,
};
use armet_tensor::ElementType;

use super::convolution::{conv, transposed_conv};
use super::elementwise::unary;
use super::movement::pad_mode;
use super::{Entry, microsoft, pooling, products};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    microsoft("FusedConv", |n| {
        let mut op = conv(n, 1)?;
        op.activation = activation(n)?;
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    microsoft("FusedGemm", |n| {
        let op = products::attributes(n)?;
        let kind = activation(n)?;
        let inputs = n.inputs(2)?;
        let Some(kind) = kind else { return n.emit(op, inputs) };
        let product = n.step("product", op, inputs);
        n.emit(Unary { kind }, vec![Some(product)])
    }),
    microsoft("FusedMatMul", fused_product),
    microsoft("TransposeMatMul", fused_product),
    microsoft("Gelu", |n| unary(n, UnaryKind::Gelu { tanh: false })),
    microsoft("BiasGelu", |n| biased(n, UnaryKind::Gelu { tanh: false })),
    microsoft("FastGelu", |n| biased(n, UnaryKind::Gelu { tanh: true })),
    microsoft("QuickGelu", |n| {
        let alpha = n.float_or("alpha", 1.702)?;
        unary(n, UnaryKind::Swish { alpha })
    }),
    microsoft("SkipLayerNormalization", |n| skip_layer(n, false)),
    microsoft("SkipSimplifiedLayerNormalization", |n| skip_layer(n, true)),
    microsoft("MatMulIntegerToFloat", |n| {
        let (a, b) = (n.input(0)?, n.input(1)?);
        let (a_scale, b_scale) = (n.input(2)?, n.input(3)?);
        let (a_zero, b_zero) = (n.optional(4)?, n.optional(5)?);
        let bias = n.optional(6)?;
        let (op, inputs) = integer_product(n, [a, b], [a_scale, b_scale], [a_zero, b_zero], bias);
        n.emit(op, inputs)
    }),
    microsoft("DynamicQuantizeMatMul", |n| {
        let (a, b, b_scale) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let (b_zero, bias) = (n.optional(3)?, n.optional(4)?);
        let [a, a_scale, a_zero] = n.steps(["quantized", "scale", "zero_point"], DynamicQuantizeLinear, a);
        let (op, inputs) = integer_product(n, [a, b], [a_scale, b_scale], [Some(a_zero), b_zero], bias);
        n.emit(op, inputs)
    }),
    microsoft("ExpandDims", |n| {
        let (x, axis) = (n.input(0)?, n.input(1)?);
        n.emit(Unsqueeze, vec![Some(x), Some(axis)])
    })
    .moves(1),
    microsoft("Range", |n| {
        let (start, limit) = (n.input(0)?, n.input(1)?);
        let delta = match n.optional(2)? {
            Some(delta) => delta,
            None => n.number_like("delta", start, 1.0),
        };
        n.emit(Range, vec![Some(start), Some(limit), Some(delta)])
    }),
    microsoft("Trilu", |n| {
        let op = Trilu { upper: n.flag("upper", true)? };
        let inputs = n.inputs(1)?;
        n.emit(op, inputs)
    }),
    microsoft("GatherND", |n| {
        let inputs = n.inputs(2)?;
        n.emit(GatherNd { batch_dims: 0 }, inputs)
    })
    .moves(1),
    microsoft("Pad", |n| {
        let op = Pad { mode: pad_mode(n)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    microsoft("CDist", distances),
    microsoft("Unique", |n| {
        let x = n.input(0)?;
        let (y, inverse, counts) = (n.output(0)?, n.output(1)?, n.output(2)?);
        n.emit_to(Unique { axis: None, sorted: false }, vec![Some(x)], &[y, None, inverse, counts]);
        Ok(())
    }),
    microsoft("Inverse", |n| {
        let x = n.input(0)?;
        n.emit(Inverse, vec![Some(x)])
    }),
    microsoft("BiasAdd", |n| {
        let (x, bias, skip) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let add = Binary { kind: BinaryKind::Add };
        let sum = n.step("biased", add.clone(), vec![Some(x), Some(bias)]);
        n.emit(add, vec![Some(sum), Some(skip)])
    }),
    microsoft("BiasSplitGelu", |n| {
        let (x, bias) = (n.input(0)?, n.input(1)?);
        let sum = n.step("biased", Binary { kind: BinaryKind::Add }, vec![Some(x), Some(bias)]);
        let [left, right] = n.steps(["left", "right"], Split { axis: -1, parts: 2 }, sum);
        let right = n.step("gelu", Unary { kind: UnaryKind::Gelu { tanh: false } }, vec![Some(right)]);
        n.emit(Binary { kind: BinaryKind::Mul }, vec![Some(left), Some(right)])
    }),
    microsoft("BiasDropout", |n| dropout(n, true)),
    microsoft("BitmaskBiasDropout", |n| dropout(n, true)),
    microsoft("BitmaskDropout", |n| dropout(n, false)),
    microsoft("NhwcMaxPool", |n| {
        let op = pooling::attributes(n, PoolKind::Max)?;
        let x = n.input(0)?;
        let first = channels_first(n, x)?;
        let x = n.step("planes", first, vec![Some(x)]);
        let y = n.step("pooled", op, vec![Some(x)]);
        let back = channels_last(n, x)?;
        n.emit(back, vec![Some(y)])
    })
    .moves(1),
    microsoft("NhwcConv", |n| {
        n.ignore(&["kernel_shape"]);
        let op = conv(n, usize::MAX)?;
        let (x, w) = (n.input(0)?, n.input(1)?);
        let bias = n.optional(2)?;
        let first = channels_first(n, x)?;
        let x = n.step("planes", first.clone(), vec![Some(x)]);
        let w = n.step("weights", first, vec![Some(w)]);
        let y = n.step("folded", op, vec![Some(x), Some(w), bias]);
        let back = channels_last(n, x)?;
        n.emit(back, vec![Some(y)])
    }),
    microsoft("ConvTransposeWithDynamicPads", |n| {
        let pads = match (n.has_input(2), n.constant(2)?.and_then(|pads| pads.to_i64())) {
            (false, _) => Vec::new(),
            (true, Some(pads)) => pads,
            (true, None) => return Err(Reason::Input { index: 2, what: "must be a constant" }.into()),
        };
        let pads = pads.into_iter().map(usize::try_from).collect::<Result<Vec<usize>, _>>();
        let pads = pads.map_err(|_| Invalid::Other("the pads are negative".into()))?;
        let op = ConvTranspose { pads, ..transposed_conv(n)? };
        let (x, w, bias) = (n.input(0)?, n.input(1)?, n.optional(3)?);
        n.emit(op, vec![Some(x), Some(w), bias])
    }),
];

/// The product of matrices of which either may be transposed before.
fn fused_product(n: &mut NodeReader<'_, '_>) -> Read {
    let op = MatMul {
        transpose_a: n.flag("transA", false)?,
        transpose_b: n.flag("transB", false)?,
        alpha: n.float_or("alpha", 1.0)?,
        activation: None,
    };
    let mut inputs = n.inputs(2)?;
    for (index, attribute) in [(0, "transBatchA"), (1, "transBatchB")] {
        if n.flag(attribute, false)? {
            // The first axis stands before the last one, whichever of the two that is a product's row.
            let x = n.input(index)?;
            let rank = n.rank(x).filter(|&rank| rank > 1);
            let rank = rank.ok_or(Reason::Input { index, what: "must have a known rank" })?;
            let perm = (1..rank - 1).chain([0, rank - 1]).collect();
            inputs[index] = Some(n.step(&format!("batches_{index}"), Transpose { perm }, vec![Some(x)]));
        }
    }
    n.emit(op, inputs)
}

/// The order of axes that puts the last one behind the first.
pub(super) fn channels_first(n: &mut NodeReader<'_, '_>, x: ValueId) -> Read<Transpose> {
    let rank = n.rank(x).filter(|&rank| rank > 1);
    let rank = rank.ok_or(Reason::Input { index: 0, what: "must have a known rank" })?;
    Ok(Transpose { perm: [0, rank - 1].into_iter().chain(1..rank - 1).collect() })
}

/// The order of axes that puts the second one last.
pub(super) fn channels_last(n: &mut NodeReader<'_, '_>, x: ValueId) -> Read<Transpose> {
    let rank = n.rank(x).filter(|&rank| rank > 1);
    let rank = rank.ok_or(Reason::Input { index: 0, what: "must have a known rank" })?;
    Ok(Transpose { perm: std::iter::once(0).chain(2..rank).chain([1]).collect() })
}

/// Nothing is dropped while a model is only run.
fn dropout(n: &mut NodeReader<'_, '_>, biased: bool) -> Read {
    n.ignore(&["seed"]);
    n.no_outputs_from(1)?;
    let training = if biased { 4 } else { 2 };
    let trains = n.constant(training)?.and_then(|flag| flag.to_i64());
    if n.has_input(training) && trains.as_deref() != Some(&[0]) {
        return Err(Reason::Input { index: training, what: "must be false" }.into());
    }
    let x = n.input(0)?;
    let y = n.output(0)?;
    if !biased {
        n.emit_to(Identity, vec![Some(x)], &[y]);
        return Ok(());
    }
    let add = Binary { kind: BinaryKind::Add };
    let mut parts = vec![Some(x), Some(n.input(1)?)];
    if let Some(residual) = n.optional(2)? {
        let sum = n.step("biased", add.clone(), parts);
        parts = vec![Some(sum), Some(residual)];
    }
    n.emit_to(add, parts, &[y]);
    Ok(())
}

/// Distances of every row of one matrix from every row of another.
fn distances(n: &mut NodeReader<'_, '_>) -> Read {
    let metric = [("euclidean", ReduceKind::L2), ("sqeuclidean", ReduceKind::SumSquare)];
    let kind = n.choice("metric", ReduceKind::SumSquare, &metric)?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    let [first, second, last] = [0i64, 1, 2].map(|axis| n.vector("axis", &[axis]));
    let a = n.step("rows", Unsqueeze, vec![Some(a), Some(second)]);
    let b = n.step("columns", Unsqueeze, vec![Some(b), Some(first)]);
    let gap = n.step("gaps", Binary { kind: BinaryKind::Sub }, vec![Some(a), Some(b)]);
    n.emit(Reduce { kind, keep_dims: false, noop_with_empty_axes: false }, vec![Some(gap), Some(last)])
}

fn activation(n: &NodeReader<'_, '_>) -> Read<Option<UnaryKind>> {
    let parameters = n.floats("activation_params")?.unwrap_or_default();
    let alpha = n.float("activation_alpha")?.or(parameters.first().copied());
    let beta = n.float("activation_beta")?.or(parameters.get(1).copied());
    let Some(name) = n.word("activation")? else { return Ok(None) };
    Ok(Some(match name {
        "" => return Ok(None),
        "Relu" => UnaryKind::Relu,
        "Tanh" => UnaryKind::Tanh,
        "Sigmoid" => UnaryKind::Sigmoid,
        "HardSwish" => UnaryKind::HardSwish,
        "LeakyRelu" => UnaryKind::LeakyRelu { alpha: alpha.unwrap_or(0.01) },
        "HardSigmoid" => UnaryKind::HardSigmoid { alpha: alpha.unwrap_or(0.2), beta: beta.unwrap_or(0.5) },
        "Clip" => UnaryKind::Clip { min: alpha.unwrap_or(f32::MIN), max: beta.unwrap_or(f32::MAX) },
        _ => return Err(n.unsupported("activation")),
    }))
}

/// A function of the sum of two inputs, of which the second may be left out.
fn biased(n: &mut NodeReader<'_, '_>, kind: UnaryKind) -> Read {
    let (mut x, bias) = (n.input(0)?, n.optional(1)?);
    if bias.is_some() {
        x = n.step("sum", Binary { kind: BinaryKind::Add }, vec![Some(x), bias]);
    }
    n.emit(Unary { kind }, vec![Some(x)])
}

/// Layer normalization of a sum, which may be wanted too.
fn skip_layer(n: &mut NodeReader<'_, '_>, root_mean_square: bool) -> Read {
    let epsilon = n.float_or("epsilon", 1e-12)?;
    let (x, skip, scale) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (shift, bias) =
        if root_mean_square { (None, n.optional(3)?) } else { (n.optional(3)?, n.optional(4)?) };
    if let Some(index) = [1, 2].into_iter().find(|&i| n.wants(i)) {
        return Err(Reason::Output(index).into());
    }
    let add = Binary { kind: BinaryKind::Add };
    let mut parts = vec![Some(x), Some(skip)];
    if bias.is_some() {
        let first = n.step("skip", add.clone(), parts);
        parts = vec![Some(first), bias];
    }
    let sum = match n.output(3)? {
        Some(sum) => {
            n.emit_to(add, parts, &[Some(sum)]);
            sum
        }
        None => n.step("sum", add, parts),
    };
    let op = LayerNormalization { axis: -1, epsilon, root_mean_square };
    let y = n.output(0)?.ok_or(Invalid::MissingOutput(0))?;
    n.emit_to(op, vec![Some(sum), Some(scale), shift], &[Some(y)]);
    Ok(())
}

/// A product of integers, scaled to real numbers, plus a bias: the last of its nodes, which is still to be added.
pub(super) fn integer_product(
    n: &mut NodeReader<'_, '_>,
    [a, b]: [ValueId; 2],
    [a_scale, b_scale]: [ValueId; 2],
    [a_zero, b_zero]: [Option<ValueId>; 2],
    bias: Option<ValueId>,
) -> (Binary, Vec<Option<ValueId>>) {
    let multiply = Binary { kind: BinaryKind::Mul };
    let product = n.step("product", MatMulInteger, vec![Some(a), Some(b), a_zero, b_zero]);
    let product = n.step("real", Cast { to: ElementType::F32, saturate: true }, vec![Some(product)]);
    let scale = n.step("scales", multiply.clone(), vec![Some(a_scale), Some(b_scale)]);
    let inputs = vec![Some(product), Some(scale)];
    if bias.is_none() {
        return (multiply, inputs);
    }
    let scaled = n.step("scaled", multiply, inputs);
    (Binary { kind: BinaryKind::Add }, vec![Some(scaled), bias])
}
