//! Elements chosen by indices that are data: gather, scatter, entries moved as a whole; and running sums and products.
//!
//! Indices may be negative, counting from the end, and are checked before anything is read or written: a bad one is an
//! [`IndexError`], and the output is then unspecified. Gathering moves bytes of any element type; scattering works on
//! numbers, since it may combine them.

#![expect(unsafe_code, reason = "rows of the output are handed to tasks")]
#![expect(clippy::panic_in_result_fn, reason = "lengths are the caller's contract, indices are data")]

mod cumulate;
mod entries;
mod scatter;
#[cfg(test)]
mod tests;

pub use cumulate::{Cumulate, cumulate};
pub use entries::{CacheWrite, Reversal, one_hot};
pub use scatter::{ScatterReduction, scatter_elements, scatter_nd};

use crate::threads::{DisjointMut, Team};
use crate::transpose::{LayoutError, row_major};

/// Bytes worth a task of their own.
const GRAIN: usize = 32 * 1024;

/// An index that names no element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("index {index} is outside of an axis of {extent} elements")]
pub struct IndexError {
    /// The index.
    pub index: i64,
    /// The elements that it chooses from.
    pub extent: usize,
}

/// An element type of indices.
pub trait Index: Copy + Sync {
    /// The index as the largest type.
    fn wide(self) -> i64;

    /// The element that is meant among `extent`.
    #[inline(always)]
    fn resolve(self, extent: usize) -> Result<usize, IndexError> {
        let index = self.wide();
        let from_start = if index < 0 { index.wrapping_add(extent as i64) } else { index };
        if (0..extent as i64).contains(&from_start) {
            Ok(from_start as usize)
        } else {
            Err(IndexError { index, extent })
        }
    }
}

impl Index for i32 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Index for i64 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }
}

fn check<I: Index>(indices: &[I], extent: usize) -> Result<(), IndexError> {
    indices.iter().try_for_each(|index| index.resolve(extent).map(drop))
}

/// ONNX `Gather`: for each of `outer` positions, the blocks of `inner` bytes that `indices` choose among `axis`.
///
/// # Panics
/// When a slice does not have the length that the sizes imply.
pub fn gather<I: Index>(
    team: &Team,
    (outer, axis, inner): (usize, usize, usize),
    indices: &[I],
    x: &[u8],
    y: &mut [u8],
) -> Result<(), IndexError> {
    assert_eq!(x.len(), outer * axis * inner, "the input's length differs from its shape's");
    assert_eq!(y.len(), outer * indices.len() * inner, "the output's length differs from its shape's");
    check(indices, axis)?;
    let output = DisjointMut::new(y);
    team.parallel_ranges(outer * indices.len(), GRAIN.div_ceil(inner.max(1)), 1, &|start, end| {
        // SAFETY: tasks have blocks that do not meet.
        let y = unsafe { output.slice_mut(start * inner, (end - start) * inner) };
        let mut blocks = Blocks { indices, axis, start, x };
        match inner {
            0 => {}
            1 => blocks.copy_sized::<1>(y),
            2 => blocks.copy_sized::<2>(y),
            4 => blocks.copy_sized::<4>(y),
            8 => blocks.copy_sized::<8>(y),
            _ => {
                for y in y.chunks_exact_mut(inner) {
                    let from = blocks.next_block() * inner;
                    y.copy_from_slice(&x[from..from + inner]);
                }
            }
        }
    });
    Ok(())
}

/// The blocks that one task copies, from output block `start` on.
struct Blocks<'a, I> {
    indices: &'a [I],
    axis: usize,
    start: usize,
    x: &'a [u8],
}

impl<I: Index> Blocks<'_, I> {
    #[inline]
    fn next_block(&mut self) -> usize {
        let (outer, place) = (self.start / self.indices.len(), self.start % self.indices.len());
        self.start += 1;
        let index = self.indices[place].wide();
        outer * self.axis + (if index < 0 { index + self.axis as i64 } else { index }) as usize
    }

    fn copy_sized<const SIZE: usize>(&mut self, y: &mut [u8]) {
        let x = self.x.as_chunks::<SIZE>().0;
        for y in y.as_chunks_mut::<SIZE>().0 {
            *y = x[self.next_block()];
        }
    }
}

