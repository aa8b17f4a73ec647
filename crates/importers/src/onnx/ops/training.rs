//! Operators that do something else while a model is trained.

use armet_graph::ValueId;
use armet_graph::ops::{
    BatchNormalization, Binary, BinaryKind, ConstantOfShape, Distribution, Identity, Random, Reduce,
    ReduceKind, Reshape, ShapeOf, Unary, UnaryKind, Where,
};
use armet_tensor::{Bool, ElementType, Tensor};

use super::compose::{binary, cast, element, reshape, unary, with_number};
use super::{Entry, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("Dropout", 1, |n| {
        n.ignore(&["consumed_inputs", "is_test", "ratio"]);
        kept(n)
    }),
    onnx("Dropout", 12, dropout),
    onnx("BatchNormalization", 1, batch),
];

/// Nothing is dropped: the data themselves, and a mask that says so.
fn kept(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["seed"]);
    let x = n.input(0)?;
    let y = n.output(0)?;
    n.emit_to(Identity, vec![Some(x)], &[y]);
    if n.wants(1) {
        // Masks were numbers before version 10.
        let one = if n.version() < 10 { Tensor::vector(&[1f32]) } else { Tensor::vector(&[Bool(1)]) };
        let shape = n.step("shape", ShapeOf { start: 0, end: None }, vec![Some(x)]);
        let mask = n.output(1)?;
        n.emit_to(ConstantOfShape { value: one }, vec![Some(shape)], &[mask]);
    }
    Ok(())
}

/// Whether elements are dropped is an input.
fn dropout(n: &mut NodeReader<'_, '_>) -> Read {
    let training = n.constant(2)?;
    let never = training.is_some_and(|flag| flag.to_i64().is_some_and(|flags| !flags.contains(&1)));
    if !n.has_input(2) || never {
        return kept(n);
    }
    let seed = n.int("seed")?.map(|seed| seed as f32);
    let (x, ratio, training) = (n.input(0)?, n.optional(1)?, n.input(2)?);
    let to = element(n, x);
    let ratio = match ratio {
        Some(ratio) => cast(n, "ratio", ElementType::F32, ratio),
        None => n.add_constant("ratio", Tensor::scalar(0.5f32)),
    };
    let distribution = Distribution::Uniform { low: 0.0, high: 1.0 };
    let op = Random { distribution, element: Some(ElementType::F32), shape: Vec::new(), seed };
    let drawn = n.step("drawn", op, vec![Some(x)]);
    let lucky = binary(n, "lucky", BinaryKind::GreaterOrEqual, drawn, ratio);
    let idle = unary(n, "idle", UnaryKind::Not, training);
    let mask = if n.wants(1) {
        n.output(1)?.ok_or(Invalid::MissingOutput(1))?
    } else {
        n.step("mask", Binary { kind: BinaryKind::Or }, vec![Some(lucky), Some(idle)])
    };
    if n.wants(1) {
        n.emit_to(Binary { kind: BinaryKind::Or }, vec![Some(lucky), Some(idle)], &[Some(mask)]);
    }
    let one = n.number_like("one", ratio, 1.0);
    let rest = binary(n, "rest", BinaryKind::Sub, one, ratio);
    let scale = n.step("inverse", Unary { kind: UnaryKind::Reciprocal }, vec![Some(rest)]);
    let scale = n.step("scale", Where, vec![Some(training), Some(scale), Some(one)]);
    let scale = cast(n, "stored_scale", to, scale);
    let scaled = binary(n, "scaled", BinaryKind::Mul, x, scale);
    let zero = n.number_like("zero", scaled, 0.0);
    let y = n.output(0)?;
    n.emit_to(Where, vec![Some(mask), Some(scaled), Some(zero)], &[y]);
    Ok(())
}

