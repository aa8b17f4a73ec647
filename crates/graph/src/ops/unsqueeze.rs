//! Axes of length one added.

/// Axes of length one added: inputs are data and axes, counted in the result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unsqueeze;

super::support::pending!(Unsqueeze);
