//! Einsum, said with transpositions, products and sums.
//!
//! Operands are joined two by two, from the left. A pair is a matrix product when an index is summed; several indices that
//! are summed, or left over from the same operand, are made one for it. Otherwise both are spread out and multiplied.

use armet_graph::ValueId;
use armet_graph::ops::{
    Binary, BinaryKind, Identity, Range, Reduce, ReduceKind, Reshape, Squeeze, Transpose, Unsqueeze, Where,
};
use armet_tensor::Tensor;

use super::{Entry, compose, onnx, products};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[onnx("Einsum", 12, einsum)];

/// An index: a letter, or one of the axes that `...` stands for, counted from the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Dots(usize),
    Letter(char),
}

/// A tensor and the index that each of its axes is.
struct Operand {
    value: ValueId,
    labels: Vec<Label>,
}

const MOST_LABELS: usize = 64;
const MOST_OPERANDS: usize = 64;

fn malformed() -> Invalid {
    Invalid::Other("its equation cannot be read".into())
}

/// The letters and dots of one term; dots are as many axes as the rank leaves.
fn labels(term: &str, dots: usize) -> Read<Vec<Label>> {
    let mut found = Vec::new();
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (term, None),
    };
    for (part, has_dots) in [(before, after.is_some()), (after.unwrap_or(""), false)] {
        for letter in part.chars() {
            if !letter.is_ascii_alphabetic() {
                return Err(malformed().into());
            }
            found.push(Label::Letter(letter));
        }
        if has_dots {
            found.extend((0..dots).rev().map(Label::Dots));
        }
    }
    if found.len() > MOST_LABELS {
        return Err(malformed().into());
    }
    Ok(found)
}

fn einsum(n: &mut NodeReader<'_, '_>) -> Read {
    let equation = n.word("equation")?.ok_or(Invalid::MissingAttribute("equation"))?;
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != n.input_count() {
        return Err(malformed().into());
    }
    if terms.len() > MOST_OPERANDS {
        return Err(n.unsupported("equation"));
    }
    let mut operands = Vec::with_capacity(terms.len());
    let (mut most_dots, mut all) = (0, Vec::new());
    for (index, term) in terms.iter().enumerate() {
        let value = n.input(index)?;
        let mut dots = 0;
        if term.contains("...") {
            let Some(rank) = n.rank(value) else {
                return Err(Reason::Input { index, what: "must have a known rank" }.into());
            };
            dots = rank.checked_sub(term.len() - 3).ok_or_else(malformed)?;
            most_dots = most_dots.max(dots);
        }
        let labels = labels(term, dots)?;
        all.extend_from_slice(&labels);
        let mut operand = Operand { value, labels };
        let mut step = 0;
        while let Some(pair) = repeated(&operand.labels) {
            operand = diagonal(n, &format!("{index}/diagonal/{step}"), operand, pair);
            step += 1;
        }
        operands.push(operand);
    }
    let wanted = match right {
        Some(right) => labels(right, most_dots)?,
        None => implicit(&all),
    };
    let known = |l: &Label| operands.iter().any(|o| o.labels.contains(l));
    if !wanted.iter().all(known) || wanted.iter().enumerate().any(|(i, l)| wanted[..i].contains(l)) {
        return Err(malformed().into());
    }
    let mut rest = operands.into_iter();
    let mut so_far = rest.next().ok_or_else(malformed)?;
    let mut later: Vec<Operand> = rest.collect();
    let mut step = 0;
    while !later.is_empty() {
        let next = later.remove(0);
        let needed = |l: &Label| wanted.contains(l) || later.iter().any(|o| o.labels.contains(l));
        so_far = join(n, step, so_far, next, &needed);
        step += 1;
    }
    let last = only(n, "sum", so_far, &|l| wanted.contains(l));
    let perm = permutation(&last.labels, &wanted).ok_or_else(malformed)?;
    if perm.iter().enumerate().all(|(i, &p)| i == p) {
        return n.emit(Identity, vec![Some(last.value)]);
    }
    n.emit(Transpose { perm }, vec![Some(last.value)])
}

/// The first two axes that are one index.
fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|i| labels[..i].iter().position(|l| *l == labels[i]).map(|first| (first, i)))
}

