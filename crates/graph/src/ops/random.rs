//! Random numbers; the shape is the attribute, or that of the input when there is one.

use armet_tensor::ElementType;

/// Random numbers; the shape is the attribute, or that of the input when there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Random {
    /// From which distribution.
    pub distribution: Distribution,
    /// Type of the result; `None` for the input's.
    pub element: Option<ElementType>,
    /// Shape of the result when there is no input.
    pub shape: Vec<usize>,
    /// Fixed seed of the model, if it has one.
    pub seed: Option<f32>,
}

/// A distribution of random numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Gaussian.
    Normal {
        /// Its mean.
        mean: f32,
        /// Its standard deviation.
        scale: f32,
    },
    /// Even between limits.
    Uniform {
        /// Lower limit.
        low: f32,
        /// Upper limit, excluded.
        high: f32,
    },
}

super::support::pending!(Random);
