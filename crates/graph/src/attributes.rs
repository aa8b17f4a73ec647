//! Attributes of an operator as data, for dumps, hashes and reports.

use armet_tensor::Tensor;

/// One attribute's value.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A whole number or a flag.
    Int(i64),
    /// A real number.
    Float(f32),
    /// A list of whole numbers.
    Ints(Vec<i64>),
    /// A list of real numbers.
    Floats(Vec<f32>),
    /// Text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A tensor.
    Tensor(Tensor),
    /// A subgraph, by its number of nodes.
    Graph(usize),
}

/// A named attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// ONNX's name where it has one.
    pub name: &'static str,
    /// Its value.
    pub value: AttributeValue,
}

/// All attributes of an operator in a fixed order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes(pub Vec<Attribute>);

impl Attributes {
    /// No attributes.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds one.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<AttributeValue>) -> Self {
        self.0.push(Attribute { name, value: value.into() });
        self
    }
}

macro_rules! from {
    ($($ty:ty => |$v:ident| $e:expr),* $(,)?) => {
        $(impl From<$ty> for AttributeValue { fn from($v: $ty) -> Self { $e } })*
    };
}
from! {
    i64 => |v| Self::Int(v),
    usize => |v| Self::Int(v as i64),
    bool => |v| Self::Int(i64::from(v)),
    f32 => |v| Self::Float(v),
    &str => |v| Self::Text(v.to_owned()),
    String => |v| Self::Text(v),
    &[usize] => |v| Self::Ints(v.iter().map(|&x| x as i64).collect()),
    &[i64] => |v| Self::Ints(v.to_vec()),
    &[f32] => |v| Self::Floats(v.to_vec()),
    Tensor => |v| Self::Tensor(v),
}

impl std::fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(v) => write!(f, "{v}"),
            Self::Float(v) => write!(f, "{v}"),
            Self::Ints(v) => write!(f, "{v:?}"),
            Self::Floats(v) => write!(f, "{v:?}"),
            Self::Text(v) => write!(f, "{v}"),
            Self::Texts(v) => write!(f, "{v:?}"),
            Self::Tensor(v) => write!(f, "{}{}", v.element(), v.shape()),
            Self::Graph(nodes) => write!(f, "graph of {nodes} nodes"),
        }
    }
}

impl std::fmt::Display for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, attribute) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{}={}", attribute.name, attribute.value)?;
        }
        Ok(())
    }
}
