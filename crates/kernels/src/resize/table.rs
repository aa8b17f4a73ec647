//! Which input elements an output element of one axis is made of, and with which weights.
//!
//! Coordinates are computed in single precision, step by step as onnxruntime does, so that ties fall to the same side.

/// How an output coordinate becomes an input coordinate; the names are those of ONNX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "ONNX's coordinate_transformation_mode")]
pub enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

/// Which of two neighbours is the nearest; the names are those of ONNX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "ONNX's nearest_mode")]
pub enum NearestMode {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
    /// Not ONNX's: up where the axis shrinks, down where it grows.
    CeilWhenShrinking,
}

/// How values between elements are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interpolation {
    /// The nearest element.
    Nearest(NearestMode),
    /// Two neighbours.
    Linear,
    /// Four neighbours, by a cubic with this coefficient (ONNX `cubic_coeff_a`).
    Cubic(f32),
}

/// One axis to resize.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeAxis {
    /// Elements of the input.
    pub input: usize,
    /// Elements of the output.
    pub output: usize,
    /// Output elements per input element; where only sizes are given, their quotient.
    pub scale: f32,
    /// Begin and end of the region that [`Coordinates::TfCropAndResize`] takes, as parts of the input.
    pub region: (f32, f32),
}

impl ResizeAxis {
    /// An axis of which only the sizes are given.
    pub fn with_sizes(input: usize, output: usize) -> Self {
        Self { input, output, scale: output as f32 / input as f32, region: (0.0, 1.0) }
    }

    fn is_identity(&self, coordinates: Coordinates) -> bool {
        self.input == self.output && self.scale == 1.0 && coordinates != Coordinates::TfCropAndResize
    }
}

/// Attributes of a resize, for all axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeOptions {
    /// How values between elements are made.
    pub interpolation: Interpolation,
    /// How coordinates are transformed.
    pub coordinates: Coordinates,
    /// Neighbours outside of the input get no weight, instead of the nearest element.
    pub exclude_outside: bool,
    /// When shrinking, average over all elements that an output covers.
    pub antialias: bool,
    /// Written where [`Coordinates::TfCropAndResize`] reaches outside of the input.
    pub extrapolation: f32,
}

/// The taps of every output element of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// Taps per output element.
    pub(super) taps: usize,
    pub(super) indices: Vec<usize>,
    pub(super) weights: Vec<f32>,
    /// Output elements that lie outside of the input.
    pub(super) outside: Vec<bool>,
    /// Each output element is the input element of the same index.
    pub(super) is_identity: bool,
}

impl Table {
    pub(super) fn new(axis: &ResizeAxis, options: &ResizeOptions) -> Self {
        if axis.is_identity(options.coordinates) {
            return Self {
                taps: 1,
                indices: (0..axis.input).collect(),
                weights: vec![1.0; axis.input],
                outside: vec![false; axis.input],
                is_identity: true,
            };
        }
        let originals: Vec<f32> =
            (0..axis.output).map(|index| original(axis, options.coordinates, index)).collect();
        let last = axis.input as f32 - 1.0;
        let is_cropped = options.coordinates == Coordinates::TfCropAndResize;
        let outside = originals.iter().map(|&x| is_cropped && (x < 0.0 || x > last)).collect();
        // How far a filter is stretched so that it covers all elements when shrinking.
        let shrink = if options.antialias { axis.scale.min(1.0) } else { 1.0 };
        let taps = match options.interpolation {
            Interpolation::Nearest(_) => 1,
            Interpolation::Linear => reach(1.0, shrink),
            Interpolation::Cubic(_) => reach(2.0, shrink),
        };
        let mut table = Self {
            taps,
            indices: Vec::with_capacity(taps * axis.output),
            weights: Vec::with_capacity(taps * axis.output),
            outside,
            is_identity: false,
        };
        let mut options = *options;
        if options.interpolation == Interpolation::Nearest(NearestMode::CeilWhenShrinking) {
            let mode = if axis.scale < 1.0 { NearestMode::Ceil } else { NearestMode::Floor };
            options.interpolation = Interpolation::Nearest(mode);
        }
        for &x in &originals {
            table.push(x, axis.input, &options, shrink);
        }
        table
    }

