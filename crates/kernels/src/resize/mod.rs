//! ONNX `Resize` and TFLite's relatives: nearest, linear and cubic, along any axes.
//!
//! A [`Resize`] is built once: per axis a table of the input elements behind each output element, and their weights. Up to
//! two resized axes that lie side by side (pictures, channels first or last) are done row by row: the input rows behind an
//! output row are combined into scratch memory, element by element, then its columns. More axes go through a general loop.
//! Nearest neighbours are copied as bytes, for any element type.

#![expect(unsafe_code, reason = "rows of the output and of the scratch memory are handed to tasks")]

mod table;
#[cfg(test)]
mod tests;

pub use table::{Coordinates, Interpolation, NearestMode, ResizeAxis, ResizeOptions};

use table::Table;

use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};
use crate::transpose::LayoutError;

/// Elements worth a task of their own.
const GRAIN: usize = 8 * 1024;

/// A change of size along some axes, built once and run often.
#[derive(Debug, Clone, PartialEq)]
pub struct Resize {
    /// Positions before the resized axes.
    outer: usize,
    axes: Vec<(ResizeAxis, Table)>,
    /// Elements after the resized axes, which stay together.
    inner: usize,
    extrapolation: f32,
    input_length: usize,
    output_length: usize,
}

impl Resize {
    /// Resizes `axes`, which lie side by side with `outer` positions before and `inner` elements after them; an axis
    /// between them that stays as it is counts as one whose output is its input.
    pub fn new(
        options: &ResizeOptions,
        outer: usize,
        axes: &[ResizeAxis],
        inner: usize,
    ) -> Result<Self, LayoutError> {
        let length = |extent: fn(&ResizeAxis) -> usize| {
            let product = axes.iter().map(extent).try_fold(outer, usize::checked_mul);
            product.and_then(|product| product.checked_mul(inner)).ok_or(LayoutError::Size)
        };
        let input_length = length(|axis| axis.input)?;
        let output_length = length(|axis| axis.output)?;
        if let Some(axis) = axes.iter().position(|axis| axis.input == 0 && axis.output != 0)
            && output_length > 0
        {
            return Err(LayoutError::OutOfBounds { axis, extent: 0, index: 0 });
        }
        let axes: Vec<(ResizeAxis, Table)> = if output_length == 0 {
            Vec::new()
        } else {
            axes.iter().map(|axis| (*axis, Table::new(axis, options))).collect()
        };
        let mut resize =
            Self { outer, axes, inner, extrapolation: options.extrapolation, input_length, output_length };
        // Axes that stay join their neighbours.
        while let Some((axis, _)) = resize.axes.first().filter(|(_, table)| table.is_identity) {
            resize.outer *= axis.input;
            resize.axes.remove(0);
        }
        while let Some((axis, _)) = resize.axes.last().filter(|(_, table)| table.is_identity) {
            resize.inner *= axis.input;
            resize.axes.pop();
        }
        Ok(resize)
    }

    /// The number of input elements.
    pub fn input_length(&self) -> usize {
        self.input_length
    }

    /// The number of output elements.
    pub fn output_length(&self) -> usize {
        self.output_length
    }

    /// How many floats of scratch memory [`Resize::run`] needs with a team of so many threads.
    pub fn scratch_length(&self, threads: usize) -> usize {
        match self.axes.as_slice() {
            [(_, rows), (axis, _)] if !rows.is_identity => axis.input * self.inner * threads,
            _ => 0,
        }
    }

