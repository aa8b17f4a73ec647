//! A strided part.

/// A strided part: inputs are data, starts, ends, axes (optional), steps (optional).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slice;

super::support::pending!(Slice);
