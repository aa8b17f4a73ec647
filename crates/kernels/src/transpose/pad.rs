//! ONNX `Pad`: constant, edge, reflect and wrap.
//!
//! Per axis a table says which input index an output index takes; the innermost padded axis is cut into segments so that
//! most of the work is plain copies. Trailing axes without padding are part of the element.

#![expect(unsafe_code, reason = "rows of the output are handed to tasks")]

use super::{LayoutError, row_major};
use crate::threads::{DisjointMut, Team};

/// What is written outside of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadMode {
    /// A given value.
    Constant,
    /// The nearest element.
    Edge,
    /// The elements mirrored at the first and last one, which are not repeated.
    Reflect,
    /// The elements from the other end.
    Wrap,
}

/// Stands for "outside of the input" in a table.
const OUTSIDE: usize = usize::MAX;

/// Consecutive output elements of the innermost padded axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    start: usize,
    extent: usize,
    /// Index of the first input element, or [`OUTSIDE`].
    input: usize,
    /// Whether consecutive outputs take consecutive inputs (otherwise the extent is one, or it lies outside).
    forward: bool,
}

/// A padding (or, with negative amounts, cropping), built once and run often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pad {
    element_size: usize,
    /// For all padded axes but the last: bytes into the input per output index, or [`OUTSIDE`].
    tables: Vec<Vec<usize>>,
    segments: Vec<Segment>,
    /// Bytes of one element of the innermost padded axis.
    block: usize,
    /// Bytes of one row of output, along the innermost padded axis.
    row: usize,
    input_bytes: usize,
    output_bytes: usize,
}

/// The input index that is taken for `index` of an axis of `extent` of which `before` and `after` are padded, or cropped where
/// they are negative; [`OUTSIDE`] where there is none. What is cropped is gone before anything is mirrored or taken from the
/// other end.
pub(super) fn source(index: isize, extent: usize, before: isize, after: isize, mode: PadMode) -> usize {
    let first = (-before).max(0);
    let last = extent as isize - 1 - (-after).max(0);
    if (first..=last).contains(&index) {
        return index as usize;
    }
    let len = last - first + 1;
    let within = match mode {
        PadMode::Edge if len > 0 => (index - first).clamp(0, len - 1),
        PadMode::Wrap if len > 0 => (index - first).rem_euclid(len),
        PadMode::Reflect if len == 1 => 0,
        PadMode::Reflect if len > 1 => {
            let folded = (index - first).rem_euclid(2 * (len - 1));
            folded.min(2 * (len - 1) - folded)
        }
        _ => return OUTSIDE,
    };
    (first + within) as usize
}

impl Pad {
    /// Pads `before[axis]` and `after[axis]` elements to a tensor of `shape`; negative amounts crop.
    pub fn new(
        shape: &[usize],
        before: &[isize],
        after: &[isize],
        mode: PadMode,
        element_size: usize,
    ) -> Result<Self, LayoutError> {
        let rank = shape.len();
        for (what, found) in [("pads before", before.len()), ("pads after", after.len())] {
            if found != rank {
                return Err(LayoutError::Rank { what, expected: rank, found });
            }
        }
        if element_size == 0 {
            return Err(LayoutError::Size);
        }
        let output = Self::output_shape(shape, before, after)?;
        let strides = row_major(shape, element_size)?;
        let output_strides = row_major(&output, element_size)?;
        let input_bytes = shape.iter().product::<usize>() * element_size;
        let output_bytes = output.iter().product::<usize>() * element_size;
        if output_bytes > 0
            && mode != PadMode::Constant
            && let Some(axis) =
                (0..rank).find(|&axis| shape[axis] as isize <= (-before[axis]).max(0) + (-after[axis]).max(0))
        {
            return Err(LayoutError::OutOfBounds { axis, extent: 0, index: 0 });
        }
        let innermost = (0..rank).rev().find(|&axis| before[axis] != 0 || after[axis] != 0).unwrap_or(0);
        if rank == 0 || output_bytes == 0 {
            let whole = Segment { start: 0, extent: 1, input: 0, forward: true };
            let segments = if output_bytes == 0 { Vec::new() } else { vec![whole] };
            return Ok(Self {
                element_size,
                tables: Vec::new(),
                segments,
                block: element_size,
                row: output_bytes,
                input_bytes,
                output_bytes,
            });
        }
        let table = |axis: usize| -> Vec<usize> {
            let (before, after) = (before[axis], after[axis]);
            (0..output[axis])
                .map(|index| source(index as isize - before, shape[axis], before, after, mode))
                .collect()
        };
        let tables = (0..innermost)
            .map(|axis| {
                let scale = |index: usize| if index == OUTSIDE { OUTSIDE } else { index * strides[axis] };
                table(axis).into_iter().map(scale).collect()
            })
            .collect();
        let block = strides[innermost];
        Ok(Self {
            element_size,
            tables,
            segments: segments(&table(innermost)),
            block,
            row: output_strides[innermost] * output[innermost],
            input_bytes,
            output_bytes,
        })
    }

