//! A decoded picture, and its way in and out of files.
//!
//! A [`Picture`] always holds `3 * width * height` bytes of red, green, blue, rows from the top, and has at least one
//! pixel. Files come from strangers: the sizes that a file claims are checked against [`Limits`] before any pixel is
//! decoded. Grey is spread over the three channels, 16-bit values are reduced to 8, transparency is laid over white,
//! and the camera orientation that a JPEG states is applied.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader};

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
    #[error("the picture cannot be decoded: {reason}; save it again with another program and retry")]
    Damaged {
        /// What the decoder said.
        reason: String,
    },
    /// The file claims a size above the limits.
    #[error(
        "the picture claims {width} x {height} pixels, above the limit of {limit} pixels and {side} a side; \
         scale it down first or raise the limit"
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
        decode(ImageReader::new(Cursor::new(bytes)), limits)
    }

    /// Reads and decodes a PNG or JPEG file. The format is told by the content, not by the name.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, PictureError> {
        let file = File::open(path).map_err(|source| PictureError::File { path: path.to_owned(), source })?;
        decode(ImageReader::new(BufReader::new(file)), limits)
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
        let mut bytes = Cursor::new(Vec::new());
        let damaged = |error: image::ImageError| PictureError::Damaged { reason: error.to_string() };
        let width = u32::try_from(self.width).unwrap_or(u32::MAX);
        let height = u32::try_from(self.height).unwrap_or(u32::MAX);
        image::write_buffer_with_format(
            &mut bytes,
            &self.rgb,
            width,
            height,
            image::ExtendedColorType::Rgb8,
            ImageFormat::Png,
        )
        .map_err(damaged)?;
        Ok(bytes.into_inner())
    }

    /// Writes the picture as a PNG file.
    pub fn save_png(&self, path: &Path) -> Result<(), PictureError> {
        std::fs::write(path, self.encode_png()?)
            .map_err(|source| PictureError::File { path: path.to_owned(), source })
    }
}

fn decode<R: Read + BufRead + Seek>(
    reader: ImageReader<R>,
    limits: &Limits,
) -> Result<Picture, PictureError> {
    let damaged = |reason: String| PictureError::Damaged { reason };
    let mut reader = reader.with_guessed_format().map_err(|error| damaged(error.to_string()))?;
    if reader.format().is_none() {
        return Err(PictureError::UnknownFormat);
    }
    // Twice the decoded size of the largest allowed picture with four 16-bit channels: room for the decoder's own rows.
    let mut decoder_limits = image::Limits::default();
    decoder_limits.max_image_width = Some(limits.side);
    decoder_limits.max_image_height = Some(limits.side);
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
        let rgb = image::ExtendedColorType::Rgb8;
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
    fn transparency_lies_over_white() {
        let mut bytes = Cursor::new(Vec::new());
        let pixels = [0, 0, 0, 0, 10, 20, 30, 255, 0, 0, 0, 128, 255, 0, 0, 51];
        image::write_buffer_with_format(
            &mut bytes,
            &pixels,
            4,
            1,
            image::ExtendedColorType::Rgba8,
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
