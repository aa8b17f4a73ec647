//! NumPy's array files, as far as references need them: little-endian numbers in row order.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};

/// An array: its element type as NumPy writes it (`<f4`), its shape, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    kind: String,
    pub shape: Vec<usize>,
    data: Vec<u8>,
}

const MAGIC: &[u8] = b"\x93NUMPY";

impl Array {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        Self::parse(&bytes).with_context(|| path.display().to_string())
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let rest = bytes.strip_prefix(MAGIC).context("no NumPy array")?;
        let (&[major, _], rest) = rest.split_first_chunk::<2>().context("cut short")?;
        let (length, rest) = if major == 1 {
            let (length, rest) = rest.split_first_chunk::<2>().context("cut short")?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        } else {
            let (length, rest) = rest.split_first_chunk::<4>().context("cut short")?;
            (u32::from_le_bytes(*length) as usize, rest)
        };
        let (header, data) = rest.split_at_checked(length).context("cut short")?;
        let header = std::str::from_utf8(header)?;
        let value = |key: &str, end: char| {
            let (_, after) = header.split_once(&format!("'{key}':"))?;
            after.trim_start().trim_start_matches(['\'', '(']).split(end).next()
        };
        ensure!(header.contains("'fortran_order': False"), "column order");
        let kind = value("descr", '\'').context("no element type")?.to_owned();
        let shape = value("shape", ')').context("no shape")?;
        let shape: Vec<usize> = shape
            .split(',')
            .map(str::trim)
            .filter(|d| !d.is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let array = Self { kind, shape, data: data.to_vec() };
        ensure!(
            array.data.len() == array.count() * array.width()?,
            "{} bytes for shape {:?}",
            array.data.len(),
            array.shape
        );
        Ok(array)
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let shape = self.shape.iter().map(|d| format!("{d},")).collect::<Vec<_>>().concat();
        let mut header =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", self.kind);
        let padding = 64 - (MAGIC.len() + 4 + header.len() + 1) % 64;
        header.push_str(&" ".repeat(padding));
        header.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend(u16::try_from(header.len())?.to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(&self.data);
        fs::write(path, bytes).with_context(|| path.display().to_string())
    }

    fn count(&self) -> usize {
        self.shape.iter().product()
    }

    fn width(&self) -> Result<usize> {
        match self.kind.get(2..).and_then(|digits| digits.parse().ok()) {
            Some(width @ 1..=8) => Ok(width),
            _ => bail!("element type {}", self.kind),
        }
    }

    /// Entry `index` of the leading axis.
    pub(super) fn entry(&self, index: usize) -> Result<Self> {
        let (&count, shape) = self.shape.split_first().context("a scalar has no entries")?;
        ensure!(index < count, "entry {index} of {count}");
        let size = self.data.len() / count;
        Ok(Self {
            kind: self.kind.clone(),
            shape: shape.to_vec(),
            data: self.data[index * size..(index + 1) * size].to_vec(),
        })
    }

    /// The elements as numbers.
    pub(super) fn values(&self) -> Result<Vec<f64>> {
        macro_rules! numbers {
            ($type:ty) => {
                self.data
                    .chunks_exact(size_of::<$type>())
                    .map(|bytes| <$type>::from_le_bytes(bytes.try_into().expect("chunks have the size")))
                    .map(|value| value as f64)
                    .collect()
            };
        }
        Ok(match self.kind.as_str() {
            "<f4" => numbers!(f32),
            "<f8" => numbers!(f64),
            "<i8" => numbers!(i64),
            "<i4" => numbers!(i32),
            "|i1" => numbers!(i8),
            "|u1" | "|b1" => numbers!(u8),
            kind => bail!("element type {kind}"),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn floats(shape: &[usize], values: &[f32]) -> Array {
        Array {
            kind: "<f4".to_owned(),
            shape: shape.to_vec(),
            data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let path = std::env::temp_dir().join(format!("npy-{}.npy", std::process::id()));
        for array in
            [floats(&[2, 3], &[1.0, -2.5, 0.0, 4.0, 5.0, 6.0]), floats(&[], &[7.0]), floats(&[0, 4], &[])]
        {
            array.write(&path).unwrap();
            assert_eq!(Array::read(&path).unwrap(), array);
            assert!(fs::read(&path).unwrap().len().is_multiple_of(4));
        }
        fs::remove_file(path).unwrap();
        let array = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(array.entry(1).unwrap(), floats(&[2], &[3.0, 4.0]));
        assert!(array.entry(2).is_err());
        assert_eq!(array.values().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn reads_what_numpy_writes() {
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, header.len() as u8, 0]);
        bytes.extend(header.bytes());
        bytes.extend([1, 2, 255]);
        let array = Array::parse(&bytes).unwrap();
        assert_eq!(
            (array.shape.as_slice(), array.values().unwrap().as_slice()),
            (&[3][..], &[1.0, 2.0, 255.0][..])
        );
        for length in 0..bytes.len() {
            assert!(Array::parse(&bytes[..length]).is_err(), "{length}");
        }
    }
}