/// Where the elements are that ONNX's `GatherElements` and `ScatterElements` pair up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementPairs {
    /// Extent of the axis in the data.
    extent: usize,
    /// Data elements from one index of the axis to the next.
    axis_stride: usize,
    /// Extents of the indices' dimensions.
    extents: Vec<usize>,
    /// Data elements from one index to the next along each dimension, zero for the axis.
    strides: Vec<usize>,
    data_length: usize,
    length: usize,
}

impl ElementPairs {
    /// For data of `shape` and indices of `indices_shape` along `axis`.
    pub fn new(shape: &[usize], indices_shape: &[usize], axis: usize) -> Result<Self, LayoutError> {
        if shape.len() != indices_shape.len() {
            return Err(LayoutError::Rank {
                what: "indices",
                expected: shape.len(),
                found: indices_shape.len(),
            });
        }
        if axis >= shape.len() {
            return Err(LayoutError::OutOfBounds { axis, extent: shape.len(), index: axis as isize });
        }
        let mut strides = row_major(shape, 1)?.to_vec();
        for (other, (&extent, &wanted)) in shape.iter().zip(indices_shape).enumerate() {
            if other != axis && wanted > extent {
                return Err(LayoutError::OutOfBounds { axis: other, extent, index: wanted as isize - 1 });
            }
        }
        let axis_stride = std::mem::take(&mut strides[axis]);
        Ok(Self {
            extent: shape[axis],
            axis_stride,
            extents: indices_shape.to_vec(),
            strides,
            data_length: shape.iter().product(),
            length: indices_shape.iter().product(),
        })
    }

    /// The number of indices.
    pub fn length(&self) -> usize {
        self.length
    }

    fn check<I: Index>(&self, indices: &[I], data: usize, other: usize) -> Result<(), IndexError> {
        assert_eq!(indices.len(), self.length, "the indices' length differs from their shape's");
        assert_eq!(data, self.data_length, "the data's length differs from its shape's");
        assert_eq!(other, self.length, "there is not one element per index");
        check(indices, self.extent)
    }

    /// Calls `pair` with the place of each index in `start..end`, and the place of its data element. The indices have been
    /// checked.
    #[inline(always)]
    fn for_each<I: Index>(
        &self,
        indices: &[I],
        start: usize,
        end: usize,
        mut pair: impl FnMut(usize, usize),
    ) {
        let Some((&row, outer)) = self.extents.split_last() else { return };
        let (stride, outer_strides) = (self.strides[outer.len()], &self.strides[..outer.len()]);
        let mut place = start;
        while place < end {
            let (mut rest, mut base) = (place / row, 0);
            for (&extent, &stride) in outer.iter().zip(outer_strides).rev() {
                base += rest % extent * stride;
                rest /= extent;
            }
            let first = place % row;
            let stop = end.min(place - first + row);
            for (column, place) in (place..stop).enumerate() {
                let index = indices[place].wide();
                let index = (if index < 0 { index + self.extent as i64 } else { index }) as usize;
                pair(place, base + (first + column) * stride + index * self.axis_stride);
            }
            place = stop;
        }
    }
}

/// ONNX `GatherElements`.
///
/// # Panics
/// When a slice does not have the length that the shapes imply.
pub fn gather_elements<T: Copy + Send + Sync, I: Index>(
    team: &Team,
    pairs: &ElementPairs,
    indices: &[I],
    x: &[T],
    y: &mut [T],
) -> Result<(), IndexError> {
    pairs.check(indices, x.len(), y.len())?;
    let output = DisjointMut::new(y);
    team.parallel_ranges(pairs.length, 4 * 1024, 1, &|start, end| {
        // SAFETY: tasks have ranges that do not meet.
        let y = unsafe { output.slice_mut(start, end - start) };
        pairs.for_each(indices, start, end, |place, from| y[place - start] = x[from]);
    });
    Ok(())
}

/// Where the blocks are that ONNX's `GatherND` and `ScatterND` choose by tuples of indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockTuples {
    /// Batches, each with its own data and tuples.
    batches: usize,
    /// Tuples of one batch.
    tuples: usize,
    /// Extents of the data's dimensions that a tuple chooses from, with the blocks from one index to the next.
    chosen: Vec<(usize, usize)>,
    /// Blocks of one batch of data.
    blocks: usize,
    /// Elements of a block.
    block: usize,
}

