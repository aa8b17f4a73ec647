//! Model files to graphs; the crate that reads untrusted bytes.
//!
//! Whatever the bytes are, an importer returns a graph or an error: it neither panics nor uses memory out of proportion
//! to the file. See [`Limits`] for the bounds.

#![forbid(unsafe_code)]

mod external;
mod file;
mod foreign;
mod limits;
pub mod onnx;

pub use external::{Directory, ExternalData, ExternalError};
pub use file::read_file;
pub use foreign::ForeignFile;
pub use limits::Limits;
