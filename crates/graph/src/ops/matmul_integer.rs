//! Matrix product of 8-bit integers in int32.

/// Matrix product of 8-bit integers in int32: inputs are A, B, zero point of A (optional), of B (optional).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatMulInteger;

super::support::pending!(MatMulInteger);