impl BlockTuples {
    /// For data of `shape` and indices of `indices_shape`, of which the first `batch_dimensions` axes are batches (none for
    /// `ScatterND`).
    pub fn new(
        shape: &[usize],
        indices_shape: &[usize],
        batch_dimensions: usize,
    ) -> Result<Self, LayoutError> {
        let Some((&depth, outer)) = indices_shape.split_last() else {
            return Err(LayoutError::Rank { what: "indices", expected: 1, found: 0 });
        };
        if batch_dimensions > outer.len() || batch_dimensions + depth > shape.len() {
            let found = batch_dimensions + depth;
            return Err(LayoutError::Rank { what: "indices of a tuple", expected: shape.len(), found });
        }
        for axis in 0..batch_dimensions {
            if shape[axis] != outer[axis] {
                return Err(LayoutError::Broadcast { axis, from: outer[axis], to: shape[axis] });
            }
        }
        row_major(shape, 1)?;
        let dimensions = &shape[batch_dimensions..batch_dimensions + depth];
        let mut chosen = Vec::with_capacity(depth);
        let mut blocks = 1;
        for &extent in dimensions.iter().rev() {
            chosen.insert(0, (extent, blocks));
            blocks *= extent;
        }
        Ok(Self {
            batches: shape[..batch_dimensions].iter().product(),
            tuples: outer[batch_dimensions..].iter().product(),
            chosen,
            blocks,
            block: shape[batch_dimensions + depth..].iter().product(),
        })
    }

    /// The number of elements that the tuples choose.
    pub fn length(&self) -> usize {
        self.batches * self.tuples * self.block
    }

    fn check<I: Index>(&self, indices: &[I], data: usize, other: usize) -> Result<(), IndexError> {
        let depth = self.chosen.len();
        assert_eq!(
            indices.len(),
            self.batches * self.tuples * depth,
            "the indices' length differs from their shape's"
        );
        assert_eq!(
            data,
            self.batches * self.blocks * self.block,
            "the data's length differs from its shape's"
        );
        assert_eq!(other, self.length(), "there is not one block per tuple");
        if depth == 0 {
            return Ok(());
        }
        let mut tuples = indices.chunks_exact(depth);
        tuples.try_for_each(|tuple| {
            tuple
                .iter()
                .zip(&self.chosen)
                .try_for_each(|(index, &(extent, _))| index.resolve(extent).map(drop))
        })
    }

    /// The data block that tuple `tuple` (over all batches) chooses. The indices have been checked.
    #[inline]
    fn block_of<I: Index>(&self, indices: &[I], tuple: usize) -> usize {
        let depth = self.chosen.len();
        let mut block = tuple / self.tuples * self.blocks;
        for (index, &(extent, stride)) in indices[tuple * depth..(tuple + 1) * depth].iter().zip(&self.chosen)
        {
            let index = index.wide();
            block += (if index < 0 { index + extent as i64 } else { index }) as usize * stride;
        }
        block
    }
}

/// ONNX `GatherND`, for elements of `element_size` bytes.
///
/// # Panics
/// When a slice does not have the length that the shapes imply.
pub fn gather_nd<I: Index>(
    team: &Team,
    tuples: &BlockTuples,
    element_size: usize,
    indices: &[I],
    x: &[u8],
    y: &mut [u8],
) -> Result<(), IndexError> {
    assert!(
        element_size > 0 && x.len().is_multiple_of(element_size) && y.len().is_multiple_of(element_size),
        "the slices do not hold whole elements"
    );
    tuples.check(indices, x.len() / element_size, y.len() / element_size)?;
    let block = tuples.block * element_size;
    let output = DisjointMut::new(y);
    team.parallel_ranges(tuples.batches * tuples.tuples, GRAIN.div_ceil(block.max(1)), 1, &|start, end| {
        for tuple in start..end {
            // SAFETY: every block is written by the one task that has its tuple.
            let y = unsafe { output.slice_mut(tuple * block, block) };
            let from = tuples.block_of(indices, tuple) * block;
            y.copy_from_slice(&x[from..from + block]);
        }
    });
    Ok(())
}
