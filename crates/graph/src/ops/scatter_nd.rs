//! A copy of the data with elements or slices written by coordinates.

/// A copy of the data with elements or slices written by coordinates: inputs are data, indices, updates.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterNd {
    /// How an update joins what is there.
    pub reduction: ScatterReduction,
}

/// How a scattered update joins the element that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ScatterReduction {
    /// It replaces it.
    #[default]
    None,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Larger.
    Max,
    /// Smaller.
    Min,
}

super::support::pending!(ScatterNd);
