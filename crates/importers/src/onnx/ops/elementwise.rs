//! Functions of one, two or any number of tensors, element by element.

use armet_graph::ValueId;
use armet_graph::ops::{
    Binary, BinaryKind, BitCast, Cast, CastLike, Clip, Unary, UnaryKind, Unsqueeze, Where,
};
use armet_tensor::Tensor;

use super::{Entry, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};
use crate::onnx::types;

macro_rules! unary {
    ($name:literal, $since:literal, $kind:ident) => {
        onnx($name, $since, |n| unary(n, UnaryKind::$kind))
    };
}

macro_rules! binary {
    ($name:literal, $since:literal, $kind:ident) => {
        onnx($name, $since, |n| binary(n, BinaryKind::$kind))
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    unary!("Abs", 1, Abs),
    unary!("Acos", 7, Acos),
    unary!("Acosh", 9, Acosh),
    unary!("Asin", 7, Asin),
    unary!("Asinh", 9, Asinh),
    unary!("Atan", 7, Atan),
    unary!("Atanh", 9, Atanh),
    unary!("BitwiseNot", 18, BitwiseNot),
    unary!("Ceil", 1, Ceil),
    unary!("Cos", 7, Cos),
    unary!("Cosh", 9, Cosh),
    unary!("Erf", 9, Erf),
    unary!("Exp", 1, Exp),
    unary!("Floor", 1, Floor),
    unary!("HardSwish", 14, HardSwish),
    unary!("IsNaN", 9, IsNan),
    unary!("Log", 1, Log),
    unary!("Mish", 18, Mish),
    unary!("Neg", 1, Neg),
    unary!("Not", 1, Not),
    unary!("Reciprocal", 1, Reciprocal),
    unary!("Relu", 1, Relu),
    unary!("Round", 11, Round),
    unary!("Sigmoid", 1, Sigmoid),
    unary!("Sign", 9, Sign),
    unary!("Sin", 7, Sin),
    unary!("Sinh", 9, Sinh),
    unary!("Softplus", 1, Softplus),
    unary!("Softsign", 1, Softsign),
    unary!("Sqrt", 1, Sqrt),
    unary!("Tan", 7, Tan),
    unary!("Tanh", 1, Tanh),
    onnx("LeakyRelu", 1, |n| {
        let alpha = n.float_or("alpha", 0.01)?;
        unary(n, UnaryKind::LeakyRelu { alpha })
    }),
    onnx("Elu", 1, |n| {
        let alpha = n.float_or("alpha", 1.0)?;
        unary(n, UnaryKind::Elu { alpha })
    }),
    onnx("Celu", 12, |n| {
        let alpha = n.float_or("alpha", 1.0)?;
        unary(n, UnaryKind::Celu { alpha })
    }),
    // The first version had fewer digits of the same numbers.
    onnx("Selu", 1, |n| selu(n, 1.6732, 1.0507)),
    onnx("Selu", 6, |n| selu(n, 1.673_263_2, 1.050_701)),
    onnx("HardSigmoid", 1, |n| {
        let (alpha, beta) = (n.float_or("alpha", 0.2)?, n.float_or("beta", 0.5)?);
        unary(n, UnaryKind::HardSigmoid { alpha, beta })
    }),
    onnx("ThresholdedRelu", 1, |n| {
        let alpha = n.float_or("alpha", 1.0)?;
        unary(n, UnaryKind::ThresholdedRelu { alpha })
    }),
    onnx("Shrink", 9, |n| {
        let (bias, lambd) = (n.float_or("bias", 0.0)?, n.float_or("lambd", 0.5)?);
        unary(n, UnaryKind::Shrink { bias, lambd })
    }),
    onnx("Swish", 24, |n| {
        let alpha = n.float_or("alpha", 1.0)?;
        unary(n, UnaryKind::Swish { alpha })
    }),
    onnx("SwiGLU", 28, |n| {
        let alpha = n.float_or("alpha", 1.0)?;
        let (gate, x) = (n.input(0)?, n.input(1)?);
        let gate = n.step("gate", Unary { kind: UnaryKind::Swish { alpha } }, vec![Some(gate)]);
        n.emit(Binary { kind: BinaryKind::Mul }, vec![Some(gate), Some(x)])
    }),
    onnx("Gelu", 20, |n| {
        let tanh = n.choice("approximate", false, &[("none", false), ("tanh", true)])?;
        unary(n, UnaryKind::Gelu { tanh })
    }),
    onnx("IsInf", 10, |n| {
        let (negative, positive) = (n.flag("detect_negative", true)?, n.flag("detect_positive", true)?);
        unary(n, UnaryKind::IsInf { negative, positive })
    }),
    onnx("Clip", 1, clip_attributes),
    onnx("Clip", 11, |n| {
        let inputs = n.inputs(1)?;
        n.emit(Clip, inputs)
    }),
    binary!("Add", 1, Add),
    binary!("Sub", 1, Sub),
    binary!("Mul", 1, Mul),
    binary!("Div", 1, Div),
    binary!("Pow", 1, Pow),
    binary!("And", 1, And),
    binary!("Or", 1, Or),
    binary!("Xor", 1, Xor),
    binary!("Equal", 1, Equal),
    binary!("Less", 1, Less),
    binary!("Greater", 1, Greater),
    binary!("LessOrEqual", 12, LessOrEqual),
    binary!("GreaterOrEqual", 12, GreaterOrEqual),
    binary!("BitwiseAnd", 18, BitwiseAnd),
    binary!("BitwiseOr", 18, BitwiseOr),
    binary!("BitwiseXor", 18, BitwiseXor),
    onnx("BitShift", 11, |n| {
        let kinds = [("LEFT", BinaryKind::BitShiftLeft), ("RIGHT", BinaryKind::BitShiftRight)];
        if !n.has("direction") {
            return Err(Invalid::MissingAttribute("direction").into());
        }
        let kind = n.choice("direction", kinds[0].1, &kinds)?;
        binary(n, kind)
    }),
    onnx("Mod", 10, |n| {
        let fmod = n.flag("fmod", false)?;
        binary(n, BinaryKind::Mod { fmod })
    }),
    onnx("PRelu", 1, prelu),
    onnx("PRelu", 7, |n| binary(n, BinaryKind::PRelu)),
    onnx("Max", 1, |n| fold(n, BinaryKind::Max)),
    onnx("Min", 1, |n| fold(n, BinaryKind::Min)),
    onnx("Sum", 1, |n| fold(n, BinaryKind::Add)),
    onnx("Mean", 1, mean),
    onnx("Where", 9, |n| {
        let inputs = n.inputs(3)?;
        n.emit(Where, inputs)
    }),
    onnx("Cast", 1, cast_named),
    onnx("Cast", 6, cast),
    onnx("CastLike", 15, cast_like),
    onnx("BitCast", 26, |n| {
        let to = n.element("to")?.ok_or(Invalid::MissingAttribute("to"))?;
        let x = n.input(0)?;
        n.emit(BitCast { to }, vec![Some(x)])
    }),
];

/// A function of one number.
pub(super) fn unary(n: &mut NodeReader<'_, '_>, kind: UnaryKind) -> Read {
    // Versions below 6 could name inputs to be overwritten.
    n.ignore(&["consumed_inputs"]);
    let x = n.input(0)?;
    n.emit(Unary { kind }, vec![Some(x)])
}

fn selu(n: &mut NodeReader<'_, '_>, alpha: f32, gamma: f32) -> Read {
    let (alpha, gamma) = (n.float_or("alpha", alpha)?, n.float_or("gamma", gamma)?);
    unary(n, UnaryKind::Selu { alpha, gamma })
}

fn clip_attributes(n: &mut NodeReader<'_, '_>) -> Read {
    let (min, max) = (n.float_or("min", f32::MIN)?, n.float_or("max", f32::MAX)?);
    unary(n, UnaryKind::Clip { min, max })
}

/// A function of two numbers. Below version 7 broadcasting had to be asked for, and could begin at an axis.
pub(super) fn binary(n: &mut NodeReader<'_, '_>, kind: BinaryKind) -> Read {
    n.ignore(&["consumed_inputs"]);
    let a = n.input(0)?;
    let mut b = n.input(1)?;
    if n.version() < 7
        && n.flag("broadcast", false)?
        && let Some(axis) = n.int("axis")?
    {
        b = align(n, a, b, axis)?;
    }
    // Without broadcasting the attribute means nothing.
    n.ignore(&["axis"]);
    n.emit(Binary { kind }, vec![Some(a), Some(b)])
}

/// Adds axes of length one behind those of `b`, so that its first axis meets axis `axis` of `a`.
fn align(n: &mut NodeReader<'_, '_>, a: ValueId, b: ValueId, axis: i64) -> Read<ValueId> {
    let Some(small) = n.rank(b) else {
        return Err(Reason::Input { index: 1, what: "must have a known rank to be aligned by axis" }.into());
    };
    let Some(large) = n.rank(a) else {
        return Err(Reason::Input { index: 0, what: "must have a known rank to be aligned with" }.into());
    };
    let axis = if axis < 0 { axis.saturating_add(large as i64) } else { axis };
    let behind = usize::try_from(axis).ok().and_then(|axis| large.checked_sub(small)?.checked_sub(axis));
    let Some(behind) = behind else { return Err(n.refuse("axis", "does not fit the ranks").into()) };
    if behind == 0 {
        return Ok(b);
    }
    let axes: Vec<i64> = (small..small + behind).map(|a| a as i64).collect();
    let axes = n.vector("axes", &axes);
    Ok(n.step("aligned", Unsqueeze, vec![Some(b), Some(axes)]))
}

/// Before version 7 a vector of slopes went along the channels.
fn prelu(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["consumed_inputs"]);
    let (x, mut slope) = (n.input(0)?, n.input(1)?);
    if n.rank(slope) == Some(1) && n.type_of(slope).and_then(|t| t.shape()).is_none_or(|s| s.elements() != 1)
    {
        slope = align(n, x, slope, 1)?;
    }
    n.emit(Binary { kind: BinaryKind::PRelu }, vec![Some(x), Some(slope)])
}

