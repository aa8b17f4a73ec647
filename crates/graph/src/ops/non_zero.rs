//! Coordinates of the elements that are not zero.

/// Coordinates of the elements that are not zero: int64 [rank, count], in row-major order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NonZero;

super::support::pending!(NonZero);
