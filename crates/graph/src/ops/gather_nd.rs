//! Elements or slices picked by coordinates.

/// Elements or slices picked by coordinates: inputs are data and indices, whose last axis holds coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct GatherNd {
    /// Leading axes that data and indices share.
    pub batch_dims: usize,
}

super::support::pending!(GatherNd);
