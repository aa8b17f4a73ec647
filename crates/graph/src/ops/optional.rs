//! A value or nothing: made, read, asked.

use armet_tensor::{Bool, ElementType, Tensor};

use crate::evaluate::value;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// A value or nothing: made, read, asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Optional {
    /// What is done.
    pub kind: OptionalKind,
}

/// What is done with a value or nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionalKind {
    /// The input, or nothing where there is none.
    Make {
        /// The type of what could be there; only told where nothing is.
        ty: Option<ValueType>,
    },
    /// The value that is there.
    GetElement,
    /// Whether a value is there.
    HasElement,
}

impl Operator for Optional {
    fn name(&self) -> &'static str {
        match self.kind {
            OptionalKind::Make { .. } => "Optional",
            OptionalKind::GetElement => "OptionalGetElement",
            OptionalKind::HasElement => "OptionalHasElement",
        }
    }

    fn attributes(&self) -> Attributes {
        match &self.kind {
            OptionalKind::Make { ty: Some(ty) } => Attributes::none().with("type", ty.to_string()),
            _ => Attributes::none(),
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        Ok(vec![match &self.kind {
            OptionalKind::Make { ty } => {
                let inner = match (inputs.value_type(0), ty) {
                    (Ok(given), _) => given.clone(),
                    (Err(_), Some(ty)) => ty.clone(),
                    (Err(error), None) => return Err(error),
                };
                ValueType::Optional(Box::new(inner))
            }
            // From version 18 on a value that is surely there is read as well.
            OptionalKind::GetElement => match inputs.value_type(0)? {
                ValueType::Optional(inner) => (**inner).clone(),
                other => other.clone(),
            },
            OptionalKind::HasElement => TensorType::fixed(ElementType::Bool, &[]).into(),
        }])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let given = inputs.first().copied().flatten();
        Ok(vec![match &self.kind {
            OptionalKind::Make { .. } => Value::Optional(given.cloned().map(Box::new)),
            OptionalKind::GetElement => match value(inputs, 0)? {
                Value::Optional(Some(inner)) => (**inner).clone(),
                Value::Optional(None) => {
                    return Err(EvaluateError::Invalid("the optional value is not there".into()));
                }
                other => other.clone(),
            },
            OptionalKind::HasElement => {
                let has = given.is_some_and(|value| !matches!(value, Value::Optional(None)));
                Tensor::scalar(Bool::from(has)).into()
            }
        }])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let tensor: Value = Tensor::vector(&[1f32, 2.0]).into();
        let list = Value::Sequence(vec![tensor.clone()]);
        let some = |value: &Value| Value::Optional(Some(Box::new(value.clone())));
        let case = |name: &str, kind, inputs: Vec<Value>| {
            Case::of_values(name, Self { kind }, inputs).with_tolerance(Tolerance::Exact)
        };
        let ty = Some(TensorType::fixed(ElementType::F32, &[2]).into());
        vec![
            case("of a tensor", OptionalKind::Make { ty: None }, vec![tensor.clone()]),
            case("of nothing", OptionalKind::Make { ty }, vec![]),
            case("the tensor", OptionalKind::GetElement, vec![some(&tensor)]),
            case("the list", OptionalKind::GetElement, vec![some(&list)]),
            case("what is no optional", OptionalKind::GetElement, vec![tensor.clone()]),
            case("is there", OptionalKind::HasElement, vec![some(&tensor)]),
            case("no input", OptionalKind::HasElement, vec![]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_cannot_be_read() {
        let nothing = Value::Optional(None);
        let run = |kind| Optional { kind }.evaluate(&[Some(&nothing)], &Context::default());
        assert!(run(OptionalKind::GetElement).is_err());
        assert_eq!(run(OptionalKind::HasElement), Ok(vec![Tensor::scalar(Bool(0)).into()]));
    }
}
