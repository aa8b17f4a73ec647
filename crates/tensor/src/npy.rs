//! NumPy's `.npy` files: format description `numpy.lib.format`, versions 1 to 3, C order.

use crate::{ElementType, Shape, Tensor, TensorError};

const MAGIC: &[u8] = b"\x93NUMPY";

fn descriptor(element: ElementType) -> Option<&'static str> {
    Some(match element {
        ElementType::F32 => "<f4",
        ElementType::F16 => "<f2",
        ElementType::F64 => "<f8",
        ElementType::I8 => "|i1",
        ElementType::I16 => "<i2",
        ElementType::I32 => "<i4",
        ElementType::I64 => "<i8",
        ElementType::U8 => "|u1",
        ElementType::U16 => "<u2",
        ElementType::U32 => "<u4",
        ElementType::U64 => "<u8",
        ElementType::Bool => "|b1",
        ElementType::Complex64 => "<c8",
        ElementType::Complex128 => "<c16",
        _ => return None,
    })
}

/// The bytes of a `.npy` file with this tensor.
///
/// # Errors
/// When NumPy has no such element type (text, bfloat16, 8-bit floats, types below a byte).
pub fn write(tensor: &Tensor) -> Result<Vec<u8>, TensorError> {
    let kind = descriptor(tensor.element())
        .ok_or_else(|| TensorError::Npy(format!("NumPy has no type for {}", tensor.element())))?;
    let dims: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
    // A tuple of one needs its comma.
    let dims = if dims.len() == 1 { format!("{},", dims[0]) } else { dims.join(", ") };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dims}), }}");
    // The format asks that magic, length and header together be a multiple of 64 bytes, the last a newline.
    let used = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', used.next_multiple_of(64) - used));
    header.push('\n');
    let mut out = Vec::with_capacity(128 + tensor.bytes().len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    let length = u16::try_from(header.len()).map_err(|_| TensorError::Npy("too many dimensions".into()))?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(tensor.bytes());
    Ok(out)
}

/// Reads the bytes of a `.npy` file.
///
/// # Errors
/// When it is not one, is cut short, or holds a type or order that is not supported.
pub fn read(bytes: &[u8]) -> Result<Tensor, TensorError> {
    let bad = |what: &str| TensorError::Npy(what.to_owned());
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| bad("it does not begin with the NumPy magic"))?;
    let cut = || bad("it ends inside the header");
    let (&major, rest) = rest.split_first().ok_or_else(cut)?;
    let (_, rest) = rest.split_first().ok_or_else(cut)?;
    let (length, rest) = if major == 1 {
        let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        (usize::from(u16::from_le_bytes(*length)), rest)
    } else {
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        (u32::from_le_bytes(*length) as usize, rest)
    };
    let header = rest.get(..length).ok_or_else(cut)?;
    let data = &rest[length..];
    let header = std::str::from_utf8(header).map_err(|_| bad("its header is not text"))?;
    let field = |name: &str| -> Option<&str> {
        let at = header.find(&format!("'{name}'"))?;
        header.get(at..)?.split_once(':').map(|(_, value)| value.trim_start())
    };
    let kind = field("descr")
        .and_then(|v| v.strip_prefix('\''))
        .and_then(|v| v.split_once('\''))
        .ok_or_else(|| bad("its header names no element type"))?
        .0;
    if field("fortran_order").is_some_and(|v| v.starts_with("True")) {
        return Err(bad("it is in Fortran order; save it with numpy.ascontiguousarray"));
    }
    let element = match kind.trim_start_matches(['<', '|', '=']) {
        "f4" => ElementType::F32,
        "f2" => ElementType::F16,
        "f8" => ElementType::F64,
        "i1" => ElementType::I8,
        "i2" => ElementType::I16,
        "i4" => ElementType::I32,
        "i8" => ElementType::I64,
        "u1" => ElementType::U8,
        "u2" => ElementType::U16,
        "u4" => ElementType::U32,
        "u8" => ElementType::U64,
        "b1" => ElementType::Bool,
        "c8" => ElementType::Complex64,
        "c16" => ElementType::Complex128,
        other => return Err(bad(&format!("element type {other} is not supported"))),
    };
    let dims = field("shape")
        .and_then(|v| v.strip_prefix('('))
        .and_then(|v| v.split_once(')'))
        .ok_or_else(|| bad("its header has no shape"))?
        .0;
    let shape: Shape = dims
        .split(',')
        .map(str::trim)
        .filter(|d| !d.is_empty())
        .map(|d| {
            d.trim_end_matches('L').parse::<usize>().map_err(|_| bad("its shape is not a list of sizes"))
        })
        .collect::<Result<Vec<_>, _>>()?
        .into();
    let wanted = shape
        .checked_len()
        .and_then(|n| element.bytes_for(n))
        .ok_or_else(|| TensorError::TooLarge(shape.clone()))?;
    let data = data.get(..wanted).ok_or_else(|| bad("it ends before the last element"))?;
    Tensor::from_bytes(element, shape, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for shape in [vec![], vec![0], vec![3], vec![2, 3, 4]] {
            let n: usize = shape.iter().product();
            let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let tensor = Tensor::new(shape, &values).unwrap();
            let bytes = write(&tensor).unwrap();
            assert_eq!(read(&bytes).unwrap(), tensor);
            assert_eq!((bytes.len() - tensor.bytes().len()) % 64, 0);
        }
    }

    #[test]
    fn broken_files_are_refused_with_a_reason() {
        let good = write(&Tensor::vector(&[1i64, 2, 3])).unwrap();
        for cut in 0..good.len() {
            assert!(matches!(read(&good[..cut]), Err(TensorError::Npy(_))), "cut at {cut}");
        }
        let text = String::from_utf8_lossy(&good[10..]).replace("(3,)", "(99999999999999, 99999999999999)");
        let mut huge = good[..10].to_vec();
        huge.extend_from_slice(text.as_bytes());
        assert!(read(&huge).is_err());
    }
}
