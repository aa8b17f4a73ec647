//! Reduction over axes.

/// Reduction over axes: inputs are data and axes (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Reduce {
    /// What is computed.
    pub kind: ReduceKind,
    /// Reduced axes stay with length one.
    pub keep_dims: bool,
    /// Without axes the result is the input, rather than the reduction over all axes.
    pub noop_with_empty_axes: bool,
}

/// What a reduction computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is ONNX's operator Reduce... of its name")]
pub enum ReduceKind {
    Sum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSum, LogSumExp,
}

super::support::pending!(Reduce);
