//! What happens to a finished sum of 8-bit products before it is stored.
//!
//! First it becomes what it would be without zero points: the sum over (a - za) (b - zb). Then a bias is added, and the
//! [`Stage`] makes a float or a quantised number of it, in single precision and with halves rounded to even, as
//! onnxruntime does.

#![expect(unsafe_code, reason = "tiles of the output are written by the tasks that own them")]

use super::tile::{MOST_COLUMNS, Sums};
use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;

/// How a sum becomes an element of the output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stage<'a> {
    /// It is the element.
    Raw,
    /// `sum * (factor * scale) + bias`, limited.
    Float {
        /// A factor of all scales, as the scale of the activations.
        factor: f32,
        /// One, or one per column.
        scale: &'a [f32],
        /// None, or one per column.
        bias: &'a [f32],
        /// The least result.
        min: f32,
        /// The greatest result.
        max: f32,
    },
    /// `round(sum * multiplier) + zero_point`, limited.
    Quantized {
        /// One, or one per column: the product of the scales of both operands, over the output's scale.
        multiplier: &'a [f32],
        /// The output's zero point.
        zero_point: i32,
        /// The least result; at least the least number of the output's type.
        min: i32,
        /// The greatest result; at most the greatest number of the output's type.
        max: i32,
    },
}

/// What happens to the sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Int8Epilogue<'a> {
    /// None, or one per column, in units of the product of both scales.
    pub bias: &'a [i32],
    /// How a sum becomes an element.
    pub stage: Stage<'a>,
}

/// Where the results go.
#[derive(Debug)]
pub enum Int8Output<'a> {
    /// [`Stage::Raw`].
    I32(&'a mut [i32]),
    /// [`Stage::Float`].
    F32(&'a mut [f32]),
    /// [`Stage::Quantized`] to unsigned bytes.
    U8(&'a mut [u8]),
    /// [`Stage::Quantized`] to signed bytes.
    I8(&'a mut [i8]),
}

#[derive(Debug, Clone, Copy)]
enum Target {
    I32(*mut i32),
    F32(*mut f32),
    Bytes(*mut u8),
}

/// What does not depend on the row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// A's zero point.
    pub(crate) a_zero_point: i32,
    /// For each column, the sum of its elements less its zero point.
    pub(crate) column_sums: &'a [i32],
    /// For each column, its zero point; none if all are zero.
    pub(crate) zero_points: &'a [i32],
}

/// Finishes tiles and stores them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finisher<'a> {
    isas: Isas,
    columns: Columns<'a>,
    epilogue: Int8Epilogue<'a>,
    target: Target,
    /// Elements from one row of the output to the next.
    stride: usize,
}

// SAFETY: the target is written by `finish`, whose callers own the tiles that they finish.
unsafe impl Sync for Finisher<'_> {}

impl<'a> Finisher<'a> {
    /// For an output of `m` rows of `n` elements, `stride` elements apart.
    ///
    /// # Panics
    /// When the output's rows do not lie in its slice or overlap, its type is not that of the stage, or the epilogue's
    /// slices do not have one entry per column.
    pub(crate) fn new(
        isas: Isas,
        columns: Columns<'a>,
        epilogue: &Int8Epilogue<'a>,
        output: Int8Output<'_>,
        (m, n): (usize, usize),
        stride: usize,
    ) -> Self {
        let (length, target) = match output {
            Int8Output::I32(y) => (y.len(), Target::I32(y.as_mut_ptr())),
            Int8Output::F32(y) => (y.len(), Target::F32(y.as_mut_ptr())),
            Int8Output::U8(y) => (y.len(), Target::Bytes(y.as_mut_ptr())),
            Int8Output::I8(y) => (y.len(), Target::Bytes(y.as_mut_ptr().cast())),
        };
        if m > 0 {
            let end = (m - 1).checked_mul(stride).and_then(|start| start.checked_add(n));
            assert!(end.is_some_and(|end| end <= length), "the output must lie within its slice");
            assert!(m == 1 || stride >= n, "rows of the output must not overlap");
        }
        let fits = |length: usize| length == n || length == 1;
        assert!(epilogue.bias.is_empty() || epilogue.bias.len() == n, "the bias is not one per column");
        match (epilogue.stage, target) {
            (Stage::Raw, Target::I32(_)) => {}
            (Stage::Float { scale, bias, .. }, Target::F32(_)) => {
                assert!(fits(scale.len()), "the scale is neither one nor one per column");
                assert!(bias.is_empty() || bias.len() == n, "the bias is not one per column");
            }
            (Stage::Quantized { multiplier, min, max, .. }, Target::Bytes(_)) => {
                assert!(fits(multiplier.len()), "the multiplier is neither one nor one per column");
                assert!(
                    (-128..=255).contains(&min) && (min..=255).contains(&max),
                    "bounds must be those of bytes"
                );
            }
            _ => panic!("the output's type is not that of the stage"),
        }
        assert!(columns.column_sums.len() == n, "there is not one sum per column");
        Self { isas, columns, epilogue: *epilogue, target, stride }
    }

    /// Finishes a tile of sums, `width` from row to row, and stores it at a row and column of the output. `row_sums` are
    /// the sums of the tile's rows of A, and only needed if columns have zero points.
    ///
    /// # Safety
    /// The tile lies in the output, and nobody else uses it at the time.
    pub(crate) unsafe fn finish(
        &self,
        sums: &Sums,
        width: usize,
        row_sums: &[i32],
        (row, rows): (usize, usize),
        (column, columns): (usize, usize),
    ) {
        let finish = FinishTile { finisher: self, sums, width, row_sums, row, rows, column, columns };
        dispatch(self.isas, finish);
    }

    /// A part of a row of the output.
    ///
    /// # Safety
    /// The part lies in the output, which is of type `T`, and nobody else uses it at the time.
    #[expect(clippy::mut_from_ref, reason = "the output is behind a pointer; the caller owns the part")]
    unsafe fn part<T>(&self, start: *mut T, row: usize, column: usize, columns: usize) -> &mut [T] {
        // SAFETY: as promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(start.add(row * self.stride + column), columns) }
    }
}

struct FinishTile<'a> {
    finisher: &'a Finisher<'a>,
    sums: &'a Sums,
    width: usize,
    row_sums: &'a [i32],
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

/// Elements finished at a time.
const LANES: usize = 16;

/// A slice's entries for the tile's columns; one entry stands for all, none for `missing`.
#[inline(always)]
fn spread<T: Copy>(entries: &[T], missing: T, column: usize, columns: usize) -> [T; MOST_COLUMNS] {
    let mut all = [missing; MOST_COLUMNS];
    match entries {
        [] => {}
        [one] => all.fill(*one),
        entries => all[..columns].copy_from_slice(&entries[column..column + columns]),
    }
    all
}

/// Adding and subtracting this rounds a small number to an integer, halves to even.
const ROUNDING: f32 = 12582912.0;

impl Loop for FinishTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { finisher, column, columns, .. } = self;
        let zero_points = finisher.columns.zero_points;
        // What is added to all sums of a column.
        let mut added = if finisher.epilogue.bias.is_empty() {
            [0; MOST_COLUMNS]
        } else {
            let mut all = [0; MOST_COLUMNS];
            all[..columns].copy_from_slice(&finisher.epilogue.bias[column..column + columns]);
            all
        };
        let column_sums = &finisher.columns.column_sums[column..column + columns];
        for (added, &sum) in added.iter_mut().zip(column_sums) {
            *added = added.wrapping_sub(finisher.columns.a_zero_point.wrapping_mul(sum));
        }
        let mut zeros = [0; MOST_COLUMNS];
        if !zero_points.is_empty() {
            zeros[..columns].copy_from_slice(&zero_points[column..column + columns]);
        }
        match (finisher.epilogue.stage, finisher.target) {
            (Stage::Raw, Target::I32(start)) => self.rows(&added, &zeros, start, |sum, _| sum),
            (Stage::Float { factor, scale, bias, min, max }, Target::F32(start)) => {
                let mut scale = spread(scale, 0.0, column, columns);
                scale.iter_mut().for_each(|scale| *scale *= factor);
                let mut all = [0.0; MOST_COLUMNS];
                if !bias.is_empty() {
                    all[..columns].copy_from_slice(&bias[column..column + columns]);
                }
                self.rows(&added, &zeros, start, |sum, lane| {
                    let value = sum as f32 * scale[lane] + all[lane];
                    let value = if value < min { min } else { value };
                    if value > max { max } else { value }
                });
            }
            (Stage::Quantized { multiplier, zero_point, min, max }, Target::Bytes(start)) => {
                let multiplier = spread(multiplier, 0.0, column, columns);
                let (low, high) = ((min - zero_point) as f32, (max - zero_point) as f32);
                let shift = zero_point.wrapping_sub(ROUNDING.to_bits() as i32);
                self.rows(&added, &zeros, start, |sum, lane| {
                    let value = sum as f32 * multiplier[lane];
                    let value = if value > low { value } else { low };
                    let value = if value < high { value } else { high };
                    ((value + ROUNDING).to_bits() as i32).wrapping_add(shift) as u8
                });
            }
            // `new` refuses other pairs.
            _ => {}
        }
    }
}