/// Only the elements whose index along both axes is the same; the second axis is dropped.
fn diagonal(
    n: &mut NodeReader<'_, '_>,
    suffix: &str,
    operand: Operand,
    (first, second): (usize, usize),
) -> Operand {
    let Operand { value, mut labels } = operand;
    let zero = n.add_constant(&format!("{suffix}/zero"), Tensor::scalar(0i64));
    let one = n.add_constant(&format!("{suffix}/one"), Tensor::scalar(1i64));
    let spread = |n: &mut NodeReader<'_, '_>, name: &str, axis: usize| {
        let name = format!("{suffix}/{name}");
        let length = compose::dim(n, &format!("{name}/length"), value, axis as i64);
        let index = n.step(&format!("{name}/index"), Range, vec![Some(zero), Some(length), Some(one)]);
        let shape: Vec<i64> = (axis..labels.len()).map(|i| if i == axis { -1 } else { 1 }).collect();
        compose::reshape(n, &name, index, &shape)
    };
    let (a, b) = (spread(n, "first", first), spread(n, "second", second));
    let same = compose::binary(n, &format!("{suffix}/same"), BinaryKind::Equal, a, b);
    // Adding zeros would not do: elsewhere there may be numbers that are not finite.
    let none = n.number_like(&format!("{suffix}/none"), value, 0.0);
    let kept = n.step(&format!("{suffix}/kept"), Where, vec![Some(same), Some(value), Some(none)]);
    let axes = n.vector(&format!("{suffix}/axes"), &[second as i64]);
    let op = Reduce { kind: ReduceKind::Sum, keep_dims: false, noop_with_empty_axes: false };
    let value = n.step(&format!("{suffix}/sum"), op, vec![Some(kept), Some(axes)]);
    labels.remove(second);
    Operand { value, labels }
}

/// Without a right side: the dots, then the letters that stand once, in alphabetic order.
fn implicit(all: &[Label]) -> Vec<Label> {
    let mut once: Vec<Label> = all
        .iter()
        .copied()
        .filter(|l| matches!(l, Label::Letter(_)) && all.iter().filter(|a| *a == l).count() == 1)
        .collect();
    once.sort_unstable();
    let dots = all.iter().filter_map(|l| if let Label::Dots(i) = l { Some(i + 1) } else { None }).max();
    (0..dots.unwrap_or(0)).rev().map(Label::Dots).chain(once).collect()
}

/// For each wanted index, its axis.
fn permutation(from: &[Label], to: &[Label]) -> Option<Vec<usize>> {
    to.iter().map(|l| from.iter().position(|f| f == l)).collect()
}

/// Sums over the indices that are not needed.
fn only(
    n: &mut NodeReader<'_, '_>,
    suffix: &str,
    operand: Operand,
    needed: &dyn Fn(&Label) -> bool,
) -> Operand {
    let axes: Vec<i64> =
        (0..operand.labels.len()).filter(|&i| !needed(&operand.labels[i])).map(|i| i as i64).collect();
    if axes.is_empty() {
        return operand;
    }
    let axes = n.vector(&format!("{suffix}/axes"), &axes);
    let op = Reduce { kind: ReduceKind::Sum, keep_dims: false, noop_with_empty_axes: false };
    let value = n.step(suffix, op, vec![Some(operand.value), Some(axes)]);
    Operand { value, labels: operand.labels.into_iter().filter(needed).collect() }
}

/// The operand with its axes in this order, and axes of length one for indices that it has not.
fn arranged(n: &mut NodeReader<'_, '_>, suffix: &str, operand: &Operand, order: &[Label]) -> ValueId {
    let own: Vec<Label> = order.iter().copied().filter(|l| operand.labels.contains(l)).collect();
    let mut value = operand.value;
    if own != operand.labels {
        let perm = own.iter().filter_map(|l| operand.labels.iter().position(|o| o == l)).collect();
        value = n.step(&format!("{suffix}/order"), Transpose { perm }, vec![Some(value)]);
    }
    let missing: Vec<i64> =
        (0..order.len()).filter(|&i| !own.contains(&order[i])).map(|i| i as i64).collect();
    if !missing.is_empty() {
        let axes = n.vector(&format!("{suffix}/missing"), &missing);
        value = n.step(&format!("{suffix}/spread"), Unsqueeze, vec![Some(value), Some(axes)]);
    }
    value
}

/// The product of two operands, summed over what only they have.
fn join(
    n: &mut NodeReader<'_, '_>,
    step: usize,
    a: Operand,
    b: Operand,
    needed: &dyn Fn(&Label) -> bool,
) -> Operand {
    let a = only(n, &format!("{step}/a/sum"), a, &|l| needed(l) || b.labels.contains(l));
    let b = only(n, &format!("{step}/b/sum"), b, &|l| needed(l) || a.labels.contains(l));
    let [both, summed, left, right] = groups(&a.labels, &b.labels, needed);
    // Dots may broadcast, which the summed axis of a product may not.
    let letter = |l: &Label| matches!(l, Label::Letter(_));
    if !summed.is_empty() && summed.iter().all(letter) {
        let single = summed.len() == 1 && left.len() <= 1 && right.len() <= 1;
        let join = if single { product } else { product_of_groups };
        return join(n, step, [&a, &b], [both, summed, left, right]);
    }
    let all: Vec<Label> = [both, left, right, summed].concat();
    let inputs = [(&a, "a"), (&b, "b")].map(|(o, s)| Some(arranged(n, &format!("{step}/{s}"), o, &all)));
    let value = n.step(&format!("{step}/product"), Binary { kind: BinaryKind::Mul }, inputs.to_vec());
    only(n, &format!("{step}/sum"), Operand { value, labels: all }, needed)
}

