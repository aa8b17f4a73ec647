//! Models made from skeletons: embedded ONNX files whose large initializers hold a recipe instead of numbers.
//!
//! Contract: the same bytes on every machine. Numbers come from integer arithmetic and from float64 operations that
//! IEEE 754 rounds alike everywhere; `tools/skeletons/recipes.py` documents the recipes and computes the same.

use std::{collections::HashMap, io::Read};

use serde::Deserialize;

use super::protobuf::{Malformed, fields, push_bytes};

/// Why a model could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MadeError {
    #[error("this program carries no skeleton {0}")]
    NoSkeleton(String),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the skeleton does not unpack: {0}")]
    Packed(#[from] std::io::Error),
    #[error("initializer {tensor}: {reason}")]
    Recipe { tensor: String, reason: String },
}

macro_rules! skeletons {
    ($($name:literal)*) => { &[$(($name, include_bytes!(concat!("skeletons/", $name, ".onnx.gz")) as &[u8])),*] };
}

const SKELETONS: &[(&str, &[u8])] = skeletons! {
    "minilm_dynq" "minilm_fp32" "mobilenet_v2" "mobilenet_v2_qdq" "mobilenet_v2_qop" "mobilenet_v3_small"
    "resnet50" "resnet50_qdq" "yolov5s" "yolov5s_qdq" "yolov8n"
};

/// The packed skeleton of a name.
pub(crate) fn skeleton(name: &str) -> Option<&'static [u8]> {
    SKELETONS.iter().find(|(known, _)| *known == name).map(|(_, packed)| *packed)
}

/// Makes the model of an embedded skeleton. `base` is the model file that quantised tensors come from, `weights` the
/// file that real ones come from; either is empty where the recipes do not ask for it.
pub(crate) fn make(name: &str, base: &[u8], weights: &[u8]) -> Result<Vec<u8>, MadeError> {
    let packed = skeleton(name).ok_or_else(|| MadeError::NoSkeleton(name.to_owned()))?;
    let mut skeleton = Vec::new();
    flate2::bufread::GzDecoder::new(packed).read_to_end(&mut skeleton)?;
    build(&skeleton, base, weights)
}

/// Field numbers of ONNX messages.
mod onnx {
    pub(super) const MODEL_GRAPH: u64 = 7;
    pub(super) const GRAPH_INITIALIZER: u64 = 5;
    pub(super) const TENSOR_DIMS: u64 = 1;
    pub(super) const TENSOR_TYPE: u64 = 2;
    pub(super) const TENSOR_NAME: u64 = 8;
    pub(super) const TENSOR_RAW: u64 = 9;
    pub(super) const TENSOR_DOC: u64 = 12;
}

#[derive(Debug, Deserialize)]
#[serde(tag = "recipe", rename_all = "snake_case")]
enum Recipe {
    Fill { mean: f64, deviation: f64, seed: u64 },
    Copy { offset: usize },
    FoldWeight { weight: usize, gamma: usize, variance: usize, epsilon: f64 },
    FoldBias { beta: usize, gamma: usize, mean: usize, variance: usize, epsilon: f64 },
    Quantise { from: String, scales: Vec<String>, zero_point: Option<String> },
    Same { from: String },
    Scale { from: String },
    Product { of: Vec<String> },
}

/// An initializer's head and numbers.
#[derive(Debug, Default)]
struct Tensor<'a> {
    name: &'a str,
    dims: Vec<usize>,
    element: u64,
    raw: &'a [u8],
    doc: &'a str,
}

impl<'a> Tensor<'a> {
    fn read(message: &'a [u8]) -> Result<Self, MadeError> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Malformed);
        let mut tensor = Self::default();
        for field in fields(message) {
            let field = field?;
            match field.number {
                onnx::TENSOR_DIMS => tensor.dims.push(usize::try_from(field.varint).map_err(|_| Malformed)?),
                onnx::TENSOR_TYPE => tensor.element = field.varint,
                onnx::TENSOR_NAME => tensor.name = text(field.bytes)?,
                onnx::TENSOR_RAW => tensor.raw = field.bytes,
                onnx::TENSOR_DOC => tensor.doc = text(field.bytes)?,
                _ => {}
            }
        }
        Ok(tensor)
    }

