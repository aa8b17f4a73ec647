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
/// When NumPy has no such element type (bfloat16, 8-bit floats, types below a byte).
pub fn write(tensor: &Tensor) -> Result<Vec<u8>, TensorError> {
    if tensor.element() == ElementType::String {
        return write_text(tensor);
    }
    let kind = descriptor(tensor.element())
        .ok_or_else(|| TensorError::Npy(format!("NumPy has no type for {}", tensor.element())))?;
    let mut out = header(kind, tensor)?;
    out.extend_from_slice(tensor.bytes());
    Ok(out)
}

/// Texts as NumPy has them: all as long as the longest, four bytes a character, filled up with zeros.
fn write_text(tensor: &Tensor) -> Result<Vec<u8>, TensorError> {
    let longest = tensor.strings().iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
    let bytes = longest.checked_mul(4).and_then(|each| each.checked_mul(tensor.len()));
    let bytes =
        bytes.filter(|&n| n < 1 << 40).ok_or_else(|| TensorError::TooLarge(tensor.shape().clone()))?;
    let mut out = header(&format!("<U{longest}"), tensor)?;
    out.reserve(bytes);
    for text in tensor.strings() {
        let mut count = 0;
        for character in text.chars() {
            out.extend_from_slice(&u32::from(character).to_le_bytes());
            count += 1;
        }
        out.resize(out.len() + (longest - count) * 4, 0);
    }
    Ok(out)
}

/// Texts of this many bytes each: four a character, or one where `wide` is not set. Zeros at the end are none of them.
fn read_text(shape: Shape, each: usize, wide: bool, data: &[u8]) -> Result<Tensor, TensorError> {
    let bad = |what: &str| TensorError::Npy(what.to_owned());
    let count = shape.checked_len().ok_or_else(|| TensorError::TooLarge(shape.clone()))?;
    let wanted = count.checked_mul(each).ok_or_else(|| TensorError::TooLarge(shape.clone()))?;
    let data = data.get(..wanted).ok_or_else(|| bad("it ends before the last element"))?;
    // Texts without a byte each would be as many as the header says.
    if each == 0 && count > 1 << 20 {
        return Err(TensorError::TooLarge(shape));
    }
    let text = |bytes: &[u8]| -> Option<String> {
        let text = if wide {
            let characters = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
            characters.map(char::from_u32).collect::<Option<String>>()?
        } else {
            String::from_utf8(bytes.to_vec()).ok()?
        };
        Some(text.trim_end_matches('\0').to_owned())
    };
    let texts: Option<Vec<String>> =
        (0..count).map(|index| text(&data[index * each..(index + 1) * each])).collect();
    Tensor::from_strings(shape, texts.ok_or_else(|| bad("it holds text that is none"))?)
}

/// All that stands before the elements.
fn header(kind: &str, tensor: &Tensor) -> Result<Vec<u8>, TensorError> {
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
    let kind = kind.trim_start_matches(['<', '|', '=']);
    for (letter, width) in [('U', 4), ('S', 1)] {
        if let Some(each) = kind.strip_prefix(letter).and_then(|n| n.parse::<usize>().ok()) {
            let each = each.checked_mul(width).ok_or_else(|| TensorError::TooLarge(shape.clone()))?;
            return read_text(shape, each, width == 4, data);
        }
    }
    let element = match kind {
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
    fn text_is_written_as_numpy_has_it() {
        let texts = ["a", "", "\u{e9}t\u{e9}", "\u{1f600}"].map(str::to_owned).to_vec();
        let tensor = Tensor::from_strings([2, 2], texts).unwrap();
        let bytes = write(&tensor).unwrap();
        assert_eq!(read(&bytes).unwrap(), tensor);
        assert!(String::from_utf8_lossy(&bytes[..64]).contains("'<U3'"));
        assert!(read(&bytes[..bytes.len() - 1]).is_err());
        let mut short = b"\x93NUMPY\x01\x00".to_vec();
        let header = "{'descr': '|S2', 'fortran_order': False, 'shape': (2,), }\n";
        short.extend_from_slice(&(header.len() as u16).to_le_bytes());
        short.extend_from_slice(header.as_bytes());
        short.extend_from_slice(b"abc\0");
        assert_eq!(read(&short).unwrap().strings(), ["ab", "c"]);
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