/// Indices of both that are needed, of both that are not, of the first only, and of the second only.
fn groups(a: &[Label], b: &[Label], needed: &dyn Fn(&Label) -> bool) -> [Vec<Label>; 4] {
    let mut found = [const { Vec::new() }; 4];
    for label in a {
        let group = if b.contains(label) { usize::from(!needed(label)) } else { 2 };
        found[group].push(*label);
    }
    found[3].extend(b.iter().filter(|l| !a.contains(l)));
    found
}

fn product(
    n: &mut NodeReader<'_, '_>,
    step: usize,
    [a, b]: [&Operand; 2],
    [both, summed, left, right]: [Vec<Label>; 4],
) -> Operand {
    // A product needs a row and a column; where there is none, an axis of length one stands in.
    let pad = |n: &mut NodeReader<'_, '_>, side: &str, value: ValueId, at: usize| {
        let axes = n.vector(&format!("{step}/{side}/one"), &[at as i64]);
        n.step(&format!("{step}/{side}/pad"), Unsqueeze, vec![Some(value), Some(axes)])
    };
    let mut rows = arranged(n, &format!("{step}/a"), a, &[&both[..], &left, &summed].concat());
    if left.is_empty() {
        rows = pad(n, "a", rows, both.len());
    }
    let mut columns = arranged(n, &format!("{step}/b"), b, &[&both[..], &summed, &right].concat());
    if right.is_empty() {
        columns = pad(n, "b", columns, both.len() + 1);
    }
    let mut value = n.step(&format!("{step}/product"), products::PLAIN, vec![Some(rows), Some(columns)]);
    let ones: Vec<i64> = [(&left, 0), (&right, 1)]
        .iter()
        .filter(|(g, _)| g.is_empty())
        .map(|(_, at)| (both.len() + at) as i64)
        .collect();
    if !ones.is_empty() {
        let axes = n.vector(&format!("{step}/ones"), &ones);
        value = n.step(&format!("{step}/squeezed"), Squeeze, vec![Some(value), Some(axes)]);
    }
    Operand { value, labels: [both, left, right].concat() }
}

/// A matrix product in which several indices are one row, column or common index.
fn product_of_groups(
    n: &mut NodeReader<'_, '_>,
    step: usize,
    [a, b]: [&Operand; 2],
    [both, summed, left, right]: [Vec<Label>; 4],
) -> Operand {
    let rows = arranged(n, &format!("{step}/a"), a, &[&both[..], &left, &summed].concat());
    let columns = arranged(n, &format!("{step}/b"), b, &[&both[..], &summed, &right].concat());
    let (rows, [row_lengths, _]) =
        grouped(n, &format!("{step}/a"), rows, [both.len(), left.len(), summed.len()]);
    let (columns, [_, column_lengths]) =
        grouped(n, &format!("{step}/b"), columns, [both.len(), summed.len(), right.len()]);
    let value = n.step(&format!("{step}/product"), products::PLAIN, vec![Some(rows), Some(columns)]);
    let mut parts = Vec::new();
    if !both.is_empty() {
        parts.push(compose::dims(n, &format!("{step}/batch"), value, 0, Some(both.len() as i64)));
    }
    parts.extend([row_lengths, column_lengths].into_iter().flatten());
    let shape = if parts.is_empty() {
        n.vector::<i64>(&format!("{step}/scalar"), &[])
    } else {
        compose::concat(n, &format!("{step}/shape"), 0, &parts)
    };
    let value =
        n.step(&format!("{step}/apart"), Reshape { allow_zero: true }, vec![Some(value), Some(shape)]);
    Operand { value, labels: [both, left, right].concat() }
}

/// A tensor of three groups of axes, of which the last two become one axis each; the lengths of their axes before, where
/// there are any.
fn grouped(
    n: &mut NodeReader<'_, '_>,
    suffix: &str,
    value: ValueId,
    [batch, first, second]: [usize; 3],
) -> (ValueId, [Option<ValueId>; 2]) {
    let bounds = [0, batch, batch + first, batch + first + second].map(|at| at as i64);
    let names = ["batch", "first", "second"];
    let mut lengths = [None; 3];
    for (i, name) in names.iter().enumerate().filter(|(i, _)| bounds[*i] < bounds[i + 1]) {
        lengths[i] =
            Some(compose::dims(n, &format!("{suffix}/{name}"), value, bounds[i], Some(bounds[i + 1])));
    }
    let mut shape: Vec<ValueId> = lengths[0].into_iter().collect();
    for (lengths, name) in lengths[1..].iter().zip(["rows", "columns"]) {
        shape.push(match lengths {
            Some(lengths) => {
                let op = Reduce { kind: ReduceKind::Prod, keep_dims: true, noop_with_empty_axes: false };
                n.step(&format!("{suffix}/{name}"), op, vec![Some(*lengths)])
            }
            None => n.vector(&format!("{suffix}/{name}"), &[1i64]),
        });
    }
    let shape = compose::concat(n, &format!("{suffix}/shape"), 0, &shape);
    let value =
        n.step(&format!("{suffix}/grouped"), Reshape { allow_zero: true }, vec![Some(value), Some(shape)]);
    (value, [lengths[1], lengths[2]])
}
