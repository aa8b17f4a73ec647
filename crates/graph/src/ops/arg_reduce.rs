//! Index of the maximum or minimum along an axis, as int64.

/// Index of the maximum or minimum along an axis, as int64.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgReduce {
    /// Maximum or minimum.
    pub kind: ArgKind,
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// The axis stays with length one.
    pub keep_dims: bool,
    /// Of equal elements the last counts rather than the first.
    pub select_last_index: bool,
}

/// Which element is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgKind {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

super::support::pending!(ArgReduce);
