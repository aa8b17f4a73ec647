//! Resizing, with the arithmetic of the libraries that published pipelines resize with.
//!
//! [`Filter::Linear`] and [`Filter::Area`] give the bytes that OpenCV's `resize` gives for 8-bit pictures,
//! [`Filter::Antialiased`] those of Pillow's bilinear `resize` (which torchvision's transforms use). Pixels are
//! interleaved; every function takes the channel count, and panics only where a slice does not have the stated size.

mod antialiased;
mod area;
mod linear;

pub use antialiased::antialiased;
pub use area::{area, area_f64};
pub use linear::linear;

use serde::{Deserialize, Serialize};

use crate::picture::Picture;

/// How pixels are mixed when a picture changes size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// Between the nearest four pixels, also when shrinking (OpenCV's `INTER_LINEAR`).
    Linear,
    /// The mean of the covered area when shrinking (OpenCV's `INTER_AREA`).
    Area,
    /// Bilinear, widened by the scale when shrinking (Pillow's `BILINEAR`).
    Antialiased,
}

/// Width, height and channels of interleaved pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Values of each pixel.
    pub channels: usize,
}

impl Size {
    /// The size of an RGB picture.
    pub fn of(picture: &Picture) -> Self {
        Self { width: picture.width(), height: picture.height(), channels: 3 }
    }

    /// Values in all.
    pub fn values(self) -> usize {
        self.width * self.height * self.channels
    }

    fn check(self, found: usize, to_width: usize, to_height: usize) {
        assert_eq!(found, self.values(), "the pixels fill the stated size");
        assert!(self.values() > 0 && to_width > 0 && to_height > 0, "sizes are not nought");
    }
}

impl Picture {
    /// The picture at another size. Panics where `width` or `height` is nought.
    #[must_use]
    pub fn resized(&self, width: usize, height: usize, filter: Filter) -> Self {
        let size = Size::of(self);
        let rgb = match filter {
            Filter::Linear => linear(self.rgb(), size, width, height),
            Filter::Area => area(self.rgb(), size, width, height),
            Filter::Antialiased => antialiased(self.rgb(), size, width, height),
        };
        Self::new(width, height, rgb).expect("resizing fills the new size")
    }
}
