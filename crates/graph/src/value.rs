//! Values at run time.

use armet_tensor::Tensor;

use crate::{TensorType, ValueType};

/// What flows along an edge.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// A list of values.
    Sequence(Vec<Value>),
    /// A value or nothing.
    Optional(Option<Box<Value>>),
}

impl Value {
    /// The tensor, when it is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The items, when it is a sequence.
    pub fn sequence(&self) -> Option<&[Self]> {
        match self {
            Self::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The type of this very value; `None` for an empty sequence or optional, which do not tell, and for a sequence of
    /// values of several element types, which is none.
    pub fn value_type(&self) -> Option<ValueType> {
        match self {
            Self::Tensor(t) => Some(TensorType::fixed(t.element(), t.shape()).into()),
            Self::Sequence(items) => {
                let (first, others) = items.split_first()?;
                let joined = others.iter().try_fold(first.value_type()?, |ty, v| ty.join(&v.value_type()?));
                Some(ValueType::Sequence(Box::new(joined?)))
            }
            Self::Optional(inner) => Some(ValueType::Optional(Box::new(inner.as_ref()?.value_type()?))),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}
