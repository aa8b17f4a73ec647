//! Normalization over the axes from `axis` on.

/// Normalization over the axes from `axis` on: inputs are data, scale (optional), bias (optional); further results are mean and inverse standard deviation.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNormalization {
    /// First normalized axis; negative counts from the end.
    pub axis: i64,
    /// Added to the variance.
    pub epsilon: f32,
    /// Only the mean square is used and nothing subtracted (RMSNormalization).
    pub root_mean_square: bool,
}

super::support::pending!(LayerNormalization);
