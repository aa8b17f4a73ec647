//! `TensorProto` to tensors: raw bytes and external data are shared, typed fields are copied.

use std::collections::HashMap;

use armet_tensor::{ElementType, Shape, Tensor};
use bytes::Bytes;

use super::error::TensorProblem;
use super::proto::{SparseTensorProto, TensorProto};
use super::types;
use crate::{ExternalData, Limits};

/// Reads tensors; remembers external files that are open.
pub(super) struct TensorReader<'a> {
    external: Option<&'a dyn ExternalData>,
    tensor_bytes: usize,
    files: HashMap<String, Bytes>,
    external_left: u64,
    /// Bytes that sparse tensors may still grow to: a few bytes can ask for gigabytes.
    dense_left: usize,
}

impl<'a> TensorReader<'a> {
    pub(super) fn new(external: Option<&'a dyn ExternalData>, limits: &Limits) -> Self {
        Self {
            external,
            tensor_bytes: limits.tensor_bytes,
            files: HashMap::new(),
            external_left: limits.external_bytes,
            dense_left: limits.tensor_bytes,
        }
    }

    /// The tensor that a message describes.
    pub(super) fn read(&mut self, proto: &TensorProto) -> Result<Tensor, TensorProblem> {
        let element = types::element(proto.data_type).ok_or(TensorProblem::ElementType(proto.data_type))?;
        if proto.segment.is_some() {
            return Err(TensorProblem::Segment);
        }
        if proto.dims.len() > types::LARGEST_RANK {
            return Err(TensorProblem::Rank { limit: types::LARGEST_RANK });
        }
        let shape = shape_of(&proto.dims)?;
        let too_large = TensorProblem::TooLarge { limit: self.tensor_bytes };
        let count = shape.checked_len().ok_or(TensorProblem::TooLarge { limit: self.tensor_bytes })?;
        if element.bytes_for(count).is_none_or(|n| n > self.tensor_bytes) {
            return Err(too_large);
        }
        if element == ElementType::String {
            let texts = proto.string_data.iter().map(|s| String::from_utf8(s.to_vec()));
            let texts = texts.collect::<Result<Vec<_>, _>>().map_err(|_| TensorProblem::Text)?;
            return expect_count(count, texts.len()).and_then(|()| Ok(Tensor::from_strings(shape, texts)?));
        }
        if proto.data_location == 1 {
            let bytes = self.external_bytes(proto, element.bytes_for(count).unwrap_or(0))?;
            return Ok(Tensor::from_shared(element, shape, bytes)?);
        }
        if let Some(raw) = &proto.raw_data
            && !raw.is_empty()
        {
            return Ok(Tensor::from_shared(element, shape, raw.clone())?);
        }
        typed(proto, element, shape, count)
    }

