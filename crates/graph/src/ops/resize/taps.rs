//! Which elements of an axis make an element of a resized axis, and with which weights. The formulas are those of
//! ONNX's reference implementation, in double precision.

use super::{CoordinateMode, NearestMode, Resize, ResizeMode};

/// How one axis is resized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisScale {
    /// Length before.
    pub from: usize,
    /// Length after.
    pub to: usize,
    /// Ratio that coordinates are computed with; not always the ratio of the lengths.
    pub scale: f64,
    /// Beginning of the region of interest, as a share of the axis.
    pub start: f64,
    /// End of the region of interest.
    pub end: f64,
}

impl AxisScale {
    /// Whether the axis stays as it is.
    pub fn is_identity(&self) -> bool {
        self.from == self.to
            && (self.scale - 1.0).abs() <= 1e-9
            && self.start.abs() <= 1e-9
            && (self.end - 1.0).abs() <= 1e-9
    }
}

/// A weighted run of elements: those before the beginning and behind the end of the axis repeat its edges.
#[derive(Debug, Clone, PartialEq)]
pub struct Taps {
    first: i64,
    weights: Vec<f64>,
    len: i64,
}

impl Taps {
    /// Indices within the axis, with weights; an index may come more than once.
    pub fn iter(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.weights.iter().enumerate().map(|(i, &weight)| {
            ((self.first.saturating_add(i as i64)).clamp(0, self.len - 1) as usize, weight)
        })
    }
}

impl Resize {
    /// Where in the input an element of the result lies; `None` outside a cropped picture.
    fn position(&self, axis: &AxisScale, at: usize) -> Option<f64> {
        let (at, len) = (at as f64, axis.from as f64);
        // Fractional where the result's length has been rounded.
        let resized = axis.scale * len;
        let half_pixel = (at + 0.5) / axis.scale - 0.5;
        Some(match self.coordinate {
            CoordinateMode::HalfPixel => half_pixel,
            CoordinateMode::HalfPixelSymmetric => len / 2.0 * (1.0 - axis.to as f64 / resized) + half_pixel,
            CoordinateMode::PytorchHalfPixel => {
                if axis.to <= 1 {
                    0.0
                } else {
                    half_pixel
                }
            }
            CoordinateMode::AlignCorners => {
                if resized == 1.0 {
                    0.0
                } else {
                    at * (len - 1.0) / (resized - 1.0)
                }
            }
            CoordinateMode::Asymmetric => at / axis.scale,
            CoordinateMode::TfHalfPixelForNn => (at + 0.5) / axis.scale,
            CoordinateMode::TfCropAndResize => {
                let width = (axis.end - axis.start) * (len - 1.0);
                let inside = if resized == 1.0 { width / 2.0 } else { at * width / (resized - 1.0) };
                let position = axis.start * (len - 1.0) + inside;
                if !(0.0..=len - 1.0).contains(&position) {
                    return None;
                }
                position
            }
        })
    }

    /// Index of the element that nearest takes; `None` outside a cropped picture.
    pub fn nearest_index(&self, axis: &AxisScale, at: usize) -> Option<usize> {
        if axis.is_identity() {
            return Some(at);
        }
        let position = self.position(axis, at)?;
        let (floor, ceil) = (position.floor(), position.ceil());
        let index = match self.nearest {
            NearestMode::Floor => floor,
            NearestMode::Ceil => ceil,
            NearestMode::CeilWhenShrinking => {
                if axis.scale < 1.0 {
                    ceil
                } else {
                    floor
                }
            }
            NearestMode::RoundPreferFloor => {
                if position - floor <= 0.5 {
                    floor
                } else {
                    ceil
                }
            }
            NearestMode::RoundPreferCeil => {
                if position - floor < 0.5 {
                    floor
                } else {
                    ceil
                }
            }
        };
        Some(index.clamp(0.0, axis.from.saturating_sub(1) as f64) as usize)
    }

    /// Elements and weights of an interpolated element; `None` outside a cropped picture.
    pub fn taps(&self, axis: &AxisScale, at: usize) -> Option<Taps> {
        let position = self.position(axis, at)?;
        let whole = position.floor();
        // In (0, 1]: a whole position is the right neighbour of the element before it.
        let ratio = if position == whole { 1.0 } else { position - whole };
        let mut weights = self.weights(ratio, axis.scale);
        // As many taps on either side, the right neighbour of the position being the first behind the middle.
        let before = weights.len() as i64 / 2 - i64::from(position != whole);
        let first = (whole as i64).saturating_sub(before);
        if self.exclude_outside {
            for (i, weight) in weights.iter_mut().enumerate() {
                let index = first.saturating_add(i as i64);
                if index < 0 || index >= axis.from as i64 {
                    *weight = 0.0;
                }
            }
            normalize(&mut weights);
        }
        Some(Taps { first, weights, len: axis.from as i64 })
    }

    fn weights(&self, ratio: f64, scale: f64) -> Vec<f64> {
        // Shrinking stretches the filter, so that it covers all elements; growing leaves it as it is.
        let shrink = if self.antialias { scale.min(1.0) } else { 1.0 };
        let linear = self.mode != ResizeMode::Cubic;
        let reach = if linear { 1.0 } else { 2.0 };
        let first = (-reach / shrink).floor() as i64 + 1;
        let mut weights: Vec<f64> = (first..2 - first)
            .map(|i| {
                let distance = ((i as f64 - ratio) * shrink).abs();
                if linear {
                    (1.0 - distance).max(0.0)
                } else {
                    cubic(distance, f64::from(self.cubic_coeff_a))
                }
            })
            .collect();
        if self.antialias {
            normalize(&mut weights);
        }
        weights
    }
}

/// The cubic convolution kernel at a distance that is not negative.
fn cubic(x: f64, a: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

fn normalize(weights: &mut [f64]) {
    let sum: f64 = weights.iter().sum();
    if sum != 0.0 {
        for weight in weights {
            *weight /= sum;
        }
    }
}
