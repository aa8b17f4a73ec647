//! Interpolation.

use armet_tensor::{ElementType, Shape, Tensor};

use super::movement::{self, around};
use super::{numbers, support};
use crate::evaluate::{optional, tensor};
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Value,
    ValueType,
};

mod cases;
mod taps;

pub use taps::{AxisScale, Taps};

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
    Nearest,
    Linear,
    Cubic,
}

/// Coordinate transformation, ONNX's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum CoordinateMode {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfCropAndResize,
    TfHalfPixelForNn,
}

/// Rounding of a coordinate, ONNX's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum NearestMode {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
    /// Up to opset 10, which has no word for it: up where the axis shrinks, down where it grows.
    CeilWhenShrinking,
}

/// What sizes mean for the aspect ratio, ONNX's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum AspectPolicy {
    Stretch,
    NotLarger,
    NotSmaller,
}

impl ResizeMode {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::Linear => "linear",
            Self::Cubic => "cubic",
        }
    }
}

impl CoordinateMode {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HalfPixel => "half_pixel",
            Self::HalfPixelSymmetric => "half_pixel_symmetric",
            Self::PytorchHalfPixel => "pytorch_half_pixel",
            Self::AlignCorners => "align_corners",
            Self::Asymmetric => "asymmetric",
            Self::TfCropAndResize => "tf_crop_and_resize",
            Self::TfHalfPixelForNn => "tf_half_pixel_for_nn",
        }
    }
}

impl NearestMode {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundPreferFloor => "round_prefer_floor",
            Self::RoundPreferCeil => "round_prefer_ceil",
            Self::Floor => "floor",
            Self::Ceil => "ceil",
            Self::CeilWhenShrinking => "ceil_when_shrinking",
        }
    }
}

impl AspectPolicy {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stretch => "stretch",
            Self::NotLarger => "not_larger",
            Self::NotSmaller => "not_smaller",
        }
    }
}

/// What decides the result's size.
enum Target {
    Scales(Vec<f64>),
    Sizes(Vec<Entry>),
}

/// Whether an input is there and not empty: exporters pass an empty tensor for one left out.
fn given(inputs: &InferInputs<'_>, index: usize) -> bool {
    let empty = |ty: &TensorType| ty.dims.as_ref().is_some_and(|dims| dims.iter().any(|dim| dim.is(0)));
    inputs.has(index) && !inputs.tensor(index).is_ok_and(empty)
}

/// `floor(len * scale)`, in single precision as onnxruntime and ONNX's own shape inference compute it.
fn scaled(len: usize, scale: f64) -> usize {
    (len as f32 * scale as f32).floor() as usize
}

/// A dimension times a scale.
fn scaled_dim(dim: &Dim, scale: f64) -> Dim {
    if let Some(len) = dim.fixed() {
        return Dim::Fixed(scaled(len, scale));
    }
    // Whole numbers over a power of two: the floating-point product is exact for every length that occurs.
    for shift in 0..=10u32 {
        let part = scale * f64::from(1 << shift);
        if part.fract() == 0.0 && part <= 4096.0 {
            return dim.mul(&Dim::Fixed(part as usize)).floor_div(&Dim::Fixed(1 << shift));
        }
    }
    Dim::Unknown
}

impl Resize {
    /// Axes that scales or sizes are for.
    fn axes(&self, rank: usize) -> Result<Vec<usize>, InferError> {
        match &self.axes {
            Some(axes) => support::axes(axes, rank),
            None => Ok((0..rank).collect()),
        }
    }

    fn target(inputs: &InferInputs<'_>, axes: usize) -> Result<Target, InferError> {
        let fits = |name: &str, count: usize| {
            if count == axes {
                return Ok(());
            }
            Err(InferError::Mismatch(format!("{axes} axes to resize need as many {name}, not {count}")))
        };
        if given(inputs, 3) {
            let sizes = inputs.entries(3)?;
            fits("sizes", sizes.len())?;
            if sizes.iter().any(|size| size.dim().is_none()) {
                return Err(InferError::Mismatch("a size to resize to cannot be negative".into()));
            }
            return Ok(Target::Sizes(sizes));
        }
        if !given(inputs, 2) {
            return Err(InferError::Mismatch("there are neither scales nor sizes to resize to".into()));
        }
        let scales = inputs.floats(2)?;
        fits("scales", scales.len())?;
        if let Some(scale) = scales.iter().find(|scale| !(scale.is_finite() && **scale > 0.0)) {
            return Err(InferError::Mismatch(format!("{scale} is no scale: it must be above 0")));
        }
        Ok(Target::Scales(scales))
    }

