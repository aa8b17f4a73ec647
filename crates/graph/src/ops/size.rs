//! The number of elements of a tensor, as an int64 scalar.

/// The number of elements of a tensor, as an int64 scalar.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Size;

super::support::pending!(Size);
