//! A tensor cut along an axis.

/// A tensor cut along an axis: inputs are data and the lengths (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// Number of parts when no lengths are given.
    pub parts: usize,
}

super::support::pending!(Split);
