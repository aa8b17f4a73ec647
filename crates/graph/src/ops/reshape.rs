//! Another shape for the same elements.

/// Another shape for the same elements: inputs are data and shape, where -1 is inferred and 0 copies the input's dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Reshape {
    /// A 0 in the shape is a length of zero.
    pub allow_zero: bool,
}

super::support::pending!(Reshape);