    /// Dimensions of the result.
    fn dims(&self, inputs: &InferInputs<'_>) -> Result<Vec<Dim>, InferError> {
        let mut dims = inputs.dims(0)?.to_vec();
        let axes = self.axes(dims.len())?;
        match Self::target(inputs, axes.len())? {
            Target::Scales(scales) => {
                for (&axis, &scale) in axes.iter().zip(&scales) {
                    dims[axis] = scaled_dim(&dims[axis], scale);
                }
            }
            Target::Sizes(sizes) if self.aspect == AspectPolicy::Stretch => {
                for (&axis, size) in axes.iter().zip(&sizes) {
                    dims[axis] = size.dim().unwrap_or(Dim::Unknown);
                }
            }
            Target::Sizes(sizes) => {
                let numbers: Option<Vec<(usize, usize)>> = axes
                    .iter()
                    .zip(&sizes)
                    .map(|(&axis, size)| Some((dims[axis].fixed()?, size.dim()?.fixed()?)))
                    .collect();
                let scale = numbers.map(|numbers| self.common_scale(&numbers)).transpose()?;
                for &axis in &axes {
                    dims[axis] = match (dims[axis].fixed(), scale) {
                        (Some(len), Some(scale)) => Dim::Fixed((scale * len as f64 + 0.5) as usize),
                        _ => Dim::Unknown,
                    };
                }
            }
        }
        Ok(dims)
    }

    /// The scale of all axes that keeps the aspect ratio, from the lengths and the sizes asked for.
    fn common_scale(&self, axes: &[(usize, usize)]) -> Result<f64, InferError> {
        let ratios = axes.iter().map(|&(len, size)| size as f64 / len as f64);
        let scale = match self.aspect {
            AspectPolicy::NotSmaller => ratios.fold(0.0, f64::max),
            _ => ratios.fold(f64::INFINITY, f64::min),
        };
        if scale.is_finite() || axes.is_empty() {
            return Ok(scale);
        }
        Err(InferError::Mismatch("an empty axis has no aspect ratio to keep".into()))
    }

    /// For each axis of the data, how it is resized; `shape` is the result's. Takes scales, sizes and the region of
    /// interest as the node's inputs give them.
    ///
    /// # Errors
    /// When the inputs do not go with the data.
    pub fn scales(
        &self,
        data: &[usize],
        shape: &[usize],
        [roi, scales, sizes]: [Option<&[f64]>; 3],
    ) -> Result<Vec<AxisScale>, InferError> {
        let axes = self.axes(data.len())?;
        let mut out: Vec<AxisScale> = data
            .iter()
            .zip(shape)
            .map(|(&from, &to)| AxisScale { from, to, scale: 1.0, start: 0.0, end: 1.0 })
            .collect();
        let part = |name: &str, values: Option<&[f64]>, index: usize| -> Result<Option<f64>, InferError> {
            let Some(values) = values else { return Ok(None) };
            values.get(index).copied().map(Some).ok_or_else(|| {
                InferError::Mismatch(format!(
                    "{} numbers are too few {name} for {} axes",
                    values.len(),
                    axes.len()
                ))
            })
        };
        let keep = match sizes {
            Some(sizes) if self.aspect != AspectPolicy::Stretch => {
                let pairs: Vec<(usize, usize)> =
                    axes.iter().zip(sizes).map(|(&axis, &size)| (data[axis], size as usize)).collect();
                Some(self.common_scale(&pairs)?)
            }
            _ => None,
        };
        for (i, &axis) in axes.iter().enumerate() {
            let one = &mut out[axis];
            if let Some(scale) = keep {
                one.scale = scale;
            } else if sizes.is_some() {
                one.scale = one.to as f64 / one.from as f64;
            } else if let Some(scale) = part("scales", scales, i)? {
                one.scale = scale;
            }
            if self.coordinate == CoordinateMode::TfCropAndResize {
                one.start = part("region limits", roi, i)?.unwrap_or(0.0);
                one.end = part("region limits", roi, axes.len() + i)?.unwrap_or(1.0);
            }
            if one.from == 0 && one.to > 0 {
                return Err(InferError::Mismatch(format!(
                    "axis {axis} is empty and cannot grow to {}",
                    one.to
                )));
            }
        }
        Ok(out)
    }
}