    fn count(&self) -> usize {
        self.dims.iter().product()
    }

    fn channels(&self) -> usize {
        self.dims.first().copied().unwrap_or(1).max(1)
    }

    fn fail(&self, reason: impl Into<String>) -> MadeError {
        MadeError::Recipe { tensor: self.name.to_owned(), reason: reason.into() }
    }
}

fn build(skeleton: &[u8], base: &[u8], weights: &[u8]) -> Result<Vec<u8>, MadeError> {
    let base = initializers(base)?;
    let mut cook = Cook { base: &base, weights, known: HashMap::new() };
    let mut model = Vec::new();
    for field in fields(skeleton) {
        let field = field?;
        if field.number == onnx::MODEL_GRAPH {
            push_bytes(&mut model, field.number, &cook.graph(field.bytes)?);
        } else {
            model.extend_from_slice(field.whole);
        }
    }
    Ok(model)
}

/// The initializers of a model file that hold their numbers as raw bytes.
fn initializers(model: &[u8]) -> Result<HashMap<&str, &[u8]>, MadeError> {
    let mut found = HashMap::new();
    for graph in
        fields(model).filter(|field| field.as_ref().is_ok_and(|field| field.number == onnx::MODEL_GRAPH))
    {
        for field in fields(graph?.bytes) {
            let field = field?;
            if field.number == onnx::GRAPH_INITIALIZER {
                let tensor = Tensor::read(field.bytes)?;
                found.insert(tensor.name, tensor.raw);
            }
        }
    }
    Ok(found)
}

struct Cook<'a> {
    base: &'a HashMap<&'a str, &'a [u8]>,
    weights: &'a [u8],
    /// Initializers of the skeleton so far that later recipes may name: the vectors, as numbers.
    known: HashMap<String, Vec<f64>>,
}

