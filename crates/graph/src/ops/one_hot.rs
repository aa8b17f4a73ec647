//! Indicator vectors.

/// Indicator vectors: inputs are indices, depth, and values [off, on].
#[derive(Debug, Clone, PartialEq)]
pub struct OneHot {
    /// The axis of the result that is added; negative counts from its end.
    pub axis: i64,
}

super::support::pending!(OneHot);
