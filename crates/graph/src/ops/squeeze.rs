//! Axes of length one dropped.

/// Axes of length one dropped: inputs are data and axes (optional: all of length one).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Squeeze;

super::support::pending!(Squeeze);
