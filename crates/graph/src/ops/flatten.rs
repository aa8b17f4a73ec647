//! A matrix.

/// A matrix: axes before `axis` become the first, the others the second.
#[derive(Debug, Clone, PartialEq)]
pub struct Flatten {
    /// The axis; negative counts from the end.
    pub axis: i64,
}

super::support::pending!(Flatten);
