//! Moving elements without looking at them: permute, slice, concatenate, pad, expand, tile.
//!
//! Everything works on bytes and an element size, so one driver serves all element types. A descriptor ([`Permutation`],
//! [`Slice`], [`Concatenation`], [`Pad`], [`Expansion`], [`Tiling`]) is built once from shapes; building it checks all
//! bounds and picks the loop order, `run` only moves bytes. All but [`Pad`] are constructors of one engine,
//! [`StridedCopy`]: a loop nest with a stride into the input and a stride into the output per dimension, of which adjacent
//! dimensions are merged and whose inner part is a run of bytes, a strided row, or a two-dimensional transposition done in
//! registers.
//!
//! Contract: `run` panics if a slice is shorter than the descriptor's shapes imply; it reads and writes nothing else.

mod pad;
mod reference;
mod strided;
mod structure;
#[cfg(test)]
mod tests;
mod tile;
mod triangle;

pub use pad::{Pad, PadMode};
pub use strided::StridedCopy;
pub use structure::{Concatenation, Expansion, Permutation, Slice, Tiling};
pub use triangle::Triangle;

/// Why shapes, axes or strides do not describe a data movement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// Two lists that belong to one tensor differ in length.
    #[error("{what} has {found} entries for a tensor of {expected} dimensions")]
    Rank {
        /// The list with the wrong length.
        what: &'static str,
        /// The tensor's number of dimensions.
        expected: usize,
        /// The length found.
        found: usize,
    },
    /// An axis is named twice or does not exist.
    #[error("{0:?} is not a permutation")]
    NotAPermutation(Vec<usize>),
    /// An element reached for lies outside its tensor.
    #[error("axis {axis} of extent {extent} does not hold element {index}")]
    OutOfBounds {
        /// The axis.
        axis: usize,
        /// Its extent.
        extent: usize,
        /// The element reached for.
        index: isize,
    },
    /// An extent cannot be broadcast to another.
    #[error("axis {axis}: extent {from} cannot be broadcast to {to}")]
    Broadcast {
        /// The axis of the output.
        axis: usize,
        /// The input's extent.
        from: usize,
        /// The output's extent.
        to: usize,
    },
    /// Output strides under which two elements could share a place.
    #[error("the output's elements overlap")]
    Overlap,
    /// More dimensions than the loop nest has room for, after merging.
    #[error("more than {limit} dimensions remain after merging")]
    TooManyDimensions {
        /// The limit.
        limit: usize,
    },
    /// A tensor that does not fit the address space, or an element of no bytes.
    #[error("the tensor's size is not representable")]
    Size,
}

/// Row-major strides of a shape, in units of elements of `unit` bytes (give 1 for element strides).
pub(crate) fn row_major(shape: &[usize], unit: usize) -> Result<smallvec::SmallVec<[usize; 8]>, LayoutError> {
    let mut strides = smallvec::smallvec![0; shape.len()];
    let mut stride = unit;
    for (axis, &extent) in shape.iter().enumerate().rev() {
        strides[axis] = stride;
        stride = stride.checked_mul(extent.max(1)).ok_or(LayoutError::Size)?;
    }
    if isize::try_from(stride).is_err() { Err(LayoutError::Size) } else { Ok(strides) }
}
