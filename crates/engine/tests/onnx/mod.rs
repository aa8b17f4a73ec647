//! ONNX files written by hand, field by field of `onnx.proto`, for tests that need a model of their own.

use armet::Model;

/// A message under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message(Vec<u8>);

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Message {
    /// With a field of bytes: text or a message.
    pub(crate) fn with(mut self, number: u64, bytes: impl AsRef<[u8]>) -> Self {
        varint(&mut self.0, number << 3 | 2);
        varint(&mut self.0, bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    /// With a field that is a number.
    pub(crate) fn number(mut self, number: u64, value: u64) -> Self {
        varint(&mut self.0, number << 3);
        varint(&mut self.0, value);
        self
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The numbers of element types.
pub(crate) const FLOAT: u64 = 1;
pub(crate) const TEXT: u64 = 8;

/// The type of a tensor whose dimensions have these names.
pub(crate) fn tensor(element: u64, dims: &[&str]) -> Message {
    let shape =
        dims.iter().fold(Message::default(), |shape, name| shape.with(1, Message::default().with(2, name)));
    Message::default().with(1, Message::default().number(1, element).with(2, shape))
}

/// The type of a list.
pub(crate) fn list(of: &Message) -> Message {
    Message::default().with(4, Message::default().with(1, of))
}

/// The type of a value that may not be there.
pub(crate) fn optional(of: &Message) -> Message {
    Message::default().with(9, Message::default().with(1, of))
}

/// An attribute that is a whole number.
pub(crate) fn int(name: &str, value: u64) -> Message {
    Message::default().with(1, name).number(3, value).number(20, 2)
}

/// An attribute that is a graph.
pub(crate) fn body(name: &str, graph: &Message) -> Message {
    Message::default().with(1, name).with(6, graph).number(20, 5)
}

/// A node.
pub(crate) fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[Message]) -> Message {
    let message = inputs.iter().fold(Message::default(), |m, name| m.with(1, name));
    let message = outputs.iter().fold(message, |m, name| m.with(2, name));
    let message = message.with(3, outputs[0]).with(4, op);
    attributes.iter().fold(message, |m, attribute| m.with(5, attribute))
}

/// A graph.
pub(crate) fn graph(nodes: &[Message], inputs: &[(&str, Message)], outputs: &[(&str, Message)]) -> Message {
    let message = nodes.iter().fold(Message::default(), |m, node| m.with(1, node)).with(2, "graph");
    let value = |(name, ty): &(&str, Message)| Message::default().with(1, name).with(2, ty);
    let message = inputs.iter().fold(message, |m, input| m.with(11, value(input)));
    outputs.iter().fold(message, |m, output| m.with(12, value(output)))
}

/// The file of a model of the newest operator set that tests use.
pub(crate) fn file(graph: &Message) -> Vec<u8> {
    let opset = Message::default().with(1, "").number(2, 20);
    Message::default().number(1, 9).with(7, graph).with(8, opset).0
}

/// A model of the newest operator set that tests use.
pub(crate) fn model(graph: &Message) -> Model {
    Model::from_bytes(file(graph)).expect("the model is read")
}

/// A recurrence over a sequence of rows: each state is the tangent of the sum of the one before and a row.
pub(crate) fn recurrence() -> Model {
    let row = || tensor(FLOAT, &["n"]);
    let inside = graph(
        &[
            node("Add", &["state", "row"], &["sum"], &[]),
            node("Tanh", &["sum"], &["next"], &[]),
            node("Identity", &["next"], &["shown"], &[]),
        ],
        &[("state", row()), ("row", row())],
        &[("next", row()), ("shown", row())],
    );
    let attributes = [body("body", &inside), int("num_scan_inputs", 1)];
    model(&graph(
        &[node("Scan", &["first", "rows"], &["last", "all"], &attributes)],
        &[("first", row()), ("rows", tensor(FLOAT, &["t", "n"]))],
        &[("last", row()), ("all", tensor(FLOAT, &["t", "n"]))],
    ))
}
