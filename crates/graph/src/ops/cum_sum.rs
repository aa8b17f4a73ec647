//! Running sum.

/// Running sum: inputs are data and axis.
#[derive(Debug, Clone, PartialEq)]
pub struct CumSum {
    /// An element does not count itself.
    pub exclusive: bool,
    /// From the end.
    pub reverse: bool,
}

super::support::pending!(CumSum);
