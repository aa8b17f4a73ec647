//! `scale * (x - mean) / sqrt(variance + epsilon) + bias` per channel.

/// `scale * (x - mean) / sqrt(variance + epsilon) + bias` per channel: inputs are data, scale, bias, mean, variance.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNormalization {
    /// Added to the variance.
    pub epsilon: f32,
}

super::support::pending!(BatchNormalization);