    /// The dense tensor that a sparse one stands for.
    pub(super) fn read_sparse(&mut self, proto: &SparseTensorProto) -> Result<Tensor, TensorProblem> {
        let (Some(values), Some(indices)) = (&proto.values, &proto.indices) else {
            return Err(TensorProblem::Sparse("its values or indices are missing"));
        };
        let (values, indices) = (self.read(values)?, self.read(indices)?);
        if proto.dims.len() > types::LARGEST_RANK {
            return Err(TensorProblem::Rank { limit: types::LARGEST_RANK });
        }
        let shape = shape_of(&proto.dims)?;
        let size = values.element().byte_size().ok_or(TensorProblem::Sparse("its elements are text"))?;
        let too_large = TensorProblem::TooLarge { limit: self.tensor_bytes };
        let bytes = shape.checked_len().and_then(|count| count.checked_mul(size));
        let bytes = bytes.filter(|&bytes| bytes <= self.dense_left).ok_or(too_large)?;
        self.dense_left -= bytes;
        let outside = || TensorProblem::Sparse("an index is outside of it");
        let numbers = indices.to_i64().ok_or(TensorProblem::Sparse("its indices are no integers"))?;
        let numbers: Vec<usize> =
            numbers.into_iter().map(usize::try_from).collect::<Result<_, _>>().map_err(|_| outside())?;
        let count = values.len();
        let places: Vec<usize> = match indices.shape().dims() {
            [len] if *len == count => numbers,
            [len, rank] if *len == count && *rank == shape.len() => {
                let strides = armet_tensor::strides(&shape);
                let place = |at: &[usize]| {
                    let inside = at.iter().zip(shape.dims()).all(|(index, length)| index < length);
                    inside.then(|| at.iter().zip(strides.iter()).map(|(index, stride)| index * stride).sum())
                };
                numbers.chunks(shape.len().max(1)).map(place).collect::<Option<_>>().ok_or_else(outside)?
            }
            _ => return Err(TensorProblem::Sparse("its indices do not fit its values")),
        };
        let mut dense = vec![0u8; bytes];
        for (place, value) in places.into_iter().zip(values.bytes().chunks_exact(size)) {
            let start = place.checked_mul(size).ok_or_else(outside)?;
            let slot =
                start.checked_add(size).and_then(|end| dense.get_mut(start..end)).ok_or_else(outside)?;
            slot.copy_from_slice(value);
        }
        Ok(Tensor::from_bytes(values.element(), shape, &dense)?)
    }

    fn external_bytes(&mut self, proto: &TensorProto, expected: usize) -> Result<Bytes, TensorProblem> {
        let entry = |key: &str| proto.external_data.iter().find(|e| e.key == key).map(|e| e.value.clone());
        let location = entry("location").unwrap_or_default();
        let offset = entry("offset").unwrap_or_else(|| "0".into());
        let length = entry("length").unwrap_or_else(|| expected.to_string());
        let file = if let Some(file) = self.files.get(&location) {
            file.clone()
        } else {
            let Some(external) = self.external else {
                return Err(TensorProblem::NoExternalData { location });
            };
            let file = external
                .file(&location, self.external_left)
                .map_err(|source| TensorProblem::External { location: location.clone(), source })?;
            self.external_left = self.external_left.saturating_sub(file.len() as u64);
            self.files.insert(location.clone(), file.clone());
            file
        };
        let range = || {
            let start: usize = offset.parse().ok()?;
            let end = start.checked_add(length.parse().ok()?)?;
            (end <= file.len()).then_some(start..end)
        };
        match range() {
            Some(range) => Ok(file.slice(range)),
            None => Err(TensorProblem::Range { location, offset, length }),
        }
    }
}

fn shape_of(dims: &[i64]) -> Result<Shape, TensorProblem> {
    let dims = dims.iter().map(|&d| usize::try_from(d).map_err(|_| TensorProblem::Dimension(d)));
    dims.collect::<Result<Vec<usize>, _>>().map(Shape::from)
}

fn expect_count(expected: usize, actual: usize) -> Result<(), TensorProblem> {
    if expected == actual { Ok(()) } else { Err(TensorProblem::Count { expected, actual }) }
}

