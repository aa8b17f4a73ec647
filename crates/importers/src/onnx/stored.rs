//! Values in files of their own: tensors, sequences and optionals.

use armet_graph::Value;
use armet_tensor::Tensor;

use super::error::ImportError;
use super::proto::{OptionalProto, SequenceProto, TensorProto};
use super::tensor::TensorReader;

/// What `elem_type` says of a sequence or optional that holds neither tensors, sequences nor optionals.
const SPARSE: i32 = 2;
const MAP: i32 = 4;

fn refuse_others(elem_type: i32) -> Result<(), ImportError> {
    match elem_type {
        SPARSE => Err(ImportError::Format("it holds sparse tensors, which are not read")),
        MAP => Err(ImportError::Format("it holds maps, which are not read")),
        _ => Ok(()),
    }
}

/// A tensor.
pub(super) fn tensor(proto: &TensorProto, reader: &mut TensorReader<'_>) -> Result<Tensor, ImportError> {
    let named = |problem| ImportError::Tensor { name: proto.name.clone(), problem: Box::new(problem) };
    reader.read(proto).map_err(named)
}

/// A list.
pub(super) fn sequence(proto: &SequenceProto, reader: &mut TensorReader<'_>) -> Result<Value, ImportError> {
    refuse_others(proto.elem_type)?;
    let mut items = Vec::new();
    for item in &proto.tensor_values {
        items.push(tensor(item, reader)?.into());
    }
    for item in &proto.sequence_values {
        items.push(sequence(item, reader)?);
    }
    for item in &proto.optional_values {
        items.push(optional(item, reader)?);
    }
    Ok(Value::Sequence(items))
}

/// A value or nothing.
pub(super) fn optional(proto: &OptionalProto, reader: &mut TensorReader<'_>) -> Result<Value, ImportError> {
    refuse_others(proto.elem_type)?;
    let inner = if let Some(value) = &proto.tensor_value {
        Some(tensor(value, reader)?.into())
    } else if let Some(value) = &proto.sequence_value {
        Some(sequence(value, reader)?)
    } else if let Some(value) = &proto.optional_value {
        Some(optional(value, reader)?)
    } else {
        None
    };
    Ok(Value::Optional(inner.map(Box::new)))
}
