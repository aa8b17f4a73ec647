//! Files of other kinds, told by their first bytes. Asked only about what could not be read: ONNX has no mark of its own.

/// A kind of file that is no ONNX model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {advice}")]
pub struct ForeignFile {
    /// What it is.
    pub what: &'static str,
    /// What to do.
    pub advice: &'static str,
}

const EXPORT: &str = "export the model as ONNX with the program that made it";
const TF2ONNX: &str = "convert it with tf2onnx: python -m tf2onnx.convert";
const PICTURE: &str = "a picture goes behind --input, the model before it";

/// Where a mark lies, the mark, what has it, what to do.
const MARKS: &[(usize, &[u8], &str, &str)] = &[
    (4, b"TFL3", "it is a TensorFlow Lite model", TF2ONNX),
    (4, b"ORTM", "it is a model in ONNX Runtime's own format", "take the .onnx file that it was made from"),
    (0, b"GGUF", "it is a GGUF file of a language model", "take the model's ONNX export"),
    (0, b"\xff\xd8\xff", "it is a JPEG picture", PICTURE),
    (0, b"\x89PNG\r\n\x1a\n", "it is a PNG picture", PICTURE),
    (0, b"\x93NUMPY", "it is a NumPy array", "an array goes behind --input, the model before it"),
    (0, b"\x89HDF\r\n\x1a\n", "it is an HDF5 file, as Keras writes", TF2ONNX),
    (0, b"7767517\n", "it is an ncnn model", EXPORT),
    (0, b"7767517\r\n", "it is an ncnn model", EXPORT),
    (8, b"{\"", "it is a safetensors file: weights without a model", EXPORT),
    (
        0,
        b"PK\x03\x04",
        "it is a zip archive, as PyTorch and Keras write",
        "export it with torch.onnx.export, or unpack it",
    ),
    (0, b"\x80\x02", "it is a Python pickle, as PyTorch writes", "export it with torch.onnx.export"),
    (0, b"\x1f\x8b", "it is compressed by gzip", "unpack it first"),
    (0, b"version https://git-lfs", "it is a Git LFS pointer", "bring the file itself with git lfs pull"),
    (0, b"<!DOCTYPE html", "it is a web page", "download the file itself"),
    (0, b"<html", "it is a web page", "download the file itself"),
    (0, b"<?xml", "it is XML, as OpenVINO writes", EXPORT),
    (0, b"\x08\x01\x12", "it is a TensorFlow SavedModel", TF2ONNX),
];

/// What kind of file this is, where its first bytes tell.
pub(crate) fn recognise(bytes: &[u8]) -> Option<ForeignFile> {
    if bytes.is_empty() {
        return Some(ForeignFile { what: "the file is empty", advice: "bring it again" });
    }
    let has = |at: usize, mark: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(mark));
    let found = MARKS.iter().find(|(at, mark, ..)| has(*at, mark));
    let text = || is_text(bytes).then_some(ForeignFile { what: "it is text", advice: EXPORT });
    found.map(|&(_, _, what, advice)| ForeignFile { what, advice }).or_else(text)
}

/// Bytes that are looked at to tell text.
const BEGINNING: usize = 256;

/// Whether a file begins as text does: ONNX begins with a byte that no text has.
fn is_text(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(BEGINNING)];
    let text = match str::from_utf8(beginning) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&beginning[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_apart() {
        for (at, mark, what, _) in MARKS {
            let bytes = [&vec![b'x'; *at][..], mark, b"and more"].concat();
            assert_eq!(recognise(&bytes).map(|found| found.what), Some(*what));
            assert_ne!(recognise(&bytes[..at + 1]).map(|found| found.what), Some(*what));
        }
        assert_eq!(recognise(b"\x08\x08\x12\x07pytorch"), None);
        assert_eq!(recognise(b"\n\0\x01"), None);
        for text in ["ir_version: 8\n", "{\n\t\"graph\": 1}", &"\u{6a21}".repeat(200)] {
            assert_eq!(recognise(text.as_bytes()).map(|found| found.what), Some("it is text"), "{text}");
        }
    }
}
