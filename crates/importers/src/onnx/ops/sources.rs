//! Constants, shapes, ranges and random numbers.

use armet_graph::ops::{
    ArgKind, ArgReduce, Binary, BinaryKind, Cast, ConstantOfShape, Distribution, Random, Range, ShapeOf,
    Size, Squeeze, Tile, UnaryKind, Unsqueeze,
};
use armet_tensor::{ElementType, Shape, Tensor};

use super::{Entry, compose, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("Constant", 1, constant),
    onnx("ConstantOfShape", 9, |n| {
        let value = match n.tensor("value")? {
            Some(value) if value.len() == 1 => value,
            Some(_) => return Err(n.refuse("value", "must have one element").into()),
            None => Tensor::vector(&[0f32]),
        };
        let shape = n.input(0)?;
        n.emit(ConstantOfShape { value }, vec![Some(shape)])
    }),
    onnx("Shape", 1, |n| {
        let op = ShapeOf { start: n.int_or("start", 0)?, end: n.int("end")? };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    }),
    onnx("Size", 1, |n| {
        let x = n.input(0)?;
        n.emit(Size, vec![Some(x)])
    }),
    onnx("Range", 11, |n| {
        n.ignore(&["stash_type"]);
        let inputs = n.inputs(3)?;
        n.emit(Range, inputs)
    }),
    onnx("EyeLike", 9, eye),
    onnx("RandomNormal", 1, |n| {
        let distribution = normal(n)?;
        random(n, distribution)
    }),
    onnx("RandomUniform", 1, |n| {
        let distribution = uniform(n)?;
        random(n, distribution)
    }),
    onnx("RandomNormalLike", 1, |n| {
        let distribution = normal(n)?;
        random_like(n, distribution)
    }),
    onnx("RandomUniformLike", 1, |n| {
        let distribution = uniform(n)?;
        random_like(n, distribution)
    }),
    onnx("Bernoulli", 15, bernoulli),
    onnx("Multinomial", 7, multinomial),
];

/// A constant in any of its forms.
fn constant(n: &mut NodeReader<'_, '_>) -> Read {
    let tensor = if let Some(value) = n.tensor("value")? {
        value
    } else if let Some(value) = n.float("value_float")? {
        Tensor::scalar(value)
    } else if let Some(values) = n.floats("value_floats")? {
        Tensor::vector(&values)
    } else if let Some(value) = n.int("value_int")? {
        Tensor::scalar(value)
    } else if let Some(values) = n.ints("value_ints")? {
        Tensor::vector(&values)
    } else if let Some(value) = n.word("value_string")? {
        Tensor::from_strings(Shape::scalar(), vec![value.to_owned()])
            .map_err(|e| Invalid::Other(e.to_string()))?
    } else if let Some(values) = n.words("value_strings")? {
        Tensor::from_strings([values.len()], values).map_err(|e| Invalid::Other(e.to_string()))?
    } else if let Some(value) = n.sparse_tensor("sparse_value")? {
        value
    } else {
        return Err(Invalid::MissingAttribute("value").into());
    };
    n.emit_constant(tensor)
}

/// Ones where the column is the row plus k.
fn eye(n: &mut NodeReader<'_, '_>) -> Read {
    let k = n.int_or("k", 0)?;
    let dtype = n.element("dtype")?;
    let x = n.input(0)?;
    let to = dtype.or_else(|| n.type_of(x).map(|t| t.element)).unwrap_or(ElementType::F32);
    let zero = n.add_constant("zero", Tensor::scalar(0i64));
    let one = n.add_constant("one", Tensor::scalar(1i64));
    let mut counts = [zero; 2];
    for (axis, name) in [(0, "rows"), (1, "columns")] {
        let length =
            n.step(&format!("{name}/length"), ShapeOf { start: axis, end: Some(axis + 1) }, vec![Some(x)]);
        let length = n.step(&format!("{name}/number"), Squeeze, vec![Some(length)]);
        counts[axis as usize] = n.step(name, Range, vec![Some(zero), Some(length), Some(one)]);
    }
    let axes = n.vector("axes", &[1i64]);
    let rows = n.step("rows/upright", Unsqueeze, vec![Some(counts[0]), Some(axes)]);
    let k = n.add_constant("k", Tensor::scalar(k));
    let diagonal = n.step("diagonal", Binary { kind: BinaryKind::Add }, vec![Some(rows), Some(k)]);
    let equal = Binary { kind: BinaryKind::Equal };
    let equal = n.step("equal", equal, vec![Some(diagonal), Some(counts[1])]);
    n.emit(Cast { to, saturate: true }, vec![Some(equal)])
}

