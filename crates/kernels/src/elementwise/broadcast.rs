//! How operands of different shapes meet, in blocks that fit the L1 cache.
//!
//! A [`Broadcast`] is built once from the operands' shapes. Merging adjacent dimensions leaves as few as possible; each
//! operand is then the whole output's elements in order, one element, or strided. The output is walked in blocks of
//! [`BLOCK`] elements, and for each block [`Broadcast::operand`] yields a slice or a single value: the operand itself where
//! its elements lie side by side, else a copy in a small buffer. So the loops that compute never see a stride.

#![expect(unsafe_code, reason = "buffers are not cleared before they are written")]

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use crate::{threads::Team, transpose::LayoutError};

/// Elements computed at a time.
pub(crate) const BLOCK: usize = 1024;

/// Elements worth a task of their own.
const GRAIN: usize = 16 * 1024;

/// A part of an operand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operand<'a, T> {
    /// As many elements as the block has.
    Slice(&'a [T]),
    /// One value for the whole block.
    Scalar(T),
}

/// Where an operand's elements are laid side by side; one per operand and task.
pub(crate) struct Buffer<T> {
    elements: [MaybeUninit<T>; BLOCK],
    /// How many rows of a periodic operand it holds.
    rows: usize,
}

impl<T: Copy> Buffer<T> {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self { elements: [const { MaybeUninit::uninit() }; BLOCK], rows: 0 }
    }

    /// A copy of `x`, which is at most a block.
    pub(crate) fn copy(&mut self, x: &[T]) -> &[T] {
        self.rows = 0;
        self.elements[..x.len()].write_copy_of_slice(x)
    }

    /// `value` as often as asked for, at most a block.
    pub(crate) fn repeat(&mut self, value: T, length: usize) -> &mut [T] {
        self.rows = 0;
        fill(&mut self.elements[..length], value)
    }
}

/// Writes `value` to all elements.
pub(crate) fn fill<T: Copy>(elements: &mut [MaybeUninit<T>], value: T) -> &mut [T] {
    elements.fill(MaybeUninit::new(value));
    // SAFETY: all elements have just been written.
    unsafe { elements.assume_init_mut() }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Access {
    /// The elements of the output in order.
    Same,
    /// One element.
    Single,
    /// The same elements for every row of the innermost merged dimension.
    Periodic,
    /// Strides of the merged dimensions, in elements.
    Strided(SmallVec<[usize; 6]>),
}

/// Operand shapes brought to one output shape by the rules of ONNX (those of NumPy).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broadcast {
    output_shape: SmallVec<[usize; 6]>,
    /// Merged dimensions, outermost first.
    extents: SmallVec<[usize; 6]>,
    operands: SmallVec<[Access; 3]>,
    lengths: SmallVec<[usize; 3]>,
    length: usize,
    /// Length of the rows that blocks respect: a block is whole rows, or a part of one row.
    row: usize,
    /// Elements of a block.
    block: usize,
}

impl Broadcast {
    /// For operands of these shapes.
    pub fn new(shapes: &[&[usize]]) -> Result<Self, LayoutError> {
        let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
        let mut output: SmallVec<[usize; 6]> = smallvec::smallvec![1; rank];
        for shape in shapes {
            for (axis, &extent) in (rank - shape.len()..rank).zip(shape.iter()) {
                if extent != 1 && output[axis] != 1 && output[axis] != extent {
                    return Err(LayoutError::Broadcast { axis, from: extent, to: output[axis] });
                }
                if extent != 1 {
                    output[axis] = extent;
                }
            }
        }
        let length =
            output.iter().try_fold(1_usize, |product, &e| product.checked_mul(e)).ok_or(LayoutError::Size)?;

        // Strides of every operand over the output's dimensions, zero where it is repeated.
        let strides: SmallVec<[SmallVec<[usize; 6]>; 3]> = shapes
            .iter()
            .map(|shape| {
                let mut strides: SmallVec<[usize; 6]> = smallvec::smallvec![0; rank];
                let mut stride = 1;
                for (axis, &extent) in (rank - shape.len()..rank).zip(shape.iter()).rev() {
                    strides[axis] = if extent == 1 { 0 } else { stride };
                    stride *= extent;
                }
                strides
            })
            .collect();

        // Merge a dimension into the one outside of it where every operand steps through both evenly.
        let mut extents: SmallVec<[usize; 6]> = SmallVec::new();
        let mut merged: SmallVec<[SmallVec<[usize; 6]>; 3]> =
            smallvec::smallvec![SmallVec::new(); shapes.len()];
        for axis in (0..rank).filter(|&axis| output[axis] != 1) {
            let extent = output[axis];
            let joins = !extents.is_empty()
                && strides
                    .iter()
                    .zip(&merged)
                    .all(|(own, before)| before.last() == Some(&(own[axis] * extent)));
            for (own, before) in strides.iter().zip(&mut merged) {
                if joins {
                    before.pop();
                }
                before.push(own[axis]);
            }
            if let (true, Some(last)) = (joins, extents.last_mut()) {
                *last *= extent;
            } else {
                extents.push(extent);
            }
        }
        let operands: SmallVec<[Access; 3]> = merged
            .into_iter()
            .map(|strides| {
                if strides.iter().all(|&stride| stride == 0) {
                    return Access::Single;
                }
                let mut expected = 1;
                for (&extent, &stride) in extents.iter().zip(&strides).rev() {
                    if stride != expected {
                        let is_periodic =
                            matches!(strides.split_last(), Some((1, outer)) if outer.iter().all(|&s| s == 0));
                        return if is_periodic { Access::Periodic } else { Access::Strided(strides) };
                    }
                    expected *= extent;
                }
                Access::Same
            })
            .collect();
        let by_rows = operands.iter().any(|operand| matches!(operand, Access::Periodic | Access::Strided(_)));
        // An output without elements has rows without elements; nothing is walked then.
        let row = if by_rows { extents.last().copied().unwrap_or(1).max(1) } else { 1 };
        Ok(Self {
            row,
            block: if row > BLOCK { BLOCK } else { BLOCK / row * row },
            output_shape: output,
            extents,
            operands,
            lengths: shapes.iter().map(|shape| shape.iter().product()).collect(),
            length,
        })
    }

