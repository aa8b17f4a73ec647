//! Real numbers to uint8 by their own range; results are data, scale, zero point.

/// Real numbers to uint8 by their own range; results are data, scale, zero point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DynamicQuantizeLinear;

super::support::pending!(DynamicQuantizeLinear);
