//! Normalization of groups of channels of each item over the spatial axes.

/// Normalization of groups of channels of each item over the spatial axes: inputs are data, scale, bias.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceNormalization {
    /// Added to the variance.
    pub epsilon: f32,
    /// Channels are normalized in this many groups; `None` for each on its own.
    pub groups: Option<usize>,
}

super::support::pending!(InstanceNormalization);