/// A chain of functions of two numbers.
fn fold(n: &mut NodeReader<'_, '_>, kind: BinaryKind) -> Read {
    n.ignore(&["consumed_inputs"]);
    let inputs = n.inputs(1)?;
    if inputs.len() == 1 {
        return n.emit(armet_graph::ops::Identity, inputs);
    }
    let last = inputs[inputs.len() - 1];
    let so_far = chain(n, kind, &inputs[..inputs.len() - 1])?;
    n.emit(Binary { kind }, vec![Some(so_far), last])
}

fn chain(n: &mut NodeReader<'_, '_>, kind: BinaryKind, inputs: &[Option<ValueId>]) -> Read<ValueId> {
    let mut so_far = inputs.first().copied().flatten().ok_or(Invalid::MissingInput(0))?;
    for (index, input) in inputs.iter().enumerate().skip(1) {
        let input = input.ok_or(Invalid::MissingInput(index))?;
        so_far = n.step(&index.to_string(), Binary { kind }, vec![Some(so_far), Some(input)]);
    }
    Ok(so_far)
}

fn mean(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["consumed_inputs"]);
    let inputs = n.inputs(1)?;
    let sum = chain(n, BinaryKind::Add, &inputs)?;
    let count = n.number_like("count", sum, inputs.len() as f64);
    n.emit(Binary { kind: BinaryKind::Div }, vec![Some(sum), Some(count)])
}

