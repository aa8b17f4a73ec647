//! Regions of pictures brought to one size by interpolation.

use armet_tensor::{ElementType, Tensor};

use super::support::{broadcast::filled, typing};
use super::{movement, numbers};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Value,
    ValueType,
};

/// Regions of pictures brought to one size: inputs are pictures `[N,C,H,W]`, regions `[R,4]` as x, y, x, y, and for each
/// region the index of its picture. Each region is cut into equal bins, and some places in a bin are interpolated.
#[derive(Debug, Clone, PartialEq)]
pub struct RoiAlign {
    /// Rows of a result.
    pub output_height: usize,
    /// Columns of a result.
    pub output_width: usize,
    /// Places along each side of a bin; 0 for one to each element that the bin is long.
    pub sampling_ratio: usize,
    /// What coordinates are multiplied with.
    pub spatial_scale: f32,
    /// The largest share of an element in a bin, rather than the mean of what was interpolated.
    pub max: bool,
    /// Coordinates are those of the corners of pixels, not of their centres, and regions may be of any size.
    pub half_pixel: bool,
}

/// Along one side of a bin, more places than this cannot be meant.
const MOST_SAMPLES: f64 = 4096.0;

/// The two elements on both sides of a place along an axis, and the share of the second; `None` outside.
fn sides(at: f64, len: usize) -> Option<(usize, usize, f64)> {
    if !(-1.0..=len as f64).contains(&at) {
        return None;
    }
    let at = at.max(0.0);
    let low = at as usize;
    if low + 1 >= len { Some((len - 1, len - 1, 0.0)) } else { Some((low, low + 1, at - low as f64)) }
}

/// Where the regions' bins lie along one axis.
struct Bins {
    start: f64,
    size: f64,
    samples: usize,
}

impl RoiAlign {
    fn bins(&self, from: f64, to: f64, count: usize) -> Result<Bins, EvaluateError> {
        let offset = if self.half_pixel { 0.5 } else { 0.0 };
        let scale = f64::from(self.spatial_scale);
        let start = from * scale - offset;
        let mut extent = to * scale - offset - start;
        if !self.half_pixel {
            extent = extent.max(1.0);
        }
        let size = extent / count as f64;
        let samples = if self.sampling_ratio > 0 { self.sampling_ratio as f64 } else { size.ceil().max(0.0) };
        if samples > MOST_SAMPLES || !extent.is_finite() {
            return Err(EvaluateError::Invalid(format!("a region from {from} to {to} is too large")));
        }
        Ok(Bins { start, size, samples: samples as usize })
    }
}

impl Bins {
    /// The places of a bin.
    fn places(&self, bin: usize) -> impl Iterator<Item = f64> + '_ {
        (0..self.samples).map(move |i| {
            self.start + bin as f64 * self.size + (i as f64 + 0.5) * self.size / self.samples as f64
        })
    }
}

