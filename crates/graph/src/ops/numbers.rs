//! Conversion between stored elements and the numbers that operators compute with.

use armet_tensor::{Bool, Element, ElementType, Quantization, Shape, Tensor, TensorError, strides};
use half::{bf16, f16};

use crate::EvaluateError;

mod small_floats;

fn unsupported(element: ElementType) -> EvaluateError {
    EvaluateError::ElementType { operator: "conversion", element }
}

/// Nibbles or crumbs of packed bytes, sign-extended where the type is signed.
fn unpack(tensor: &Tensor, bits: u32, signed: bool) -> Vec<i64> {
    let per_byte = 8 / bits as usize;
    (0..tensor.len())
        .map(|i| {
            let raw = (tensor.bytes()[i / per_byte] >> (bits * (i % per_byte) as u32)) & ((1 << bits) - 1);
            let value = i64::from(raw);
            if signed && value >= 1 << (bits - 1) { value - (1 << bits) } else { value }
        })
        .collect()
}

fn pack(element: ElementType, shape: Shape, values: &[i128]) -> Result<Tensor, TensorError> {
    let bits = element.bits();
    let per_byte = 8 / bits;
    let mut bytes = vec![0u8; values.len().div_ceil(per_byte)];
    for (i, value) in values.iter().enumerate() {
        let raw = (*value as u8) & ((1u16 << bits) - 1) as u8;
        bytes[i / per_byte] |= raw << (bits * (i % per_byte));
    }
    Tensor::from_bytes(element, shape, &bytes)
}

/// Elements as double-precision numbers.
///
/// # Errors
/// For text and complex numbers.
pub fn to_f64(tensor: &Tensor) -> Result<Vec<f64>, EvaluateError> {
    fn widen<T: Element + Into<f64>>(tensor: &Tensor) -> Vec<f64> {
        tensor.expect::<T>().iter().map(|&v| v.into()).collect()
    }
    Ok(match tensor.element() {
        ElementType::I8 => widen::<i8>(tensor),
        ElementType::U8 => widen::<u8>(tensor),
        ElementType::I16 => widen::<i16>(tensor),
        ElementType::U16 => widen::<u16>(tensor),
        ElementType::I32 => widen::<i32>(tensor),
        ElementType::U32 => widen::<u32>(tensor),
        ElementType::F32 => widen::<f32>(tensor),
        ElementType::F64 => tensor.expect::<f64>().into_owned(),
        ElementType::F16 => tensor.expect::<f16>().iter().map(|v| v.to_f64()).collect(),
        ElementType::Bf16 => tensor.expect::<bf16>().iter().map(|v| v.to_f64()).collect(),
        element if element.is_float() => {
            let decode = |code| small_floats::decode(element, code).ok_or_else(|| unsupported(element));
            if element.bits() == 4 {
                unpack(tensor, 4, false)
                    .into_iter()
                    .map(|code| decode(code as u8))
                    .collect::<Result<_, _>>()?
            } else {
                tensor.bytes().iter().map(|&code| decode(code)).collect::<Result<_, _>>()?
            }
        }
        _ => to_i128(tensor)?.into_iter().map(|v| v as f64).collect(),
    })
}

/// Integer and boolean elements as wide integers.
///
/// # Errors
/// For other types.
pub fn to_i128(tensor: &Tensor) -> Result<Vec<i128>, EvaluateError> {
    fn widen<T: Element + Into<i128>>(tensor: &Tensor) -> Vec<i128> {
        tensor.expect::<T>().iter().map(|&v| v.into()).collect()
    }
    let packed = |bits, signed| unpack(tensor, bits, signed).into_iter().map(i128::from).collect();
    Ok(match tensor.element() {
        ElementType::I64 => widen::<i64>(tensor),
        ElementType::I32 => widen::<i32>(tensor),
        ElementType::I16 => widen::<i16>(tensor),
        ElementType::I8 => widen::<i8>(tensor),
        ElementType::U8 => widen::<u8>(tensor),
        ElementType::U16 => widen::<u16>(tensor),
        ElementType::U32 => widen::<u32>(tensor),
        ElementType::U64 => widen::<u64>(tensor),
        ElementType::Bool => tensor.expect::<Bool>().iter().map(|v| i128::from(v.get())).collect(),
        ElementType::I4 => packed(4, true),
        ElementType::U4 => packed(4, false),
        ElementType::I2 => packed(2, true),
        ElementType::U2 => packed(2, false),
        other => return Err(unsupported(other)),
    })
}

/// What storing a number in a 16-bit float type makes of it; other types keep their numbers.
///
/// The standard defines softmax and attention as compositions whose every step is stored in the element type. In 16 bits
/// these steps are seen in the result.
pub fn stored(element: ElementType) -> fn(f64) -> f64 {
    match element {
        ElementType::F16 => |v| f16::from_f64(v).to_f64(),
        ElementType::Bf16 => |v| bf16::from_f64(v).to_f64(),
        _ => |v| v,
    }
}

