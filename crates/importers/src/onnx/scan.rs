//! A walk over the bytes before anything is decoded.
//!
//! An empty node takes 2 bytes in the file and some 200 in memory, and messages nest: the walk adds up what decoding would
//! allocate, counts nodes and depth, and refuses the file before a byte is allocated for it. It knows the messages of
//! [`super::proto`] by their field numbers and skips the others, as the decoder does.

use armet_graph::ValueType;

use super::proto;
use crate::Limits;

/// The decoder gives up at a depth of 100 messages; stopping earlier leaves the error to this walk.
const DEEPEST: usize = 92;

/// What is wrong with the encoding of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("it ends inside the field at byte {at}; bring the file again")]
    Truncated {
        /// Where the field begins.
        at: usize,
    },
    /// A field's key cannot be.
    #[error("there is no field like the one at byte {at}; it is damaged, or no ONNX file")]
    Key {
        /// Where the field begins.
        at: usize,
    },
    /// Messages nest deeper than any model's.
    #[error("its messages nest deeper than {limit}")]
    Depth {
        /// What is allowed.
        limit: usize,
    },
    /// Subgraphs nest deeper than [`Limits::nesting`].
    #[error("its subgraphs nest deeper than {limit}")]
    Nesting {
        /// What is allowed.
        limit: usize,
    },
    /// More nodes than [`Limits::nodes`].
    #[error("it has more than {limit} nodes")]
    Nodes {
        /// What is allowed.
        limit: usize,
    },
    /// Decoding would take more than [`Limits::decoded_bytes`].
    #[error("decoded it would take more than {limit} bytes")]
    Decoded {
        /// What is allowed.
        limit: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Opset,
    Pair,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    ElementType,
    Shape,
    Dimension,
    Function,
    Sequence,
    Optional,
}

enum Field {
    /// A message, with its size in memory.
    Message(Kind, usize),
    /// Numbers of variable length, with their size in memory.
    Varints(usize),
    /// Numbers of fixed length.
    Fixed,
    /// Text that is copied.
    Text,
    /// Bytes that are shared.
    Shared,
    /// Not decoded.
    Skipped,
}

fn message<T>(kind: Kind) -> Field {
    Field::Message(kind, size_of::<T>())
}

fn field(kind: Kind, number: u64) -> Field {
    use proto::{
        AttributeProto, DimensionProto, ElementTypeProto, FunctionProto, GraphProto, NodeProto,
        OperatorSetIdProto, OptionalProto, SequenceProto, StringStringEntryProto, TensorProto,
        TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
    };
    match (kind, number) {
        (Kind::Model, 7) | (Kind::Attribute, 6 | 11) => message::<GraphProto>(Kind::Graph),
        (Kind::Model, 8) | (Kind::Function, 9) => message::<OperatorSetIdProto>(Kind::Opset),
        (Kind::Model, 14) | (Kind::Tensor, 13) => message::<StringStringEntryProto>(Kind::Pair),
        (Kind::Model, 25) => message::<FunctionProto>(Kind::Function),
        (Kind::Graph, 1) | (Kind::Function, 7) => message::<NodeProto>(Kind::Node),
        (Kind::Graph | Kind::Attribute, 5) | (Kind::Sequence | Kind::Optional, 3) => {
            message::<TensorProto>(Kind::Tensor)
        }
        (Kind::Sequence | Kind::Optional, 5) => message::<SequenceProto>(Kind::Sequence),
        (Kind::Sequence | Kind::Optional, 7) => message::<OptionalProto>(Kind::Optional),
        (Kind::Graph, 11..=13) => message::<ValueInfoProto>(Kind::ValueInfo),
        (Kind::Node, 5) | (Kind::Function, 11) => message::<AttributeProto>(Kind::Attribute),
        (Kind::ValueInfo, 2) | (Kind::ElementType, 1) | (Kind::Attribute, 14) => {
            message::<TypeProto>(Kind::Type)
        }
        (Kind::Type, 1) => message::<TensorTypeProto>(Kind::TensorType),
        (Kind::Type, 4 | 9) => message::<ElementTypeProto>(Kind::ElementType),
        (Kind::TensorType, 2) => message::<TensorShapeProto>(Kind::Shape),
        (Kind::Shape, 1) => message::<DimensionProto>(Kind::Dimension),
        (Kind::Model, 2..=4 | 6)
        | (Kind::Pair, 1 | 2)
        | (Kind::Graph, 2 | 10)
        | (Kind::Node, 1..=4 | 7 | 8)
        | (Kind::Attribute, 1 | 21)
        | (Kind::Opset | Kind::ValueInfo | Kind::Sequence | Kind::Optional, 1)
        | (Kind::Tensor, 8)
        | (Kind::Dimension, 2)
        | (Kind::Function, 1 | 4..=6 | 10 | 13) => Field::Text,
        (Kind::Model, 20) | (Kind::Graph, 15) | (Kind::Attribute, 4 | 9 | 22) | (Kind::Tensor, 3 | 6 | 9) => {
            Field::Shared
        }
        (Kind::Attribute, 8) | (Kind::Tensor, 1 | 7 | 11) => Field::Varints(8),
        (Kind::Tensor, 5) => Field::Varints(4),
        (Kind::Attribute, 7) | (Kind::Tensor, 4 | 10) => Field::Fixed,
        _ => Field::Skipped,
    }
}

struct Walk<'a> {
    limits: &'a Limits,
    nodes: usize,
    decoded: usize,
}

/// Walks over a model file.
///
/// # Errors
/// When it is no protocol buffer, or asks for more than the limits allow.
pub(super) fn scan(bytes: &[u8], limits: &Limits) -> Result<(), WireError> {
    Walk { limits, nodes: 0, decoded: 0 }.message(Kind::Model, bytes, 0, 0, 0)
}

