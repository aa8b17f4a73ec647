//! A decoded picture, and its way in and out of files.
//!
//! A [`Picture`] always holds `3 * width * height` bytes of red, green, blue, rows from the top, and has at least one
//! pixel. Files come from strangers: the sizes that a file claims are checked against [`Limits`] before any pixel is
//! decoded. Grey is spread over the three channels, 16-bit values are reduced to 8, transparency is laid over white,
//! and the camera orientation that a JPEG states is applied.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageFormat, ImageReader};

use crate::jpeg;

/// Why a picture could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are not a PNG or JPEG file.
    #[error("not a PNG or JPEG picture; convert it to one of these first")]
    UnknownFormat,
    /// The file is damaged, or uses a part of its format that is not supported.
    #[error("the picture cannot be decoded: {reason}; bring the file again, or save the picture again")]
    Damaged {
        /// What the decoder said.
        reason: String,
    },
    /// The name of a file to write ends neither in `.png` nor in `.jpg`.
    #[error("{path}: pictures are written as PNG or JPEG; let the name end in .png or .jpg")]
    UnknownName {
        /// The name.
        path: PathBuf,
    },
    /// The picture cannot be written in this format.
    #[error("the picture cannot be written: {reason}")]
    Encode {
        /// What the encoder said.
        reason: String,
    },
    /// The file claims a size above the limits.
    #[error(
        "the picture claims {width} x {height} pixels, above the limit of {limit} pixels and {side} a side; \
         scale it down first"
    )]
    TooLarge {
        /// Claimed width.
        width: u32,
        /// Claimed height.
        height: u32,
        /// Allowed number of pixels.
        limit: u64,
        /// Allowed length of a side.
        side: u32,
    },
    /// Width or height is nought.
    #[error("the picture has no pixels")]
    Empty,
    /// The bytes given to [`Picture::new`] do not fill the stated size.
    #[error("{found} bytes given for {width} x {height} pixels of 3 bytes")]
    WrongLength {
        /// Stated width.
        width: usize,
        /// Stated height.
        height: usize,
        /// Bytes given.
        found: usize,
    },
}

/// How large a picture may claim to be. Checked before decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most pixels in all.
    pub pixels: u64,
    /// Longest side.
    pub side: u32,
}

impl Default for Limits {
    /// 100 million pixels (300 MB as RGB), 32768 a side.
    fn default() -> Self {
        Self { pixels: 100_000_000, side: 32768 }
    }
}

