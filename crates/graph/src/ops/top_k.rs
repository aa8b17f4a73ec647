//! The k largest or smallest along an axis, and their indices.

/// The k largest or smallest along an axis, and their indices: inputs are data and k.
#[derive(Debug, Clone, PartialEq)]
pub struct TopK {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// The largest rather than the smallest.
    pub largest: bool,
    /// In order.
    pub sorted: bool,
}

super::support::pending!(TopK);