impl Cook<'_> {
    fn graph(&mut self, graph: &[u8]) -> Result<Vec<u8>, MadeError> {
        let mut out = Vec::new();
        for field in fields(graph) {
            let field = field?;
            if field.number == onnx::GRAPH_INITIALIZER {
                push_bytes(&mut out, field.number, &self.tensor(field.bytes)?);
            } else {
                out.extend_from_slice(field.whole);
            }
        }
        Ok(out)
    }

    fn tensor(&mut self, message: &[u8]) -> Result<Vec<u8>, MadeError> {
        let tensor = Tensor::read(message)?;
        if !tensor.doc.starts_with("{\"recipe\"") {
            self.remember(&tensor, tensor.raw);
            return Ok(message.to_vec());
        }
        let recipe = serde_json::from_str(tensor.doc).map_err(|error| tensor.fail(error.to_string()))?;
        let raw = self.numbers(&tensor, &recipe)?;
        self.remember(&tensor, &raw);
        let mut out = Vec::with_capacity(message.len() + raw.len());
        // Fields stand in the order of their numbers, and the numbers go where raw ones belong.
        let mut raw = Some(raw);
        for field in fields(message) {
            let field = field?;
            if field.number > onnx::TENSOR_RAW {
                raw.take().iter().for_each(|raw| push_bytes(&mut out, onnx::TENSOR_RAW, raw));
            }
            if field.number != onnx::TENSOR_DOC {
                out.extend_from_slice(field.whole);
            }
        }
        Ok(out)
    }

    fn remember(&mut self, tensor: &Tensor<'_>, raw: &[u8]) {
        if tensor.dims.len() < 2
            && let Some(numbers) = decode(tensor.element, raw)
        {
            self.known.insert(tensor.name.to_owned(), numbers);
        }
    }

    fn numbers(&self, tensor: &Tensor<'_>, recipe: &Recipe) -> Result<Vec<u8>, MadeError> {
        let (count, channels) = (tensor.count(), tensor.channels());
        let inner = count / channels;
        let values: Vec<f64> = match recipe {
            Recipe::Fill { mean, deviation, seed } => {
                (0..count as u64).map(|index| mean + deviation * normal(*seed, index)).collect()
            }
            Recipe::Copy { offset } => self.weight(tensor, *offset, count)?,
            Recipe::FoldWeight { weight, gamma, variance, epsilon } => {
                let factors = self.factors(tensor, *gamma, *variance, *epsilon)?;
                let weight = self.weight(tensor, *weight, count)?;
                weight.iter().enumerate().map(|(index, value)| value * factors[index / inner]).collect()
            }
            Recipe::FoldBias { beta, gamma, mean, variance, epsilon } => {
                let factors = self.factors(tensor, *gamma, *variance, *epsilon)?;
                let (beta, mean) =
                    (self.weight(tensor, *beta, channels)?, self.weight(tensor, *mean, channels)?);
                (0..channels).map(|c| beta[c] - mean[c] * factors[c]).collect()
            }
            Recipe::Quantise { from, scales, zero_point } => {
                let values = self.base(tensor, from)?;
                let scales =
                    scales.iter().map(|name| self.known(tensor, name)).collect::<Result<Vec<_>, _>>()?;
                let zero = zero_point.as_ref().map(|name| self.known(tensor, name)).transpose()?;
                let quantise = |(index, value): (usize, &f64)| {
                    let channel = index / inner;
                    let scale: f64 = scales.iter().map(|scale| at(scale, channel)).product();
                    (value / scale).round_ties_even() + zero.map_or(0.0, |zero| at(zero, channel))
                };
                values.iter().enumerate().map(quantise).collect()
            }
            Recipe::Same { from } => self.base(tensor, from)?,
            Recipe::Scale { from } => {
                let values = self.base(tensor, from)?;
                let largest =
                    |row: &[f64]| row.iter().fold(0.0_f64, |most, value| most.max(value.abs())) / 127.0;
                values.chunks((values.len() / channels).max(1)).map(largest).collect()
            }
            Recipe::Product { of } => {
                let factors =
                    of.iter().map(|name| self.known(tensor, name)).collect::<Result<Vec<_>, _>>()?;
                (0..count).map(|index| factors.iter().map(|factor| at(factor, index)).product()).collect()
            }
        };
        if values.len() != count {
            return Err(tensor.fail(format!("{} numbers for {count} elements", values.len())));
        }
        encode(tensor.element, &values)
            .ok_or_else(|| tensor.fail(format!("element type {} has no recipe", tensor.element)))
    }

    fn weight(&self, tensor: &Tensor<'_>, offset: usize, count: usize) -> Result<Vec<f64>, MadeError> {
        let end = count.checked_mul(4).and_then(|size| size.checked_add(offset));
        let bytes = end.and_then(|end| self.weights.get(offset..end));
        bytes
            .and_then(|bytes| decode(FLOAT, bytes))
            .ok_or_else(|| tensor.fail("the file of weights is too short"))
    }

    fn factors(
        &self,
        tensor: &Tensor<'_>,
        gamma: usize,
        variance: usize,
        epsilon: f64,
    ) -> Result<Vec<f64>, MadeError> {
        let gamma = self.weight(tensor, gamma, tensor.channels())?;
        let variance = self.weight(tensor, variance, tensor.channels())?;
        Ok(gamma.iter().zip(variance).map(|(gamma, variance)| gamma / (variance + epsilon).sqrt()).collect())
    }

    fn base(&self, tensor: &Tensor<'_>, name: &str) -> Result<Vec<f64>, MadeError> {
        let raw = self
            .base
            .get(name)
            .ok_or_else(|| tensor.fail(format!("the base model has no initializer {name}")))?;
        decode(FLOAT, raw).ok_or_else(|| tensor.fail(format!("{name} of the base model is not float32")))
    }

    fn known(&self, tensor: &Tensor<'_>, name: &str) -> Result<&[f64], MadeError> {
        let numbers = self.known.get(name).filter(|numbers| [1, tensor.channels()].contains(&numbers.len()));
        numbers
            .map(Vec::as_slice)
            .ok_or_else(|| tensor.fail(format!("{name} is not before it, or of another length")))
    }
}

