//! Integers to real numbers.

/// Integers to real numbers: inputs are data, scale, zero point (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct DequantizeLinear {
    /// Axis of the scales when they are not one; negative counts from the end.
    pub axis: i64,
    /// Elements that share a scale along the axis; 0 for each its own.
    pub block_size: usize,
}

super::support::pending!(DequantizeLinear);
