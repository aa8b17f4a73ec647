//! Elements limited to a range.

/// Elements limited to a range: inputs are data, minimum (optional), maximum (optional).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clip;

super::support::pending!(Clip);
