//! How the elements of a logical shape lie in memory.

/// The order of axes in memory. Shapes are always logical (ONNX's order); only kernels and the layout pass see this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Row-major in the order of the logical shape (batch, channels, spatial axes for pictures).
    #[default]
    Plain,
    /// The channel axis (logical axis 1) is moved to the end: NCHW values lie as NHWC.
    ChannelsLast,
}

impl Layout {
    /// For each axis in memory, the logical axis that lies there.
    pub fn permutation(self, rank: usize) -> smallvec::SmallVec<[usize; 6]> {
        match self {
            Self::ChannelsLast if rank > 2 => {
                std::iter::once(0).chain(2..rank).chain(std::iter::once(1)).collect()
            }
            _ => (0..rank).collect(),
        }
    }

    /// The dimensions in memory order.
    pub fn physical(self, logical: &[usize]) -> crate::Shape {
        self.permutation(logical.len()).iter().map(|&axis| logical[axis]).collect()
    }

    /// Name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::ChannelsLast => "channels-last",
        }
    }
}
