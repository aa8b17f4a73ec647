//! Interpolation.

/// Interpolation: inputs are data, region of interest (optional), scales (optional), sizes (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Resize {
    /// Interpolation.
    pub mode: ResizeMode,
    /// How a coordinate of the result maps to one of the input.
    pub coordinate: CoordinateMode,
    /// Rounding of coordinates for nearest.
    pub nearest: NearestMode,
    /// Coefficient `a` of cubic interpolation.
    pub cubic_coeff_a: f32,
    /// Cubic weights outside the picture count as zero.
    pub exclude_outside: bool,
    /// Value outside the picture for `TfCropAndResize`.
    pub extrapolation_value: f32,
    /// Shrinking averages over all covered elements.
    pub antialias: bool,
    /// Axes that scales or sizes are for; `None` for all.
    pub axes: Option<Vec<i64>>,
    /// What sizes mean for the aspect ratio.
    pub aspect: AspectPolicy,
}

/// Interpolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum ResizeMode {
    Nearest, Linear, Cubic,
}

/// Coordinate transformation, ONNX's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum CoordinateMode {
    HalfPixel, HalfPixelSymmetric, PytorchHalfPixel, AlignCorners, Asymmetric, TfCropAndResize, TfHalfPixelForNn,
}

/// Rounding of a coordinate, ONNX's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum NearestMode {
    RoundPreferFloor, RoundPreferCeil, Floor, Ceil,
}

/// What sizes mean for the aspect ratio, ONNX's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum AspectPolicy {
    Stretch, NotLarger, NotSmaller,
}

super::support::pending!(Resize);
