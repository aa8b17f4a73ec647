//! What is known of numbers and operators while a random graph grows: which numbers are exact in any order of sums, which
//! operators keep them so, and which jump.

use armet_graph::ops::numbers;
use armet_graph::ops::{BinaryKind, PoolKind, ReduceKind, UnaryKind};
use armet_graph::{Op, Value};
use armet_tensor::ElementType;

/// Elements of a value at most: by scalar meaning they are walked one by one.
pub(super) const MOST_ELEMENTS: usize = 2000;
/// Numbers beyond this make later differences meaningless.
const LARGEST: f64 = 500.0;

/// Whether numbers are few, finite and small.
pub(super) fn is_tame(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => {
            tensor.len() <= MOST_ELEMENTS
                && (!tensor.element().is_float()
                    || numbers::to_f64(tensor).is_ok_and(|v| v.iter().all(|v| v.abs() <= LARGEST)))
        }
        Value::Sequence(items) => items.iter().all(is_tame),
        Value::Optional(inner) => inner.as_deref().is_none_or(is_tame),
    }
}

/// Whether sums and products of these numbers lose nothing in single precision.
pub(super) fn is_exact(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) if tensor.element() == ElementType::F32 => numbers::to_f64(tensor)
            .is_ok_and(|v| v.iter().all(|v| (v * 256.0).fract() == 0.0 && v.abs() <= LARGEST)),
        Value::Tensor(tensor) => !tensor.element().is_float(),
        Value::Sequence(items) => items.iter().all(is_exact),
        Value::Optional(inner) => inner.as_deref().is_none_or(is_exact),
    }
}

/// Whether an operator's result is exact where its inputs are and the result is representable.
pub(super) fn keeps_exact(op: &Op) -> bool {
    match op {
        Op::Binary(op) => matches!(
            op.kind,
            BinaryKind::Add
                | BinaryKind::Sub
                | BinaryKind::Mul
                | BinaryKind::Min
                | BinaryKind::Max
                | BinaryKind::Equal
                | BinaryKind::Less
                | BinaryKind::Greater
                | BinaryKind::LessOrEqual
                | BinaryKind::GreaterOrEqual
                | BinaryKind::And
                | BinaryKind::Or
                | BinaryKind::Xor
        ),
        Op::Unary(op) => matches!(
            op.kind,
            UnaryKind::Abs
                | UnaryKind::Neg
                | UnaryKind::Floor
                | UnaryKind::Ceil
                | UnaryKind::Round
                | UnaryKind::Sign
                | UnaryKind::Relu
                | UnaryKind::Not
        ),
        Op::Reduce(op) => matches!(op.kind, ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min),
        Op::Clip(_)
        | Op::Where(_)
        | Op::Cast(_)
        | Op::Conv(_)
        | Op::MatMul(_)
        | Op::Concat(_)
        | Op::Split(_)
        | Op::Slice(_)
        | Op::Gather(_)
        | Op::GatherElements(_)
        | Op::GatherNd(_)
        | Op::Transpose(_)
        | Op::Reshape(_)
        | Op::Flatten(_)
        | Op::Squeeze(_)
        | Op::Unsqueeze(_)
        | Op::Expand(_)
        | Op::Tile(_)
        | Op::Pad(_)
        | Op::DepthToSpace(_)
        | Op::SpaceToDepth(_)
        | Op::Shape(_)
        | Op::Size(_)
        | Op::Identity(_)
        | Op::Trilu(_)
        | Op::QuantizeLinear(_)
        | Op::DequantizeLinear(_) => true,
        Op::Pool(op) => op.kind == PoolKind::Max,
        _ => false,
    }
}

/// Whether a last bit of an input can change the result by more than a few last bits.
pub(super) fn has_steps(op: &Op) -> bool {
    match op {
        Op::Binary(op) => !matches!(
            op.kind,
            BinaryKind::Add
                | BinaryKind::Sub
                | BinaryKind::Mul
                | BinaryKind::Div
                | BinaryKind::Min
                | BinaryKind::Max
                | BinaryKind::Pow
                | BinaryKind::PRelu
        ),
        Op::Unary(op) => matches!(
            op.kind,
            UnaryKind::Floor
                | UnaryKind::Ceil
                | UnaryKind::Round
                | UnaryKind::Sign
                | UnaryKind::IsNan
                | UnaryKind::Log
                | UnaryKind::Sqrt
                | UnaryKind::Reciprocal
                | UnaryKind::Tan
                | UnaryKind::Acosh
                | UnaryKind::Atanh
                | UnaryKind::Asin
                | UnaryKind::Acos
        ),
        Op::Clip(_)
        | Op::Where(_)
        | Op::Conv(_)
        | Op::ConvTranspose(_)
        | Op::MatMul(_)
        | Op::Gemm(_)
        | Op::GlobalPool(_)
        | Op::Softmax(_)
        | Op::BatchNormalization(_)
        | Op::LayerNormalization(_)
        | Op::Concat(_)
        | Op::Split(_)
        | Op::Slice(_)
        | Op::Gather(_)
        | Op::Transpose(_)
        | Op::Reshape(_)
        | Op::Flatten(_)
        | Op::Squeeze(_)
        | Op::Unsqueeze(_)
        | Op::Expand(_)
        | Op::Tile(_)
        | Op::Pad(_)
        | Op::Resize(_)
        | Op::DepthToSpace(_)
        | Op::SpaceToDepth(_)
        | Op::Shape(_)
        | Op::Size(_)
        | Op::Identity(_)
        | Op::Trilu(_)
        | Op::Cumulate(_) => false,
        Op::Reduce(op) => {
            !matches!(op.kind, ReduceKind::Sum | ReduceKind::Mean | ReduceKind::Max | ReduceKind::Min)
        }
        Op::Pool(op) => op.kind == PoolKind::Max,
        _ => true,
    }
}
