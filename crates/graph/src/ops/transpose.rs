//! Axes in another order.

/// Axes in another order.
#[derive(Debug, Clone, PartialEq)]
pub struct Transpose {
    /// For each axis of the result, the axis of the input; empty reverses all.
    pub perm: Vec<usize>,
}

super::support::pending!(Transpose);