/// A picture of 8-bit red, green and blue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Picture {
    /// Takes `3 * width * height` bytes, rows from the top, as a picture.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Result<Self, PictureError> {
        if width == 0 || height == 0 {
            return Err(PictureError::Empty);
        }
        if width.checked_mul(height).and_then(|pixels| pixels.checked_mul(3)) != Some(rgb.len()) {
            return Err(PictureError::WrongLength { width, height, found: rgb.len() });
        }
        Ok(Self { width, height, rgb })
    }

    /// A picture of one colour.
    pub fn filled(width: usize, height: usize, colour: [u8; 3]) -> Result<Self, PictureError> {
        let pixels = width.checked_mul(height).filter(|pixels| pixels.checked_mul(3).is_some());
        let pixels = pixels.ok_or(PictureError::WrongLength { width, height, found: 0 })?;
        Self::new(width, height, colour.repeat(pixels))
    }

    /// Decodes the bytes of a PNG or JPEG file.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, PictureError> {
        decode(bytes, limits)
    }

    /// Reads and decodes a PNG or JPEG file. The format is told by the content, not by the name.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, PictureError> {
        let bytes = read(path).map_err(|source| PictureError::File { path: path.to_owned(), source })?;
        decode(&bytes, limits)
    }

    /// Width in pixels, at least 1.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels, at least 1.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The bytes: red, green, blue of each pixel, rows from the top.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The bytes, to be changed in place.
    pub fn rgb_mut(&mut self) -> &mut [u8] {
        &mut self.rgb
    }

    /// The bytes, without the picture.
    pub fn into_rgb(self) -> Vec<u8> {
        self.rgb
    }

    /// The rectangle that begins at (`left`, `top`); `None` where it is empty or leaves the picture.
    pub fn crop(&self, left: usize, top: usize, width: usize, height: usize) -> Option<Self> {
        let inside = left.checked_add(width)? <= self.width && top.checked_add(height)? <= self.height;
        if !inside || width == 0 || height == 0 {
            return None;
        }
        let rgb = (top..top + height)
            .flat_map(|row| {
                let start = 3 * (row * self.width + left);
                &self.rgb[start..start + 3 * width]
            })
            .copied()
            .collect();
        Some(Self { width, height, rgb })
    }

    /// Turned by 180 degrees.
    #[must_use]
    pub fn rotated_half(&self) -> Self {
        let rgb = self.rgb.as_chunks::<3>().0.iter().rev().flatten().copied().collect();
        Self { rgb, ..*self }
    }

    /// Turned by 90 degrees against the clock.
    #[must_use]
    pub fn rotated_left(&self) -> Self {
        let mut rgb = Vec::with_capacity(self.rgb.len());
        for column in (0..self.width).rev() {
            for row in 0..self.height {
                let start = 3 * (row * self.width + column);
                rgb.extend_from_slice(&self.rgb[start..start + 3]);
            }
        }
        Self { width: self.height, height: self.width, rgb }
    }

    /// The picture as the bytes of a PNG file.
    pub fn encode_png(&self) -> Result<Vec<u8>, PictureError> {
        self.encode(ImageFormat::Png)
    }

    /// Writes the picture as the kind of file that its name says: `.png`, `.jpg` or `.jpeg`.
    pub fn save(&self, path: &Path) -> Result<(), PictureError> {
        let format = format_of(path).ok_or_else(|| PictureError::UnknownName { path: path.to_owned() })?;
        std::fs::write(path, self.encode(format)?)
            .map_err(|source| PictureError::File { path: path.to_owned(), source })
    }

    /// Whether [`Picture::save`] knows what kind of file this name stands for.
    pub fn can_save(path: &Path) -> bool {
        format_of(path).is_some()
    }

    fn encode(&self, format: ImageFormat) -> Result<Vec<u8>, PictureError> {
        let encode = |error: image::ImageError| PictureError::Encode { reason: error.to_string() };
        let width = u32::try_from(self.width).unwrap_or(u32::MAX);
        let height = u32::try_from(self.height).unwrap_or(u32::MAX);
        let mut bytes = Cursor::new(Vec::new());
        if format == ImageFormat::Jpeg {
            let mut encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
            encoder.encode(&self.rgb, width, height, ExtendedColorType::Rgb8).map_err(encode)?;
        } else {
            let rgb = ExtendedColorType::Rgb8;
            image::write_buffer_with_format(&mut bytes, &self.rgb, width, height, rgb, format)
                .map_err(encode)?;
        }
        Ok(bytes.into_inner())
    }
}

/// Of 100; thin lines and letters stay sharp.
const JPEG_QUALITY: u8 = 92;

fn format_of(path: &Path) -> Option<ImageFormat> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "png" => Some(ImageFormat::Png),
        "jpg" | "jpeg" => Some(ImageFormat::Jpeg),
        _ => None,
    }
}

