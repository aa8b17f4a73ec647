//! Convolution of 8-bit integers in int32.

/// Convolution of 8-bit integers in int32: inputs are data, weights, zero point of data (optional), of weights (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct ConvInteger {
    /// Windows, padding and groups, as for Conv; its activation is not used.
    pub conv: super::Conv,
}

super::support::pending!(ConvInteger);