/// A sum as the standard's reference stores it: of `bfloat16` every partial sum is stored, of the other types only the
/// result. Partial sums are of few numbers each, so that long sums do not stop growing.
pub fn stored_sum(element: ElementType, values: &[f64]) -> f64 {
    const FEW: usize = 8;
    let store = stored(element);
    if element != ElementType::Bf16 {
        return store(values.iter().sum());
    }
    if values.len() <= FEW {
        return values.iter().fold(0.0, |sum, v| store(sum + v));
    }
    let (left, right) = values.split_at(values.len() / 2);
    store(stored_sum(element, left) + stored_sum(element, right))
}

/// A tensor of these numbers: rounded to the nearest for floats, truncated and saturated for integers. Floats of 8 and
/// 4 bits saturate too.
///
/// # Errors
/// For text and complex numbers, or a count that does not fit the shape.
pub fn from_f64(
    element: ElementType,
    shape: impl Into<Shape>,
    values: &[f64],
) -> Result<Tensor, EvaluateError> {
    from_f64_saturating(element, shape, values, true)
}

/// As [`from_f64`]; without `saturate`, numbers beyond the range of 8-bit floats become infinity or NaN.
///
/// # Errors
/// As [`from_f64`].
pub fn from_f64_saturating(
    element: ElementType,
    shape: impl Into<Shape>,
    values: &[f64],
    saturate: bool,
) -> Result<Tensor, EvaluateError> {
    let shape = shape.into();
    fn make<T: Element>(shape: Shape, values: &[f64], f: impl Fn(f64) -> T) -> Result<Tensor, EvaluateError> {
        let values: Vec<T> = values.iter().map(|&v| f(v)).collect();
        Ok(Tensor::new(shape, &values)?)
    }
    match element {
        ElementType::F32 => make(shape, values, |v| v as f32),
        ElementType::F64 => make(shape, values, |v| v),
        ElementType::F16 => make(shape, values, f16::from_f64),
        ElementType::Bf16 => make(shape, values, bf16::from_f64),
        ElementType::I64 => make(shape, values, |v| v as i64),
        ElementType::I32 => make(shape, values, |v| v as i32),
        ElementType::I16 => make(shape, values, |v| v as i16),
        ElementType::I8 => make(shape, values, |v| v as i8),
        ElementType::U64 => make(shape, values, |v| v as u64),
        ElementType::U32 => make(shape, values, |v| v as u32),
        ElementType::U16 => make(shape, values, |v| v as u16),
        ElementType::U8 => make(shape, values, |v| v as u8),
        ElementType::Bool => make(shape, values, |v| Bool::from(v != 0.0)),
        ElementType::I4 | ElementType::U4 | ElementType::I2 | ElementType::U2 => {
            let (low, high) = integer_range(element).ok_or_else(|| unsupported(element))?;
            let ints: Vec<i128> = values.iter().map(|v| (*v as i128).clamp(low, high)).collect();
            Ok(pack(element, shape, &ints)?)
        }
        other if other.is_float() => {
            let encode =
                |v: &f64| small_floats::encode(other, *v, saturate).ok_or_else(|| unsupported(other));
            let codes: Vec<u8> = values.iter().map(encode).collect::<Result<_, _>>()?;
            if other.bits() == 4 {
                let codes: Vec<i128> = codes.into_iter().map(i128::from).collect();
                return Ok(pack(other, shape, &codes)?);
            }
            Ok(Tensor::from_bytes(other, shape, &codes)?)
        }
        other => Err(unsupported(other)),
    }
}

/// A tensor of these integers, wrapping where they do not fit.
///
/// # Errors
/// For text and complex numbers, or a count that does not fit the shape.
pub fn from_i128(
    element: ElementType,
    shape: impl Into<Shape>,
    values: &[i128],
) -> Result<Tensor, EvaluateError> {
    let shape = shape.into();
    fn make<T: Element>(
        shape: Shape,
        values: &[i128],
        f: impl Fn(i128) -> T,
    ) -> Result<Tensor, EvaluateError> {
        let values: Vec<T> = values.iter().map(|&v| f(v)).collect();
        Ok(Tensor::new(shape, &values)?)
    }
    match element {
        ElementType::I64 => make(shape, values, |v| v as i64),
        ElementType::I32 => make(shape, values, |v| v as i32),
        ElementType::I16 => make(shape, values, |v| v as i16),
        ElementType::I8 => make(shape, values, |v| v as i8),
        ElementType::U64 => make(shape, values, |v| v as u64),
        ElementType::U32 => make(shape, values, |v| v as u32),
        ElementType::U16 => make(shape, values, |v| v as u16),
        ElementType::U8 => make(shape, values, |v| v as u8),
        ElementType::Bool => make(shape, values, |v| Bool::from(v != 0)),
        ElementType::I4 | ElementType::U4 | ElementType::I2 | ElementType::U2 => {
            Ok(pack(element, shape, values)?)
        }
        _ => {
            let values: Vec<f64> = values.iter().map(|&v| v as f64).collect();
            from_f64(element, shape, &values)
        }
    }
}