/// A tensor from the field for its element type.
fn typed(
    proto: &TensorProto,
    element: ElementType,
    shape: Shape,
    count: usize,
) -> Result<Tensor, TensorProblem> {
    // Narrow types are stored one to an int32, those below a byte as whole bytes; their low bits are the element.
    let narrow = |width: usize| {
        let bytes = proto.int32_data.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width));
        bytes.collect::<Vec<u8>>()
    };
    let (entries, bytes): (usize, Vec<u8>) = match element {
        ElementType::F32 => (proto.float_data.len(), le(&proto.float_data, |v| v.to_le_bytes())),
        ElementType::Complex64 => (proto.float_data.len() / 2, le(&proto.float_data, |v| v.to_le_bytes())),
        ElementType::F64 => (proto.double_data.len(), le(&proto.double_data, |v| v.to_le_bytes())),
        ElementType::Complex128 => (proto.double_data.len() / 2, le(&proto.double_data, |v| v.to_le_bytes())),
        ElementType::I64 => (proto.int64_data.len(), le(&proto.int64_data, |v| v.to_le_bytes())),
        ElementType::U64 => (proto.uint64_data.len(), le(&proto.uint64_data, |v| v.to_le_bytes())),
        ElementType::U32 => (proto.uint64_data.len(), le(&proto.uint64_data, |v| (*v as u32).to_le_bytes())),
        ElementType::I32 => (proto.int32_data.len(), le(&proto.int32_data, |v| v.to_le_bytes())),
        _ => match (element.byte_size(), 8 / element.bits().max(1)) {
            (Some(width), _) => (proto.int32_data.len(), narrow(width)),
            (None, per_byte) => {
                let whole = proto.int32_data.len().saturating_mul(per_byte);
                // The last byte may be filled partly.
                let fits = whole >= count && whole - count < per_byte;
                (if fits { count } else { whole }, narrow(1))
            }
        },
    };
    expect_count(count, entries)?;
    Ok(Tensor::from_bytes(element, shape, &bytes)?)
}

fn le<T, const N: usize>(values: &[T], bytes: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use armet_tensor::Bool;
    use half::f16;

    use super::*;

    fn read(proto: &TensorProto) -> Result<Tensor, TensorProblem> {
        TensorReader::new(None, &Limits::default()).read(proto)
    }

    #[test]
    fn raw_data_is_not_copied() {
        let raw = Bytes::from(vec![0u8, 0, 128, 63, 0, 0, 0, 64]);
        let proto =
            TensorProto { dims: vec![2], data_type: 1, raw_data: Some(raw.clone()), ..Default::default() };
        let tensor = read(&proto).unwrap();
        assert_eq!(tensor.bytes().as_ptr(), raw.as_ptr());
        assert_eq!(tensor.expect::<f32>().as_ref(), [1.0, 2.0]);
    }

    #[test]
    fn narrow_types_are_the_low_bits_of_int32() {
        let proto = |data_type, int32_data| TensorProto {
            dims: vec![2],
            data_type,
            int32_data,
            ..Default::default()
        };
        assert_eq!(read(&proto(3, vec![-1, 127])).unwrap().expect::<i8>().as_ref(), [-1, 127]);
        assert_eq!(read(&proto(2, vec![255, 1])).unwrap().expect::<u8>().as_ref(), [255, 1]);
        assert_eq!(read(&proto(9, vec![1, 0])).unwrap().expect::<Bool>().as_ref(), [Bool(1), Bool(0)]);
        let halves = read(&proto(10, vec![0x3c00, 0xc000])).unwrap();
        assert_eq!(halves.expect::<f16>().as_ref(), [f16::from_f32(1.0), f16::from_f32(-2.0)]);
        assert_eq!(read(&proto(22, vec![0x7f])).unwrap().bytes(), [0x7f]);
        assert!(matches!(read(&proto(22, vec![1, 2])), Err(TensorProblem::Count { expected: 2, actual: 4 })));
    }

    #[test]
    fn counts_and_sizes_must_fit() {
        let empty = TensorProto { dims: vec![3], data_type: 1, ..Default::default() };
        assert!(matches!(read(&empty), Err(TensorProblem::Count { expected: 3, actual: 0 })));
        let huge = TensorProto { dims: vec![i64::MAX, i64::MAX], data_type: 1, ..Default::default() };
        assert!(matches!(read(&huge), Err(TensorProblem::TooLarge { .. })));
        let negative = TensorProto { dims: vec![-1], data_type: 1, ..Default::default() };
        assert!(matches!(read(&negative), Err(TensorProblem::Dimension(-1))));
        let none = TensorProto { dims: vec![0, i64::MAX], data_type: 1, ..Default::default() };
        assert!(read(&none).unwrap().is_empty());
        let unknown = TensorProto { data_type: 99, ..Default::default() };
        assert!(matches!(read(&unknown), Err(TensorProblem::ElementType(99))));
    }
}
