//! The messages of `onnx.proto`, as far as a runtime needs them.
//!
//! Weights (`raw_data`) are slices of the file's own bytes. Parts that are only looked at for being there (training
//! information) stay undecoded bytes: on the wire a message and bytes are the same.

use bytes::Bytes;

/// A model file.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelProto {
    #[prost(int64, tag = "1")]
    pub(crate) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(crate) producer_name: String,
    #[prost(string, tag = "3")]
    pub(crate) producer_version: String,
    #[prost(string, tag = "4")]
    pub(crate) domain: String,
    #[prost(int64, tag = "5")]
    pub(crate) model_version: i64,
    #[prost(string, tag = "6")]
    pub(crate) doc_string: String,
    #[prost(message, optional, tag = "7")]
    pub(crate) graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) opset_import: Vec<OperatorSetIdProto>,
    #[prost(message, repeated, tag = "14")]
    pub(crate) metadata_props: Vec<StringStringEntryProto>,
    #[prost(bytes = "bytes", repeated, tag = "20")]
    pub(crate) training_info: Vec<Bytes>,
    #[prost(message, repeated, tag = "25")]
    pub(crate) functions: Vec<FunctionProto>,
}

/// Which version of which operator set a model uses.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    pub(crate) domain: String,
    #[prost(int64, tag = "2")]
    pub(crate) version: i64,
}

/// One entry of a dictionary.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StringStringEntryProto {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// A graph, of the model or of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) initializer: Vec<TensorProto>,
    #[prost(string, tag = "10")]
    pub(crate) doc_string: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) output: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) value_info: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) sparse_initializer: Vec<SparseTensorProto>,
}

/// One use of an operator.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(string, tag = "4")]
    pub(crate) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attribute: Vec<AttributeProto>,
    #[prost(string, tag = "7")]
    pub(crate) domain: String,
    #[prost(string, tag = "8")]
    pub(crate) overload: String,
}

/// Kinds of attributes, by their number in `AttributeProto.type`.
pub(crate) mod attribute_type {
    pub(crate) const UNDEFINED: i32 = 0;
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const INT: i32 = 2;
    pub(crate) const STRING: i32 = 3;
    pub(crate) const TENSOR: i32 = 4;
    pub(crate) const GRAPH: i32 = 5;
    pub(crate) const FLOATS: i32 = 6;
    pub(crate) const INTS: i32 = 7;
    pub(crate) const STRINGS: i32 = 8;
    pub(crate) const SPARSE_TENSOR: i32 = 11;
    pub(crate) const TYPE: i32 = 13;
}

/// An attribute of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AttributeProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(float, optional, tag = "2")]
    pub(crate) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) s: Option<Bytes>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(crate) t: Option<Box<TensorProto>>,
    #[prost(message, optional, boxed, tag = "6")]
    pub(crate) g: Option<Box<GraphProto>>,
    #[prost(float, repeated, tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(crate) ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub(crate) strings: Vec<Bytes>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) graphs: Vec<GraphProto>,
    #[prost(message, optional, boxed, tag = "14")]
    pub(crate) tp: Option<Box<TypeProto>>,
    #[prost(int32, tag = "20")]
    pub(crate) r#type: i32,
    #[prost(string, tag = "21")]
    pub(crate) ref_attr_name: String,
    #[prost(message, optional, boxed, tag = "22")]
    pub(crate) sparse_tensor: Option<Box<SparseTensorProto>>,
}

/// A constant tensor of which only some elements are written down; the others are zero.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SparseTensorProto {
    /// `[count]`; its name is the tensor's.
    #[prost(message, optional, tag = "1")]
    pub(crate) values: Option<TensorProto>,
    /// `[count]` of places in the flat tensor, or `[count, rank]` of coordinates; ascending.
    #[prost(message, optional, tag = "2")]
    pub(crate) indices: Option<TensorProto>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dims: Vec<i64>,
}

/// A constant tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) segment: Option<Bytes>,
    #[prost(float, repeated, tag = "4")]
    pub(crate) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(crate) string_data: Vec<Bytes>,
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(crate) raw_data: Option<Bytes>,
    #[prost(double, repeated, tag = "10")]
    pub(crate) double_data: Vec<f64>,
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) external_data: Vec<StringStringEntryProto>,
    #[prost(int32, tag = "14")]
    pub(crate) data_location: i32,
}

/// A list of values: one of the lists is filled, which one `elem_type` says.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SequenceProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) elem_type: i32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) tensor_values: Vec<TensorProto>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) sequence_values: Vec<SequenceProto>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) optional_values: Vec<OptionalProto>,
}

/// A value or nothing: at most one of the values is there.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OptionalProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) elem_type: i32,
    #[prost(message, optional, boxed, tag = "3")]
    pub(crate) tensor_value: Option<Box<TensorProto>>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(crate) sequence_value: Option<Box<SequenceProto>>,
    #[prost(message, optional, boxed, tag = "7")]
    pub(crate) optional_value: Option<Box<OptionalProto>>,
}

/// Name and type of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<TypeProto>,
}

/// The type of a value: one of the fields is there.
#[expect(clippy::struct_field_names, reason = "the format's names")]
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor_type: Option<TensorTypeProto>,
    #[prost(message, optional, boxed, tag = "4")]
    pub(crate) sequence_type: Option<Box<ElementTypeProto>>,
    #[prost(message, optional, boxed, tag = "9")]
    pub(crate) optional_type: Option<Box<ElementTypeProto>>,
}

/// The type of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TensorTypeProto {
    #[prost(int32, tag = "1")]
    pub(crate) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
}

/// The type inside a sequence or an optional.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ElementTypeProto {
    #[prost(message, optional, boxed, tag = "1")]
    pub(crate) elem_type: Option<Box<TypeProto>>,
}

/// Dimensions.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dim: Vec<DimensionProto>,
}

/// One dimension: a number, a name, or nothing.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DimensionProto {
    #[prost(int64, optional, tag = "1")]
    pub(crate) dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) dim_param: Option<String>,
}

/// An operator that the model itself defines.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FunctionProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    pub(crate) output: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    pub(crate) attribute: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) node: Vec<NodeProto>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) opset_import: Vec<OperatorSetIdProto>,
    #[prost(string, tag = "10")]
    pub(crate) domain: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) attribute_proto: Vec<AttributeProto>,
    #[prost(string, tag = "13")]
    pub(crate) overload: String,
}
