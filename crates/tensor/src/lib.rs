//! Element types, shapes, quantization parameters, layouts and owned tensors.
//!
//! The bottom of the stack: everything depends on this crate and it depends on nothing of Armet. A [`Tensor`] is
//! immutable, cheap to clone (its bytes are shared) and always dense in row-major order of its shape.

#![forbid(unsafe_code)]

mod element;
mod error;
mod layout;
pub mod npy;
mod quantization;
mod shape;
pub mod storage;
mod tensor;

pub use element::{Bool, Element, ElementType};
pub use error::TensorError;
pub use layout::Layout;
pub use quantization::Quantization;
pub use shape::{Shape, strides};
pub use storage::Arena;
pub use tensor::{Tensor, TensorView, Tensors};
