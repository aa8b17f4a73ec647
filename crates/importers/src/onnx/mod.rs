//! ONNX files.
//!
//! [`import`] walks over the bytes (`scan`), decodes them (`proto`), and builds the graph node by node: for each
//! operator `ops` has a reader, which upgrades what older operator sets say differently. What has no reader is
//! collected, so that one attempt lists everything that a model lacks.

mod custom;
mod error;
mod functions;
mod importer;
mod node;
mod ops;
mod order;
mod proto;
mod scan;
mod stored;
mod tensor;
#[cfg(test)]
mod tests;
mod types;
mod values;

use std::collections::BTreeMap;

use armet_graph::ops::CustomOperators;
use armet_graph::{Graph, TensorType, Value, ValueType};
use armet_tensor::{ElementType, Tensor};
use bytes::Bytes;
use prost::Message as _;

pub use error::{ImportError, Invalid, Reason, TensorProblem, UnsupportedItem, Warning};
pub use scan::WireError;

use crate::{ExternalData, Limits, foreign};

/// What an import needs besides the file.
#[derive(Default)]
pub struct ImportOptions<'a> {
    /// Files beside the model; without it models that keep weights in other files are refused.
    pub external: Option<&'a dyn ExternalData>,
    /// Operators besides those that are known.
    pub custom: Option<&'a CustomOperators>,
    /// Inputs for which the file has values of its own, and that are to be inputs all the same. Without it such values are
    /// constants: old exporters list every weight among the inputs.
    pub inputs: &'a [String],
    /// Bounds on what the file may ask for.
    pub limits: Limits,
}

impl std::fmt::Debug for ImportOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportOptions").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A model as a graph, and what its file says besides.
#[derive(Debug)]
pub struct Imported {
    /// The model.
    pub graph: Graph,
    /// `metadata_props`: what exporters note of labels, strides and the like.
    pub metadata: BTreeMap<String, String>,
    /// Version of each operator set that the model names; ONNX's own has the empty name.
    pub opsets: BTreeMap<String, i64>,
    /// Version of the file format.
    pub ir_version: i64,
    /// The program that wrote the file.
    pub producer: Producer,
    /// Version that the model's author gave it.
    pub model_version: i64,
    /// The author's text.
    pub doc: String,
    /// What is worth saying.
    pub warnings: Vec<Warning>,
}

/// The program that wrote a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Producer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Makes a graph of an ONNX file. Weights stay slices of `bytes`.
///
/// # Errors
/// See [`ImportError`]; everything unsupported is reported at once.
pub fn import(bytes: Bytes, options: &ImportOptions<'_>) -> Result<Imported, ImportError> {
    import_bytes(bytes.clone(), options).map_err(|error| match error {
        ImportError::Wire(_) | ImportError::Decode(_) | ImportError::NoGraph => {
            foreign::recognise(&bytes).map_or(error, ImportError::Foreign)
        }
        other => other,
    })
}

/// The operators that are read: domain (empty for ONNX's own), name, and the first version of each reading.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str, i64)> {
    ops::names()
}

/// Reads a file that holds one `TensorProto`, as ONNX's own test cases do; gives its name too.
///
/// # Errors
/// When the bytes are no tensor.
pub fn read_tensor(bytes: Bytes, limits: &Limits) -> Result<(String, Tensor), ImportError> {
    let (name, value) = read_value(bytes, &TensorType::unranked(ElementType::F32).into(), limits)?;
    match value {
        Value::Tensor(tensor) => Ok((name, tensor)),
        _ => Err(ImportError::Format("it holds no tensor")),
    }
}

/// Reads a file that holds one value of the kind that `ty` is: a `TensorProto`, `SequenceProto` or `OptionalProto`; gives
/// its name too.
///
/// # Errors
/// When the bytes are no such value.
pub fn read_value(bytes: Bytes, ty: &ValueType, limits: &Limits) -> Result<(String, Value), ImportError> {
    scan::scan_value(&bytes, ty, limits)?;
    let mut reader = tensor::TensorReader::new(None, limits);
    Ok(match ty {
        ValueType::Tensor(_) => {
            let proto = proto::TensorProto::decode(bytes)?;
            (proto.name.clone(), stored::tensor(&proto, &mut reader)?.into())
        }
        ValueType::Sequence(_) => {
            let proto = proto::SequenceProto::decode(bytes)?;
            (proto.name.clone(), stored::sequence(&proto, &mut reader)?)
        }
        ValueType::Optional(_) => {
            let proto = proto::OptionalProto::decode(bytes)?;
            (proto.name.clone(), stored::optional(&proto, &mut reader)?)
        }
    })
}

fn import_bytes(bytes: Bytes, options: &ImportOptions<'_>) -> Result<Imported, ImportError> {
    scan::scan(&bytes, &options.limits)?;
    import_model(&proto::ModelProto::decode(bytes)?, options)
}

fn import_model(model: &proto::ModelProto, options: &ImportOptions<'_>) -> Result<Imported, ImportError> {
    let graph = model.graph.as_ref().ok_or(ImportError::NoGraph)?;
    let (opsets, warnings) = importer::opsets(model);
    let (graph, warnings) = importer::Importer::new(model, options, &opsets, warnings).model(graph)?;
    Ok(Imported {
        graph,
        metadata: model.metadata_props.iter().map(|e| (e.key.clone(), e.value.clone())).collect(),
        opsets,
        ir_version: model.ir_version,
        producer: Producer { name: model.producer_name.clone(), version: model.producer_version.clone() },
        model_version: model.model_version,
        doc: model.doc_string.clone(),
        warnings,
    })
}