    /// The output's shape.
    pub fn output_shape(&self) -> &[usize] {
        &self.output_shape
    }

    /// The output's number of elements.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The number of operands.
    pub fn operands(&self) -> usize {
        self.operands.len()
    }

    /// Whether operand `index` has the output's elements in the output's order, so that it may be overwritten by it.
    pub fn is_same(&self, index: usize) -> bool {
        self.operands[index] == Access::Same || (self.length == 1 && self.lengths[index] == 1)
    }

    /// Panics unless a slice of `length` elements can be operand `index`.
    pub(crate) fn check_operand(&self, index: usize, length: usize) {
        let needed = self.lengths[index];
        assert!(length >= needed, "operand {index} holds {length} of {needed} elements");
    }

    /// Calls `body` on runs of blocks that together cover the output once.
    pub(crate) fn for_blocks(&self, team: &Team, body: &(dyn Fn(Blocks) + Sync)) {
        let row = if self.row > BLOCK { self.row } else { usize::MAX };
        team.parallel_ranges(self.length, GRAIN, self.block, &|start, end| {
            body(Blocks { start, end, row, block: self.block });
        });
    }

    /// Operand `index`, whose elements are `x`, for the block `range` of the output.
    #[inline]
    pub(crate) fn operand<'a, T: Copy>(
        &self,
        index: usize,
        x: &'a [T],
        range: Range<usize>,
        buffer: &'a mut Buffer<T>,
    ) -> Operand<'a, T> {
        match &self.operands[index] {
            Access::Same => Operand::Slice(&x[range]),
            Access::Single => Operand::Scalar(x[0]),
            Access::Periodic => self.periodic(x, range, buffer),
            Access::Strided(strides) => self.strided(strides, x, range, buffer),
        }
    }

    fn periodic<'a, T: Copy>(
        &self,
        x: &'a [T],
        range: Range<usize>,
        buffer: &'a mut Buffer<T>,
    ) -> Operand<'a, T> {
        if self.row > BLOCK || range.len() == self.row {
            let column = range.start % self.row;
            return Operand::Slice(&x[column..column + range.len()]);
        }
        // Blocks are whole rows, so all blocks of a task hold the same.
        if buffer.rows * self.row < range.len() {
            buffer.rows = range.len() / self.row;
            for y in buffer.elements[..range.len()].chunks_exact_mut(self.row) {
                y.write_copy_of_slice(&x[..self.row]);
            }
        }
        // SAFETY: at least this many whole rows have been written.
        Operand::Slice(unsafe { buffer.elements[..range.len()].assume_init_ref() })
    }

    fn strided<'a, T: Copy>(
        &self,
        strides: &[usize],
        x: &'a [T],
        range: Range<usize>,
        buffer: &'a mut Buffer<T>,
    ) -> Operand<'a, T> {
        let (Some((&row, outer)), Some((&stride, outer_strides))) =
            (self.extents.split_last(), strides.split_last())
        else {
            return Operand::Scalar(x[0]);
        };
        let offset_of_row = |mut row: usize| {
            let mut offset = 0;
            for (&extent, &stride) in outer.iter().zip(outer_strides).rev() {
                offset += row % extent * stride;
                row /= extent;
            }
            offset
        };
        let (mut index, mut column) = (range.start / row, range.start % row);
        if column + range.len() <= row {
            let start = offset_of_row(index) + column * stride;
            return match stride {
                0 => Operand::Scalar(x[start]),
                1 => Operand::Slice(&x[start..start + range.len()]),
                _ => unreachable!("a merged innermost stride is zero or one"),
            };
        }
        // Several rows. Only the innermost of the outer dimensions moves at every row.
        let block = &mut buffer.elements[..range.len()];
        let mut rest: &mut [MaybeUninit<T>] = block;
        let (step, step_extent) = match (outer_strides.last(), outer.last()) {
            (Some(&step), Some(&extent)) => (step, extent),
            _ => (0, 1),
        };
        let mut place = offset_of_row(index);
        while !rest.is_empty() {
            let count = (row - column).min(rest.len());
            let (part, after) = rest.split_at_mut(count);
            if stride == 0 {
                fill(part, x[place]);
            } else {
                part.write_copy_of_slice(&x[place + column..place + column + count]);
            }
            rest = after;
            column = 0;
            index += 1;
            place = if index % step_extent == 0 { offset_of_row(index) } else { place + step };
        }
        // SAFETY: the loop has written all of the block.
        Operand::Slice(unsafe { block.assume_init_ref() })
    }
}

