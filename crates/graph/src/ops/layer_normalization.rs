//! Normalization over the axes from `axis` on.

use armet_tensor::{ElementType, Shape};

use super::movement::{self, show};
use super::numbers;
use super::support::{axis, broadcast, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Normalization over the axes from `axis` on: inputs are data, scale (optional), bias (optional); further results are mean and inverse standard deviation.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNormalization {
    /// First normalized axis; negative counts from the end.
    pub axis: i64,
    /// Added to the variance.
    pub epsilon: f32,
    /// Only the mean square is used and nothing subtracted (RMSNormalization).
    pub root_mean_square: bool,
}

/// Mean, and inverse standard deviation with this added to the variance.
pub(super) fn statistics(values: impl Iterator<Item = f64> + Clone, epsilon: f32) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / count;
    (mean, (variance + f64::from(epsilon)).sqrt().recip())
}

impl Operator for LayerNormalization {
    fn name(&self) -> &'static str {
        if self.root_mean_square { "RMSNormalization" } else { "LayerNormalization" }
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("epsilon", self.epsilon)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        let x = inputs.dims(0)?;
        let at = axis(self.axis, x.len())?;
        for i in 1..3 {
            if inputs.has(i) {
                typing::element(inputs, i, self.name(), ElementType::is_float)?;
            }
            if inputs.has(i) && inputs.tensor(i)?.dims.is_some() {
                let own = inputs.dims(i)?;
                let larger = |(all, x): (&Dim, &Dim)| all.fixed().zip(x.fixed()).is_some_and(|(a, x)| a != x);
                let all = broadcast::dims(self.name(), &[x, own])?;
                if all.len() != x.len() || all.iter().zip(x).any(larger) {
                    return Err(InferError::Mismatch(format!(
                        "{} of {} has parameters of shape {}",
                        self.name(),
                        show(x),
                        show(own)
                    )));
                }
            }
        }
        let ones = std::iter::repeat_n(Dim::Fixed(1), x.len() - at);
        let statistics = TensorType::new(ElementType::F32, x[..at].iter().cloned().chain(ones));
        Ok(vec![inputs.value_type(0)?.clone(), statistics.clone().into(), statistics.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let results = movement::results(self, inputs)?;
        let shape: &Shape = x.shape();
        let len: usize = broadcast::product(&shape[axis(self.axis, shape.len())?..]);
        let mut values = numbers::to_f64(x)?;
        let (mut means, mut inverses) = (Vec::new(), Vec::new());
        // Lines of nothing have no mean.
        for line in values.chunks_exact_mut(len.max(1)) {
            let (mean, inverse) = if self.root_mean_square {
                let square = line.iter().map(|v| v * v).sum::<f64>() / line.len() as f64;
                (0.0, (square + f64::from(self.epsilon)).sqrt().recip())
            } else {
                statistics(line.iter().copied(), self.epsilon)
            };
            line.iter_mut().for_each(|v| *v = (*v - mean) * inverse);
            means.push(mean);
            inverses.push(inverse);
        }
        if let Some(scale) = optional(inputs, 1) {
            let scale = broadcast::expand(numbers::to_f64(scale)?, scale.shape(), shape)?;
            values.iter_mut().zip(scale).for_each(|(v, scale)| *v *= scale);
        }
        if let Some(bias) = optional(inputs, 2) {
            let bias = broadcast::expand(numbers::to_f64(bias)?, bias.shape(), shape)?;
            values.iter_mut().zip(bias).for_each(|(v, bias)| *v += bias);
        }
        let mut outputs: Vec<Value> = vec![numbers::from_f64(x.element(), shape.clone(), &values)?.into()];
        for ((element, shape), mut values) in
            results.into_iter().skip(1).zip([means, inverses]).take(context.outputs.saturating_sub(1))
        {
            values.resize(broadcast::elements(&shape)?, f64::NAN);
            outputs.push(numbers::from_f64(element, shape, &values)?.into());
        }
        Ok(outputs)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // Mean, difference, square, sum, product, scale and bias.
        typing::count(inputs, 0).saturating_mul(7)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(18);
        let mut case = |name: &str, axis: i64, rms: bool, shape: &[usize], parameters: &[&[usize]]| {
            let op = LayerNormalization { axis, epsilon: 1e-5, root_mean_square: rms };
            let mut inputs = vec![numbers.floats(shape, -3.0, 3.0)];
            inputs.extend(parameters.iter().map(|s| numbers.floats(*s, -2.0, 2.0)));
            let constants: Vec<usize> = (1..inputs.len()).collect();
            Case::new(name, op, inputs).with_constants(&constants)
        };
        let mut cases = vec![
            case("last axis", -1, false, &[2, 5, 33], &[&[33], &[33]]),
            case("no bias", -1, false, &[3, 17], &[&[17]]),
            case("no parameters", -1, false, &[3, 17], &[]),
            case("two axes", 1, false, &[2, 3, 7], &[&[3, 7], &[3, 7]]),
            case("scale broadcast", 1, false, &[2, 3, 7], &[&[7], &[3, 1]]),
            case("mean and inverse deviation", -1, false, &[2, 3, 9], &[&[9], &[9]]).with_outputs(3),
            case("root mean square", -1, true, &[2, 4, 16], &[&[16]]),
            case("one element", -1, false, &[4, 1], &[&[1], &[1]]),
            case("empty", -1, false, &[0, 8], &[&[8], &[8]]),
        ];
        let op = LayerNormalization { axis: -1, epsilon: 1e-5, root_mean_square: false };
        let half = [(); 3].map(|()| ElementType::F16);
        let inputs =
            [numbers.tensor(half[0], [3, 16]), numbers.tensor(half[1], [16]), numbers.tensor(half[2], [16])];
        cases.push(
            Case::new("float16", op, inputs)
                .with_constants(&[1, 2])
                .with_tolerance(Tolerance::Relative(1e-2)),
        );
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    #[test]
    fn a_line_has_mean_zero_and_deviation_one() {
        let op = LayerNormalization { axis: -1, epsilon: 0.0, root_mean_square: false };
        let x = Value::from(Tensor::new([1, 2], &[1.0f32, 3.0]).unwrap());
        let results = op.evaluate(&[Some(&x)], &Context { outputs: 3, seed: 0 }).unwrap();
        let of = |i: usize| results[i].tensor().unwrap().expect::<f32>().to_vec();
        assert_eq!((of(0), of(1), of(2)), (vec![-1.0, 1.0], vec![2.0], vec![1.0]));
    }

    #[test]
    fn parameters_may_not_be_larger_than_the_data() {
        let op = LayerNormalization { axis: -1, epsilon: 0.0, root_mean_square: true };
        let zeros = |shape: &[usize]| Value::from(Tensor::zeros(ElementType::F32, shape).unwrap());
        let error = op.evaluate(&[Some(&zeros(&[1])), Some(&zeros(&[3]))], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "RMSNormalization of [1] has parameters of shape [3]");
    }
}