fn normal(n: &NodeReader<'_, '_>) -> Read<Distribution> {
    Ok(Distribution::Normal { mean: n.float_or("mean", 0.0)?, scale: n.float_or("scale", 1.0)? })
}

fn uniform(n: &NodeReader<'_, '_>) -> Read<Distribution> {
    Ok(Distribution::Uniform { low: n.float_or("low", 0.0)?, high: n.float_or("high", 1.0)? })
}

fn random(n: &mut NodeReader<'_, '_>, distribution: Distribution) -> Read {
    if !n.has("shape") {
        return Err(Invalid::MissingAttribute("shape").into());
    }
    let element = Some(n.element("dtype")?.unwrap_or(ElementType::F32));
    let op = Random { distribution, element, shape: n.sizes("shape")?, seed: n.float("seed")? };
    n.emit(op, Vec::new())
}

fn random_like(n: &mut NodeReader<'_, '_>, distribution: Distribution) -> Read {
    let op = Random { distribution, element: n.element("dtype")?, shape: Vec::new(), seed: n.float("seed")? };
    let x = n.input(0)?;
    n.emit(op, vec![Some(x)])
}

/// One where a random number is below the input.
fn bernoulli(n: &mut NodeReader<'_, '_>) -> Read {
    let dtype = n.element("dtype")?;
    let distribution = Distribution::Uniform { low: 0.0, high: 1.0 };
    let op = Random { distribution, element: None, shape: Vec::new(), seed: n.float("seed")? };
    let x = n.input(0)?;
    let Some(to) = dtype.or_else(|| n.type_of(x).map(|t| t.element)) else {
        return Err(Reason::Input { index: 0, what: "must have a known element type" }.into());
    };
    let drawn = n.step("drawn", op, vec![Some(x)]);
    let below = n.step("below", Binary { kind: BinaryKind::Less }, vec![Some(drawn), Some(x)]);
    n.emit(Cast { to, saturate: true }, vec![Some(below)])
}

/// Classes drawn by unnormalized logarithms of their probabilities. The class whose logarithm, plus noise of Gumbel's
/// distribution, is the largest is a class drawn so.
fn multinomial(n: &mut NodeReader<'_, '_>) -> Read {
    let to = n.element("dtype")?.unwrap_or(ElementType::I32);
    if !matches!(to, ElementType::I32 | ElementType::I64) {
        return Err(n.refuse("dtype", "must be int32 or int64").into());
    }
    let count = n.size_or("sample_size", 1)?;
    let seed = n.float("seed")?;
    let x = n.input(0)?;
    let x = compose::cast(n, "real", ElementType::F32, x);
    let axes = n.vector("axes", &[1i64]);
    let rows = n.step("rows", Unsqueeze, vec![Some(x), Some(axes)]);
    let repeats = n.vector("repeats", &[1, count as i64, 1]);
    let rows = n.step("samples", Tile, vec![Some(rows), Some(repeats)]);
    let distribution = Distribution::Uniform { low: 0.0, high: 1.0 };
    let op = Random { distribution, element: None, shape: Vec::new(), seed };
    let mut noise = n.step("drawn", op, vec![Some(rows)]);
    for step in ["inner", "outer"] {
        noise = compose::unary(n, &format!("{step}/logarithm"), UnaryKind::Log, noise);
        noise = compose::unary(n, &format!("{step}/negated"), UnaryKind::Neg, noise);
    }
    let sum = compose::binary(n, "disturbed", BinaryKind::Add, rows, noise);
    let arg = ArgReduce { kind: ArgKind::Max, axis: 2, keep_dims: false, select_last_index: false };
    let drawn = n.step("classes", arg, vec![Some(sum)]);
    n.emit(Cast { to, saturate: true }, vec![Some(drawn)])
}