impl Operator for Resize {
    fn name(&self) -> &'static str {
        "Resize"
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none()
            .with("mode", self.mode.name())
            .with("coordinate_transformation_mode", self.coordinate.name())
            .with("nearest_mode", self.nearest.name())
            .with("cubic_coeff_a", self.cubic_coeff_a)
            .with("exclude_outside", self.exclude_outside)
            .with("extrapolation_value", self.extrapolation_value)
            .with("antialias", self.antialias)
            .with("keep_aspect_ratio_policy", self.aspect.name());
        match &self.axes {
            Some(axes) => attributes.with("axes", axes.as_slice()),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        if self.mode != ResizeMode::Nearest && !element.is_float() && !element.is_integer() {
            return Err(InferError::ElementType { input: 0, element, operator: self.name() });
        }
        if self.mode == ResizeMode::Nearest && self.antialias {
            return Err(InferError::Mismatch("nearest has no antialiasing".into()));
        }
        Ok(vec![TensorType::new(element, self.dims(inputs)?).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let parameter = |index: usize| {
            optional(inputs, index).filter(|tensor| !tensor.is_empty()).map(numbers::to_f64).transpose()
        };
        let (roi, scales, sizes) = (parameter(1)?, parameter(2)?, parameter(3)?);
        let axes =
            self.scales(data.shape(), &shape, [roi.as_deref(), scales.as_deref(), sizes.as_deref()])?;
        if shape.checked_len() == Some(0) {
            return Ok(vec![Tensor::zeros(element, shape)?.into()]);
        }
        let out = if self.mode == ResizeMode::Nearest {
            self.nearest(data, &axes)?
        } else {
            self.interpolated(data, shape, &axes)?
        };
        Ok(vec![out.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        // Two axes are the usual case; antialiasing takes more taps, which the shapes alone do not tell.
        let each = match self.mode {
            ResizeMode::Nearest => 0,
            ResizeMode::Linear => 8,
            ResizeMode::Cubic => 32,
        };
        movement::element_count(outputs).saturating_mul(each)
    }

    fn cases() -> Vec<Case> {
        cases::cases()
    }
}

impl Resize {
    /// Elements moved whole, so any element type.
    fn nearest(&self, data: &Tensor, axes: &[AxisScale]) -> Result<Tensor, EvaluateError> {
        let element = data.element();
        let mut lines: Vec<Vec<Option<usize>>> = Vec::with_capacity(axes.len());
        for axis in axes {
            let mut line = movement::reserve(axis.to)?;
            line.extend((0..axis.to).map(|at| self.nearest_index(axis, at)));
            lines.push(line);
        }
        if lines.iter().flatten().all(Option::is_some) {
            let lines: Vec<Vec<usize>> =
                lines.into_iter().map(|line| line.into_iter().flatten().collect()).collect();
            return movement::select(data, &lines);
        }
        // Behind the elements of the data comes the value outside the picture.
        let outside = numbers::from_f64(element, Shape::scalar(), &[f64::from(self.extrapolation_value)])?;
        let shape: Shape = axes.iter().map(|axis| axis.to).collect();
        let steps = armet_tensor::strides(data.shape());
        let mut out = movement::Elements::zeros(element, shape.clone())?;
        for (to, at) in movement::coordinates(&shape).enumerate() {
            let from: Option<usize> =
                at.iter().zip(&lines).zip(&steps).map(|((&i, line), step)| Some(line[i]? * step)).sum();
            match from {
                Some(from) => out.set(to, data, from),
                None => out.set(to, &outside, 0),
            }
        }
        out.finish()
    }

    /// One axis after the other, as the weights of different axes multiply.
    fn interpolated(&self, data: &Tensor, shape: Shape, axes: &[AxisScale]) -> Result<Tensor, EvaluateError> {
        let element = data.element();
        let mut values = numbers::to_f64(data)?;
        let mut dims = data.shape().to_vec();
        for (axis, scale) in axes.iter().enumerate() {
            if scale.is_identity() {
                continue;
            }
            let (outer, len, inner) = around(&dims, axis);
            dims[axis] = scale.to;
            movement::check_size(ElementType::F64, &dims.as_slice().into())?;
            let mut taps: Vec<Option<Taps>> = movement::reserve(scale.to)?;
            let mut next = movement::reserve(outer * scale.to * inner)?;
            taps.extend((0..scale.to).map(|at| self.taps(scale, at)));
            for i in 0..outer {
                for taps in &taps {
                    for j in 0..inner {
                        next.push(match taps {
                            None => f64::from(self.extrapolation_value),
                            Some(taps) => {
                                taps.iter().map(|(k, w)| values[(i * len + k) * inner + j] * w).sum()
                            }
                        });
                    }
                }
            }
            values = next;
        }
        if let Some((low, high)) = numbers::integer_range(element) {
            let integers: Vec<i128> =
                values.iter().map(|v| (v.round_ties_even() as i128).clamp(low, high)).collect();
            return numbers::from_i128(element, shape, &integers);
        }
        numbers::from_f64(element, shape, &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_from_names() {
        let n = Dim::symbol("n");
        assert_eq!(scaled_dim(&n, 2.0).to_string(), "n*2");
        assert_eq!(scaled_dim(&n, 0.5).to_string(), "floor(n/2)");
        assert_eq!(scaled_dim(&n, 1.5).to_string(), "floor(n*3/2)");
        assert_eq!(scaled_dim(&n, 0.3), Dim::Unknown);
        assert_eq!(scaled_dim(&10.into(), f64::from(0.6f32)), Dim::Fixed(6));
    }
}
