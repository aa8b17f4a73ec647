//! Values as runs take and give them: borrowed, and what of them decides whether a plan fits.

use armet_graph::{Dim, Value, ValueType};
use armet_tensor::{ElementType, Shape, Tensor, TensorView};

/// A borrowed value.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'a> {
    /// A tensor's bytes.
    Tensor(TensorView<'a>),
    /// Any value.
    Value(&'a Value),
}

impl<'a> ValueRef<'a> {
    /// The bytes of a tensor; none for anything else.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Tensor(view) => Some(view.bytes()),
            Self::Value(Value::Tensor(tensor)) => Some(tensor.bytes()),
            Self::Value(_) => None,
        }
    }

    /// An owned copy; tensors that own their bytes are shared, not copied.
    pub fn to_value(self) -> Value {
        match self {
            Self::Tensor(view) => view.to_tensor().into(),
            Self::Value(value) => value.clone(),
        }
    }

    /// The tensor's view, when it is one.
    pub fn view(self) -> Option<TensorView<'a>> {
        match self {
            Self::Tensor(view) => Some(view),
            Self::Value(Value::Tensor(tensor)) => Some(tensor.view()),
            Self::Value(_) => None,
        }
    }
}

/// What of a value decides the plan of the nodes that read it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A tensor's element type and shape.
    Tensor(ElementType, Shape),
    /// What any other value is, without shapes; nothing for empty lists, which do not tell.
    Other(Option<ValueType>),
}

impl Kind {
    pub(crate) fn of(value: ValueRef<'_>) -> Self {
        match (value.view(), value) {
            (Some(view), _) => Self::Tensor(view.element(), Shape::new(view.shape())),
            (None, ValueRef::Value(value)) => Self::Other(value.value_type().map(|ty| ty.without_shapes())),
            (None, ValueRef::Tensor(_)) => Self::Other(None),
        }
    }

    /// The kind of all values of a type; `None` where its values differ in kind.
    pub(crate) fn of_type(ty: &ValueType) -> Option<Self> {
        match ty {
            ValueType::Tensor(ty) => Some(Self::Tensor(ty.element, ty.shape()?)),
            other => Some(Self::Other(Some(other.without_shapes()))),
        }
    }

    pub(crate) fn fits(&self, value: ValueRef<'_>) -> bool {
        match (self, value.view()) {
            (Self::Tensor(element, shape), Some(view)) => {
                view.element() == *element && view.shape() == shape.dims()
            }
            (Self::Other(_), None) => Self::of(value) == *self,
            _ => false,
        }
    }

    /// Makes a type that of this kind of value. What is known of shapes inside a list stays.
    pub(crate) fn set(&self, ty: &mut ValueType) {
        match (self, ty) {
            (Self::Tensor(element, shape), ValueType::Tensor(ty)) => {
                ty.element = *element;
                ty.dims = Some(shape.iter().map(|&d| Dim::Fixed(d)).collect());
            }
            (Self::Tensor(element, shape), ty) => {
                *ty = armet_graph::TensorType::fixed(*element, shape).into();
            }
            (Self::Other(Some(found)), ty) if ty.without_shapes() != *found => *ty = found.clone(),
            (Self::Other(_), _) => {}
        }
    }
}

impl<'a> From<&'a Tensor> for ValueRef<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor.view())
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

impl<'a> From<TensorView<'a>> for ValueRef<'a> {
    fn from(view: TensorView<'a>) -> Self {
        Self::Tensor(view)
    }
}
