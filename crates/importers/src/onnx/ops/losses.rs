//! Losses, said with the operators that they are defined by.

use armet_graph::ValueId;
use armet_graph::ops::{
    BinaryKind, Gather, GatherElements, Identity, ReduceKind, Softmax, Squeeze, UnaryKind, Unsqueeze, Where,
};

use super::compose::{all, binary, reduce_all, unary, with_number};
use super::{Entry, onnx};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("NegativeLogLikelihoodLoss", 12, |n| {
        let x = n.input(0)?;
        negative_log_likelihood(n, x)
    }),
    onnx("SoftmaxCrossEntropyLoss", 12, |n| {
        let scores = n.input(0)?;
        let op = Softmax { axis: 1, log: true, flatten: false };
        let logarithms = if n.wants(1) {
            let output = n.output(1)?.ok_or(Invalid::MissingOutput(1))?;
            n.emit_to(op, vec![Some(scores)], &[Some(output)]);
            output
        } else {
            n.step("logarithms", op, vec![Some(scores)])
        };
        negative_log_likelihood(n, logarithms)
    }),
];

/// What is done with the losses of single elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reduction {
    None,
    Sum,
    Mean,
}

/// The negated logarithm of the right class's likelihood, times the class's weight; the classes are axis 1 of `x`.
fn negative_log_likelihood(n: &mut NodeReader<'_, '_>, x: ValueId) -> Read {
    let words = [("none", Reduction::None), ("sum", Reduction::Sum), ("mean", Reduction::Mean)];
    let reduction = n.choice("reduction", Reduction::Mean, &words)?;
    let ignored = n.int("ignore_index")?;
    let (mut target, weight) = (n.input(1)?, n.optional(2)?);
    let mut counts = None;
    if let Some(ignored) = ignored {
        let is_ignored = with_number(n, "is_ignored", BinaryKind::Equal, target, ignored as f64);
        let some = unary(n, "counts", UnaryKind::Not, is_ignored);
        let zero = n.number_like("some_class", target, 0.0);
        target = n.step("target", Where, vec![Some(some), Some(target), Some(zero)]);
        counts = Some(some);
    }
    let axes = n.vector("axes", &[1i64]);
    let column = n.step("column", Unsqueeze, vec![Some(target), Some(axes)]);
    let picked = n.step("picked", GatherElements { axis: 1 }, vec![Some(x), Some(column)]);
    let picked = n.step("likelihoods", Squeeze, vec![Some(picked), Some(axes)]);
    let mut loss = unary(n, "losses", UnaryKind::Neg, picked);
    let mut weights =
        weight.map(|weight| n.step("weights", Gather { axis: 0 }, vec![Some(weight), Some(target)]));
    if let Some(weights) = weights {
        loss = binary(n, "weighted", BinaryKind::Mul, loss, weights);
    }
    if let Some(counts) = counts {
        let (zero, one) = (n.number_like("zero", x, 0.0), n.number_like("one", x, 1.0));
        loss = n.step("counted", Where, vec![Some(counts), Some(loss), Some(zero)]);
        let own = weights.unwrap_or(one);
        weights = Some(n.step("counted_weights", Where, vec![Some(counts), Some(own), Some(zero)]));
    }
    let y = n.output(0)?;
    match (reduction, weights) {
        (Reduction::None, _) => n.emit_to(Identity, vec![Some(loss)], &[y]),
        (Reduction::Sum, _) => n.emit_to(all(ReduceKind::Sum), vec![Some(loss)], &[y]),
        (Reduction::Mean, None) => n.emit_to(all(ReduceKind::Mean), vec![Some(loss)], &[y]),
        (Reduction::Mean, Some(weights)) => {
            let sum = reduce_all(n, "sum", ReduceKind::Sum, loss);
            let count = reduce_all(n, "count", ReduceKind::Sum, weights);
            let op = armet_graph::ops::Binary { kind: BinaryKind::Div };
            n.emit_to(op, vec![Some(sum), Some(count)], &[y]);
        }
    }
    Ok(())
}