impl Operator for RoiAlign {
    fn name(&self) -> &'static str {
        "RoiAlign"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("output_height", self.output_height)
            .with("output_width", self.output_width)
            .with("sampling_ratio", self.sampling_ratio)
            .with("spatial_scale", self.spatial_scale)
            .with("mode", if self.max { "max" } else { "avg" })
            .with(
                "coordinate_transformation_mode",
                if self.half_pixel { "half_pixel" } else { "output_half_pixel" },
            )
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        typing::element(inputs, 1, self.name(), ElementType::is_float)?;
        movement::index_element(self.name(), 2, inputs.element(2)?)?;
        let (x, regions, of) = (inputs.dims(0)?, inputs.dims(1)?, inputs.dims(2)?);
        let fits = x.len() == 4
            && regions.len() == 2
            && regions[1].fixed().is_none_or(|n| n == 4)
            && of.len() == 1
            && movement::unify(&regions[0], &of[0]).is_some();
        if !fits {
            let shapes = [x, regions, of].map(movement::show).join(", ");
            return Err(InferError::Mismatch(format!("RoiAlign of {shapes}")));
        }
        let sizes = [self.output_height, self.output_width].map(Dim::Fixed);
        Ok(typing::one(element, [regions[0].clone(), x[1].clone()].into_iter().chain(sizes)))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let x = tensor(inputs, 0)?;
        let data = numbers::to_f64(x)?;
        let regions = numbers::to_f64(tensor(inputs, 1)?)?;
        let of = movement::indices(inputs, 2)?;
        let mut out = filled(&shape, 0.0)?;
        let [items, channels, height, width] = x.shape()[..] else {
            return Err(EvaluateError::MissingInput(0));
        };
        let (rows, columns) = (self.output_height, self.output_width);
        if out.is_empty() || height * width == 0 {
            return Ok(vec![numbers::from_f64(element, shape, &out)?.into()]);
        }
        for (region, bounds) in regions.chunks_exact(4).enumerate() {
            let item = movement::resolve_index(of[region], items)?;
            let vertical = self.bins(bounds[1], bounds[3], rows)?;
            let horizontal = self.bins(bounds[0], bounds[2], columns)?;
            let count = (vertical.samples * horizontal.samples).max(1) as f64;
            for channel in 0..channels {
                let plane = &data[(item * channels + channel) * height * width..][..height * width];
                for row in 0..rows {
                    for column in 0..columns {
                        let (mut sum, mut largest) = (0.0, f64::NEG_INFINITY);
                        for y in vertical.places(row) {
                            for x in horizontal.places(column) {
                                let mut shares = [0.0; 4];
                                if let (Some((top, bottom, low)), Some((left, right, by))) =
                                    (sides(y, height), sides(x, width))
                                {
                                    shares = [
                                        (1.0 - low) * (1.0 - by) * plane[top * width + left],
                                        (1.0 - low) * by * plane[top * width + right],
                                        low * (1.0 - by) * plane[bottom * width + left],
                                        low * by * plane[bottom * width + right],
                                    ];
                                }
                                sum += shares.iter().sum::<f64>();
                                largest = shares.into_iter().fold(largest, f64::max);
                            }
                        }
                        let largest = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
                        let at = ((region * channels + channel) * rows + row) * columns + column;
                        out[at] = if self.max { largest } else { sum / count };
                    }
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        // Where the number of places follows from the regions, the usual two along each side.
        let samples = if self.sampling_ratio > 0 { self.sampling_ratio as u64 } else { 2 };
        movement::element_count(outputs).saturating_mul(samples.saturating_mul(samples)).saturating_mul(8)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(79);
        let mut case = |name: &str, op: Self, x: &[usize], of: &[i64]| {
            let mut regions = numbers.floats([of.len(), 4], 0.0, 6.0).expect::<f32>().into_owned();
            for region in regions.chunks_exact_mut(4) {
                region[2] += region[0] + 1.0;
                region[3] += region[1] + 1.0;
            }
            let regions = Tensor::new([of.len(), 4], &regions).expect("four numbers for each region");
            Case::new(name, op, [numbers.tensor(ElementType::F32, x), regions, Tensor::vector(of)])
        };
        let op = Self {
            output_height: 3,
            output_width: 2,
            sampling_ratio: 2,
            spatial_scale: 1.0,
            max: false,
            half_pixel: true,
        };
        vec![
            case("mean", op.clone(), &[2, 3, 8, 7], &[1, 0, 1]),
            case(
                "as many places as elements",
                Self { sampling_ratio: 0, ..op.clone() },
                &[1, 17, 9, 9],
                &[0, 0],
            ),
            case(
                "old coordinates",
                Self { half_pixel: false, spatial_scale: 0.5, ..op.clone() },
                &[1, 2, 5, 6],
                &[0],
            ),
            case("largest", Self { max: true, ..op.clone() }, &[1, 2, 8, 8], &[0, 0]),
            case(
                "old largest",
                Self { max: true, half_pixel: false, sampling_ratio: 0, ..op.clone() },
                &[1, 1, 6, 6],
                &[0],
            ),
            case("no regions", op.clone(), &[1, 2, 5, 6], &[]),
            case("no channels", op, &[1, 0, 5, 6], &[0]),
        ]
    }
}
