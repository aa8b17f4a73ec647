//! The engine: a loop nest that moves elements from one strided place to another.

#![expect(unsafe_code, reason = "strided moves between checked bounds")]

use smallvec::SmallVec;

use super::{LayoutError, tile};
use crate::threads::Team;

/// Loops that remain after merging adjacent dimensions.
const MAX_DIMENSIONS: usize = 16;

/// Bytes of output worth a task of their own.
const GRAIN_BYTES: usize = 32 * 1024;

/// Rows of input (columns of output) that one task of a transposition takes.
const TRANSPOSE_BLOCK: usize = 64;

/// One loop: its number of steps, and how far a step moves in the input and in the output, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loop {
    extent: usize,
    input: isize,
    output: isize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inner {
    /// Nothing to move.
    Empty,
    /// One row of units.
    Row(Loop),
    /// A plane: `rows` walks contiguous output elements, `columns` walks contiguous input elements.
    Plane { rows: Loop, columns: Loop },
}

/// A copy of elements between two strided layouts, built once and run often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedCopy {
    /// Bytes that lie together in both input and output.
    unit: usize,
    outer: SmallVec<[Loop; 6]>,
    inner: Inner,
    input_offset: usize,
    output_offset: usize,
    input_bytes: usize,
    output_bytes: usize,
}

/// A pointer that tasks may share.
#[derive(Clone, Copy)]
struct Place<T>(T);

// SAFETY: tasks read the input only, and write parts of the output that `StridedCopy::new` found to be disjoint.
unsafe impl<T> Sync for Place<T> {}

impl<T: Copy> Place<T> {
    fn get(&self) -> T {
        self.0
    }
}

impl StridedCopy {
    /// A loop nest over `extents`, outermost first, moving `element_size` bytes per step.
    ///
    /// Strides and offsets count elements; an input stride may be zero (repeat) or negative (backwards), the output's
    /// elements must not overlap. `input_length` and `output_length` are the elements that the two slices given to
    /// [`StridedCopy::run`] will have at least.
    pub fn new(
        element_size: usize,
        extents: &[usize],
        input: (&[isize], usize, usize),
        output: (&[usize], usize, usize),
    ) -> Result<Self, LayoutError> {
        let (input_strides, input_offset, input_length) = input;
        let (output_strides, output_offset, output_length) = output;
        let rank = extents.len();
        for (what, found) in
            [("input strides", input_strides.len()), ("output strides", output_strides.len())]
        {
            if found != rank {
                return Err(LayoutError::Rank { what, expected: rank, found });
            }
        }
        let bytes =
            |elements: usize| elements.checked_mul(element_size).filter(|&b| isize::try_from(b).is_ok());
        let input_bytes = bytes(input_length).ok_or(LayoutError::Size)?;
        let output_bytes = bytes(output_length).ok_or(LayoutError::Size)?;
        if element_size == 0 {
            return Err(LayoutError::Size);
        }
        let mut copy = Self {
            unit: element_size,
            outer: SmallVec::new(),
            inner: Inner::Empty,
            input_offset: input_offset.checked_mul(element_size).ok_or(LayoutError::Size)?,
            output_offset: output_offset.checked_mul(element_size).ok_or(LayoutError::Size)?,
            input_bytes,
            output_bytes,
        };
        if extents.contains(&0) {
            return Ok(copy);
        }
        check_bounds(extents, input_strides.iter().copied(), input_offset, input_length)?;
        check_bounds(
            extents,
            output_strides.iter().map(|&stride| isize::try_from(stride).unwrap_or(isize::MAX)),
            output_offset,
            output_length,
        )?;
        check_disjoint(extents, output_strides)?;

        let size = element_size as isize;
        let mut loops: SmallVec<[Loop; 8]> = SmallVec::new();
        for axis in 0..rank {
            if extents[axis] > 1 {
                loops.push(Loop {
                    extent: extents[axis],
                    input: input_strides[axis] * size,
                    output: output_strides[axis] as isize * size,
                });
            }
        }
        // The output is walked in the order of its addresses.
        loops.sort_by_key(|step| std::cmp::Reverse(step.output));
        copy.merge(&loops)?;
        Ok(copy)
    }

