//! Elements picked by index along one axis.

/// Elements picked by index along one axis: inputs are data and indices of the result's shape.
#[derive(Debug, Clone, PartialEq)]
pub struct GatherElements {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

super::support::pending!(GatherElements);