/// A picture's file is at most this long.
const LARGEST_FILE: u64 = 1 << 30;

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let kind = path.metadata()?.file_type();
    // A device may never end.
    if !kind.is_file() && !kind.is_dir() && !is_pipe(kind) {
        return Err(std::io::Error::other("it is neither a file nor a pipe"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(std::io::Error::other(format!("it has more than {LARGEST_FILE} bytes")));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_pipe(kind: std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: std::fs::FileType) -> bool {
    false
}

fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture, PictureError> {
    let damaged = |reason: String| PictureError::Damaged { reason };
    let reader = ImageReader::new(Cursor::new(bytes));
    let mut reader = reader.with_guessed_format().map_err(|error| damaged(error.to_string()))?;
    let Some(format) = reader.format() else {
        return Err(PictureError::UnknownFormat);
    };
    // Twice the decoded size of the largest allowed picture with four 16-bit channels: room for the decoder's own rows.
    let mut decoder_limits = image::Limits::default();
    // Sides are checked below, where both are known and can be said.
    decoder_limits.max_alloc = Some(limits.pixels.saturating_mul(16).max(1 << 20));
    reader.limits(decoder_limits);
    let mut decoder = reader.into_decoder().map_err(|error| match error {
        image::ImageError::Unsupported(_) => PictureError::UnknownFormat,
        other => damaged(other.to_string()),
    })?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(PictureError::Empty);
    }
    if u64::from(width) * u64::from(height) > limits.pixels || width > limits.side || height > limits.side {
        return Err(PictureError::TooLarge { width, height, limit: limits.pixels, side: limits.side });
    }
    if format == ImageFormat::Jpeg {
        jpeg::check(bytes, (width as usize, height as usize))
            .map_err(|fault| damaged(fault.text().to_owned()))?;
    }
    let orientation = decoder.orientation().unwrap_or(image::metadata::Orientation::NoTransforms);
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(|error| damaged(error.to_string()))?;
    decoded.apply_orientation(orientation);
    let transparent = decoded.color().has_alpha();
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let rgb = if transparent {
        let over_white = |value: u8, alpha: u8| {
            let alpha = u32::from(alpha);
            ((u32::from(value) * alpha + 255 * (255 - alpha) + 127) / 255) as u8
        };
        let pixels = decoded.into_rgba8();
        pixels
            .pixels()
            .flat_map(|pixel| [0, 1, 2].map(|channel| over_white(pixel[channel], pixel[3])))
            .collect()
    } else {
        decoded.into_rgb8().into_raw()
    };
    Picture::new(width, height, rgb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(width: usize, height: usize) -> Picture {
        let rgb = (0..3 * width * height).map(|index| (index * 7 % 256) as u8).collect();
        Picture::new(width, height, rgb).unwrap()
    }

    #[test]
    fn png_round_trip_keeps_every_byte() {
        let picture = gradient(37, 11);
        let bytes = picture.encode_png().unwrap();
        assert_eq!(Picture::decode(&bytes, &Limits::default()).unwrap(), picture);
    }

    #[test]
    fn claimed_sizes_are_refused_before_decoding() {
        let bytes = gradient(64, 64).encode_png().unwrap();
        let small = Limits { pixels: 1000, side: 4096 };
        assert!(matches!(Picture::decode(&bytes, &small), Err(PictureError::TooLarge { width: 64, .. })));
        // A header that claims 2^31 - 1 pixels a side over a few bytes of data.
        let mut claims = bytes[..60].to_vec();
        claims[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        let wide = Picture::filled(5000, 1, [0; 3]).unwrap().encode_png().unwrap();
        let narrow = Limits { pixels: 1 << 20, side: 4096 };
        assert!(matches!(Picture::decode(&wide, &narrow), Err(PictureError::TooLarge { width: 5000, .. })));
        assert!(Picture::decode(&claims, &Limits::default()).is_err());
    }

    #[test]
    fn damaged_and_foreign_bytes_are_errors() {
        let bytes = gradient(64, 64).encode_png().unwrap();
        for length in [0, 1, 7, 8, 20, 40, bytes.len() / 2] {
            assert!(Picture::decode(&bytes[..length], &Limits::default()).is_err(), "{length} bytes");
        }
        assert!(matches!(
            Picture::decode(b"GIF89a, not read", &Limits::default()),
            Err(PictureError::UnknownFormat)
        ));
        assert!(matches!(
            Picture::decode(b"plain text", &Limits::default()),
            Err(PictureError::UnknownFormat)
        ));
    }

    #[test]
    fn no_change_to_a_file_makes_decoding_panic() {
        let picture = gradient(40, 30);
        let mut jpeg = Cursor::new(Vec::new());
        let rgb = ExtendedColorType::Rgb8;
        image::write_buffer_with_format(&mut jpeg, picture.rgb(), 40, 30, rgb, ImageFormat::Jpeg).unwrap();
        let limits = Limits { pixels: 1 << 20, side: 4096 };
        let mut generator = crate::common::Generator::new(7);
        for original in [picture.encode_png().unwrap(), jpeg.into_inner()] {
            assert!(Picture::decode(&original, &limits).is_ok());
            for _ in 0..400 {
                let mut bytes = original.clone();
                for _ in 0..=generator.below(3) {
                    let place = generator.below(bytes.len() as u32) as usize;
                    bytes[place] = generator.below(256) as u8;
                }
                if let Ok(decoded) = Picture::decode(&bytes, &limits) {
                    assert_eq!(decoded.rgb().len(), 3 * decoded.width() * decoded.height());
                }
            }
        }
    }

    #[test]
    fn cut_and_damaged_jpegs_are_refused() {
        let picture = gradient(120, 90);
        let folder = std::env::temp_dir().join(format!("armet-picture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("picture.JPG");
        picture.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(matches!(picture.save(&folder.join("picture.gif")), Err(PictureError::UnknownName { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
        let limits = Limits::default();
        assert_eq!(Picture::decode(&bytes, &limits).unwrap().width(), 120);
        // What follows the end of the picture is not the picture's.
        assert!(Picture::decode(&[&bytes[..], b"more"].concat(), &limits).is_ok());
        for length in [700, bytes.len() / 2, bytes.len() - 40, bytes.len() - 2, bytes.len() - 1] {
            let error = Picture::decode(&bytes[..length], &limits).unwrap_err().to_string();
            assert!(error.contains("ends before the picture does"), "{length} bytes: {error}");
        }
        // A hole in the data leaves blocks without codes.
        let hole = [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2 + 200..]].concat();
        let error = Picture::decode(&hole, &limits).unwrap_err().to_string();
        assert!(error.contains("its compressed data are damaged"), "{error}");
    }

    #[test]
    fn transparency_lies_over_white() {
        let mut bytes = Cursor::new(Vec::new());
        let pixels = [0, 0, 0, 0, 10, 20, 30, 255, 0, 0, 0, 128, 255, 0, 0, 51];
        image::write_buffer_with_format(
            &mut bytes,
            &pixels,
            4,
            1,
            ExtendedColorType::Rgba8,
            ImageFormat::Png,
        )
        .unwrap();
        let picture = Picture::decode(bytes.get_ref(), &Limits::default()).unwrap();
        assert_eq!(picture.rgb(), [255, 255, 255, 10, 20, 30, 127, 127, 127, 255, 204, 204]);
    }

    #[test]
    fn turns_and_crops() {
        let picture = Picture::new(2, 1, vec![1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(picture.rotated_half().rgb(), [4, 5, 6, 1, 2, 3]);
        let left = picture.rotated_left();
        assert_eq!((left.width(), left.height(), left.rgb()), (1, 2, &[4, 5, 6, 1, 2, 3][..]));
        assert_eq!(picture.crop(1, 0, 1, 1).unwrap().rgb(), [4, 5, 6]);
        assert!(picture.crop(1, 0, 2, 1).is_none());
        assert!(picture.crop(usize::MAX, 0, 2, 1).is_none());
        assert!(matches!(Picture::new(2, 2, vec![0; 11]), Err(PictureError::WrongLength { .. })));
        assert!(matches!(Picture::new(0, 2, vec![]), Err(PictureError::Empty)));
    }
}
