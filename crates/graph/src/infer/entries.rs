//! Integer vectors whose entries are numbers or symbolic dimensions, followed through shape arithmetic.
//!
//! An entry that is [`Dim::Unknown`] may be any integer. Other dimensions are never negative.

use armet_tensor::{Bool, ElementType, Shape, Tensor};

use crate::ops::{BinaryKind, ReduceKind, UnaryKind};
use crate::{Dim, Graph, Node, Op, ValueId};

/// One entry of an integer vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A number.
    Int(i64),
    /// A dimension with a name.
    Dim(Dim),
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::Dim(dim) => dim.fmt(f),
        }
    }
}

impl Entry {
    const UNKNOWN: Self = Self::Dim(Dim::Unknown);

    /// The number, when it is one.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            Self::Dim(dim) => dim.fixed().and_then(|n| i64::try_from(n).ok()),
        }
    }

    /// As a dimension; negative numbers are none.
    pub fn dim(&self) -> Option<Dim> {
        match self {
            Self::Int(n) => usize::try_from(*n).ok().map(Dim::Fixed),
            Self::Dim(dim) => Some(dim.clone()),
        }
    }

    fn from_dim(dim: &Dim) -> Self {
        dim.fixed().and_then(|n| i64::try_from(n).ok()).map_or_else(|| Self::Dim(dim.clone()), Self::Int)
    }
}

/// A tensor of these integers.
pub(super) fn to_tensor(element: ElementType, shape: &Shape, ints: &[i64]) -> Option<Tensor> {
    match element {
        ElementType::I64 => Tensor::new(shape.clone(), ints).ok(),
        ElementType::I32 => {
            let ints: Option<Vec<i32>> = ints.iter().map(|&i| i32::try_from(i).ok()).collect();
            Tensor::new(shape.clone(), &ints?).ok()
        }
        ElementType::Bool => {
            let bools: Vec<Bool> = ints.iter().map(|&i| Bool::from(i != 0)).collect();
            Tensor::new(shape.clone(), &bools).ok()
        }
        _ => None,
    }
}

