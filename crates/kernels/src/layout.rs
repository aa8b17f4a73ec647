//! Where channels are in memory.

/// The order of the dimensions of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelOrder {
    /// Batch, channels, spatial dimensions.
    First,
    /// Batch, spatial dimensions, channels.
    Last,
}