/// Smallest and largest value of an integer type.
pub fn integer_range(element: ElementType) -> Option<(i128, i128)> {
    let bits = element.bits() as u32;
    match element {
        ElementType::I64
        | ElementType::I32
        | ElementType::I16
        | ElementType::I8
        | ElementType::I4
        | ElementType::I2 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        ElementType::U64
        | ElementType::U32
        | ElementType::U16
        | ElementType::U8
        | ElementType::U4
        | ElementType::U2 => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

/// For each element of a shape, which scale of a quantization serves it.
fn scale_indices(q: &Quantization, shape: &[usize]) -> Result<Vec<usize>, EvaluateError> {
    let count = Shape::new(shape).elements();
    let Some(axis) = q.axis else { return Ok(vec![0; count]) };
    let bad =
        || EvaluateError::Invalid(format!("quantization along axis {axis} does not fit shape {shape:?}"));
    let len = *shape.get(axis).ok_or_else(bad)?;
    let inner = strides(shape)[axis];
    let index: Vec<usize> = match q.block {
        None => (0..count).map(|i| i / inner % len).collect(),
        Some(block) => {
            let blocks = len.div_ceil(block);
            (0..count)
                .map(|i| (i / (inner * len) * blocks + i / inner % len / block) * inner + i % inner)
                .collect()
        }
    };
    if index.iter().any(|&i| i >= q.scale.len() || i >= q.zero_point.len()) {
        return Err(bad());
    }
    Ok(index)
}

/// `(stored - zero_point) * scale`, in single precision as ONNX has it.
///
/// # Errors
/// When the parameters do not fit the shape.
pub fn dequantize(tensor: &Tensor, q: &Quantization) -> Result<Tensor, EvaluateError> {
    let index = scale_indices(q, tensor.shape())?;
    let values: Vec<f32> = to_f64(tensor)?
        .into_iter()
        .zip(index)
        .map(|(v, i)| (v - f64::from(q.zero_point[i])) as f32 * q.scale[i])
        .collect();
    Ok(Tensor::new(tensor.shape().clone(), &values)?)
}

/// `saturate(round_half_to_even(real / scale) + zero_point)`, in single precision as ONNX has it; floats are not rounded
/// to whole numbers.
///
/// # Errors
/// When the parameters do not fit the shape, or the type is no integer.
pub fn quantize(tensor: &Tensor, element: ElementType, q: &Quantization) -> Result<Tensor, EvaluateError> {
    let index = scale_indices(q, tensor.shape())?;
    if element.is_float() {
        let values: Vec<f64> = to_f64(tensor)?
            .into_iter()
            .zip(index)
            .map(|(v, i)| f64::from(v as f32 / q.scale[i] + q.zero_point[i] as f32))
            .collect();
        return from_f64(element, tensor.shape().clone(), &values);
    }
    let (low, high) = integer_range(element).ok_or_else(|| unsupported(element))?;
    let values: Vec<i128> = to_f64(tensor)?
        .into_iter()
        .zip(index)
        .map(|(v, i)| {
            let steps = f64::from((v as f32 / q.scale[i]).round_ties_even());
            ((steps + f64::from(q.zero_point[i])) as i128).clamp(low, high)
        })
        .collect();
    from_i128(element, tensor.shape().clone(), &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bit_integers_keep_their_sign() {
        let tensor = from_i128(ElementType::I4, [3], &[-8, 7, -1]).unwrap();
        assert_eq!(tensor.bytes(), [0x78, 0x0f]);
        assert_eq!(to_i128(&tensor).unwrap(), [-8, 7, -1]);
    }

    #[test]
    fn quantization_rounds_half_to_even_and_saturates() {
        let q = Quantization::per_tensor(0.5, 10);
        let real = Tensor::vector(&[0.25f32, 0.75, -100.0, 1000.0]);
        let stored = quantize(&real, ElementType::U8, &q).unwrap();
        assert_eq!(stored.expect::<u8>().as_ref(), [10, 12, 0, 255]);
        let back = dequantize(&stored, &q).unwrap();
        assert_eq!(back.expect::<f32>().as_ref(), [0.0, 1.0, -5.0, 122.5]);
    }

    #[test]
    fn long_sums_of_bfloat16_keep_growing() {
        assert_eq!(stored_sum(ElementType::Bf16, &[1.0; 1000]), 1000.0);
        // One more is lost beside 256, as every partial sum is stored.
        assert_eq!(stored_sum(ElementType::Bf16, &[256.0, 1.0, 1.0]), 256.0);
        assert_eq!(stored_sum(ElementType::F16, &[256.0, 1.0, 1.0]), 258.0);
    }

    #[test]
    fn blocks_share_a_scale() {
        let q =
            Quantization { scale: vec![1.0, 10.0], zero_point: vec![0, 1], axis: Some(1), block: Some(2) };
        let stored = Tensor::new([1, 4], &[1i8, 2, 3, 4]).unwrap();
        assert_eq!(dequantize(&stored, &q).unwrap().expect::<f32>().as_ref(), [1.0, 2.0, 20.0, 30.0]);
    }
}
