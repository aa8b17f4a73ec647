//! A copy of the data with elements written by index along one axis.

/// A copy of the data with elements written by index along one axis: inputs are data, indices, updates.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterElements {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// How an update joins what is there.
    pub reduction: super::ScatterReduction,
}

super::support::pending!(ScatterElements);