/// Walks over a file that holds one value of this type.
///
/// # Errors
/// As for [`scan`].
pub(super) fn scan_value(bytes: &[u8], ty: &ValueType, limits: &Limits) -> Result<(), WireError> {
    let kind = match ty {
        ValueType::Tensor(_) => Kind::Tensor,
        ValueType::Sequence(_) => Kind::Sequence,
        ValueType::Optional(_) => Kind::Optional,
    };
    Walk { limits, nodes: 0, decoded: 0 }.message(kind, bytes, 0, 0, 0)
}

impl Walk<'_> {
    /// Lists grow by doubling, so an element may take twice its size.
    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.decoded = self.decoded.saturating_add(bytes.saturating_mul(2));
        if self.decoded > self.limits.decoded_bytes {
            return Err(WireError::Decoded { limit: self.limits.decoded_bytes });
        }
        Ok(())
    }

    fn message(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        base: usize,
        depth: usize,
        graphs: usize,
    ) -> Result<(), WireError> {
        if depth > DEEPEST {
            return Err(WireError::Depth { limit: DEEPEST });
        }
        let graphs = graphs + usize::from(kind == Kind::Graph);
        // The model's own graph is none inside another.
        if graphs > self.limits.nesting.saturating_add(1) {
            return Err(WireError::Nesting { limit: self.limits.nesting });
        }
        if kind == Kind::Node {
            self.nodes += 1;
            if self.nodes > self.limits.nodes {
                return Err(WireError::Nodes { limit: self.limits.nodes });
            }
        }
        let mut at = 0;
        while at < bytes.len() {
            let start = base + at;
            let truncated = WireError::Truncated { at: start };
            let key = varint(bytes, &mut at).ok_or_else(|| truncated.clone())?;
            let (number, wire) = (key >> 3, key & 7);
            if number == 0 || key > u64::from(u32::MAX) {
                return Err(WireError::Key { at: start });
            }
            let what = field(kind, number);
            let len = match wire {
                0 => {
                    varint(bytes, &mut at).ok_or(truncated)?;
                    if let Field::Varints(size) = what {
                        self.charge(size)?;
                    }
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => varint(bytes, &mut at)
                    .and_then(|n| usize::try_from(n).ok())
                    .ok_or_else(|| truncated.clone())?,
                // Groups are not used by ONNX, and the decoder would recurse over them.
                _ => return Err(WireError::Key { at: start }),
            };
            let end = at.checked_add(len).filter(|&end| end <= bytes.len()).ok_or(truncated)?;
            let body = &bytes[at..end];
            match what {
                Field::Message(inner, size) if wire == 2 => {
                    self.charge(size)?;
                    self.message(inner, body, base + at, depth + 1, graphs)?;
                }
                // Every varint ends with a byte below 128.
                Field::Varints(size) if wire == 2 => {
                    self.charge(body.iter().filter(|b| **b < 128).count().saturating_mul(size))?;
                }
                Field::Fixed => self.charge(len)?,
                Field::Text => self.charge(size_of::<String>() + len)?,
                Field::Shared => self.charge(size_of::<bytes::Bytes>())?,
                Field::Message(..) | Field::Varints(_) | Field::Skipped => {}
            }
            at = end;
        }
        Ok(())
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn nested(depth: usize) -> Vec<u8> {
        let mut graph = proto::GraphProto::default();
        for _ in 0..depth {
            let attribute = proto::AttributeProto { g: Some(Box::new(graph)), ..Default::default() };
            let node = proto::NodeProto { attribute: vec![attribute], ..Default::default() };
            graph = proto::GraphProto { node: vec![node], ..Default::default() };
        }
        proto::ModelProto { graph: Some(graph), ..Default::default() }.encode_to_vec()
    }

    #[test]
    fn subgraphs_nest_up_to_the_limit() {
        let limits = Limits::default();
        assert_eq!(scan(&nested(limits.nesting), &limits), Ok(()));
        assert!(proto::ModelProto::decode(nested(limits.nesting).as_slice()).is_ok());
        assert_eq!(scan(&nested(limits.nesting + 1), &limits), Err(WireError::Nesting { limit: 24 }));
        let limits = Limits { nesting: usize::MAX, ..limits };
        assert_eq!(scan(&nested(40), &limits), Err(WireError::Depth { limit: DEEPEST }));
    }

    #[test]
    fn empty_nodes_are_charged_what_they_take_in_memory() {
        let node = proto::NodeProto::default();
        let graph = proto::GraphProto { node: vec![node; 10_000], ..Default::default() };
        let bytes = proto::ModelProto { graph: Some(graph), ..Default::default() }.encode_to_vec();
        assert!(bytes.len() < 20_100);
        let limits = Limits { decoded_bytes: 1_000_000, ..Limits::default() };
        assert_eq!(scan(&bytes, &limits), Err(WireError::Decoded { limit: 1_000_000 }));
        let limits = Limits { nodes: 9_999, ..Limits::default() };
        assert_eq!(scan(&bytes, &limits), Err(WireError::Nodes { limit: 9_999 }));
    }

    #[test]
    fn groups_and_cut_fields_are_refused() {
        let limits = Limits::default();
        assert_eq!(scan(&[0x0b, 0x0c], &limits), Err(WireError::Key { at: 0 }));
        assert_eq!(scan(&[0x08, 0x80], &limits), Err(WireError::Truncated { at: 0 }));
        assert_eq!(scan(&[0x3a, 0x05, 0x00], &limits), Err(WireError::Truncated { at: 0 }));
        assert_eq!(scan(&[0x00], &limits), Err(WireError::Key { at: 0 }));
    }
}
