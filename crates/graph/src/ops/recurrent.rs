//! LSTM, GRU or plain recurrent layer, inputs and results as ONNX has them.

/// LSTM, GRU or plain recurrent layer, inputs and results as ONNX has them: X, W, R, B, sequence_lens, initial_h, and for LSTM initial_c and P.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrent {
    /// Which cell.
    pub kind: RecurrentKind,
    /// Number of hidden units.
    pub hidden_size: usize,
    /// Order of time steps.
    pub direction: Direction,
    /// Activations of each direction in ONNX's order (f, g, h for LSTM; f, g for GRU; f for RNN).
    pub activations: Vec<RecurrentActivation>,
    /// Cell inputs are limited to this magnitude.
    pub clip: Option<f32>,
    /// Batch is the first axis rather than time.
    pub batch_first: bool,
    /// LSTM: input and forget gates are coupled.
    pub input_forget: bool,
    /// GRU: the reset gate is applied after the recurrent product.
    pub linear_before_reset: bool,
}

/// Which recurrent cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecurrentKind {
    /// Long short-term memory; gates in order i, o, f, c.
    Lstm,
    /// Gated recurrent unit; gates in order z, r, h.
    Gru,
    /// One activation.
    Rnn,
}

impl RecurrentKind {
    /// Gates of the cell: rows of the weights are this many times the hidden size.
    pub const fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Rnn => 1,
        }
    }
}

/// Order of time steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// First to last.
    Forward,
    /// Last to first.
    Reverse,
    /// Both, on two sets of weights.
    Bidirectional,
}

impl Direction {
    /// Number of directions.
    pub const fn count(self) -> usize {
        if matches!(self, Self::Bidirectional) { 2 } else { 1 }
    }
}

/// Activations of recurrent cells, with ONNX's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum RecurrentActivation {
    Sigmoid, Tanh, Relu, Softsign, Softplus,
    Affine { alpha: f32, beta: f32 },
    LeakyRelu { alpha: f32 },
    ThresholdedRelu { alpha: f32 },
    ScaledTanh { alpha: f32, beta: f32 },
    HardSigmoid { alpha: f32, beta: f32 },
    Elu { alpha: f32 },
}

super::support::pending!(Recurrent);
