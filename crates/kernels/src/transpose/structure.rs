//! Permute, slice, concatenate, expand and tile as strided copies.

use smallvec::SmallVec;

use super::{LayoutError, StridedCopy, row_major};
use crate::threads::Team;

type Strides = SmallVec<[isize; 8]>;

fn signed(strides: &[usize]) -> Strides {
    strides.iter().map(|&stride| stride as isize).collect()
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

fn check_rank(what: &'static str, expected: usize, found: usize) -> Result<(), LayoutError> {
    if expected == found { Ok(()) } else { Err(LayoutError::Rank { what, expected, found }) }
}

/// ONNX `Transpose`: axis `i` of the output is axis `perm[i]` of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation(StridedCopy);

impl Permutation {
    /// For an input of `shape`, of elements of `element_size` bytes.
    pub fn new(shape: &[usize], perm: &[usize], element_size: usize) -> Result<Self, LayoutError> {
        let mut seen: SmallVec<[bool; 8]> = smallvec::smallvec![false; shape.len()];
        for &axis in perm {
            if axis >= shape.len() || std::mem::replace(&mut seen[axis], true) {
                return Err(LayoutError::NotAPermutation(perm.to_vec()));
            }
        }
        check_rank("permutation", shape.len(), perm.len())?;
        let strides = row_major(shape, 1)?;
        let extents: SmallVec<[usize; 8]> = perm.iter().map(|&axis| shape[axis]).collect();
        let from: Strides = perm.iter().map(|&axis| strides[axis] as isize).collect();
        let to = row_major(&extents, 1)?;
        let length = count(shape);
        StridedCopy::new(element_size, &extents, (&from, 0, length), (&to, 0, length)).map(Self)
    }

    /// Writes the permuted elements.
    pub fn run(&self, team: &Team, x: &[u8], y: &mut [u8]) {
        self.0.run(team, x, y);
    }
}

/// ONNX `Slice` (and a piece of `Split`) with resolved bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice(StridedCopy);

impl Slice {
    /// Takes `extents[axis]` elements from `starts[axis]` on, `steps[axis]` apart, of a tensor of `shape`; one entry for
    /// every axis.
    pub fn new(
        shape: &[usize],
        starts: &[usize],
        steps: &[isize],
        extents: &[usize],
        element_size: usize,
    ) -> Result<Self, LayoutError> {
        check_rank("slice starts", shape.len(), starts.len())?;
        check_rank("slice steps", shape.len(), steps.len())?;
        check_rank("slice extents", shape.len(), extents.len())?;
        let strides = row_major(shape, 1)?;
        let to = row_major(extents, 1)?;
        let length = count(extents);
        let mut offset = 0;
        let mut from = Strides::new();
        for axis in 0..shape.len() {
            if length > 0 {
                let last = starts[axis] as i128 + (extents[axis] as i128 - 1) * steps[axis] as i128;
                for index in [starts[axis] as i128, last] {
                    if index < 0 || index >= shape[axis] as i128 {
                        let index = isize::try_from(index).unwrap_or(isize::MAX);
                        return Err(LayoutError::OutOfBounds { axis, extent: shape[axis], index });
                    }
                }
                offset += starts[axis] * strides[axis];
            }
            from.push(if extents[axis] > 1 { strides[axis] as isize * steps[axis] } else { 0 });
        }
        StridedCopy::new(element_size, extents, (&from, offset, count(shape)), (&to, 0, length)).map(Self)
    }

    /// Writes the elements taken.
    pub fn run(&self, team: &Team, x: &[u8], y: &mut [u8]) {
        self.0.run(team, x, y);
    }
}

/// ONNX `Concat`: pieces side by side along one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concatenation {
    pieces: Vec<StridedCopy>,
}

impl Concatenation {
    /// For inputs that have `shape` but for `axis`, where input `i` has `extents[i]`.
    pub fn new(
        shape: &[usize],
        axis: usize,
        extents: &[usize],
        element_size: usize,
    ) -> Result<Self, LayoutError> {
        if axis >= shape.len() {
            return Err(LayoutError::OutOfBounds { axis, extent: 0, index: 0 });
        }
        let mut whole: SmallVec<[usize; 8]> = SmallVec::from_slice(shape);
        whole[axis] =
            extents.iter().try_fold(0_usize, |sum, &e| sum.checked_add(e)).ok_or(LayoutError::Size)?;
        let to = row_major(&whole, 1)?;
        let output_length = count(&whole);
        let mut pieces = Vec::with_capacity(extents.len());
        let mut start = 0;
        for &extent in extents {
            let mut piece: SmallVec<[usize; 8]> = SmallVec::from_slice(shape);
            piece[axis] = extent;
            let from = signed(&row_major(&piece, 1)?);
            pieces.push(StridedCopy::new(
                element_size,
                &piece,
                (&from, 0, count(&piece)),
                (&to, start * to[axis], output_length),
            )?);
            start += extent;
        }
        Ok(Self { pieces })
    }

    /// How many inputs there are.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Writes input `index` at its place in the output, and nothing else.
    ///
    /// # Panics
    /// When there is no such input, or a slice is too short.
    pub fn run_piece(&self, index: usize, team: &Team, x: &[u8], y: &mut [u8]) {
        self.pieces[index].run(team, x, y);
    }
}

/// ONNX `Expand`: extents of one, and missing leading axes, are repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion(StridedCopy);

impl Expansion {
    /// From `shape` to `output`, which must be what `shape` broadcasts to.
    pub fn new(shape: &[usize], output: &[usize], element_size: usize) -> Result<Self, LayoutError> {
        let Some(missing) = output.len().checked_sub(shape.len()) else {
            return Err(LayoutError::Rank {
                what: "expanded shape",
                expected: output.len(),
                found: shape.len(),
            });
        };
        let strides = row_major(shape, 1)?;
        let mut from: Strides = smallvec::smallvec![0; output.len()];
        for axis in 0..shape.len() {
            if shape[axis] == output[axis + missing] {
                from[axis + missing] = strides[axis] as isize;
            } else if shape[axis] != 1 {
                let (from, to) = (shape[axis], output[axis + missing]);
                return Err(LayoutError::Broadcast { axis: axis + missing, from, to });
            }
        }
        let to = row_major(output, 1)?;
        StridedCopy::new(element_size, output, (&from, 0, count(shape)), (&to, 0, count(output))).map(Self)
    }

    /// Writes the repeated elements.
    pub fn run(&self, team: &Team, x: &[u8], y: &mut [u8]) {
        self.0.run(team, x, y);
    }
}

/// ONNX `Tile`: the whole tensor repeated along each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiling(StridedCopy);

impl Tiling {
    /// `repeats[axis]` copies of a tensor of `shape` along each axis.
    pub fn new(shape: &[usize], repeats: &[usize], element_size: usize) -> Result<Self, LayoutError> {
        check_rank("repeats", shape.len(), repeats.len())?;
        let strides = row_major(shape, 1)?;
        let mut extents: SmallVec<[usize; 16]> = SmallVec::new();
        let mut from = Strides::new();
        for axis in 0..shape.len() {
            extents.extend([repeats[axis], shape[axis]]);
            from.extend([0, strides[axis] as isize]);
        }
        let to = row_major(&extents, 1)?;
        StridedCopy::new(element_size, &extents, (&from, 0, count(shape)), (&to, 0, count(&extents)))
            .map(Self)
    }

    /// Writes the repeated tensor.
    pub fn run(&self, team: &Team, x: &[u8], y: &mut [u8]) {
        self.0.run(team, x, y);
    }
}
