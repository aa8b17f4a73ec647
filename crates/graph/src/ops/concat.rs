//! Tensors joined along an axis.

/// Tensors joined along an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Concat {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

super::support::pending!(Concat);
