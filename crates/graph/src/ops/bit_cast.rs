//! The same bits read as another element type.

use armet_tensor::ElementType;

use super::movement;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// The same bits read as another element type of equal width.
#[derive(Debug, Clone, PartialEq)]
pub struct BitCast {
    /// The type that they are read as.
    pub to: ElementType,
}

impl Operator for BitCast {
    fn name(&self) -> &'static str {
        "BitCast"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("to", self.to.name())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let data = inputs.tensor(0)?;
        if data.element == ElementType::String
            || self.to == ElementType::String
            || data.element.bits() != self.to.bits()
        {
            return Err(InferError::Mismatch(format!("{} cannot be read as {}", data.element, self.to)));
        }
        Ok(vec![TensorType { element: self.to, dims: data.dims.clone(), quantization: None }.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        movement::result(self, inputs)?;
        Ok(vec![tensor(inputs, 0)?.reinterpret(self.to)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(70);
        let mut case = |name: &str, from, to, shape: &[usize]| {
            Case::new(name, Self { to }, [numbers.tensor(from, shape)]).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("numbers as integers", ElementType::F32, ElementType::I32, &[2, 3]),
            case("integers as numbers", ElementType::I64, ElementType::F64, &[4]),
            case("bytes", ElementType::Bool, ElementType::U8, &[3, 1, 2]),
            case("half a byte", ElementType::I4, ElementType::U4, &[5]),
            case("scalar", ElementType::F16, ElementType::U16, &[]),
            case("empty", ElementType::U32, ElementType::F32, &[0, 2]),
        ]
    }
}