    /// Merges adjacent loops, folds the contiguous inner part into the unit and picks the inner kernel.
    fn merge(&mut self, loops: &[Loop]) -> Result<(), LayoutError> {
        let mut merged: SmallVec<[Loop; 8]> = SmallVec::new();
        for &step in loops {
            if let Some(before) = merged.last_mut() {
                let extent = step.extent as isize;
                if before.input == step.input * extent && before.output == step.output * extent {
                    *before = Loop { extent: before.extent * step.extent, ..step };
                    continue;
                }
            }
            merged.push(step);
        }
        let element = self.unit as isize;
        if let Some(last) = merged.last().copied()
            && last.input == element
            && last.output == element
        {
            self.unit *= last.extent;
            merged.pop();
        }
        if merged.len() > MAX_DIMENSIONS {
            return Err(LayoutError::TooManyDimensions { limit: MAX_DIMENSIONS });
        }
        let unit = self.unit as isize;
        let once = Loop { extent: 1, input: 0, output: 0 };
        let Some(last) = merged.pop() else {
            self.inner = Inner::Row(once);
            return Ok(());
        };
        let contiguous_input = merged.iter().position(|step| step.input == unit);
        self.inner = match contiguous_input {
            Some(position) if last.output == unit && matches!(self.unit, 1 | 2 | 4 | 8) => {
                Inner::Plane { rows: last, columns: merged.remove(position) }
            }
            _ => Inner::Row(last),
        };
        self.outer = merged.into_iter().collect();
        Ok(())
    }

    /// Moves the elements.
    ///
    /// # Panics
    /// When a slice is shorter than the lengths given to [`StridedCopy::new`].
    pub fn run(&self, team: &Team, x: &[u8], y: &mut [u8]) {
        assert!(x.len() >= self.input_bytes, "the input holds {} of {} bytes", x.len(), self.input_bytes);
        assert!(y.len() >= self.output_bytes, "the output holds {} of {} bytes", y.len(), self.output_bytes);
        if self.inner == Inner::Empty {
            return;
        }
        // SAFETY: both offsets are places of elements, which `new` found to lie inside the lengths just checked.
        let (from, to) = unsafe {
            (Place(x.as_ptr().add(self.input_offset)), Place(y.as_mut_ptr().add(self.output_offset)))
        };
        match self.inner {
            Inner::Empty => {}
            Inner::Row(row) => self.run_rows(team, row, from, to),
            Inner::Plane { rows, columns } => self.run_planes(team, rows, columns, from, to),
        }
    }

    fn outer_steps(&self) -> usize {
        self.outer.iter().map(|step| step.extent).product()
    }

    fn run_rows(&self, team: &Team, row: Loop, from: Place<*const u8>, to: Place<*mut u8>) {
        let steps = self.outer_steps();
        if steps == 1 {
            // One row: cut the row itself, and a row of one unit into bytes.
            if row.extent == 1 {
                team.parallel_ranges(self.unit, GRAIN_BYTES * 4, 64, &|start, end| {
                    // SAFETY: `start..end` lies inside the only unit, which no other task touches there.
                    unsafe {
                        to.get().add(start).copy_from_nonoverlapping(from.get().add(start), end - start);
                    };
                });
            } else {
                team.parallel_ranges(row.extent, GRAIN_BYTES.div_ceil(self.unit), 1, &|start, end| {
                    let part = Loop { extent: end - start, ..row };
                    let (input, output) = (start as isize * row.input, start as isize * row.output);
                    // SAFETY: the elements of this part of the row lie inside both slices.
                    unsafe { self.copy_row(part, from.get().offset(input), to.get().offset(output)) };
                });
            }
            return;
        }
        let grain = GRAIN_BYTES.div_ceil(self.unit * row.extent);
        team.parallel_ranges(steps, grain, 1, &|start, end| {
            let mut odometer = Odometer::new(&self.outer, start);
            for _ in start..end {
                // SAFETY: the odometer stands on an element of the loop nest, all of which lie inside both slices.
                unsafe {
                    self.copy_row(row, from.get().offset(odometer.input), to.get().offset(odometer.output));
                }
                odometer.advance(&self.outer);
            }
        });
    }

    fn run_planes(&self, team: &Team, rows: Loop, columns: Loop, from: Place<*const u8>, to: Place<*mut u8>) {
        let steps = self.outer_steps();
        let blocks = columns.extent.div_ceil(TRANSPOSE_BLOCK);
        let grain = GRAIN_BYTES.div_ceil(self.unit * rows.extent * columns.extent.min(TRANSPOSE_BLOCK));
        team.parallel_ranges(steps * blocks, grain, 1, &|start, end| {
            let mut odometer = Odometer::new(&self.outer, start / blocks);
            let mut block = start % blocks;
            for _ in start..end {
                let column = block * TRANSPOSE_BLOCK;
                let count = TRANSPOSE_BLOCK.min(columns.extent - column);
                let input = odometer.input + column as isize * columns.input;
                let output = odometer.output + column as isize * columns.output;
                // SAFETY: the block's elements are elements of the loop nest, all of which lie inside both slices.
                unsafe {
                    let (x, y) = (from.get().offset(input), to.get().offset(output));
                    match self.unit {
                        1 => tile::transpose::<1>(x, rows.input, y, columns.output, rows.extent, count),
                        2 => tile::transpose::<2>(x, rows.input, y, columns.output, rows.extent, count),
                        4 => tile::transpose::<4>(x, rows.input, y, columns.output, rows.extent, count),
                        _ => tile::transpose::<8>(x, rows.input, y, columns.output, rows.extent, count),
                    }
                }
                block += 1;
                if block == blocks {
                    block = 0;
                    odometer.advance(&self.outer);
                }
            }
        });
    }

