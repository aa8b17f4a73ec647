//! `alpha * A' * B' + beta * C` of matrices; C (optional) broadcasts to the result.

/// `alpha * A' * B' + beta * C` of matrices; C (optional) broadcasts to the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemm {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of C.
    pub beta: f32,
    /// A is transposed.
    pub transpose_a: bool,
    /// B is transposed.
    pub transpose_b: bool,
}

super::support::pending!(Gemm);
