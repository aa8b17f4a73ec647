//! Boxes chosen by score that do not overlap.

use armet_tensor::{ElementType, Tensor};

use super::support::typing;
use super::{movement, numbers};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance,
    Value, ValueType,
};

/// Boxes chosen by score that do not overlap: int64 `[count, 3]` of batch, class and box.
///
/// Inputs are boxes `[batch, n, 4]`, scores `[batch, classes, n]`, and three numbers that may be left out: how many boxes
/// of a class are chosen at most (0), the overlap above which a box is dropped (0), and the score that a box must
/// exceed (none).
#[derive(Debug, Clone, PartialEq)]
pub struct NonMaxSuppression {
    /// Boxes are `x, y, width, height` of which the first two are the centre, rather than two corners `y, x, y, x`.
    pub center_point_box: bool,
}

/// Two corners, the smaller coordinates first: x, y, x, y.
fn corners(given: &[f64], center: bool) -> [f64; 4] {
    let [a, b, c, d] = [given[0], given[1], given[2], given[3]];
    if center {
        return [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0];
    }
    [b.min(d), a.min(c), b.max(d), a.max(c)]
}

/// Whether two boxes share more than `limit` of the area that they cover together.
fn overlap(a: &[f64; 4], b: &[f64; 4], limit: f64) -> bool {
    let width = a[2].min(b[2]) - a[0].max(b[0]);
    let height = a[3].min(b[3]) - a[1].max(b[1]);
    if !(width > 0.0 && height > 0.0) {
        return false;
    }
    let area = |r: &[f64; 4]| (r[2] - r[0]) * (r[3] - r[1]);
    let common = width * height;
    let together = area(a) + area(b) - common;
    area(a) > 0.0 && area(b) > 0.0 && together > 0.0 && common / together > limit
}

/// The one number of an optional input.
fn number(inputs: &[Option<&Value>], index: usize) -> Result<Option<f64>, EvaluateError> {
    let Some(tensor) = optional(inputs, index) else { return Ok(None) };
    Ok(numbers::to_f64(tensor)?.first().copied())
}

impl Operator for NonMaxSuppression {
    fn name(&self) -> &'static str {
        "NonMaxSuppression"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("center_point_box", self.center_point_box)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        for input in 0..2 {
            typing::element(inputs, input, self.name(), ElementType::is_float)?;
        }
        for input in (2..5).filter(|i| inputs.has(*i)) {
            typing::element(inputs, input, self.name(), |e| {
                if input == 2 { e.is_integer() } else { e.is_float() }
            })?;
            if let Some(shape) = inputs.tensor(input)?.shape()
                && shape.elements() > 1
            {
                return Err(InferError::Mismatch(format!("input {input} must be one number, not {shape}")));
            }
        }
        let (boxes, scores) = (inputs.dims(0)?, inputs.dims(1)?);
        let fits = boxes.len() == 3
            && scores.len() == 3
            && boxes[2].fixed().is_none_or(|n| n == 4)
            && movement::unify(&boxes[0], &scores[0]).is_some()
            && movement::unify(&boxes[1], &scores[2]).is_some();
        if !fits {
            let (boxes, scores) = (movement::show(boxes), movement::show(scores));
            return Err(InferError::Mismatch(format!("boxes of {boxes} with scores of {scores}")));
        }
        Ok(typing::one(ElementType::I64, [Dim::Unknown, Dim::Fixed(3)]))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        movement::types(self, inputs)?;
        let (boxes, scores) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let most = match optional(inputs, 2) {
            Some(_) => movement::indices(inputs, 2)?.first().copied().unwrap_or(0),
            None => 0,
        };
        let most = usize::try_from(most).unwrap_or(0);
        let limit = number(inputs, 3)?.unwrap_or(0.0);
        let least = number(inputs, 4)?;
        let (count, classes) = (boxes.shape()[1], scores.shape()[1]);
        let mut chosen: Vec<i64> = Vec::new();
        if boxes.is_empty() || scores.is_empty() || most == 0 {
            return Ok(vec![Tensor::new([0, 3], &chosen)?.into()]);
        }
        let boxes: Vec<[f64; 4]> = numbers::to_f64(boxes)?
            .chunks_exact(4)
            .map(|given| corners(given, self.center_point_box))
            .collect();
        for (row, scores) in numbers::to_f64(scores)?.chunks_exact(count).enumerate() {
            let (batch, class) = (row / classes, row % classes);
            let boxes = &boxes[batch * count..][..count];
            let mut candidates: Vec<usize> =
                (0..count).filter(|&i| least.is_none_or(|least| scores[i] > least)).collect();
            // By falling score; of equal ones the first comes first.
            candidates.sort_by(|&a, &b| {
                scores[b]
                    .partial_cmp(&scores[a])
                    .unwrap_or_else(|| scores[a].is_nan().cmp(&scores[b].is_nan()))
            });
            let mut kept: Vec<usize> = Vec::new();
            for candidate in candidates {
                if kept.len() == most {
                    break;
                }
                if !kept.iter().any(|&other| overlap(&boxes[candidate], &boxes[other], limit)) {
                    kept.push(candidate);
                    chosen.extend([batch as i64, class as i64, candidate as i64]);
                }
            }
        }
        Ok(vec![Tensor::new([chosen.len() / 3, 3], &chosen)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // The order of scores; how many overlaps are measured depends on the data.
        movement::element_count(inputs.get(1..).unwrap_or(&[]))
    }

    fn cases() -> Vec<Case> {
        let mut stream = Numbers::new(74);
        let mut case = |name: &str, center, [batch, classes, count]: [usize; 3], numbers: &[f32]| {
            let mut inputs = vec![
                stream.floats([batch, count, 4], 0.0, 3.0),
                stream.floats([batch, classes, count], 0.0, 1.0),
            ];
            if let Some((most, thresholds)) = numbers.split_first() {
                inputs.push(Tensor::vector(&[*most as i64]));
                inputs.extend(thresholds.iter().map(|&number| Tensor::vector(&[number])));
            }
            Case::new(name, Self { center_point_box: center }, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("corners", false, [1, 1, 20], &[5.0, 0.3]),
            case("centres", true, [2, 3, 15], &[4.0, 0.2, 0.4]),
            case("all that may be", false, [1, 2, 9], &[100.0, 0.9, 0.1]),
            case("none is good enough", false, [1, 1, 5], &[5.0, 0.5, 1.5]),
            case("none is wanted", false, [1, 1, 5], &[]),
            case("no boxes", false, [1, 2, 0], &[5.0, 0.5]),
        ]
    }
}
