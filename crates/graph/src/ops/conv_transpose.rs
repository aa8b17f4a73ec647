//! Transposed convolution.

/// Transposed convolution: inputs are data [N,C,...], weights [C,M/group,...], bias [M] (optional).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConvTranspose {
    /// Distance between windows, per spatial axis; empty means 1.
    pub strides: Vec<usize>,
    /// Distance between taps, per spatial axis; empty means 1.
    pub dilations: Vec<usize>,
    /// Padding cut from the result: all begins, then all ends; empty means 0.
    pub pads: Vec<usize>,
    /// Added to one side of the result; empty means 0.
    pub output_padding: Vec<usize>,
    /// Spatial shape of the result, from which padding follows; empty means not given.
    pub output_shape: Vec<usize>,
    /// How padding is chosen.
    pub auto_pad: super::window::AutoPad,
    /// Number of groups.
    pub group: usize,
    /// Function applied to the result, put there by a pass.
    pub activation: Option<super::UnaryKind>,
}

super::support::pending!(ConvTranspose);