/// One number for all, or one for each channel.
fn at(numbers: &[f64], channel: usize) -> f64 {
    if numbers.len() == 1 { numbers[0] } else { numbers[channel] }
}

const FLOAT: u64 = 1;
const UINT8: u64 = 2;
const INT8: u64 = 3;
const INT32: u64 = 6;

fn decode(element: u64, raw: &[u8]) -> Option<Vec<f64>> {
    let words = || raw.as_chunks::<4>().0.iter();
    match element {
        FLOAT if raw.len().is_multiple_of(4) => {
            Some(words().map(|word| f64::from(f32::from_le_bytes(*word))).collect())
        }
        INT32 if raw.len().is_multiple_of(4) => {
            Some(words().map(|word| f64::from(i32::from_le_bytes(*word))).collect())
        }
        UINT8 => Some(raw.iter().map(|byte| f64::from(*byte)).collect()),
        INT8 => Some(raw.iter().map(|byte| f64::from(*byte as i8)).collect()),
        _ => None,
    }
}

/// Values as raw bytes; integers saturate.
fn encode(element: u64, values: &[f64]) -> Option<Vec<u8>> {
    match element {
        FLOAT => Some(values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()),
        INT32 => Some(values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect()),
        UINT8 => Some(values.iter().map(|value| *value as u8).collect()),
        INT8 => Some(values.iter().map(|value| *value as i8 as u8).collect()),
        _ => None,
    }
}

/// A number near a standard normal one: the centred sum of the four 16-bit parts of splitmix64's output.
fn normal(seed: u64, index: u64) -> f64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut z = (index + 1).wrapping_add(seed << 28).wrapping_mul(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    let sum: u64 = [0, 16, 32, 48].into_iter().map(|shift| z >> shift & 0xFFFF).sum();
    // The divisor is the deviation of such a sum: sqrt(4 (65536^2 - 1) / 12).
    (sum as f64 - 131070.0) / 37837.22780583546
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{fetch::hex_sha256, table};

    #[test]
    fn seeded_models_have_the_sums_of_the_table() {
        let sum = |id: &str| table::entry(id).unwrap().sha256;
        let mobilenet = make("mobilenet_v3_small", &[], &[]).unwrap();
        assert_eq!(hex_sha256(&mobilenet), sum("mobilenet_v3_small"));
        let detector = make("yolov5s", &[], &[]).unwrap();
        assert_eq!(hex_sha256(&detector), sum("yolov5s"));
        // Covers scales, products, quantised weights and biases.
        assert_eq!(hex_sha256(&make("yolov5s_qdq", &detector, &[]).unwrap()), sum("yolov5s_qdq"));
    }

    #[test]
    fn numbers_look_normal() {
        let numbers: Vec<f64> = (0..100_000).map(|index| normal(7, index)).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance = numbers.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        assert_ne!(normal(7, 0), normal(8, 0));
    }

    #[test]
    fn a_missing_input_is_named() {
        let error = make("mobilenet_v2", &[], &[0; 64]).unwrap_err().to_string();
        assert!(error.contains("the file of weights is too short"), "{error}");
        let error = make("resnet50_qdq", &[], &[]).unwrap_err().to_string();
        assert!(error.contains("the base model has no initializer"), "{error}");
        assert!(matches!(make("nothing", &[], &[]), Err(MadeError::NoSkeleton(_))));
    }
}
