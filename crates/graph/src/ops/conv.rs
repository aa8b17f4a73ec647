//! Convolution.

/// Convolution: inputs are data [N,C,...], weights [M,C/group,...], bias [M] (optional), and a tensor of the result's shape added before the activation (optional, put there by a pass).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conv {
    /// Distance between windows, per spatial axis; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between taps, per spatial axis; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
    /// How padding is chosen.
    pub auto_pad: super::window::AutoPad,
    /// Number of groups.
    pub group: usize,
    /// Function applied to the result, put there by a pass.
    pub activation: Option<super::UnaryKind>,
}

super::support::pending!(Conv);
