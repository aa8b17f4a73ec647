//! Pooling over all spatial axes, which stay with length one.

use armet_tensor::{ElementType, Shape};

use super::movement::{self, show};
use super::support::{broadcast, typing};
use super::{PoolKind, numbers};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance,
    Value, ValueType,
};

/// Pooling over all spatial axes, which stay with length one.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalPool {
    /// What is computed.
    pub kind: PoolKind,
}

impl Operator for GlobalPool {
    fn name(&self) -> &'static str {
        match self.kind {
            PoolKind::Max => "GlobalMaxPool",
            PoolKind::Average => "GlobalAveragePool",
            PoolKind::Lp { .. } => "GlobalLpPool",
        }
    }

    fn attributes(&self) -> Attributes {
        match self.kind {
            PoolKind::Lp { p } => Attributes::none().with("p", i64::from(p)),
            _ => Attributes::none(),
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), |e| self.kind.accepts(e))?;
        let x = inputs.dims(0)?;
        if x.len() < 2 {
            return Err(InferError::Mismatch(format!(
                "{} takes a batch and a channel axis, not {}",
                self.name(),
                show(x)
            )));
        }
        let spatial = std::iter::repeat_n(Dim::Fixed(1), x.len() - 2);
        Ok(typing::one(element, x[..2].iter().cloned().chain(spatial)))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (element, shape): (ElementType, Shape) = movement::result(self, inputs)?;
        let plane: usize = broadcast::product(&x.shape()[2..]);
        let values = numbers::to_f64(x)?;
        let mut results = broadcast::filled(&shape, self.kind.reduce_all(&[]))?;
        if plane > 0 {
            for (result, plane) in results.iter_mut().zip(values.chunks_exact(plane)) {
                *result = self.kind.reduce_all(plane);
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &results)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(11);
        let mut case = |name: &str, kind: PoolKind, shape: &[usize]| {
            Case::new(name, GlobalPool { kind }, [numbers.floats(shape, -3.0, 3.0)])
        };
        let half = [numbers_half()];
        vec![
            case("average", PoolKind::Average, &[2, 5, 7, 9]),
            case("maximum", PoolKind::Max, &[2, 5, 7, 9]).with_tolerance(Tolerance::Exact),
            case("Lp norm", PoolKind::Lp { p: 2 }, &[1, 3, 4, 5]),
            case("average of sequences", PoolKind::Average, &[2, 3, 11]),
            case("average of volumes", PoolKind::Average, &[1, 2, 3, 4, 5]),
            case("one pixel", PoolKind::Average, &[1, 17, 1, 1]),
            Case::new("average float16", GlobalPool { kind: PoolKind::Average }, half)
                .with_tolerance(Tolerance::Relative(1e-2)),
        ]
    }
}

fn numbers_half() -> armet_tensor::Tensor {
    Numbers::new(12).tensor(ElementType::F16, [1, 3, 4, 4])
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    #[test]
    fn the_mean_of_nothing_is_nan_and_a_vector_is_refused() {
        let op = GlobalPool { kind: PoolKind::Average };
        let evaluate = |shape: &[usize]| {
            let x = Value::from(Tensor::zeros(ElementType::F32, shape).unwrap());
            op.evaluate(&[Some(&x)], &Context::default())
        };
        let y = evaluate(&[1, 2, 0]).unwrap();
        assert!(y[0].tensor().unwrap().expect::<f32>().iter().all(|v| v.is_nan()));
        let error = evaluate(&[4]).unwrap_err();
        assert_eq!(error.to_string(), "GlobalAveragePool takes a batch and a channel axis, not [4]");
    }
}
