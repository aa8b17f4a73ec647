//! Pictures in and out, and what lies between a picture and a network: decoding, resizing, normalising, detection and
//! text post-processing, faces, drawing.
//!
//! Everything here is a pure function over plain slices: no inference, no threads, no global state, no environment. A
//! caller asks for the numbers a network wants ([`Planes`]), runs the network itself, and hands the outputs back as
//! slices. The arithmetic follows the Python pipelines that these networks were published with (OpenCV, Pillow,
//! NumPy, pyclipper), to the bit where a later step depends on it, so that results agree with them.
#![forbid(unsafe_code)]

#[cfg(test)]
#[path = "../tests/golden/common.rs"]
mod common;
pub mod detect;
pub mod draw;
pub mod faces;
pub mod ocr;
mod picture;
mod planes;
pub mod presets;
pub mod resize;

pub use picture::{Limits, Picture, PictureError};
pub use planes::{ChannelOrder, Layout, Output, Planes, Tensor};
