//! Probabilities of classes from the scores of support vector machines for each pair of classes.

use armet_tensor::ElementType;

use super::movement;
use super::numbers;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// Probabilities of classes from the scores of support vector machines for each pair of classes, which lie in the order
/// (0, 1), (0, 2), ... (1, 2), ...
///
/// A pair's score becomes the probability of its first class against its second by a logistic curve; those of all pairs are
/// brought together as libsvm does (Wu, Lin, Weng: Probability estimates for multi-class classification by pairwise
/// coupling, second method).
#[derive(Debug, Clone, PartialEq)]
pub struct SvmProbabilities {
    /// Number of classes.
    pub classes: usize,
    /// Slope of each pair's curve.
    pub slopes: Vec<f32>,
    /// Offset of each pair's curve.
    pub offsets: Vec<f32>,
}

impl SvmProbabilities {
    fn pairs(&self) -> usize {
        self.classes * self.classes.saturating_sub(1) / 2
    }

    fn row(&self, scores: &[f64], out: &mut [f64]) {
        let k = self.classes;
        let mut against = vec![0.0; k * k];
        let mut pair = 0;
        for i in 0..k {
            for j in i + 1..k {
                let curve = scores[pair] * f64::from(self.slopes[pair]) + f64::from(self.offsets[pair]);
                let probability = (1.0 / (1.0 + curve.exp())).clamp(1e-7, 1.0 - 1e-7);
                against[i * k + j] = probability;
                against[j * k + i] = 1.0 - probability;
                pair += 1;
            }
        }
        couple(k, &against, out);
    }
}

/// The probabilities that fit those of the pairs best.
fn couple(k: usize, against: &[f64], p: &mut [f64]) {
    let mut q = vec![0.0; k * k];
    for t in 0..k {
        p[t] = 1.0 / k as f64;
        for j in (0..k).filter(|j| *j != t) {
            q[t * k + t] += against[j * k + t] * against[j * k + t];
            q[t * k + j] = -against[j * k + t] * against[t * k + j];
        }
    }
    let enough = 0.005 / k as f64;
    let mut qp = vec![0.0; k];
    for _ in 0..k.max(100) {
        for t in 0..k {
            qp[t] = (0..k).map(|j| q[t * k + j] * p[j]).sum();
        }
        let mut pqp: f64 = p.iter().zip(&qp).map(|(p, qp)| p * qp).sum();
        if qp.iter().all(|qp| (qp - pqp).abs() < enough) {
            break;
        }
        for t in 0..k {
            let diff = (pqp - qp[t]) / q[t * k + t];
            p[t] += diff;
            pqp = (pqp + diff * (diff * q[t * k + t] + 2.0 * qp[t])) / (1.0 + diff) / (1.0 + diff);
            for j in 0..k {
                qp[j] = (qp[j] + diff * q[t * k + j]) / (1.0 + diff);
                p[j] /= 1.0 + diff;
            }
        }
    }
}

impl Operator for SvmProbabilities {
    fn name(&self) -> &'static str {
        "SvmProbabilities"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("classes", self.classes)
            .with("prob_a", self.slopes.as_slice())
            .with("prob_b", self.offsets.as_slice())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        let wrong = || InferError::Mismatch(format!("{} takes a score for each pair", self.name()));
        let pairs = self.pairs();
        if self.slopes.len() != pairs || self.offsets.len() != pairs {
            return Err(wrong());
        }
        let [rows, columns] = inputs.dims(0)? else { return Err(wrong()) };
        if columns.fixed().is_some_and(|columns| columns != pairs) {
            return Err(wrong());
        }
        Ok(vec![TensorType::new(ElementType::F32, [rows.clone(), Dim::Fixed(self.classes)]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let scores = numbers::to_f64(tensor(inputs, 0)?)?;
        let mut out = vec![0.0; movement::check_size(element, &shape)?];
        if self.pairs() > 0 {
            for (scores, out) in scores.chunks_exact(self.pairs()).zip(out.chunks_exact_mut(self.classes)) {
                self.row(scores, out);
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0).saturating_mul(self.classes as u64)
    }

    fn cases() -> Vec<Case> {
        let op = |classes: usize| {
            let pairs = classes * (classes - 1) / 2;
            let slopes = (0..pairs).map(|i| -1.0 - i as f32 / 4.0).collect();
            Self { classes, slopes, offsets: (0..pairs).map(|i| 0.25 - i as f32 / 8.0).collect() }
        };
        let mut numbers = crate::Numbers::new(66);
        let mut case = |name: &str, classes: usize, rows: usize| {
            let scores = numbers.floats([rows, classes * (classes - 1) / 2], -2.0, 2.0);
            Case::new(name, op(classes), [scores]).with_tolerance(Tolerance::Relative(1e-5))
        };
        vec![case("two classes", 2, 3), case("four classes", 4, 2), case("nothing", 3, 0)]
    }
}

#[cfg(test)]
mod tests {
    use armet_tensor::Tensor;

    use super::*;

    #[test]
    fn probabilities_are_some_and_the_favourite_has_most() {
        let op = SvmProbabilities { classes: 3, slopes: vec![-2.0; 3], offsets: vec![0.0; 3] };
        // The first class wins against both others, the last loses against both.
        let scores: Value = Tensor::new([1, 3], &[1.0f32, 2.0, 1.0]).unwrap().into();
        let found = op.evaluate(&[Some(&scores)], &Context::default()).unwrap().remove(0);
        let p = numbers::to_f64(found.tensor().unwrap()).unwrap();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-6 && p[0] > p[1] && p[1] > p[2], "{p:?}");
    }
}
