//! `ai.onnx.ml`: tables, scalers, linear models, decision trees, support vectors.
//!
//! Maps from names to numbers are not values of a graph: what makes one gives the numbers, in the order of the names.

use armet_graph::ValueId;
use armet_graph::ops::{
    ArgKind, ArgReduce, Binary, BinaryKind, Cast, Concat, Gather, Gemm, Identity, LabelEncoder, Reduce,
    ReduceKind, Reshape, Slice, Softmax, Unary, UnaryKind, Unsqueeze, Where,
};
use armet_tensor::{ElementType, Shape, Tensor};

use super::{Entry, learning};
use crate::onnx::error::{Invalid, Reason, Warning};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    learning("LabelEncoder", 1, |n| classes(n, "classes_strings", None)),
    learning("LabelEncoder", 2, encode),
    learning("CategoryMapper", 1, |n| classes(n, "cats_strings", Some("cats_int64s"))),
    learning("ArrayFeatureExtractor", 1, extract),
    learning("Binarizer", 1, |n| {
        let threshold = n.float_or("threshold", 0.0)?;
        let x = n.input(0)?;
        let Some(to) = n.type_of(x).map(|ty| ty.element) else { return Err(unknown_element()) };
        let threshold = n.number_like("threshold", x, f64::from(threshold));
        let above = n.step("above", binary(BinaryKind::Greater), vec![Some(x), Some(threshold)]);
        n.emit(Cast { to, saturate: true }, vec![Some(above)])
    }),
    learning("Scaler", 1, |n| {
        let offset = n.floats("offset")?.unwrap_or_else(|| vec![0.0]);
        let scale = n.floats("scale")?.unwrap_or_else(|| vec![1.0]);
        let x = real(n, 0)?;
        let (offset, scale) = (n.vector("offset", &offset), n.vector("scale", &scale));
        let moved = n.step("moved", binary(BinaryKind::Sub), vec![Some(x), Some(offset)]);
        n.emit(binary(BinaryKind::Mul), vec![Some(moved), Some(scale)])
    }),
    learning("Normalizer", 1, normalize),
    learning("Imputer", 1, impute),
    learning("FeatureVectorizer", 1, join),
    learning("OneHotEncoder", 1, one_hot),
    learning("LinearRegressor", 1, regress),
    learning("LinearClassifier", 1, classify),
    learning("ZipMap", 1, |n| {
        n.ignore(&["classlabels_int64s", "classlabels_strings"]);
        let x = n.input(0)?;
        n.warn(|node| Warning::Map { node });
        n.emit(Identity, vec![Some(x)])
    }),
    learning("DictVectorizer", 1, |_| Err(MAPS.into())),
    learning("CastMap", 1, |_| Err(MAPS.into())),
];

const MAPS: Reason = Reason::Other("its input is a map, which no value of a graph is");

fn unknown_element() -> crate::onnx::node::Problem {
    Reason::Input { index: 0, what: "must have a known element type" }.into()
}

pub(super) fn binary(kind: BinaryKind) -> Binary {
    Binary { kind }
}

fn reduce(kind: ReduceKind) -> Reduce {
    Reduce { kind, keep_dims: true, noop_with_empty_axes: false }
}

pub(super) fn texts(texts: Vec<String>) -> Read<Tensor> {
    Ok(Tensor::from_strings([texts.len()], texts).map_err(|e| Invalid::Other(e.to_string()))?)
}

/// An input as single-precision numbers.
pub(super) fn real(n: &mut NodeReader<'_, '_>, index: usize) -> Read<ValueId> {
    let x = n.input(index)?;
    if n.type_of(x).is_some_and(|ty| ty.element == ElementType::F32) {
        return Ok(x);
    }
    Ok(n.step(&format!("real{index}"), Cast { to: ElementType::F32, saturate: true }, vec![Some(x)]))
}

