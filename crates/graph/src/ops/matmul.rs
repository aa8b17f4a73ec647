//! `alpha * A * B`, batched over leading axes with broadcasting, plus a bias for the last axis (third input, optional) and a tensor of the result's shape added before the activation (fourth, optional).

/// `alpha * A * B`, batched over leading axes with broadcasting, plus a bias for the last axis (third input, optional) and a tensor of the result's shape added before the activation (fourth, optional).
#[derive(Debug, Clone, PartialEq)]
pub struct MatMul {
    /// The last two axes of A are exchanged (put there by a pass).
    pub transpose_a: bool,
    /// The last two axes of B are exchanged (put there by a pass).
    pub transpose_b: bool,
    /// Factor of the product.
    pub alpha: f32,
    /// Function applied to the result, put there by a pass.
    pub activation: Option<super::UnaryKind>,
}

super::support::pending!(MatMul);
