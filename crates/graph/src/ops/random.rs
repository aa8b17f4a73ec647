//! Random numbers; the shape is the attribute, or that of the input when there is one.

use armet_tensor::ElementType;

use super::{movement, numbers};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Random numbers; the shape is the attribute, or that of the input when there is one.
///
/// The numbers are Armet's own, the same on every machine: splitmix64, and Box-Muller for the normal distribution.
/// ONNX prescribes none.
#[derive(Debug, Clone, PartialEq)]
pub struct Random {
    /// From which distribution.
    pub distribution: Distribution,
    /// Type of the result; `None` for the input's.
    pub element: Option<ElementType>,
    /// Shape of the result when there is no input.
    pub shape: Vec<usize>,
    /// Fixed seed of the model, if it has one.
    pub seed: Option<f32>,
}

/// A distribution of random numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Gaussian.
    Normal {
        /// Its mean.
        mean: f32,
        /// Its standard deviation.
        scale: f32,
    },
    /// Even between limits.
    Uniform {
        /// Lower limit.
        low: f32,
        /// Upper limit, excluded.
        high: f32,
    },
}

impl Distribution {
    fn draw(self, stream: &mut Numbers) -> f64 {
        // 53 random bits fill the fraction of a double: a number in 0..1.
        let mut unit = || (stream.bits() >> 11) as f64 / (1u64 << 53) as f64;
        match self {
            Self::Normal { mean, scale } => {
                // 1 - unit is in 0..=1 without 0, of which there is no logarithm.
                let radius = (-2.0 * (1.0 - unit()).ln()).sqrt();
                f64::from(mean) + f64::from(scale) * radius * (std::f64::consts::TAU * unit()).cos()
            }
            Self::Uniform { low, high } => f64::from(low) + (f64::from(high) - f64::from(low)) * unit(),
        }
    }
}

impl Operator for Random {
    fn name(&self) -> &'static str {
        match self.distribution {
            Distribution::Normal { .. } => "RandomNormal",
            Distribution::Uniform { .. } => "RandomUniform",
        }
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = match self.distribution {
            Distribution::Normal { mean, scale } => {
                Attributes::none().with("mean", mean).with("scale", scale)
            }
            Distribution::Uniform { low, high } => Attributes::none().with("low", low).with("high", high),
        };
        if let Some(element) = self.element {
            attributes = attributes.with("dtype", element.name());
        }
        attributes = attributes.with("shape", self.shape.as_slice());
        match self.seed {
            Some(seed) => attributes.with("seed", seed),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let like = if inputs.has(0) { Some(inputs.tensor(0)?) } else { None };
        let element = self.element.or(like.map(|ty| ty.element)).unwrap_or(ElementType::F32);
        if !element.is_float() {
            return Err(InferError::ElementType { input: 0, element, operator: self.name() });
        }
        let dims = match like {
            Some(_) => inputs.dims(0)?.to_vec(),
            None => self.shape.iter().map(|&dim| Dim::Fixed(dim)).collect(),
        };
        Ok(vec![TensorType::new(element, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let mut stream = Numbers::new(self.seed.map_or(context.seed, |seed| u64::from(seed.to_bits())));
        let mut values: Vec<f64> = movement::reserve(shape.elements())?;
        values.extend((0..shape.elements()).map(|_| self.distribution.draw(&mut stream)));
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        movement::element_count(outputs)
    }

    fn cases() -> Vec<Case> {
        let normal = Distribution::Normal { mean: 1.0, scale: 2.0 };
        let uniform = Distribution::Uniform { low: -1.0, high: 3.0 };
        let case =
            |name: &str, distribution, element, shape: &[usize], like: Option<armet_tensor::Tensor>| {
                let op = Self { distribution, element, shape: shape.to_vec(), seed: Some(7.0) };
                Case::new(name, op, like).with_tolerance(Tolerance::Exact)
            };
        let like = |element, shape: &[usize]| Numbers::new(27).tensor(element, shape);
        vec![
            case("normal", normal, Some(ElementType::F32), &[3, 5], None),
            case("uniform", uniform, None, &[7], None),
            case("like an input", normal, None, &[], Some(like(ElementType::F16, &[2, 3]))),
            case("like integers", uniform, Some(ElementType::F32), &[], Some(like(ElementType::I64, &[4]))),
            case("empty", uniform, Some(ElementType::F32), &[0, 3], None),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(distribution: Distribution, seed: Option<f32>, run: u64) -> Vec<f64> {
        let op = Random { distribution, element: Some(ElementType::F64), shape: vec![20_000], seed };
        let out = op.evaluate(&[], &Context { outputs: 1, seed: run }).unwrap();
        numbers::to_f64(out[0].tensor().unwrap()).unwrap()
    }

    #[test]
    fn the_seed_of_the_model_wins_over_that_of_the_run() {
        let uniform = Distribution::Uniform { low: 0.0, high: 1.0 };
        assert_eq!(draw(uniform, Some(1.0), 5), draw(uniform, Some(1.0), 6));
        assert_eq!(draw(uniform, None, 5), draw(uniform, None, 5));
        assert_ne!(draw(uniform, None, 5), draw(uniform, None, 6));
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        let moments = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64)
        };
        let (mean, variance) = moments(&draw(Distribution::Normal { mean: 3.0, scale: 2.0 }, None, 1));
        assert!((mean - 3.0).abs() < 0.05 && (variance - 4.0).abs() < 0.15, "{mean} {variance}");
        let values = draw(Distribution::Uniform { low: -1.0, high: 2.0 }, None, 1);
        let (mean, variance) = moments(&values);
        assert!((mean - 0.5).abs() < 0.03 && (variance - 0.75).abs() < 0.03, "{mean} {variance}");
        assert!(values.iter().all(|v| (-1.0..2.0).contains(v)));
    }
}