/// Texts to numbers or numbers to texts, by which of them the input holds. Without numbers, a text's is its place.
fn classes(n: &mut NodeReader<'_, '_>, names: &'static str, numbers: Option<&'static str>) -> Read {
    let texts_of = texts(n.words(names)?.ok_or(Invalid::MissingAttribute(names))?)?;
    let numbers = match numbers {
        Some(name) => n.ints(name)?.ok_or(Invalid::MissingAttribute(name))?,
        None => (0..texts_of.len() as i64).collect(),
    };
    let unused = n.word("default_string")?.unwrap_or("_Unused").to_owned();
    let unknown = n.int_or("default_int64", -1)?;
    let x = n.input(0)?;
    let numbers = Tensor::vector(&numbers);
    let op = match n.type_of(x).map(|ty| ty.element) {
        Some(ElementType::String) => {
            LabelEncoder { keys: texts_of, values: numbers, default: Tensor::scalar(unknown) }
        }
        Some(_) => LabelEncoder { keys: numbers, values: texts_of, default: texts(vec![unused])? },
        None => return Err(unknown_element()),
    };
    n.emit(op, vec![Some(x)])
}

/// One of the forms in which keys or values are given.
fn column(n: &mut NodeReader<'_, '_>, names: [&'static str; 4]) -> Read<Option<Tensor>> {
    let [tensor, texts_name, ints, floats] = names;
    Ok(if let Some(tensor) = n.tensor(tensor)? {
        Some(tensor)
    } else if let Some(words) = n.words(texts_name)? {
        Some(texts(words)?)
    } else if let Some(numbers) = n.ints(ints)? {
        Some(Tensor::vector(&numbers))
    } else {
        n.floats(floats)?.map(|numbers| Tensor::vector(&numbers))
    })
}

fn encode(n: &mut NodeReader<'_, '_>) -> Read {
    let keys = column(n, ["keys_tensor", "keys_strings", "keys_int64s", "keys_floats"])?;
    let values = column(n, ["values_tensor", "values_strings", "values_int64s", "values_floats"])?;
    let (float, int) = (n.float_or("default_float", -0.0)?, n.int_or("default_int64", -1)?);
    let text = n.word("default_string")?.unwrap_or("_Unused").to_owned();
    let default = n.tensor("default_tensor")?;
    let keys = keys.ok_or(Invalid::MissingAttribute("keys_tensor"))?;
    let values = values.ok_or(Invalid::MissingAttribute("values_tensor"))?;
    let default = match (default, values.element()) {
        (Some(default), _) => default,
        (None, ElementType::String) => texts(vec![text])?,
        (None, element) => {
            let number = if element.is_float() { f64::from(float) } else { int as f64 };
            armet_graph::ops::numbers::from_f64(element, Shape::scalar(), &[number])
                .map_err(|error| Invalid::Other(error.to_string()))?
        }
    };
    if keys.len() != values.len() || default.len() != 1 || default.element() != values.element() {
        return Err(Invalid::Other("keys, values and the default do not fit each other".into()).into());
    }
    let x = n.input(0)?;
    n.emit(LabelEncoder { keys, values, default }, vec![Some(x)])
}

/// Columns by number.
fn extract(n: &mut NodeReader<'_, '_>) -> Read {
    let (x, columns) = (n.input(0)?, n.input(1)?);
    let Some(rank) = n.rank(x) else {
        return Err(Reason::Input { index: 0, what: "must have a known rank" }.into());
    };
    let flat = n.vector("flat", &[-1i64]);
    let columns = n.step("columns", Reshape { allow_zero: false }, vec![Some(columns), Some(flat)]);
    if rank > 1 {
        return n.emit(Gather { axis: -1 }, vec![Some(x), Some(columns)]);
    }
    let row = n.step("row", Gather { axis: -1 }, vec![Some(x), Some(columns)]);
    let axes = n.vector("axes", &[0i64]);
    n.emit(Unsqueeze, vec![Some(row), Some(axes)])
}

fn normalize(n: &mut NodeReader<'_, '_>) -> Read {
    let kinds = [("MAX", ReduceKind::Max), ("L1", ReduceKind::L1), ("L2", ReduceKind::L2)];
    let kind = n.choice("norm", ReduceKind::Max, &kinds)?;
    let x = real(n, 0)?;
    let axes = n.vector("axes", &[-1i64]);
    let norm = n.step("norm", reduce(kind), vec![Some(x), Some(axes)]);
    // Rows without a norm stay.
    let [zero, one] = [("zero", 0f32), ("one", 1.0)].map(|(name, v)| n.add_constant(name, Tensor::scalar(v)));
    let none = n.step("none", binary(BinaryKind::Equal), vec![Some(norm), Some(zero)]);
    let norm = n.step("divisor", Where, vec![Some(none), Some(one), Some(norm)]);
    n.emit(binary(BinaryKind::Div), vec![Some(x), Some(norm)])
}

/// Missing values replaced, each column's by its own.
fn impute(n: &mut NodeReader<'_, '_>) -> Read {
    let floats = n.floats("imputed_value_floats")?;
    let ints = n.ints("imputed_value_int64s")?;
    let (float, int) = (n.float_or("replaced_value_float", 0.0)?, n.int_or("replaced_value_int64", 0)?);
    let x = n.input(0)?;
    let (imputed, missing) = match (floats, ints) {
        (Some(floats), _) => {
            let imputed = n.vector("imputed", &floats);
            let missing = if float.is_nan() {
                n.step("missing", Unary { kind: UnaryKind::IsNan }, vec![Some(x)])
            } else {
                let replaced = n.add_constant("replaced", Tensor::scalar(float));
                n.step("missing", binary(BinaryKind::Equal), vec![Some(x), Some(replaced)])
            };
            (imputed, missing)
        }
        (None, Some(ints)) => {
            let imputed = n.vector("imputed", &ints);
            let replaced = n.add_constant("replaced", Tensor::scalar(int));
            let missing = n.step("missing", binary(BinaryKind::Equal), vec![Some(x), Some(replaced)]);
            (imputed, missing)
        }
        (None, None) => return Err(Invalid::MissingAttribute("imputed_value_floats").into()),
    };
    n.emit(Where, vec![Some(missing), Some(imputed), Some(x)])
}

/// Columns of several inputs side by side, of each as many as stated.
fn join(n: &mut NodeReader<'_, '_>) -> Read {
    let widths = n.sizes("inputdimensions")?;
    let mut parts = Vec::new();
    for index in 0..n.input_count() {
        let mut part = real(n, index)?;
        match n.rank(part) {
            Some(1) => {
                let axes = n.vector(&format!("axes{index}"), &[1i64]);
                part = n.step(&format!("upright{index}"), Unsqueeze, vec![Some(part), Some(axes)]);
            }
            Some(2) => {}
            _ => return Err(Reason::Input { index, what: "must be a matrix or a vector" }.into()),
        }
        if let Some(&width) = widths.get(index) {
            let ends = i64::try_from(width).map_err(|_| n.refuse("inputdimensions", "is too large"))?;
            let columns = [("starts", 0), ("ends", ends), ("axes", 1)];
            let columns = columns.map(|(name, v)| Some(n.vector(&format!("{name}{index}"), &[v])));
            let inputs = std::iter::once(Some(part)).chain(columns).collect();
            part = n.step(&format!("columns{index}"), Slice, inputs);
        }
        parts.push(Some(part));
    }
    n.emit(Concat { axis: 1 }, parts)
}

/// A one where a value is a category, along a new last axis. What is no category gives zeros.
fn one_hot(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["zeros"]);
    let x = n.input(0)?;
    let element = n.type_of(x).map(|ty| ty.element);
    let (x, categories) = match (n.words("cats_strings")?, n.ints("cats_int64s")?) {
        (Some(words), None) => (x, texts(words)?),
        (None, Some(numbers)) if element == Some(ElementType::I64) => (x, Tensor::vector(&numbers)),
        (None, Some(numbers)) => {
            let cast = Cast { to: ElementType::I64, saturate: true };
            (n.step("whole", cast, vec![Some(x)]), Tensor::vector(&numbers))
        }
        _ => return Err(Invalid::Other("either cats_strings or cats_int64s must be there".into()).into()),
    };
    let categories = n.add_constant("categories", categories);
    let axes = n.vector("axes", &[-1i64]);
    let upright = n.step("upright", Unsqueeze, vec![Some(x), Some(axes)]);
    let equal = n.step("equal", binary(BinaryKind::Equal), vec![Some(upright), Some(categories)]);
    n.emit(Cast { to: ElementType::F32, saturate: true }, vec![Some(equal)])
}

