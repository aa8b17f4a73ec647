//! Element types, shapes and types of values as ONNX numbers them.

use armet_graph::{Dim, TensorType, ValueType};
use armet_tensor::ElementType;

use super::proto::{DimensionProto, TypeProto};

/// More dimensions than any tensor has. Longer lists are not types: they would be copied along a chain of nodes.
pub(super) const LARGEST_RANK: usize = 64;

/// The element type with this number in `TensorProto.DataType`.
pub(super) fn element(number: i32) -> Option<ElementType> {
    Some(match number {
        1 => ElementType::F32,
        2 => ElementType::U8,
        3 => ElementType::I8,
        4 => ElementType::U16,
        5 => ElementType::I16,
        6 => ElementType::I32,
        7 => ElementType::I64,
        8 => ElementType::String,
        9 => ElementType::Bool,
        10 => ElementType::F16,
        11 => ElementType::F64,
        12 => ElementType::U32,
        13 => ElementType::U64,
        14 => ElementType::Complex64,
        15 => ElementType::Complex128,
        16 => ElementType::Bf16,
        17 => ElementType::F8E4M3Fn,
        18 => ElementType::F8E4M3Fnuz,
        19 => ElementType::F8E5M2,
        20 => ElementType::F8E5M2Fnuz,
        21 => ElementType::U4,
        22 => ElementType::I4,
        23 => ElementType::F4E2M1,
        24 => ElementType::F8E8M0,
        25 => ElementType::U2,
        26 => ElementType::I2,
        _ => return None,
    })
}

/// The element type with this name in `TensorProto.DataType`, as the first opset's Cast has it.
pub(super) fn element_named(name: &str) -> Option<ElementType> {
    let number = match name {
        "FLOAT" => 1,
        "UINT8" => 2,
        "INT8" => 3,
        "UINT16" => 4,
        "INT16" => 5,
        "INT32" => 6,
        "INT64" => 7,
        "STRING" => 8,
        "BOOL" => 9,
        "FLOAT16" => 10,
        "DOUBLE" => 11,
        "UINT32" => 12,
        "UINT64" => 13,
        _ => return None,
    };
    element(number)
}

/// What a file says of a dimension. Exporters write 0, -1 and `?` for dimensions that they do not know.
fn dimension(proto: &DimensionProto) -> Option<Dim> {
    if let Some(name) = proto.dim_param.as_deref()
        && name.contains(char::is_alphabetic)
    {
        return Some(Dim::symbol(name));
    }
    proto.dim_value.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0).map(Dim::Fixed)
}

/// A declared type; `None` when the file does not say what it is. Dimensions that it does not tell are asked for by axis.
pub(super) fn value_type(proto: &TypeProto, unknown: &dyn Fn(usize) -> Dim) -> Option<ValueType> {
    if let Some(tensor) = &proto.tensor_type {
        let element = element(tensor.elem_type)?;
        let shape = tensor.shape.as_ref().filter(|s| s.dim.len() <= LARGEST_RANK);
        let Some(shape) = shape else { return Some(TensorType::unranked(element).into()) };
        let dims =
            shape.dim.iter().enumerate().map(|(axis, d)| dimension(d).unwrap_or_else(|| unknown(axis)));
        return Some(TensorType::new(element, dims).into());
    }
    // Tensors of a list differ in shape: what is declared of them tells nothing of any one.
    let inner = |inner: &Option<Box<TypeProto>>| {
        Some(Box::new(value_type(inner.as_ref()?, &|_| Dim::Unknown)?.without_shapes()))
    };
    if let Some(sequence) = &proto.sequence_type {
        return Some(ValueType::Sequence(inner(&sequence.elem_type)?));
    }
    proto.optional_type.as_ref().and_then(|o| Some(ValueType::Optional(inner(&o.elem_type)?)))
}

/// The type of a body's input, from its declaration and from the type of what it is first given: turns may change lengths,
/// and only what is given tells the element type for sure.
pub(super) fn given(declared: Option<ValueType>, given: Option<ValueType>) -> Option<ValueType> {
    match (declared, given) {
        (Some(ValueType::Tensor(declared)), Some(ValueType::Tensor(given))) => {
            let fits = given.rank().is_none() || given.rank() == declared.rank();
            let unknown = || given.dims.as_ref().map(|dims| dims.iter().map(|_| Dim::Unknown).collect());
            let dims = if fits { declared.dims } else { unknown() };
            Some(TensorType { element: given.element, dims, quantization: None }.into())
        }
        (Some(declared), _) => Some(declared),
        (None, given) => given.map(|ty| ty.without_shapes()),
    }
}

/// Whether a declared type cannot be the one that follows from the nodes.
pub(super) fn conflict(declared: &TensorType, found: &TensorType) -> bool {
    if declared.element != found.element {
        return true;
    }
    let (Some(declared), Some(found)) = (&declared.dims, &found.dims) else { return false };
    let differ = |(a, b): (&Dim, &Dim)| matches!((a, b), (Dim::Fixed(a), Dim::Fixed(b)) if a != b);
    declared.len() != found.len() || declared.iter().zip(found).any(differ)
}
