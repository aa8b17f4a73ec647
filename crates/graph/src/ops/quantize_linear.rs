//! Real numbers to integers.

use armet_tensor::ElementType;

/// Real numbers to integers: inputs are data, scale, zero point (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizeLinear {
    /// Axis of the scales when they are not one; negative counts from the end.
    pub axis: i64,
    /// Elements that share a scale along the axis; 0 for each its own.
    pub block_size: usize,
    /// Type of the result; `None` for the zero point's, or uint8.
    pub element: Option<ElementType>,
    /// Out-of-range values become the largest (8-bit floats only).
    pub saturate: bool,
}

super::support::pending!(QuantizeLinear);