    /// Moves one row of units.
    ///
    /// # Safety
    /// All units of the row must be readable at `x` and writable at `y`.
    unsafe fn copy_row(&self, row: Loop, x: *const u8, y: *mut u8) {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            match self.unit {
                1 => copy_units::<1>(row, x, y),
                2 => copy_units::<2>(row, x, y),
                3 => copy_units::<3>(row, x, y),
                4 => copy_units::<4>(row, x, y),
                6 => copy_units::<6>(row, x, y),
                8 => copy_units::<8>(row, x, y),
                12 => copy_units::<12>(row, x, y),
                16 => copy_units::<16>(row, x, y),
                32 => copy_units::<32>(row, x, y),
                64 => copy_units::<64>(row, x, y),
                unit => {
                    for index in 0..row.extent as isize {
                        y.offset(index * row.output)
                            .copy_from_nonoverlapping(x.offset(index * row.input), unit);
                    }
                }
            }
        }
    }
}

/// A row of units of a size known to the compiler.
///
/// # Safety
/// As for [`StridedCopy::copy_row`].
#[inline]
unsafe fn copy_units<const UNIT: usize>(row: Loop, x: *const u8, y: *mut u8) {
    let unit = UNIT as isize;
    if row.output == unit {
        // SAFETY: the row's outputs are `extent` units side by side.
        let y = unsafe { std::slice::from_raw_parts_mut(y.cast::<[u8; UNIT]>(), row.extent) };
        if row.input == 0 {
            // SAFETY: the row's only input unit.
            y.fill(unsafe { *x.cast::<[u8; UNIT]>() });
        } else {
            for (index, y) in y.iter_mut().enumerate() {
                // SAFETY: unit `index` of the row's input.
                *y = unsafe { *x.offset(index as isize * row.input).cast::<[u8; UNIT]>() };
            }
        }
        return;
    }
    for index in 0..row.extent as isize {
        // SAFETY: unit `index` of the row in the input and in the output.
        unsafe {
            *y.offset(index * row.output).cast::<[u8; UNIT]>() =
                *x.offset(index * row.input).cast::<[u8; UNIT]>();
        }
    }
}

/// A place in the outer loops.
struct Odometer {
    indices: [usize; MAX_DIMENSIONS],
    input: isize,
    output: isize,
}

impl Odometer {
    fn new(loops: &[Loop], mut step: usize) -> Self {
        let mut odometer = Self { indices: [0; MAX_DIMENSIONS], input: 0, output: 0 };
        for (axis, dimension) in loops.iter().enumerate().rev() {
            let index = step % dimension.extent;
            step /= dimension.extent;
            odometer.indices[axis] = index;
            odometer.input += index as isize * dimension.input;
            odometer.output += index as isize * dimension.output;
        }
        odometer
    }

    #[inline]
    fn advance(&mut self, loops: &[Loop]) {
        for (axis, dimension) in loops.iter().enumerate().rev() {
            self.indices[axis] += 1;
            self.input += dimension.input;
            self.output += dimension.output;
            if self.indices[axis] < dimension.extent {
                return;
            }
            self.indices[axis] = 0;
            self.input -= dimension.extent as isize * dimension.input;
            self.output -= dimension.extent as isize * dimension.output;
        }
    }
}

/// Whether every element of the nest lies inside `0..length`.
fn check_bounds(
    extents: &[usize],
    strides: impl Iterator<Item = isize>,
    offset: usize,
    length: usize,
) -> Result<(), LayoutError> {
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (axis, stride) in strides.enumerate() {
        let reach = (extents[axis] as i128 - 1) * stride as i128;
        if reach < 0 {
            low += reach;
        } else {
            high += reach;
        }
        if low < 0 || high >= length as i128 {
            let index = isize::try_from(if low < 0 { low } else { high }).unwrap_or(isize::MAX);
            return Err(LayoutError::OutOfBounds { axis, extent: extents[axis], index });
        }
    }
    if extents.is_empty() && offset >= length {
        return Err(LayoutError::OutOfBounds { axis: 0, extent: length, index: offset as isize });
    }
    Ok(())
}

/// Whether no two elements of the output share a place: in order of stride, each step goes past all before it.
fn check_disjoint(extents: &[usize], strides: &[usize]) -> Result<(), LayoutError> {
    let mut order: SmallVec<[(usize, usize); 8]> =
        strides.iter().copied().zip(extents.iter().copied()).filter(|&(_, extent)| extent > 1).collect();
    order.sort_unstable();
    let mut reach = 0;
    for (stride, extent) in order {
        if stride <= reach {
            return Err(LayoutError::Overlap);
        }
        reach += stride * (extent - 1);
    }
    Ok(())
}
