//! Affine quantization as part of a value's type: `real = (stored - zero_point) * scale`.

/// Scale and zero point of an integer value, per tensor, per index of one axis, or per block along one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantization {
    /// One scale, or one for each index of `axis` (or each block).
    pub scale: Vec<f32>,
    /// As many as scales; the stored value that means zero.
    pub zero_point: Vec<i32>,
    /// The logical axis along which scales differ; `None` when one scale serves the whole tensor.
    pub axis: Option<usize>,
    /// Elements along `axis` that share a scale; `None` when each index has its own.
    pub block: Option<usize>,
}

impl Quantization {
    /// One scale and zero point for the whole tensor.
    pub fn per_tensor(scale: f32, zero_point: i32) -> Self {
        Self { scale: vec![scale], zero_point: vec![zero_point], axis: None, block: None }
    }

    /// Whether one scale serves the whole tensor.
    pub fn is_per_tensor(&self) -> bool {
        self.axis.is_none()
    }
}
