//! Types of values.

use std::sync::Arc;

use armet_tensor::{ElementType, Quantization, Shape};
use smallvec::SmallVec;

use crate::Dim;

/// The type of a tensor: element, dimensions, and how stored integers stand for real numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorType {
    /// What one stored element is.
    pub element: ElementType,
    /// The dimensions; `None` when not even their number is known.
    pub dims: Option<SmallVec<[Dim; 6]>>,
    /// Set on integer values that stand for real numbers: a node that uses such a value sees the real numbers.
    pub quantization: Option<Arc<Quantization>>,
}

impl TensorType {
    /// A type with these dimensions.
    pub fn new(element: ElementType, dims: impl IntoIterator<Item = Dim>) -> Self {
        Self { element, dims: Some(dims.into_iter().collect()), quantization: None }
    }

    /// A type with a concrete shape.
    pub fn fixed(element: ElementType, shape: &[usize]) -> Self {
        Self::new(element, shape.iter().map(|&d| Dim::Fixed(d)))
    }

    /// A type of unknown rank.
    pub fn unranked(element: ElementType) -> Self {
        Self { element, dims: None, quantization: None }
    }

    /// The concrete shape, when every dimension is a number.
    pub fn shape(&self) -> Option<Shape> {
        self.dims.as_ref()?.iter().map(Dim::fixed).collect()
    }

    /// The number of dimensions, when known.
    pub fn rank(&self) -> Option<usize> {
        self.dims.as_ref().map(SmallVec::len)
    }

    /// The narrowest type that tensors of both types have; `None` where they store elements differently.
    pub fn join(&self, other: &Self) -> Option<Self> {
        if self.element != other.element || self.quantization != other.quantization {
            return None;
        }
        let dims = match (&self.dims, &other.dims) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                let pairs = a.iter().zip(b);
                Some(pairs.map(|(a, b)| if a == b { a.clone() } else { Dim::Unknown }).collect())
            }
            _ => None,
        };
        Some(Self { element: self.element, dims, quantization: self.quantization.clone() })
    }

    /// Bytes a value of this type takes, when the shape is concrete and the elements have a size.
    pub fn byte_len(&self) -> Option<usize> {
        self.element.bytes_for(self.shape()?.checked_len()?)
    }
}

impl std::fmt::Display for TensorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.element)?;
        match &self.dims {
            None => f.write_str("[..]")?,
            Some(dims) => {
                f.write_str("[")?;
                for (i, dim) in dims.iter().enumerate() {
                    write!(f, "{}{dim}", if i > 0 { "," } else { "" })?;
                }
                f.write_str("]")?;
            }
        }
        if let Some(q) = &self.quantization {
            match q.axis {
                None => write!(f, " scale {} zero {}", q.scale[0], q.zero_point[0])?,
                Some(axis) => write!(f, " scales along axis {axis}")?,
            }
        }
        Ok(())
    }
}

/// The type of any value.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueType {
    /// A tensor.
    Tensor(TensorType),
    /// A list of values of one type.
    Sequence(Box<ValueType>),
    /// A value or nothing.
    Optional(Box<ValueType>),
}

impl ValueType {
    /// The tensor type, when it is a tensor.
    pub fn tensor(&self) -> Option<&TensorType> {
        match self {
            Self::Tensor(ty) => Some(ty),
            _ => None,
        }
    }

    /// The concrete shape, when it is a tensor that has one.
    pub fn shape(&self) -> Option<Shape> {
        self.tensor()?.shape()
    }

    /// The narrowest type that values of both types have; `None` where they differ in kind or in element type.
    pub fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Tensor(a), Self::Tensor(b)) => a.join(b).map(Self::Tensor),
            (Self::Sequence(a), Self::Sequence(b)) => Some(Self::Sequence(Box::new(a.join(b)?))),
            (Self::Optional(a), Self::Optional(b)) => Some(Self::Optional(Box::new(a.join(b)?))),
            _ => None,
        }
    }

    /// The same type with nothing said of shapes.
    #[must_use]
    pub fn without_shapes(&self) -> Self {
        match self {
            Self::Tensor(ty) => Self::Tensor(TensorType { dims: None, ..ty.clone() }),
            Self::Sequence(inner) => Self::Sequence(Box::new(inner.without_shapes())),
            Self::Optional(inner) => Self::Optional(Box::new(inner.without_shapes())),
        }
    }
}

impl From<TensorType> for ValueType {
    fn from(ty: TensorType) -> Self {
        Self::Tensor(ty)
    }
}

impl std::fmt::Display for ValueType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tensor(ty) => write!(f, "{ty}"),
            Self::Sequence(inner) => write!(f, "sequence({inner})"),
            Self::Optional(inner) => write!(f, "optional({inner})"),
        }
    }
}
