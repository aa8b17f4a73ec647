//! The upper or lower triangle of matrices, zero elsewhere.

/// The upper or lower triangle of matrices, zero elsewhere: inputs are data and diagonal (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Trilu {
    /// The upper triangle.
    pub upper: bool,
}

super::support::pending!(Trilu);
