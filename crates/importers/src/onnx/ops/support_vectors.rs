//! `ai.onnx.ml`: support vector machines.

use armet_graph::ValueId;
use armet_graph::ops::{
    BinaryKind, Cast, Concat, Gemm, Reduce, ReduceKind, SvmProbabilities, Unary, UnaryKind, Unsqueeze, Where,
};
use armet_tensor::{ElementType, Tensor};

use super::learning::{best_label, binary, class_labels, finish, post_transform, real};
use super::{Entry, learning};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] =
    &[learning("SVMRegressor", 1, regress), learning("SVMClassifier", 1, classify)];

/// How alike two rows are.
fn kernel(n: &mut NodeReader<'_, '_>, x: ValueId, vectors: &[f32], count: usize) -> Read<ValueId> {
    let parameters = n.floats("kernel_params")?.unwrap_or_default();
    let [gamma, offset, degree] = [0, 1, 2].map(|i| parameters.get(i).copied().unwrap_or(0.0));
    let name = n.word("kernel_type")?.unwrap_or("LINEAR").to_owned();
    let columns = vectors.len() / count;
    let tensor =
        |shape: &[usize]| Tensor::new(shape, vectors).map_err(|error| Invalid::Other(error.to_string()));
    if name == "RBF" {
        let vectors = n.add_constant("vectors", tensor(&[count, columns])?);
        let axes = n.vector("axes", &[1i64]);
        let upright = n.step("upright", Unsqueeze, vec![Some(x), Some(axes)]);
        let apart = n.step("apart", binary(BinaryKind::Sub), vec![Some(upright), Some(vectors)]);
        let along = n.vector("along", &[-1i64]);
        let op = Reduce { kind: ReduceKind::SumSquare, keep_dims: false, noop_with_empty_axes: false };
        let distance = n.step("distance", op, vec![Some(apart), Some(along)]);
        let gamma = n.add_constant("gamma", Tensor::scalar(-gamma));
        let scaled = n.step("scaled", binary(BinaryKind::Mul), vec![Some(distance), Some(gamma)]);
        return Ok(n.step("kernel", Unary { kind: UnaryKind::Exp }, vec![Some(scaled)]));
    }
    let vectors = n.add_constant("vectors", tensor(&[count, columns])?);
    let alpha = if name == "LINEAR" { 1.0 } else { gamma };
    let gemm = Gemm { alpha, beta: 1.0, transpose_a: false, transpose_b: true };
    let product = n.step("product", gemm, vec![Some(x), Some(vectors)]);
    if name == "LINEAR" {
        return Ok(product);
    }
    let offset = n.add_constant("offset", Tensor::scalar(offset));
    let moved = n.step("moved", binary(BinaryKind::Add), vec![Some(product), Some(offset)]);
    match name.as_str() {
        "POLY" => {
            let degree = n.add_constant("degree", Tensor::scalar(degree));
            Ok(n.step("kernel", binary(BinaryKind::Pow), vec![Some(moved), Some(degree)]))
        }
        "SIGMOID" => Ok(n.step("kernel", Unary { kind: UnaryKind::Tanh }, vec![Some(moved)])),
        _ => Err(n.unsupported("kernel_type")),
    }
}

fn regress(n: &mut NodeReader<'_, '_>) -> Read {
    let transform = post_transform(n)?;
    let one_class = n.flag("one_class", false)?;
    let coefficients = n.floats("coefficients")?.ok_or(Invalid::MissingAttribute("coefficients"))?;
    let rho = n.floats("rho")?.and_then(|rho| rho.first().copied()).unwrap_or(0.0);
    let supports = n.size_or("n_supports", 0)?;
    let vectors = n.floats("support_vectors")?.unwrap_or_default();
    let x = real(n, 0)?;
    // Without support vectors the coefficients are those of a linear model.
    let (alike, count) = if supports == 0 {
        n.ignore(&["kernel_type", "kernel_params"]);
        (x, coefficients.len())
    } else {
        if vectors.is_empty() || vectors.len() % supports != 0 || coefficients.len() != supports {
            return Err(n.refuse("n_supports", "does not fit support_vectors and coefficients").into());
        }
        (kernel(n, x, &vectors, supports)?, supports)
    };
    let weights =
        Tensor::new([1, count], &coefficients).map_err(|error| Invalid::Other(error.to_string()))?;
    let weights = n.add_constant("coefficients", weights);
    let rho = n.vector("rho", &[rho]);
    let gemm = Gemm { alpha: 1.0, beta: 1.0, transpose_a: false, transpose_b: true };
    let mut score = n.step("score", gemm, vec![Some(alike), Some(weights), Some(rho)]);
    if one_class {
        let [zero, yes, no] = [("zero", 0f32), ("yes", 1.0), ("no", -1.0)]
            .map(|(name, v)| n.add_constant(name, Tensor::scalar(v)));
        let inside = n.step("inside", binary(BinaryKind::Greater), vec![Some(score), Some(zero)]);
        score = n.step("class", Where, vec![Some(inside), Some(yes), Some(no)]);
    }
    let output = n.output(0)?;
    finish(n, score, transform, output)
}

