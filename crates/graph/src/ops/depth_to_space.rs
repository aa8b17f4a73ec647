//! Channels rearranged into blocks of pixels.

/// Channels rearranged into blocks of pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct DepthToSpace {
    /// Side of a block.
    pub block_size: usize,
    /// Channels are outermost in a group (`CRD`), rather than block positions (`DCR`).
    pub column_row_depth: bool,
}

super::support::pending!(DepthToSpace);
