//! Pictures in and out, and what lies between a picture and a network: decoding, resizing, normalising, detection and
//! text post-processing, faces, drawing.
//!
//! Everything here is a pure function over plain slices: no inference, no threads, no global state, no environment. A
//! caller asks for the numbers a network wants ([`Planes`]), runs the network itself, and hands the outputs back as
//! slices. The arithmetic follows the Python pipelines that these networks were published with (OpenCV, Pillow,
//! NumPy, pyclipper), to the bit where a later step depends on it, so that results agree with them.
//!
//! ```
//! use armet_vision::detect::{Head, Labels};
//! use armet_vision::presets::Preparation;
//! use armet_vision::{Picture, Tensor};
//!
//! let picture = Picture::filled(640, 480, [90, 90, 90])?; // or Picture::open(path, &Limits::default())
//! let prepared = Preparation::named("yolo")?.apply(&picture, None, None)?;
//! assert_eq!(prepared.planes.shape(), [1, 3, 640, 640]);
//!
//! // Here a network turns the planes into this: one box around (320, 320), surely of the first class.
//! let mut output = Tensor { shape: vec![1, 84, 8400], data: vec![0.0; 84 * 8400] };
//! for (row, value) in [320.0, 320.0, 100.0, 50.0, 0.9].into_iter().enumerate() {
//!     output.data[row * 8400] = value;
//! }
//!
//! let head = Head::guess(&[&output.shape])?;
//! let found = head.decode(&[output.view()], &prepared.placement, &head.thresholds())?;
//! let labels = Labels::known("coco").expect("a list of this crate");
//! assert_eq!((found.len(), labels.name(found[0].class).as_ref()), (1, "person"));
//! assert_eq!((found[0].left, found[0].top), (270.0, 215.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(test)]
#[path = "../tests/golden/common.rs"]
mod common;
pub mod detect;
pub mod draw;
pub mod faces;
mod jpeg;
pub mod ocr;
mod picture;
mod planes;
pub mod presets;
pub mod resize;

pub use picture::{Limits, Picture, PictureError};
pub use planes::{ChannelOrder, Layout, Output, Planes, Tensor};
