//! Nodes of operators that whoever loads the model has given: read as they stand, with all their attributes.

use armet_graph::AttributeValue;
use armet_graph::ops::{Custom, CustomNode, CustomRegistration};

use super::error::{Invalid, Reason};
use super::node::{NodeReader, Read, shortened};
use super::ops::Entry;
use super::proto::{AttributeProto, attribute_type as kind};

/// Stands in the place of a reader's entry.
pub(super) static ENTRY: Entry = Entry::custom();

impl NodeReader<'_, '_> {
    /// Reads a node of a custom operator. Quantized values arrive as the integers they are.
    pub(super) fn read_custom(mut self, registration: &CustomRegistration) -> Read {
        let mut attributes = Vec::new();
        for attribute in self.attributes() {
            attributes.push((attribute.name.clone(), self.free_value(attribute)?));
        }
        let (domain, operator) = self.identity();
        let node =
            CustomNode { domain, operator, opset: self.version(), attributes, outputs: self.output_count() };
        let inputs = self.inputs(0)?;
        self.emit(Custom::new(registration, node), inputs)
    }

    /// The value of an attribute of which nothing is known but its kind.
    fn free_value(&mut self, a: &AttributeProto) -> Read<AttributeValue> {
        let text = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|_| Invalid::Other(format!("attribute {} is not UTF-8", a.name)))
        };
        Ok(match a.r#type {
            kind::INT => AttributeValue::Int(a.i.unwrap_or(0)),
            kind::FLOAT => AttributeValue::Float(a.f.unwrap_or(0.0)),
            kind::STRING => AttributeValue::Text(text(a.s.as_deref().unwrap_or_default())?),
            kind::INTS => AttributeValue::Ints(a.ints.clone()),
            kind::FLOATS => AttributeValue::Floats(a.floats.clone()),
            kind::STRINGS => {
                AttributeValue::Texts(a.strings.iter().map(|s| text(s)).collect::<Result<_, _>>()?)
            }
            kind::TENSOR if a.t.is_some() => AttributeValue::Tensor(self.free_tensor(a)?),
            _ => return Err(Reason::Attribute { name: a.name.clone(), value: shortened(a) }.into()),
        })
    }
}
