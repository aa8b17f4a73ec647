//! Broadcast of the first input with the shape that the second holds.

/// Broadcast of the first input with the shape that the second holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expand;

super::support::pending!(Expand);