    /// Resizes `x` into `y`.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply, or `scratch` is too short.
    pub fn run(&self, isas: Isas, team: &Team, x: &[f32], y: &mut [f32], scratch: &mut [f32]) {
        assert_eq!(x.len(), self.input_length, "the input's length differs from its shape's");
        assert_eq!(y.len(), self.output_length, "the output's length differs from its shape's");
        assert!(scratch.len() >= self.scratch_length(team.threads()), "the scratch memory is too short");
        if y.is_empty() {
            return;
        }
        if self.axes.iter().all(|(_, table)| table.taps == 1) {
            let extrapolation = self.extrapolation.to_ne_bytes();
            self.run_nearest(team, 4, &extrapolation, bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
            return;
        }
        match self.axes.as_slice() {
            [] => y.copy_from_slice(x),
            [(axis, columns)] => {
                let (input, output) = (axis.input * self.inner, axis.output * self.inner);
                let whole = DisjointMut::new(y);
                team.parallel_ranges(self.outer, GRAIN.div_ceil(output.max(1)), 1, &|start, end| {
                    for row in start..end {
                        // SAFETY: every row is written by the one task that has its index.
                        let y = unsafe { whole.slice_mut(row * output, output) };
                        self.columns(isas, columns, &x[row * input..(row + 1) * input], y);
                    }
                });
            }
            [(vertical, rows), (horizontal, columns)] => {
                self.run_rows(isas, team, (vertical, rows), (horizontal, columns), x, y, scratch);
            }
            _ => self.run_general(team, x, y),
        }
    }

    fn run_rows(
        &self,
        isas: Isas,
        team: &Team,
        (vertical, rows): (&ResizeAxis, &Table),
        (horizontal, columns): (&ResizeAxis, &Table),
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let (input, output) = (horizontal.input * self.inner, horizontal.output * self.inner);
        let (whole, scratch) = (DisjointMut::new(y), DisjointMut::new(scratch));
        let count = self.outer * vertical.output;
        let tasks = (count * output / GRAIN).clamp(1, count).min(team.threads() * 4);
        team.run_with_thread(tasks, &|thread, task| {
            for index in count * task / tasks..count * (task + 1) / tasks {
                // SAFETY: every row is written by the one task that has its index.
                let y = unsafe { whole.slice_mut(index * output, output) };
                let (item, row) = (index / vertical.output, index % vertical.output);
                if rows.outside[row] {
                    y.fill(self.extrapolation);
                    continue;
                }
                let (indices, weights) = rows.row(row);
                let line = |index: usize| &x[(item * vertical.input + index) * input..][..input];
                // One input row is used as it is.
                let line = if let ([index], [_]) = (indices, weights) {
                    line(*index)
                } else {
                    // SAFETY: a thread has one task at a time, and its own part of the scratch memory.
                    let combined = unsafe { scratch.slice_mut(thread * input, input) };
                    dispatch(
                        isas,
                        Combine { indices, weights, x: &x[item * vertical.input * input..], y: combined },
                    );
                    combined
                };
                self.columns(isas, columns, line, y);
            }
        });
    }

    /// Makes one row of output of one row of input.
    fn columns(&self, isas: Isas, table: &Table, x: &[f32], y: &mut [f32]) {
        if table.is_identity {
            y.copy_from_slice(x);
            return;
        }
        let extrapolation = self.extrapolation;
        if self.inner >= 8 {
            for (column, y) in y.chunks_exact_mut(self.inner).enumerate() {
                if table.outside[column] {
                    y.fill(extrapolation);
                    continue;
                }
                let (indices, weights) = table.row(column);
                dispatch(isas, Combine { indices, weights, x, y });
            }
        } else {
            dispatch(isas, Columns { table, inner: self.inner, extrapolation, x, y });
        }
    }

    fn run_general(&self, team: &Team, x: &[f32], y: &mut [f32]) {
        let whole = DisjointMut::new(y);
        let places = self.output_length / self.inner;
        team.parallel_ranges(places, GRAIN.div_ceil(self.inner.max(1)), 1, &|start, end| {
            for place in start..end {
                // SAFETY: every place is written by the one task that has its index.
                let y = unsafe { whole.slice_mut(place * self.inner, self.inner) };
                y.fill(0.0);
                if !self.add(self.axes.len(), place, 0, self.inner, 1.0, x, y) {
                    y.fill(self.extrapolation);
                }
            }
        });
    }

    /// Adds the weighted elements behind an output place to `y`: axes `0..depth` are still to be resolved from `place`,
    /// `offset` is what the others have found, `stride` the elements from one index of axis `depth - 1` to the next. False
    /// where the place lies outside of the input.
    fn add(
        &self,
        depth: usize,
        place: usize,
        offset: usize,
        stride: usize,
        weight: f32,
        x: &[f32],
        y: &mut [f32],
    ) -> bool {
        let Some(((axis, table), _)) = self.axes[..depth].split_last() else {
            let offset = offset + place * stride;
            y.iter_mut().zip(&x[offset..]).for_each(|(y, &x)| *y += weight * x);
            return true;
        };
        let output = place % axis.output;
        if table.outside[output] {
            return false;
        }
        let (indices, weights) = table.row(output);
        indices.iter().zip(weights).filter(|(_, own)| **own != 0.0).all(|(&index, &own)| {
            let offset = offset + index * stride;
            self.add(depth - 1, place / axis.output, offset, stride * axis.input, weight * own, x, y)
        })
    }

    /// Copies nearest neighbours, for elements of `element_size` bytes. `extrapolation` is one element.
    ///
    /// # Panics
    /// When the interpolation is not the nearest neighbour, or a slice does not have the length that the sizes imply.
    pub fn run_nearest(
        &self,
        team: &Team,
        element_size: usize,
        extrapolation: &[u8],
        x: &[u8],
        y: &mut [u8],
    ) {
        assert!(self.axes.iter().all(|(_, table)| table.taps == 1), "elements are not copied but combined");
        assert_eq!(x.len(), self.input_length * element_size, "the input's length differs from its shape's");
        assert_eq!(
            y.len(),
            self.output_length * element_size,
            "the output's length differs from its shape's"
        );
        assert_eq!(extrapolation.len(), element_size, "the extrapolation is not one element");
        if y.is_empty() {
            return;
        }
        let Some(((axis, table), others)) = self.axes.split_last() else {
            y.copy_from_slice(x);
            return;
        };
        let unit = self.inner * element_size;
        let (input, output) = (axis.input * unit, axis.output * unit);
        let fill =
            |y: &mut [u8]| y.chunks_exact_mut(element_size).for_each(|y| y.copy_from_slice(extrapolation));
        let whole = DisjointMut::new(y);
        team.parallel_ranges(
            self.output_length * element_size / output,
            (GRAIN * 4).div_ceil(output),
            1,
            &|start, end| {
                let mut before: Option<(usize, &[u8])> = None;
                for row in start..end {
                    // SAFETY: every row is written by the one task that has its index.
                    let y = unsafe { whole.slice_mut(row * output, output) };
                    let Some(source) = source_row(others, row) else {
                        fill(y);
                        continue;
                    };
                    match before {
                        // Rows of the same source are copies of each other.
                        Some((same, done)) if same == source => y.copy_from_slice(done),
                        _ => copy_columns(table, unit, &x[source * input..(source + 1) * input], y, &fill),
                    }
                    before = Some((source, y));
                }
            },
        );
    }
}

/// Which row of the input an output row is a copy of, `None` if it lies outside.
fn source_row(axes: &[(ResizeAxis, Table)], mut row: usize) -> Option<usize> {
    let (mut source, mut stride) = (0, 1);
    for (axis, table) in axes.iter().rev() {
        let output = row % axis.output;
        row /= axis.output;
        if table.outside[output] {
            return None;
        }
        source += table.indices[output] * stride;
        stride *= axis.input;
    }
    Some(source + row * stride)
}

fn copy_columns(table: &Table, unit: usize, x: &[u8], y: &mut [u8], fill: &dyn Fn(&mut [u8])) {
    fn typed<const UNIT: usize>(table: &Table, x: &[u8], y: &mut [u8]) {
        let x = x.as_chunks::<UNIT>().0;
        for (y, &index) in y.as_chunks_mut::<UNIT>().0.iter_mut().zip(&table.indices) {
            *y = x[index];
        }
    }
    match unit {
        1 => typed::<1>(table, x, y),
        2 => typed::<2>(table, x, y),
        4 => typed::<4>(table, x, y),
        8 => typed::<8>(table, x, y),
        12 => typed::<12>(table, x, y),
        16 => typed::<16>(table, x, y),
        _ => {
            for (y, &index) in y.chunks_exact_mut(unit).zip(&table.indices) {
                y.copy_from_slice(&x[index * unit..(index + 1) * unit]);
            }
        }
    }
    for (y, _) in y.chunks_exact_mut(unit).zip(&table.outside).filter(|(_, outside)| **outside) {
        fill(y);
    }
}

/// `y` = the weighted sum of rows of `x`, each as long as `y`.
struct Combine<'a> {
    indices: &'a [usize],
    weights: &'a [f32],
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Combine<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { indices, weights, x, y } = self;
        let length = y.len();
        let row = |index: usize| &x[index * length..][..length];
        match (indices, weights) {
            (&[a, b], &[wa, wb]) => {
                for ((y, &a), &b) in y.iter_mut().zip(row(a)).zip(row(b)) {
                    *y = multiply_add::<FMA>(a, wa, b * wb);
                }
            }
            (&[a, b, c, d], &[wa, wb, wc, wd]) => {
                for ((((y, &a), &b), &c), &d) in y.iter_mut().zip(row(a)).zip(row(b)).zip(row(c)).zip(row(d))
                {
                    *y = multiply_add::<FMA>(
                        a,
                        wa,
                        multiply_add::<FMA>(b, wb, multiply_add::<FMA>(c, wc, d * wd)),
                    );
                }
            }
            _ => {
                y.fill(0.0);
                for (&index, &weight) in indices.iter().zip(weights) {
                    y.iter_mut().zip(row(index)).for_each(|(y, &x)| *y = multiply_add::<FMA>(x, weight, *y));
                }
            }
        }
    }
}

/// A row of outputs of few elements each.
struct Columns<'a> {
    table: &'a Table,
    inner: usize,
    extrapolation: f32,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { table, inner, extrapolation, x, y } = self;
        if inner == 1 && table.taps == 2 {
            let taps = table.indices.as_chunks::<2>().0.iter().zip(table.weights.as_chunks::<2>().0);
            for (y, (&[a, b], &[wa, wb])) in y.iter_mut().zip(taps) {
                *y = multiply_add::<FMA>(x[a], wa, x[b] * wb);
            }
        } else {
            for (column, y) in y.chunks_exact_mut(inner).enumerate() {
                let (indices, weights) = table.row(column);
                for (offset, y) in y.iter_mut().enumerate() {
                    let taps = indices.iter().zip(weights);
                    *y = taps.fold(0.0, |sum, (&index, &weight)| {
                        multiply_add::<FMA>(x[index * inner + offset], weight, sum)
                    });
                }
            }
        }
        for (y, _) in y.chunks_exact_mut(inner).zip(&table.outside).filter(|(_, outside)| **outside) {
            y.fill(extrapolation);
        }
    }
}