/// Entries of a node's outputs, when they follow from those of its inputs. Inputs and outputs are scalars or vectors;
/// whoever calls checks that the number of entries is the one that the output's type has.
pub(super) fn propagate(
    graph: &Graph,
    node: &Node,
    read: &dyn Fn(ValueId) -> Option<Vec<Entry>>,
) -> Option<Vec<Vec<Entry>>> {
    let input = |i: usize| node.input(i).and_then(read);
    let one = match &node.op {
        Op::Shape(op) => {
            let dims = graph.value(node.input(0)?).ty.tensor()?.dims.as_ref()?;
            dims[op.range(dims.len())].iter().map(Entry::from_dim).collect()
        }
        Op::Size(_) => {
            let ty = graph.value(node.input(0)?).ty.tensor()?;
            vec![Entry::from_dim(&Dim::product(ty.dims.as_ref()?))]
        }
        // A dimension may be zero, so it is not known to be true.
        Op::Cast(op) if op.to == ElementType::Bool => {
            let flag = |e: &Entry| e.int().map_or(Entry::UNKNOWN, |n| Entry::Int(i64::from(n != 0)));
            input(0)?.iter().map(flag).collect()
        }
        Op::Identity(_)
        | Op::Cast(_)
        | Op::Reshape(_)
        | Op::Squeeze(_)
        | Op::Unsqueeze(_)
        | Op::Flatten(_)
        | Op::Transpose(_) => input(0)?,
        Op::Concat(_) => {
            let parts: Option<Vec<_>> = node.inputs.iter().map(|v| v.and_then(read)).collect();
            parts?.concat()
        }
        Op::Split(_) => {
            let mut rest = &input(0)?[..];
            let mut parts = Vec::with_capacity(node.outputs.len());
            for output in &node.outputs {
                let len = graph.value((*output)?).ty.shape()?.elements();
                let (part, tail) = rest.split_at_checked(len)?;
                parts.push(part.to_vec());
                rest = tail;
            }
            return Some(parts);
        }
        Op::Gather(_) => {
            let (data, indices) = (input(0)?, input(1)?);
            let pick = |index: &Entry| {
                let Some(index) = index.int() else { return Some(Entry::UNKNOWN) };
                let index =
                    if index < 0 { index.checked_add(i64::try_from(data.len()).ok()?)? } else { index };
                data.get(usize::try_from(index).ok()?).cloned()
            };
            indices.iter().map(pick).collect::<Option<_>>()?
        }
        Op::Slice(_) => {
            let data = input(0)?;
            let number = |i: usize| -> Option<i64> { input(i)?.first()?.int() };
            let step = if node.input(4).is_some() { number(4)? } else { 1 };
            let range = crate::ops::window::slice_range(data.len(), number(1)?, number(2)?, step)?;
            range.map(|i| data.get(i).cloned()).collect::<Option<_>>()?
        }
        Op::Expand(_) | Op::Tile(_) => {
            let data = input(0)?;
            let len = graph.value(node.output()?).ty.shape()?.elements();
            data.iter().cycle().take(if data.is_empty() { 0 } else { len }).cloned().collect()
        }
        Op::Binary(op) => binary(op.kind, &input(0)?, &input(1)?)?,
        Op::Unary(op) if op.kind == UnaryKind::Not => {
            let not = |e: &Entry| e.int().map_or(Entry::UNKNOWN, |n| Entry::Int(i64::from(n == 0)));
            input(0)?.iter().map(not).collect()
        }
        Op::Reduce(op) => {
            let kind = match op.kind {
                ReduceKind::Sum => BinaryKind::Add,
                ReduceKind::Prod => BinaryKind::Mul,
                ReduceKind::Max => BinaryKind::Max,
                ReduceKind::Min => BinaryKind::Min,
                _ => return None,
            };
            let data = input(0)?;
            // A vector has one axis: it is reduced unless the operator asks for nothing.
            if node.input(1).is_some() && input(1)?.is_empty() && op.noop_with_empty_axes {
                return Some(vec![data]);
            }
            let mut rest = data.into_iter();
            let first = rest.next()?;
            vec![rest.try_fold(first, |all, entry| combine(kind, &all, &entry))?]
        }
        Op::Where(_) => {
            let (condition, a, b) = (input(0)?, input(1)?, input(2)?);
            let count = broadcast_len(broadcast_len(condition.len(), a.len())?, b.len())?;
            let at = |v: &[Entry], i: usize| v[if v.len() == 1 { 0 } else { i }].clone();
            let pick = |i: usize| {
                let (a, b) = (at(&a, i), at(&b, i));
                match at(&condition, i).int() {
                    Some(0) => b,
                    Some(_) => a,
                    None if a == b => a,
                    None => Entry::UNKNOWN,
                }
            };
            (0..count).map(pick).collect()
        }
        Op::ConstantOfShape(op) => {
            let count = graph.value(node.output()?).ty.shape()?.elements();
            let value = op.value.to_i64()?.first().copied()?;
            vec![Entry::Int(value); count]
        }
        _ => return None,
    };
    Some(vec![one])
}

fn broadcast_len(a: usize, b: usize) -> Option<usize> {
    match (a, b) {
        (a, b) if a == b => Some(a),
        (1, n) | (n, 1) => Some(n),
        _ => None,
    }
}

fn binary(kind: BinaryKind, a: &[Entry], b: &[Entry]) -> Option<Vec<Entry>> {
    let at = |v: &[Entry], i: usize| v[if v.len() == 1 { 0 } else { i }].clone();
    let count = broadcast_len(a.len(), b.len())?;
    (0..count).map(|i| combine(kind, &at(a, i), &at(b, i))).collect()
}