/// What is done to scores in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostTransform {
    None,
    Softmax,
    Logistic,
    SoftmaxZero,
    Probit,
}

pub(super) fn post_transform(n: &NodeReader<'_, '_>) -> Read<PostTransform> {
    let choices = [
        ("NONE", PostTransform::None),
        ("SOFTMAX", PostTransform::Softmax),
        ("LOGISTIC", PostTransform::Logistic),
        ("SOFTMAX_ZERO", PostTransform::SoftmaxZero),
        ("PROBIT", PostTransform::Probit),
    ];
    n.choice("post_transform", PostTransform::None, &choices)
}

/// Gives the scores, transformed, as this output.
pub(super) fn finish(
    n: &mut NodeReader<'_, '_>,
    scores: ValueId,
    transform: PostTransform,
    output: Option<ValueId>,
) -> Read {
    let unary = |kind| Unary { kind };
    match transform {
        PostTransform::None => n.emit_to(Identity, vec![Some(scores)], &[output]),
        PostTransform::Softmax => {
            n.emit_to(Softmax { axis: -1, log: false, flatten: false }, vec![Some(scores)], &[output]);
        }
        PostTransform::Logistic => n.emit_to(unary(UnaryKind::Sigmoid), vec![Some(scores)], &[output]),
        // Scores of zero do not take part with their exponential but stay zero.
        PostTransform::SoftmaxZero => {
            let axes = n.vector("row", &[-1i64]);
            let size = n.step("size", unary(UnaryKind::Abs), vec![Some(scores)]);
            let small = n.number_like("small", scores, 1e-7);
            let counts = n.step("counts", binary(BinaryKind::Greater), vec![Some(size), Some(small)]);
            let top = n.step("top", reduce(ReduceKind::Max), vec![Some(scores), Some(axes)]);
            let below = n.step("below", binary(BinaryKind::Sub), vec![Some(scores), Some(top)]);
            let power = n.step("power", unary(UnaryKind::Exp), vec![Some(below)]);
            let zero = n.number_like("zero", scores, 0.0);
            let parts = n.step("parts", Where, vec![Some(counts), Some(power), Some(zero)]);
            let sum = n.step("sum", reduce(ReduceKind::Sum), vec![Some(parts), Some(axes)]);
            n.emit_to(binary(BinaryKind::Div), vec![Some(parts), Some(sum)], &[output]);
        }
        // The inverse of the normal distribution, by Winitzki's formula for the inverse error function.
        PostTransform::Probit => {
            let number =
                |n: &mut NodeReader<'_, '_>, name: &str, v: f64| Some(n.number_like(name, scores, v));
            let step = |n: &mut NodeReader<'_, '_>, name: &str, kind, a, b| {
                n.step(name, binary(kind), vec![Some(a), b])
            };
            let (two, one) = (number(n, "two", 2.0), number(n, "one", 1.0));
            let doubled = step(n, "doubled", BinaryKind::Mul, scores, two);
            let x = step(n, "x", BinaryKind::Sub, doubled, one);
            let square = step(n, "square", BinaryKind::Mul, x, Some(x));
            let Some(one) = one else { return Ok(()) };
            let rest = step(n, "rest", BinaryKind::Sub, one, Some(square));
            let log = n.step("log", unary(UnaryKind::Log), vec![Some(rest)]);
            let half = number(n, "half", 0.5);
            let halved = step(n, "halved", BinaryKind::Mul, log, half);
            let constant = number(n, "constant", 2.0 / (std::f64::consts::PI * 0.147));
            let v = step(n, "v", BinaryKind::Add, halved, constant);
            let inverse = number(n, "inverse", 1.0 / 0.147);
            let scaled = step(n, "scaled", BinaryKind::Mul, log, inverse);
            let v_square = step(n, "v_square", BinaryKind::Mul, v, Some(v));
            let under = step(n, "under", BinaryKind::Sub, v_square, Some(scaled));
            let root = n.step("root", unary(UnaryKind::Sqrt), vec![Some(under)]);
            let inner = step(n, "inner", BinaryKind::Sub, root, Some(v));
            let size = n.step("magnitude", unary(UnaryKind::Sqrt), vec![Some(inner)]);
            let sign = n.step("sign", unary(UnaryKind::Sign), vec![Some(x)]);
            let signed = step(n, "signed", BinaryKind::Mul, size, Some(sign));
            let factor = number(n, "factor", std::f64::consts::SQRT_2);
            n.emit_to(binary(BinaryKind::Mul), vec![Some(signed), factor], &[output]);
        }
    }
    Ok(())
}