    fn push(&mut self, x: f32, input: usize, options: &ResizeOptions, shrink: f32) {
        let last = input as isize - 1;
        if let Interpolation::Nearest(mode) = options.interpolation {
            self.indices.push((nearest(x, mode) as isize).clamp(0, last) as usize);
            self.weights.push(1.0);
            return;
        }
        // Linear interpolation without a stretched filter has no neighbours outside.
        let x = if options.interpolation == Interpolation::Linear && shrink == 1.0 {
            x.clamp(0.0, last as f32)
        } else {
            x
        };
        let start = x.floor() as isize - (self.taps as isize / 2 - 1);
        let mut sum = 0.0;
        let first = self.weights.len();
        for index in start..start + self.taps as isize {
            let distance = ((index as f32 - x) * shrink).abs();
            let weight = match options.interpolation {
                Interpolation::Cubic(a) => cubic(distance, a),
                _ => (1.0 - distance).max(0.0),
            };
            let is_inside = (0..=last).contains(&index);
            let weight = if options.exclude_outside && !is_inside { 0.0 } else { weight };
            sum += weight;
            self.indices.push(index.clamp(0, last) as usize);
            self.weights.push(weight);
        }
        if (options.exclude_outside || shrink != 1.0) && sum != 0.0 {
            self.weights[first..].iter_mut().for_each(|weight| *weight /= sum);
        }
    }

    /// Indices and weights of an output element.
    #[inline]
    pub(super) fn row(&self, output: usize) -> (&[usize], &[f32]) {
        let range = output * self.taps..(output + 1) * self.taps;
        (&self.indices[range.clone()], &self.weights[range])
    }
}

/// How many elements a filter of this radius can reach when stretched.
fn reach(radius: f32, shrink: f32) -> usize {
    2 * (radius / shrink).ceil() as usize
}

/// The length that the scale gives, which is not whole where the output's length was rounded down.
fn resized(axis: &ResizeAxis) -> f32 {
    let (exact, output) = (f64::from(axis.scale) * axis.input as f64, axis.output as f64);
    // A scale that was made of two lengths is itself rounded.
    if (exact - output).abs() <= output * f64::from(f32::EPSILON) { axis.output as f32 } else { exact as f32 }
}

fn original(axis: &ResizeAxis, coordinates: Coordinates, index: usize) -> f32 {
    let (x, scale) = (index as f32, axis.scale);
    let (input, output) = (axis.input as f32, axis.output as f32);
    match coordinates {
        Coordinates::HalfPixel => (x + 0.5) / scale - 0.5,
        Coordinates::HalfPixelSymmetric => {
            let adjustment = output / (scale * input);
            let center = input / 2.0;
            let offset = center * (1.0 - adjustment);
            (f64::from(offset) + (f64::from(x) + 0.5) / f64::from(scale) - 0.5) as f32
        }
        Coordinates::PytorchHalfPixel => {
            if axis.output > 1 {
                (x + 0.5) / scale - 0.5
            } else {
                0.0
            }
        }
        Coordinates::AlignCorners => {
            if axis.output == 1 {
                0.0
            } else {
                x * (input - 1.0) / (resized(axis) - 1.0)
            }
        }
        Coordinates::Asymmetric => x / scale,
        Coordinates::TfHalfPixelForNn => (x + 0.5) / scale,
        Coordinates::TfCropAndResize => {
            let (begin, end) = axis.region;
            if axis.output > 1 {
                begin * (input - 1.0) + x * (end - begin) * (input - 1.0) / (resized(axis) - 1.0)
            } else {
                0.5 * (begin + end) * (input - 1.0)
            }
        }
    }
}

fn nearest(x: f32, mode: NearestMode) -> f32 {
    match mode {
        NearestMode::RoundPreferFloor if x == x.floor() + 0.5 => x.floor(),
        // Halves away from zero.
        NearestMode::RoundPreferFloor | NearestMode::RoundPreferCeil => x.round(),
        // A table takes one of the others by its axis.
        NearestMode::Floor | NearestMode::CeilWhenShrinking => x.floor(),
        NearestMode::Ceil => x.ceil(),
    }
}

fn cubic(distance: f32, a: f32) -> f32 {
    let d = distance;
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}
