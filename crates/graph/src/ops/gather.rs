//! Entries of one axis.

/// Entries of one axis: inputs are data and indices.
#[derive(Debug, Clone, PartialEq)]
pub struct Gather {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

super::support::pending!(Gather);
