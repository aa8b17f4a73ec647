//! Conversion of the element type, as ONNX Cast.

use armet_tensor::ElementType;

/// Conversion of the element type, as ONNX Cast.
#[derive(Debug, Clone, PartialEq)]
pub struct Cast {
    /// Type to convert to.
    pub to: ElementType,
    /// Out-of-range values become the largest value instead of NaN or infinity (8-bit floats only).
    pub saturate: bool,
}

super::support::pending!(Cast);