impl FinishTile<'_> {
    #[inline(always)]
    fn rows<T: Copy + Default>(
        &self,
        added: &[i32; MOST_COLUMNS],
        zeros: &[i32; MOST_COLUMNS],
        start: *mut T,
        finish: impl Fn(i32, usize) -> T,
    ) {
        let has_zeros = !self.finisher.columns.zero_points.is_empty();
        for row in 0..self.rows {
            // SAFETY: the caller of `Finisher::finish` owns the tile, and one part of it is in use at a time.
            let y = unsafe { self.finisher.part(start, self.row + row, self.column, self.columns) };
            let sums = &self.sums.0[row * self.width..(row + 1) * self.width];
            let row_sum = if has_zeros { self.row_sums[row] } else { 0 };
            for (block, y) in y.chunks_mut(LANES).enumerate() {
                let first = block * LANES;
                let mut finished = [T::default(); LANES];
                if let Some(sums) = sums[first..].first_chunk::<LANES>() {
                    for lane in 0..LANES {
                        let column = first + lane;
                        let mut sum = sums[lane].wrapping_add(added[column]);
                        if has_zeros {
                            sum = sum.wrapping_sub(zeros[column].wrapping_mul(row_sum));
                        }
                        finished[lane] = finish(sum, column);
                    }
                } else {
                    for (lane, sum) in sums[first..].iter().enumerate().take(LANES) {
                        let column = first + lane;
                        let sum = sum.wrapping_add(added[column]);
                        finished[lane] =
                            finish(sum.wrapping_sub(zeros[column].wrapping_mul(row_sum)), column);
                    }
                }
                match y.first_chunk_mut::<LANES>() {
                    Some(y) => *y = finished,
                    None => y.copy_from_slice(&finished[..y.len()]),
                }
            }
        }
    }
}
