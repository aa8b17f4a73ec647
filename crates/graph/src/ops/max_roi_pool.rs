//! The largest elements of bins of regions.

use armet_tensor::{ElementType, Tensor};

use super::support::{broadcast::filled, typing};
use super::{movement, numbers};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Value,
    ValueType,
};

/// The largest element of each bin of a region: inputs are pictures `[N,C,H,W]` and regions `[R,5]` as index of the
/// picture, x, y, x, y, the last of which belong to the region.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxRoiPool {
    /// Rows and columns of a result.
    pub pooled: [usize; 2],
    /// What coordinates are multiplied with.
    pub spatial_scale: f32,
}

impl MaxRoiPool {
    /// First and one past the last element of a bin along an axis.
    fn bin(&self, (from, to): (f64, f64), (bin, bins): (usize, usize), len: usize) -> std::ops::Range<usize> {
        let scale = f64::from(self.spatial_scale);
        let (start, end) = ((from * scale).round(), (to * scale).round());
        let size = (end - start + 1.0).max(1.0) / bins as f64;
        let inside = |at: f64| (at + start).clamp(0.0, len as f64) as usize;
        inside((bin as f64 * size).floor())..inside(((bin + 1) as f64 * size).ceil())
    }
}

impl Operator for MaxRoiPool {
    fn name(&self) -> &'static str {
        "MaxRoiPool"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("pooled_shape", &self.pooled[..]).with("spatial_scale", self.spatial_scale)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        typing::element(inputs, 1, self.name(), ElementType::is_float)?;
        let (x, regions) = (inputs.dims(0)?, inputs.dims(1)?);
        if x.len() != 4 || regions.len() != 2 || regions[1].fixed().is_some_and(|n| n != 5) {
            let shapes = [x, regions].map(movement::show).join(", ");
            return Err(InferError::Mismatch(format!("MaxRoiPool of {shapes}")));
        }
        let sizes = self.pooled.map(Dim::Fixed);
        Ok(typing::one(element, [regions[0].clone(), x[1].clone()].into_iter().chain(sizes)))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let x = tensor(inputs, 0)?;
        let data = numbers::to_f64(x)?;
        let regions = numbers::to_f64(tensor(inputs, 1)?)?;
        let mut out = filled(&shape, 0.0)?;
        let [items, channels, height, width] = x.shape()[..] else {
            return Err(EvaluateError::MissingInput(0));
        };
        let [rows, columns] = self.pooled;
        for (at, out) in out.iter_mut().enumerate() {
            let (column, row) = (at % columns, at / columns % rows);
            let (channel, region) = (at / (columns * rows) % channels, at / (columns * rows * channels));
            let region = &regions[region * 5..][..5];
            let item = movement::resolve_index(region[0] as i64, items)?;
            let plane = &data[(item * channels + channel) * height * width..][..height * width];
            let xs = self.bin((region[1], region[3]), (column, columns), width);
            let ys = self.bin((region[2], region[4]), (row, rows), height);
            let elements = ys.flat_map(|y| xs.clone().map(move |x| plane[y * width + x]));
            *out = elements.reduce(f64::max).unwrap_or(0.0);
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        movement::element_count(inputs)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(80);
        let mut case = |name: &str, pooled, spatial_scale, x: &[usize], regions: &[f32]| {
            let regions = Tensor::new([regions.len() / 5, 5], regions).expect("five numbers for each region");
            let op = Self { pooled, spatial_scale };
            Case::new(name, op, [numbers.tensor(ElementType::F32, x), regions])
        };
        vec![
            case("regions", [2, 2], 1.0, &[2, 3, 6, 7], &[0., 1., 1., 4., 5., 1., 0., 0., 6., 5.]),
            case("scaled", [3, 2], 0.5, &[1, 2, 4, 5], &[0., 0., 2., 7., 9.]),
            case("partly outside", [2, 3], 1.0, &[1, 2, 4, 5], &[0., 3., 2., 9., 9.]),
            case("no regions", [2, 2], 1.0, &[1, 2, 4, 5], &[]),
        ]
    }
}
