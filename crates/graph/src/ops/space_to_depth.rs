//! Blocks of pixels rearranged into channels.

/// Blocks of pixels rearranged into channels.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceToDepth {
    /// Side of a block.
    pub block_size: usize,
}

super::support::pending!(SpaceToDepth);