fn numbers(kind: BinaryKind, x: i64, y: i64) -> Option<i64> {
    let flag = |f: bool| Some(i64::from(f));
    match kind {
        BinaryKind::Add => x.checked_add(y),
        BinaryKind::Sub => x.checked_sub(y),
        BinaryKind::Mul => x.checked_mul(y),
        // ONNX integer division truncates toward zero, as Rust's does.
        BinaryKind::Div => x.checked_div(y),
        // The remainder has the sign of the divisor, or with fmod that of the dividend.
        BinaryKind::Mod { fmod } => {
            let remainder = x.checked_rem(y)?;
            let other_sign = !fmod && remainder != 0 && (remainder < 0) != (y < 0);
            Some(if other_sign { remainder + y } else { remainder })
        }
        BinaryKind::Min => Some(x.min(y)),
        BinaryKind::Max => Some(x.max(y)),
        BinaryKind::Equal => flag(x == y),
        BinaryKind::Less => flag(x < y),
        BinaryKind::Greater => flag(x > y),
        BinaryKind::LessOrEqual => flag(x <= y),
        BinaryKind::GreaterOrEqual => flag(x >= y),
        BinaryKind::And => flag(x != 0 && y != 0),
        BinaryKind::Or => flag(x != 0 || y != 0),
        BinaryKind::Xor => flag((x != 0) != (y != 0)),
        _ => None,
    }
}

/// What a comparison of a dimension with a negative number, or with itself, gives whatever the dimension is.
fn compare(kind: BinaryKind, a: &Entry, b: &Entry) -> Option<bool> {
    let order = match (a, b) {
        (Entry::Dim(x), Entry::Dim(y)) if x == y && *x != Dim::Unknown => std::cmp::Ordering::Equal,
        (Entry::Dim(x), Entry::Int(n)) if *n < 0 && *x != Dim::Unknown => std::cmp::Ordering::Greater,
        (Entry::Int(n), Entry::Dim(x)) if *n < 0 && *x != Dim::Unknown => std::cmp::Ordering::Less,
        _ => return None,
    };
    match kind {
        BinaryKind::Equal => Some(order.is_eq()),
        BinaryKind::Less => Some(order.is_lt()),
        BinaryKind::Greater => Some(order.is_gt()),
        BinaryKind::LessOrEqual => Some(order.is_le()),
        BinaryKind::GreaterOrEqual => Some(order.is_ge()),
        _ => None,
    }
}

/// `None` where numbers are combined in a way that is not followed, or with no result.
fn combine(kind: BinaryKind, a: &Entry, b: &Entry) -> Option<Entry> {
    if let (Some(x), Some(y)) = (a.int(), b.int()) {
        return numbers(kind, x, y).map(Entry::Int);
    }
    if let Some(flag) = compare(kind, a, b) {
        return Some(Entry::Int(i64::from(flag)));
    }
    let negative = |entry: &Entry| match entry {
        Entry::Int(n) if *n < 0 => usize::try_from(n.unsigned_abs()).ok().map(Dim::Fixed),
        _ => None,
    };
    let dim = match (kind, a.dim(), b.dim()) {
        (BinaryKind::Add, Some(x), Some(y)) => x.add(&y),
        (BinaryKind::Sub, Some(x), Some(y)) => x.sub(&y),
        (BinaryKind::Mul, Some(x), Some(y)) => x.mul(&y),
        (BinaryKind::Div, Some(x), Some(y)) => x.floor_div(&y),
        (BinaryKind::Min, Some(x), Some(y)) => x.min(&y),
        (BinaryKind::Max, Some(x), Some(y)) => x.max(&y),
        // One of the two is a negative number.
        (BinaryKind::Add, Some(x), None) => negative(b).map_or(Dim::Unknown, |n| x.sub(&n)),
        (BinaryKind::Add, None, Some(y)) => negative(a).map_or(Dim::Unknown, |n| y.sub(&n)),
        (BinaryKind::Sub, Some(x), None) => negative(b).map_or(Dim::Unknown, |n| x.add(&n)),
        (BinaryKind::Max, Some(x), None) | (BinaryKind::Max, None, Some(x)) => x,
        _ => Dim::Unknown,
    };
    Some(Entry::from_dim(&dim))
}
