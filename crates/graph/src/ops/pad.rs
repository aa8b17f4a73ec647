//! Margins.

/// Margins: inputs are data, pads (all begins, then all ends; negative removes), constant (optional), axes (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Pad {
    /// What fills the margins.
    pub mode: PadMode,
}

/// What fills margins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PadMode {
    /// One value.
    Constant,
    /// Mirror without repeating the edge.
    Reflect,
    /// The edge repeated.
    Edge,
    /// The other side.
    Wrap,
}

super::support::pending!(Pad);
