//! Pooling over a sliding window; maximum pooling may give indices as a second result.

/// Pooling over a sliding window; maximum pooling may give indices as a second result.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// What is computed.
    pub kind: PoolKind,
    /// Size of the window, per spatial axis.
    pub kernel: Vec<usize>,
    /// Distance between windows; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between taps; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
    /// How padding is chosen.
    pub auto_pad: super::window::AutoPad,
    /// The number of windows is rounded up.
    pub ceil_mode: bool,
    /// Averages count padding as zeros.
    pub count_include_pad: bool,
    /// Indices are counted in column-major order.
    pub column_major: bool,
}

/// What pooling computes of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The maximum.
    Max,
    /// The mean.
    Average,
    /// The Lp norm.
    Lp {
        /// The exponent.
        p: u32,
    },
}

super::support::pending!(Pool);
