//! Fused operators that ONNX Runtime's optimizer writes into models.

use armet_graph::ValueId;
use armet_graph::ops::{
    Binary, BinaryKind, Cast, DynamicQuantizeLinear, LayerNormalization, MatMul, MatMulInteger, Unary,
    UnaryKind,
};
use armet_tensor::ElementType;

use super::convolution::conv;
use super::elementwise::unary;
use super::{Entry, microsoft, products};
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
    microsoft("FusedMatMul", |n| {
        n.only("transBatchA", 0)?;
        n.only("transBatchB", 0)?;
        let op = MatMul {
            transpose_a: n.flag("transA", false)?,
            transpose_b: n.flag("transB", false)?,
            alpha: n.float_or("alpha", 1.0)?,
            activation: None,
        };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
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
        integer_product(n, [a, b], [a_scale, b_scale], [a_zero, b_zero], bias)
    }),
    microsoft("DynamicQuantizeMatMul", |n| {
        let (a, b, b_scale) = (n.input(0)?, n.input(1)?, n.input(2)?);
        let (b_zero, bias) = (n.optional(3)?, n.optional(4)?);
        let [a, a_scale, a_zero] = n.steps(["quantized", "scale", "zero_point"], DynamicQuantizeLinear, a);
        integer_product(n, [a, b], [a_scale, b_scale], [Some(a_zero), b_zero], bias)
    }),
];

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

/// A product of integers, scaled to real numbers, plus a bias.
fn integer_product(
    n: &mut NodeReader<'_, '_>,
    [a, b]: [ValueId; 2],
    [a_scale, b_scale]: [ValueId; 2],
    [a_zero, b_zero]: [Option<ValueId>; 2],
    bias: Option<ValueId>,
) -> Read {
    let multiply = Binary { kind: BinaryKind::Mul };
    let product = n.step("product", MatMulInteger, vec![Some(a), Some(b), a_zero, b_zero]);
    let product = n.step("real", Cast { to: ElementType::F32, saturate: true }, vec![Some(product)]);
    let scale = n.step("scales", multiply.clone(), vec![Some(a_scale), Some(b_scale)]);
    let inputs = vec![Some(product), Some(scale)];
    if bias.is_none() {
        return n.emit(multiply, inputs);
    }
    let scaled = n.step("scaled", multiply, inputs);
    n.emit(Binary { kind: BinaryKind::Add }, vec![Some(scaled), bias])
}