/// The blocks of one task, in order.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    start: usize,
    end: usize,
    /// Blocks end where rows of this length end.
    row: usize,
    block: usize,
}

impl Iterator for Blocks {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if self.start == self.end {
            return None;
        }
        let row_end = (self.start / self.row + 1).saturating_mul(self.row);
        let range = self.start..self.end.min(self.start + self.block).min(row_end);
        self.start = range.end;
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Broadcast, Buffer, Operand};
    use crate::threads::Team;
    use crate::transpose::{Expansion, LayoutError};

    #[test]
    fn dimensions_are_merged() {
        let plan = Broadcast::new(&[&[2, 3, 4, 5], &[2, 3, 4, 5], &[]]).unwrap();
        assert_eq!(plan.extents.as_slice(), &[120]);
        assert_eq!(plan.operands.as_slice(), &[Access::Same, Access::Same, Access::Single]);
        let plan = Broadcast::new(&[&[2, 3, 4, 5], &[5]]).unwrap();
        assert_eq!(plan.extents.as_slice(), &[24, 5]);
        let plan = Broadcast::new(&[&[2, 3, 4, 5], &[3, 1, 1]]).unwrap();
        assert_eq!(plan.extents.as_slice(), &[2, 3, 20]);
        let plan = Broadcast::new(&[&[1, 3, 1, 5], &[3, 1, 5]]).unwrap();
        assert_eq!(plan.extents.as_slice(), &[15]);
        assert!(plan.is_same(0) && plan.is_same(1));
    }

    #[test]
    fn operands_are_expansions() {
        let shapes: &[&[&[usize]]] = &[
            &[&[2, 3, 4, 5], &[5]],
            &[&[2, 3, 4, 5], &[2, 1, 4, 1], &[3, 1, 1]],
            &[&[7, 1], &[1, 300]],
            &[&[3, 1, 70], &[1, 9, 1], &[70]],
            &[&[40, 1, 3, 1], &[1, 17, 1, 2]],
            &[&[], &[1], &[1, 1]],
            &[&[4000], &[1]],
            &[&[0, 3], &[3]],
            &[&[900, 7], &[7]],
            &[&[5, 2000], &[2000]],
            &[&[2, 700, 3], &[1, 700, 1], &[3]],
        ];
        for shapes in shapes {
            let plan = Broadcast::new(shapes).unwrap();
            for (index, shape) in shapes.iter().enumerate() {
                let count: usize = shape.iter().product();
                let x: Vec<u16> = (0..count).map(|value| value as u16 + 1).collect();
                let mut expected = vec![0_u16; plan.length()];
                Expansion::new(shape, plan.output_shape(), 2).unwrap().run(
                    &Team::single(),
                    bytemuck::cast_slice(&x),
                    bytemuck::cast_slice_mut(&mut expected),
                );
                let seen = std::sync::Mutex::new(vec![0; plan.length()]);
                plan.for_blocks(&Team::new(2), &|blocks| {
                    let mut buffer = Buffer::new();
                    let mut seen = seen.lock().unwrap();
                    for range in blocks {
                        match plan.operand(index, &x, range.clone(), &mut buffer) {
                            Operand::Slice(slice) => seen[range].copy_from_slice(slice),
                            Operand::Scalar(value) => seen[range].fill(value),
                        }
                    }
                });
                assert_eq!(seen.into_inner().unwrap(), expected, "{shapes:?} operand {index}");
            }
        }
    }

    #[test]
    fn shapes_that_do_not_meet_are_refused() {
        let refused = Broadcast::new(&[&[2, 3], &[4]]);
        assert_eq!(refused, Err(LayoutError::Broadcast { axis: 1, from: 4, to: 3 }));
    }
}
