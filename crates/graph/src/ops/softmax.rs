//! Softmax along an axis.

/// Softmax along an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Softmax {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// The logarithm of the softmax.
    pub log: bool,
    /// The axis and all behind it count as one (opsets below 13).
    pub flatten: bool,
}

super::support::pending!(Softmax);