    /// The shape of the padded tensor.
    pub fn output_shape(
        shape: &[usize],
        before: &[isize],
        after: &[isize],
    ) -> Result<Vec<usize>, LayoutError> {
        (0..shape.len())
            .map(|axis| {
                let extent = shape[axis] as i128 + before[axis] as i128 + after[axis] as i128;
                usize::try_from(extent).map_err(|_| LayoutError::OutOfBounds {
                    axis,
                    extent: shape[axis],
                    index: isize::try_from(extent).unwrap_or(isize::MIN),
                })
            })
            .collect()
    }

    /// Writes the padded tensor. `fill` is one element, used by [`PadMode::Constant`] only.
    ///
    /// # Panics
    /// When a slice is too short, or `fill` is not one element.
    pub fn run(&self, team: &Team, x: &[u8], fill: &[u8], y: &mut [u8]) {
        assert!(x.len() >= self.input_bytes, "the input holds {} of {} bytes", x.len(), self.input_bytes);
        assert!(y.len() >= self.output_bytes, "the output holds {} of {} bytes", y.len(), self.output_bytes);
        assert_eq!(fill.len(), self.element_size, "the fill value is one element");
        if self.output_bytes == 0 {
            return;
        }
        let rows = self.output_bytes / self.row;
        let output = DisjointMut::new(&mut y[..self.output_bytes]);
        let grain = (32 * 1024_usize).div_ceil(self.row);
        team.parallel_ranges(rows, grain, 1, &|start, end| {
            for row in start..end {
                // SAFETY: every row is written by the one task that has its index.
                let y = unsafe { output.slice_mut(row * self.row, self.row) };
                match self.row_offset(row) {
                    Some(offset) => self.copy_row(x, offset, fill, y),
                    None => fill_with(fill, y),
                }
            }
        });
    }

    /// Where the row's input begins; `None` where the row lies outside of the input.
    fn row_offset(&self, mut row: usize) -> Option<usize> {
        let mut offset = 0;
        for table in self.tables.iter().rev() {
            let place = table[row % table.len()];
            row /= table.len();
            if place == OUTSIDE {
                return None;
            }
            offset += place;
        }
        Some(offset)
    }

    fn copy_row(&self, x: &[u8], offset: usize, fill: &[u8], y: &mut [u8]) {
        for segment in &self.segments {
            let y = &mut y[segment.start * self.block..(segment.start + segment.extent) * self.block];
            if segment.input == OUTSIDE {
                fill_with(fill, y);
                continue;
            }
            let from = offset + segment.input * self.block;
            if segment.forward {
                y.copy_from_slice(&x[from..from + y.len()]);
            } else {
                fill_with(&x[from..from + self.block], y);
            }
        }
    }
}

/// Cuts a table into runs: outside, consecutive, or one element repeated.
fn segments(table: &[usize]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for (index, &input) in table.iter().enumerate() {
        if let Some(last) = segments.last_mut() {
            let both_outside = input == OUTSIDE && last.input == OUTSIDE;
            let follows =
                last.forward && last.input != OUTSIDE && input == last.input.wrapping_add(last.extent);
            let repeats = input == last.input && (last.extent == 1 || !last.forward);
            if both_outside || (input != OUTSIDE && (follows || repeats)) {
                if !follows {
                    last.forward = false;
                }
                last.extent += 1;
                continue;
            }
        }
        segments.push(Segment { start: index, extent: 1, input, forward: true });
    }
    segments
}

/// Repeats `element` over `y`, whose length is a multiple of the element's.
fn fill_with(element: &[u8], y: &mut [u8]) {
    fn typed<const SIZE: usize>(element: &[u8], y: &mut [u8]) {
        if let Some((element, _)) = element.split_first_chunk::<SIZE>() {
            y.as_chunks_mut::<SIZE>().0.fill(*element);
        }
    }
    match element.len() {
        1 => y.fill(element[0]),
        2 => typed::<2>(element, y),
        4 => typed::<4>(element, y),
        8 => typed::<8>(element, y),
        size => y.chunks_exact_mut(size).for_each(|place| place.copy_from_slice(element)),
    }
}