fn matrix(rows: usize, columns: usize, values: &[f32]) -> Read<Tensor> {
    Ok(Tensor::new([rows, columns], values).map_err(|error| Invalid::Other(error.to_string()))?)
}

/// A machine for each pair of classes, or, without support vectors, a linear model for each class.
fn classify(n: &mut NodeReader<'_, '_>) -> Read {
    let transform = post_transform(n)?;
    let labels = class_labels(n, "classlabels_ints", "classlabels_strings")?;
    let classes = labels.len();
    let coefficients = n.floats("coefficients")?.ok_or(Invalid::MissingAttribute("coefficients"))?;
    let rho = n.floats("rho")?.unwrap_or_default();
    let (slopes, offsets) =
        (n.floats("prob_a")?.unwrap_or_default(), n.floats("prob_b")?.unwrap_or_default());
    let counts = n.sizes("vectors_per_class")?;
    let vectors = n.floats("support_vectors")?.unwrap_or_default();
    let x = real(n, 0)?;
    let gemm = |transpose_b| Gemm { alpha: 1.0, beta: 1.0, transpose_a: false, transpose_b };
    let count = counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
    let count = count.ok_or_else(|| n.refuse("vectors_per_class", "is too large"))?;
    if count == 0 {
        n.ignore(&["kernel_type", "kernel_params"]);
        if coefficients.is_empty() || coefficients.len() % classes != 0 {
            return Err(n.refuse("coefficients", "are not as many for each class").into());
        }
        let weights = matrix(classes, coefficients.len() / classes, &coefficients)?;
        let weights = n.add_constant("coefficients", weights);
        let rho = n.vector("rho", &[rho.first().copied().unwrap_or(0.0)]);
        let scores = n.step("scores", gemm(true), vec![Some(x), Some(weights), Some(rho)]);
        best_label(n, scores, labels)?;
        let output = n.output(1)?;
        return finish(n, scores, transform, output);
    }
    let pairs = classes * (classes - 1) / 2;
    if counts.len() != classes
        || vectors.len() % count != 0
        || vectors.is_empty()
        || coefficients.len() != count * (classes - 1)
        || rho.len() != pairs
        || (!slopes.is_empty() && (slopes.len() != pairs || offsets.len() != pairs))
    {
        return Err(Invalid::Other("the lists do not fit the numbers of classes and vectors".into()).into());
    }
    let alike = kernel(n, x, &vectors, count)?;
    let starts: Vec<usize> = counts
        .iter()
        .scan(0, |sum, &count| {
            *sum += count;
            Some(*sum - count)
        })
        .collect();
    // A pair's score weighs the vectors of its two classes; a positive one is a vote for the first.
    let (mut weights, mut votes) = (vec![0f32; count * pairs], vec![0f32; pairs * classes]);
    let mut sure = vec![0f32; classes];
    let mut pair = 0;
    for i in 0..classes {
        for j in i + 1..classes {
            for (class, row) in [(i, j - 1), (j, i)] {
                for at in starts[class]..starts[class] + counts[class] {
                    weights[at * pairs + pair] = coefficients[row * count + at];
                }
            }
            votes[pair * classes + i] = 1.0;
            votes[pair * classes + j] = -1.0;
            sure[j] += 1.0;
            pair += 1;
        }
    }
    let weights = n.add_constant("coefficients", matrix(count, pairs, &weights)?);
    let rho = n.vector("rho", &rho);
    let scores = n.step("pairs", gemm(false), vec![Some(alike), Some(weights), Some(rho)]);
    let zero = n.add_constant("zero", Tensor::scalar(0f32));
    let first = n.step("first", binary(BinaryKind::Greater), vec![Some(scores), Some(zero)]);
    let first = n.step("ones", Cast { to: ElementType::F32, saturate: true }, vec![Some(first)]);
    let votes = n.add_constant("votes", matrix(pairs, classes, &votes)?);
    let sure = n.vector("sure", &sure);
    let won = n.step("won", gemm(false), vec![Some(first), Some(votes), Some(sure)]);
    best_label(n, won, labels)?;
    let output = n.output(1)?;
    let scores = if !slopes.is_empty() {
        n.step("probabilities", SvmProbabilities { classes, slopes, offsets }, vec![Some(scores)])
    } else if classes == 2 {
        let against = n.step("against", Unary { kind: UnaryKind::Neg }, vec![Some(scores)]);
        n.step("both", Concat { axis: 1 }, vec![Some(against), Some(scores)])
    } else {
        scores
    };
    finish(n, scores, transform, output)
}
