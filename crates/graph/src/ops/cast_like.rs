//! Conversion to the element type of another tensor.

use armet_tensor::ElementType;

use super::Cast;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Conversion of the first input to the element type of the second, where an importer does not know it.
#[derive(Debug, Clone, PartialEq)]
pub struct CastLike {
    /// As [`Cast::saturate`].
    pub saturate: bool,
}

impl CastLike {
    /// The conversion that this is when the type is known.
    pub fn to(&self, to: ElementType) -> Cast {
        Cast { to, saturate: self.saturate }
    }
}

impl Operator for CastLike {
    fn name(&self) -> &'static str {
        "CastLike"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("saturate", self.saturate)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let (data, element) = (inputs.tensor(0)?, inputs.element(1)?);
        Ok(vec![TensorType { element, dims: data.dims.clone(), quantization: None }.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        self.to(tensor(inputs, 1)?.element()).evaluate(&inputs[..1], context)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        self.to(ElementType::F32).operations(inputs, outputs)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(81);
        let mut case = |name: &str, from, to, shape: &[usize]| {
            let inputs = [numbers.tensor(from, shape), numbers.tensor(to, [2, 1])];
            Case::new(name, Self { saturate: true }, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("integers to numbers", ElementType::I64, ElementType::F32, &[2, 3]),
            case("numbers to integers", ElementType::F32, ElementType::I32, &[5]),
            case("to halves", ElementType::F32, ElementType::F16, &[3, 3]),
            case("scalar", ElementType::Bool, ElementType::F32, &[]),
            case("empty", ElementType::F32, ElementType::I64, &[0, 2]),
        ]
    }
}
