//! Integer vectors whose entries are numbers or symbolic dimensions, followed through shape arithmetic.

use armet_tensor::{Bool, ElementType, Shape, Tensor};

use crate::ops::{BinaryKind, UnaryKind};
use crate::{Dim, Graph, Node, Op, ValueId};

/// One entry of an integer vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A number.
    Int(i64),
    /// A dimension with a name.
    Dim(Dim),
}

impl Entry {
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

/// Entries of a node's first output, when they follow from those of its inputs.
pub(super) fn propagate(
    graph: &Graph,
    node: &Node,
    read: &dyn Fn(ValueId) -> Option<Vec<Entry>>,
) -> Option<Vec<Entry>> {
    let input = |i: usize| node.input(i).and_then(read);
    match &node.op {
        Op::Shape(op) => {
            let ty = graph.value(node.input(0)?).ty.tensor()?.clone();
            let dims = ty.dims?;
            let range = op.range(dims.len());
            Some(dims[range].iter().map(Entry::from_dim).collect())
        }
        Op::Size(_) => {
            let ty = graph.value(node.input(0)?).ty.tensor()?;
            Some(vec![Entry::from_dim(&Dim::product(ty.dims.as_ref()?))])
        }
        Op::Identity(_)
        | Op::Cast(_)
        | Op::Reshape(_)
        | Op::Squeeze(_)
        | Op::Unsqueeze(_)
        | Op::Flatten(_) => input(0),
        Op::Concat(_) => {
            let parts: Option<Vec<_>> = node.inputs.iter().map(|v| v.and_then(read)).collect();
            Some(parts?.concat())
        }
        Op::Gather(_) => {
            let (data, indices) = (input(0)?, input(1)?);
            indices
                .iter()
                .map(|index| {
                    let index = index.int()?;
                    let index = if index < 0 { index + data.len() as i64 } else { index };
                    data.get(usize::try_from(index).ok()?).cloned()
                })
                .collect()
        }
        Op::Slice(_) => {
            let data = input(0)?;
            let number = |i: usize| -> Option<i64> { input(i)?.first()?.int() };
            let step = if node.input(4).is_some() { number(4)? } else { 1 };
            let range = crate::ops::window::slice_range(data.len(), number(1)?, number(2)?, step)?;
            Some(range.map(|i| data[i].clone()).collect())
        }
        Op::Binary(op) => binary(op.kind, &input(0)?, &input(1)?),
        Op::Unary(op) if op.kind == UnaryKind::Not => {
            input(0)?.iter().map(|e| e.int().map(|n| Entry::Int(i64::from(n == 0)))).collect()
        }
        Op::Where(_) => {
            let (condition, a, b) = (input(0)?, input(1)?, input(2)?);
            let count = condition.len().max(a.len()).max(b.len());
            let at = |v: &[Entry], i: usize| v.get(if v.len() == 1 { 0 } else { i }).cloned();
            (0..count)
                .map(|i| match at(&condition, i)?.int()? {
                    0 => at(&b, i),
                    _ => at(&a, i),
                })
                .collect()
        }
        Op::ConstantOfShape(op) => {
            let count = graph.value(node.output()?).ty.shape()?.elements();
            let value = op.value.to_i64()?.first().copied()?;
            Some(vec![Entry::Int(value); count])
        }
        _ => None,
    }
}

fn binary(kind: BinaryKind, a: &[Entry], b: &[Entry]) -> Option<Vec<Entry>> {
    let count = match (a.len(), b.len()) {
        (x, y) if x == y => x,
        (1, y) => y,
        (x, 1) => x,
        _ => return None,
    };
    let at = |v: &[Entry], i: usize| v[if v.len() == 1 { 0 } else { i }].clone();
    (0..count).map(|i| combine(kind, &at(a, i), &at(b, i))).collect()
}

fn combine(kind: BinaryKind, a: &Entry, b: &Entry) -> Option<Entry> {
    if let (Some(x), Some(y)) = (a.int(), b.int()) {
        let flag = |f: bool| Some(i64::from(f));
        let value = match kind {
            BinaryKind::Add => x.checked_add(y),
            BinaryKind::Sub => x.checked_sub(y),
            BinaryKind::Mul => x.checked_mul(y),
            // ONNX integer division truncates toward zero, as Rust's does.
            BinaryKind::Div => x.checked_div(y),
            BinaryKind::Min => Some(x.min(y)),
            BinaryKind::Max => Some(x.max(y)),
            BinaryKind::Equal => flag(x == y),
            BinaryKind::Less => flag(x < y),
            BinaryKind::Greater => flag(x > y),
            BinaryKind::LessOrEqual => flag(x <= y),
            BinaryKind::GreaterOrEqual => flag(x >= y),
            BinaryKind::And => flag(x != 0 && y != 0),
            BinaryKind::Or => flag(x != 0 || y != 0),
            _ => None,
        };
        return value.map(Entry::Int);
    }
    let (x, y) = (a.dim()?, b.dim()?);
    let dim = match kind {
        BinaryKind::Add => x.add(&y),
        BinaryKind::Sub => x.sub(&y),
        BinaryKind::Mul => x.mul(&y),
        BinaryKind::Div => x.floor_div(&y),
        BinaryKind::Min => x.min(&y),
        BinaryKind::Max => x.max(&y),
        _ => return None,
    };
    (dim != Dim::Unknown).then_some(Entry::Dim(dim))
}