/// Early versions told training from inference by an attribute or by wanting more outputs, later ones by another
/// attribute.
fn batch(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["consumed_inputs", "is_test"]);
    let momentum = n.float_or("momentum", 0.9)?;
    let own_statistics = n.flag("spatial", true)?;
    let training = n.flag("training_mode", false)? || (n.version() < 14 && (1..5).any(|i| n.wants(i)));
    let op = BatchNormalization { epsilon: n.float_or("epsilon", 1e-5)? };
    let inputs = n.inputs(5)?;
    let y = n.output(0)?;
    match (training, own_statistics) {
        (false, true) => {
            n.no_outputs_from(1)?;
            n.emit_to(op, inputs, &[y]);
            Ok(())
        }
        (false, false) => {
            n.no_outputs_from(1)?;
            each_element(n, op.epsilon, &inputs, y)
        }
        (true, true) => train(n, op, momentum, inputs, y),
        (true, false) => Err(Reason::Attribute { name: "spatial".into(), value: "0".into() }.into()),
    }
}

/// Statistics of each element rather than of each channel: they broadcast over the items.
fn each_element(
    n: &mut NodeReader<'_, '_>,
    epsilon: f32,
    inputs: &[Option<ValueId>],
    y: Option<ValueId>,
) -> Read {
    let given = |i: usize| inputs.get(i).copied().flatten().ok_or(Invalid::MissingInput(i));
    let [x, scale, bias, mean, variance] = [given(0)?, given(1)?, given(2)?, given(3)?, given(4)?];
    let centred = binary(n, "centred", BinaryKind::Sub, x, mean);
    let variance = with_number(n, "some_variance", BinaryKind::Add, variance, f64::from(epsilon));
    let deviation = unary(n, "deviation", UnaryKind::Sqrt, variance);
    let normal = binary(n, "normal", BinaryKind::Div, centred, deviation);
    let scaled = binary(n, "scaled", BinaryKind::Mul, normal, scale);
    n.emit_to(Binary { kind: BinaryKind::Add }, vec![Some(scaled), Some(bias)], &[y]);
    Ok(())
}

/// Statistics of these very data; the running ones move towards them.
fn train(
    n: &mut NodeReader<'_, '_>,
    op: BatchNormalization,
    momentum: f32,
    inputs: Vec<Option<ValueId>>,
    y: Option<ValueId>,
) -> Read {
    let (x, mean, variance) = (n.input(0)?, n.input(3)?, n.input(4)?);
    let stored = element(n, mean);
    let wide = cast(n, "wide", stored, x);
    let flat = reshape(n, "flat", wide, &[0, 0, -1]);
    let axes = n.vector("axes", &[0i64, 2]);
    let reduce = |n: &mut NodeReader<'_, '_>, suffix: &str, x: ValueId, keep_dims| {
        let op = Reduce { kind: ReduceKind::Mean, keep_dims, noop_with_empty_axes: false };
        n.step(suffix, op, vec![Some(x), Some(axes)])
    };
    let level = reduce(n, "level", flat, true);
    let centred = binary(n, "centred", BinaryKind::Sub, flat, level);
    let square = binary(n, "square", BinaryKind::Mul, centred, centred);
    let own_variance = reduce(n, "variance", square, false);
    let vector = n.vector("vector", &[-1i64]);
    let own_mean = n.step("mean", Reshape { allow_zero: false }, vec![Some(level), Some(vector)]);
    let normal = vec![inputs[0], inputs[1], inputs[2], Some(own_mean), Some(own_variance)];
    n.emit_to(op, normal, &[y]);
    // From version 14 on there are two more outputs, before it four: the running ones, then those of the data.
    let pairs = [(1, mean, own_mean), (2, variance, own_variance)];
    for (index, running, own) in pairs {
        if n.wants(index) {
            let old = with_number(n, &format!("{index}/old"), BinaryKind::Mul, running, f64::from(momentum));
            let new =
                with_number(n, &format!("{index}/new"), BinaryKind::Mul, own, 1.0 - f64::from(momentum));
            let output = n.output(index)?;
            n.emit_to(Binary { kind: BinaryKind::Add }, vec![Some(old), Some(new)], &[output]);
        }
        if n.wants(index + 2) {
            let output = n.output(index + 2)?;
            n.emit_to(Identity, vec![Some(own)], &[output]);
        }
    }
    Ok(())
}
