//! The same real numbers stored otherwise. The type of the result is set by whoever adds the node.

/// The same real numbers stored otherwise. The type of the result is set by whoever adds the node: with a quantization it is stored as integers, without as float32.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requantize;

super::support::pending!(Requantize);
