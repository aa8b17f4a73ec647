//! The upper or lower triangle of matrices, zero elsewhere.

use armet_tensor::Tensor;

use super::movement::{self, Elements};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// The upper or lower triangle of matrices, zero elsewhere: inputs are data and diagonal (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Trilu {
    /// The upper triangle.
    pub upper: bool,
}

impl Operator for Trilu {
    fn name(&self) -> &'static str {
        "Trilu"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("upper", self.upper)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        if dims.len() < 2 {
            return Err(InferError::Mismatch(format!("{} holds no matrices", movement::show(dims))));
        }
        Ok(vec![TensorType::new(inputs.element(0)?, dims.iter().cloned()).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let diagonal = if inputs.get(1).is_some_and(Option::is_some) {
            movement::indices(inputs, 1)?
                .first()
                .copied()
                .ok_or_else(|| EvaluateError::Invalid("the diagonal must be one number".into()))?
        } else {
            0
        };
        let rank = shape.len();
        let mut out = Elements::zeros(element, shape.clone())?;
        for (i, at) in movement::coordinates(&shape).enumerate() {
            let beyond = (at[rank - 1] as i64).saturating_sub(at[rank - 2] as i64);
            if if self.upper { beyond >= diagonal } else { beyond <= diagonal } {
                out.set(i, data, i);
            }
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{Bool, F32, I64};
        let mut numbers = Numbers::new(24);
        let mut case = |name: &str, upper, element, shape: &[usize], diagonal: Option<i64>| {
            let inputs = std::iter::once(numbers.tensor(element, shape)).chain(diagonal.map(Tensor::scalar));
            let constants = if diagonal.is_some() { vec![1] } else { vec![] };
            Case::new(name, Self { upper }, inputs)
                .with_constants(&constants)
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("upper", true, F32, &[4, 5], None),
            case("lower", false, F32, &[2, 5, 4], None),
            case("causal mask", true, F32, &[7, 7], Some(1)),
            case("below the diagonal", false, I64, &[3, 5], Some(-1)),
            case("everything", true, Bool, &[3, 3], Some(-9)),
            case("nothing", true, F32, &[3, 3], Some(i64::MAX)),
            case("empty", false, F32, &[0, 3], Some(0)),
        ]
    }
}