/// The labels that classes have, when they are given.
pub(super) fn class_labels(
    n: &NodeReader<'_, '_>,
    ints: &'static str,
    strings: &'static str,
) -> Read<Tensor> {
    match (n.ints(ints)?.filter(|l| !l.is_empty()), n.words(strings)?.filter(|l| !l.is_empty())) {
        (Some(labels), _) => Ok(Tensor::vector(&labels)),
        (None, Some(labels)) => texts(labels),
        (None, None) => Err(Invalid::MissingAttribute(ints).into()),
    }
}

/// The first output: the label of the largest score of each row.
pub(super) fn best_label(n: &mut NodeReader<'_, '_>, scores: ValueId, labels: Tensor) -> Read {
    let op = ArgReduce { kind: ArgKind::Max, axis: 1, keep_dims: false, select_last_index: false };
    let best = n.step("best", op, vec![Some(scores)]);
    let labels = n.add_constant("labels", labels);
    let output = n.output(0)?;
    n.emit_to(Gather { axis: 0 }, vec![Some(labels), Some(best)], &[output]);
    Ok(())
}

/// `x` times the transposed coefficients, plus intercepts; gives the scores and how many there are of each row.
fn linear(n: &mut NodeReader<'_, '_>, rows: Option<usize>) -> Read<(ValueId, usize)> {
    let coefficients = n
        .floats("coefficients")?
        .filter(|c| !c.is_empty())
        .ok_or(Invalid::MissingAttribute("coefficients"))?;
    let intercepts = n.floats("intercepts")?.filter(|i| !i.is_empty());
    let x = real(n, 0)?;
    let columns = n.type_of(x).and_then(|ty| ty.dims?.last()?.fixed()).filter(|c| *c > 0);
    let rows = match (rows, &intercepts, columns) {
        (_, _, Some(columns)) => coefficients.len() / columns,
        (Some(rows), _, None) => rows,
        (None, Some(intercepts), None) => intercepts.len(),
        (None, None, None) => {
            return Err(Reason::Input { index: 0, what: "must have a known number of columns" }.into());
        }
    };
    let wrong = || n.refuse("coefficients", "are not as many as columns of the input for each target");
    if rows == 0 || coefficients.len() % rows != 0 || intercepts.as_ref().is_some_and(|i| i.len() != rows) {
        return Err(wrong().into());
    }
    let weights = Tensor::new([rows, coefficients.len() / rows], &coefficients)
        .map_err(|error| Invalid::Other(error.to_string()))?;
    let weights = n.add_constant("coefficients", weights);
    let mut inputs = vec![Some(x), Some(weights)];
    if let Some(intercepts) = intercepts {
        inputs.push(Some(n.vector("intercepts", &intercepts)));
    }
    let gemm = Gemm { alpha: 1.0, beta: 1.0, transpose_a: false, transpose_b: true };
    Ok((n.step("scores", gemm, inputs), rows))
}

fn regress(n: &mut NodeReader<'_, '_>) -> Read {
    let targets = n.size_or("targets", 1)?;
    let transform = post_transform(n)?;
    let (scores, _) = linear(n, Some(targets))?;
    let output = n.output(0)?;
    finish(n, scores, transform, output)
}

fn classify(n: &mut NodeReader<'_, '_>) -> Read {
    n.ignore(&["multi_class"]);
    let transform = post_transform(n)?;
    let labels = class_labels(n, "classlabels_ints", "classlabels_strings")?;
    let (scores, rows) = linear(n, None)?;
    let scores = match (rows, labels.len()) {
        (rows, labels) if rows == labels => scores,
        // One score is for the second class, and against the first.
        (1, 2) => {
            let against = n.step("against", Unary { kind: UnaryKind::Neg }, vec![Some(scores)]);
            n.step("both", Concat { axis: 1 }, vec![Some(against), Some(scores)])
        }
        _ => {
            return Err(n
                .refuse("coefficients", "are not those of as many classes as there are labels")
                .into());
        }
    };
    best_label(n, scores, labels)?;
    let output = n.output(1)?;
    finish(n, scores, transform, output)
}
