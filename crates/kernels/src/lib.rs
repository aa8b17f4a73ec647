//! CPU micro-kernels behind safe functions; knows no graph.
//!
//! Each family is a folder: `mod.rs` has the safe driver and says what it promises, one file per instruction set has
//! the kernels, `reference.rs` the same in obvious loops, and a table lists the kernels best first. Functions take
//! slices and sizes, an [`isa::Isas`] when something is chosen, and a [`threads::Team`] when something runs.

mod aligned;
pub mod attention;
pub mod conv;
pub mod conv_int8;
pub mod conv_transpose;
pub(crate) mod depthwise;
pub mod dft;
mod dispatch;
pub mod elementwise;
pub mod epilogue;
pub mod gather;
pub mod gemm;
pub mod gemm_int8;
pub mod isa;
mod lanes;
pub mod layout;
pub mod nbits;
pub mod normalize;
pub mod pool;
pub mod quantize;
pub mod recurrent;
pub mod reduce;
pub mod resize;
pub mod rotary;
pub mod sample;
pub(crate) mod simd;
pub mod softmax;
pub mod threads;
pub mod transpose;
pub mod vecmath;
