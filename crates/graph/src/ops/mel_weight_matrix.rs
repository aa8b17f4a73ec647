//! The matrix that turns spectra into the mel scale.

use armet_tensor::{ElementType, Shape, Tensor};

use super::support::{broadcast::filled, typing};
use super::{movement, numbers};
use crate::evaluate::tensor;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, Value, ValueType,
};

/// The matrix `[frequencies, bins]` that turns spectra into the mel scale: inputs are the number of bins, the length of
/// the transform, samples in a second, and the lowest and highest frequency.
#[derive(Debug, Clone, PartialEq)]
pub struct MelWeightMatrix {
    /// Type of the result.
    pub element: ElementType,
}

/// The dimension that a scalar input holds.
fn size(inputs: &InferInputs<'_>, index: usize) -> Result<Dim, InferError> {
    let entries = inputs.entries(index)?;
    let size = if entries.len() == 1 { entries.first().and_then(Entry::dim) } else { None };
    size.ok_or_else(|| InferError::Mismatch(format!("input {index} must be one number, 0 or more")))
}

/// The one number of an input.
fn number(inputs: &[Option<&Value>], index: usize) -> Result<f64, EvaluateError> {
    let values = numbers::to_f64(tensor(inputs, index)?)?;
    match values[..] {
        [value] => Ok(value),
        _ => Err(EvaluateError::Invalid(format!("input {index} must be one number"))),
    }
}

impl Operator for MelWeightMatrix {
    fn name(&self) -> &'static str {
        "MelWeightMatrix"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("output_datatype", self.element.name())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        if !typing::is_number(self.element) {
            return Err(InferError::Mismatch(format!("weights cannot be {}", self.element)));
        }
        for input in 2..5 {
            typing::element(inputs, input, self.name(), typing::is_number)?;
        }
        let frequencies = size(inputs, 1)?.floor_div(&2.into()).add(&1.into());
        Ok(typing::one(self.element, [frequencies, size(inputs, 0)?]))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let (frequencies, bins) = (shape[0], shape[1]);
        let (length, rate) = (number(inputs, 1)?, number(inputs, 2)?);
        let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
        let (low, high) = (mel(number(inputs, 3)?), mel(number(inputs, 4)?));
        let step = (high - low) / (bins as f64 + 2.0);
        // The frequency at the edge of a bin, as an index into a spectrum.
        let edge = |i: usize| {
            let hertz = 700.0 * (10f64.powf((i as f64 * step + low) / 2595.0) - 1.0);
            ((length + 1.0) * hertz / rate).floor()
        };
        let mut out = filled(&shape, 0.0)?;
        for bin in 0..bins {
            let (left, centre, right) = (edge(bin), edge(bin + 1), edge(bin + 2));
            for (frequency, row) in out.chunks_exact_mut(bins).enumerate().take(frequencies) {
                let at = frequency as f64;
                if left == centre && at == centre {
                    row[bin] = 1.0;
                } else if left <= at && at <= centre && left < centre {
                    row[bin] = (at - left) / (centre - left);
                }
                if centre <= at && at < right {
                    row[bin] = (right - at) / (right - centre);
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        movement::element_count(outputs)
    }

    fn cases() -> Vec<Case> {
        let case = |name: &str, element, [bins, length, rate]: [i64; 3], [low, high]: [f32; 2]| {
            let whole = [bins, length, rate].map(Tensor::scalar);
            let inputs = whole.into_iter().chain([low, high].map(Tensor::scalar));
            Case::new(name, Self { element }, inputs).with_constants(&[0, 1, 2, 3, 4])
        };
        let mut short = case("as vectors", ElementType::F32, [4, 32, 8000], [100.0, 3000.0]);
        short.inputs[0] = Some(Tensor::new(Shape::from([1]), &[4i32]).expect("one number"));
        vec![
            case("speech", ElementType::F32, [8, 16, 8192], [0.0, 4096.0]),
            case("double precision", ElementType::F64, [5, 64, 16000], [20.0, 8000.0]),
            case("beyond the spectrum", ElementType::F32, [4, 8, 1000], [0.0, 900.0]),
            case("no bins", ElementType::F32, [0, 16, 8000], [0.0, 4000.0]),
            short,
        ]
    }
}
