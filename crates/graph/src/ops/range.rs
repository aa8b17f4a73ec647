//! Numbers from start (first input) to limit (second, excluded) by delta (third).

/// Numbers from start (first input) to limit (second, excluded) by delta (third).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Range;

super::support::pending!(Range);