fn cast_named(n: &mut NodeReader<'_, '_>) -> Read {
    let name = n.word("to")?.ok_or(Invalid::MissingAttribute("to"))?;
    let to = types::element_named(name).ok_or_else(|| n.refuse("to", "is no element type"))?;
    let x = n.input(0)?;
    n.emit(Cast { to, saturate: true }, vec![Some(x)])
}

fn cast(n: &mut NodeReader<'_, '_>) -> Read {
    let to = n.element("to")?.ok_or(Invalid::MissingAttribute("to"))?;
    let saturate = n.flag("saturate", true)?;
    n.choice("round_mode", (), &[("up", ())])?;
    let x = n.input(0)?;
    n.emit(Cast { to, saturate }, vec![Some(x)])
}

fn cast_like(n: &mut NodeReader<'_, '_>) -> Read {
    let saturate = n.flag("saturate", true)?;
    n.choice("round_mode", (), &[("up", ())])?;
    let (x, like) = (n.input(0)?, n.input(1)?);
    match n.type_of(like) {
        Some(ty) => n.emit(Cast { to: ty.element, saturate }, vec![Some(x)]),
        None => n.emit(CastLike { saturate }, vec![Some(x), Some(like)]),
    }
}

/// The limits of a clip that are constant numbers.
pub(super) fn scalar(tensor: &Tensor) -> Option<f64> {
    let values = armet_graph::ops::numbers::to_f64(tensor).ok()?;
    if values.len() == 1 { values.first().copied() } else { None }
}
