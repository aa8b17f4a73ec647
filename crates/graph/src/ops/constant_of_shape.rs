//! One value repeated in the shape that the input holds.

use armet_tensor::Tensor;

/// One value repeated in the shape that the input holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantOfShape {
    /// A tensor with one element: value and type of the result.
    pub value: Tensor,
}

super::support::pending!(ConstantOfShape);
