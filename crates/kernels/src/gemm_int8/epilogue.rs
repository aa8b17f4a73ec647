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

    /// What the columns `column..column + columns` of the output need, at most [`MOST_COLUMNS`].
    pub(crate) fn prepare(&self, column: usize, columns: usize) -> Prepared {
        dispatch(self.isas, Prepare { finisher: self, column, columns })
    }

    /// Finishes a tile of sums of prepared columns, `width` from row to row, and stores it at rows of the output. `row_sums`
    /// are the sums of the tile's rows of A, and only needed if columns have zero points.
    ///
    /// # Safety
    /// The tile lies in the output, and nobody else uses it at the time.
    pub(crate) unsafe fn finish(
        &self,
        prepared: &Prepared,
        sums: &Sums,
        width: usize,
        row_sums: &[i32],
        (row, rows): (usize, usize),
    ) {
        dispatch(self.isas, FinishTile { finisher: self, prepared, sums, width, row_sums, row, rows });
    }
}

/// What the columns of a tile need.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    column: usize,
    columns: usize,
    /// What is added to the sums.
    added: [i32; MOST_COLUMNS],
    /// The columns' zero points.
    zeros: [i32; MOST_COLUMNS],
    scale: [f32; MOST_COLUMNS],
    bias: [f32; MOST_COLUMNS],
}

struct Prepare<'a> {
    finisher: &'a Finisher<'a>,
    column: usize,
    columns: usize,
}

impl Loop for Prepare<'_> {
    type Output = Prepared;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Prepared {
        let Self { finisher, column, columns } = self;
        let mut prepared = Prepared {
            column,
            columns,
            added: [0; MOST_COLUMNS],
            zeros: spread(finisher.columns.zero_points, 0, column, columns),
            scale: [0.0; MOST_COLUMNS],
            bias: [0.0; MOST_COLUMNS],
        };
        if !finisher.epilogue.bias.is_empty() {
            prepared.added[..columns].copy_from_slice(&finisher.epilogue.bias[column..column + columns]);
        }
        if finisher.columns.a_zero_point != 0 {
            let column_sums = &finisher.columns.column_sums[column..column + columns];
            for (added, &sum) in prepared.added.iter_mut().zip(column_sums) {
                *added = added.wrapping_sub(finisher.columns.a_zero_point.wrapping_mul(sum));
            }
        }
        match finisher.epilogue.stage {
            Stage::Raw => {}
            Stage::Float { factor, scale, bias, .. } => {
                prepared.scale = spread(scale, 0.0, column, columns).map(|scale| scale * factor);
                prepared.bias = spread(bias, 0.0, column, columns);
            }
            Stage::Quantized { multiplier, .. } => prepared.scale = spread(multiplier, 0.0, column, columns),
        }
        prepared
    }
}

struct FinishTile<'a> {
    finisher: &'a Finisher<'a>,
    prepared: &'a Prepared,
    sums: &'a Sums,
    width: usize,
    row_sums: &'a [i32],
    row: usize,
    rows: usize,
}

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

/// What makes an element of a sum, for the columns of one tile.
trait Finish {
    type Element: Copy + Default;
    /// The elements of `L` sums from column `first` of the tile on.
    fn finish<const L: usize>(&self, sums: [i32; L], first: usize) -> [Self::Element; L];
}

/// `L` entries from `first` on: their number is known to the compiler, which so makes vectors of them.
#[inline(always)]
fn chunk<T: Copy + Default, const L: usize>(entries: &[T; MOST_COLUMNS], first: usize) -> [T; L] {
    entries[first..].first_chunk::<L>().copied().unwrap_or([T::default(); L])
}

struct Raw;

impl Finish for Raw {
    type Element = i32;
    #[inline(always)]
    fn finish<const L: usize>(&self, sums: [i32; L], _: usize) -> [i32; L] {
        sums
    }
}

struct Float<'a> {
    scale: &'a [f32; MOST_COLUMNS],
    bias: &'a [f32; MOST_COLUMNS],
    min: f32,
    max: f32,
}

impl Finish for Float<'_> {
    type Element = f32;
    #[inline(always)]
    fn finish<const L: usize>(&self, sums: [i32; L], first: usize) -> [f32; L] {
        let (scale, bias) = (chunk::<_, L>(self.scale, first), chunk::<_, L>(self.bias, first));
        let mut finished = [0.0; L];
        for lane in 0..L {
            let value = sums[lane] as f32 * scale[lane] + bias[lane];
            let value = if value < self.min { self.min } else { value };
            finished[lane] = if value > self.max { self.max } else { value };
        }
        finished
    }
}

struct Quantize<'a> {
    multiplier: &'a [f32; MOST_COLUMNS],
    low: f32,
    high: f32,
    /// The zero point, and what the rounding leaves in the bits.
    shift: i32,
}

impl Finish for Quantize<'_> {
    type Element = u8;
    #[inline(always)]
    fn finish<const L: usize>(&self, sums: [i32; L], first: usize) -> [u8; L] {
        let multiplier = chunk::<_, L>(self.multiplier, first);
        let mut finished = [0; L];
        for lane in 0..L {
            let value = sums[lane] as f32 * multiplier[lane];
            let value = if value > self.low { value } else { self.low };
            let value = if value < self.high { value } else { self.high };
            finished[lane] = ((value + ROUNDING).to_bits() as i32).wrapping_add(self.shift) as u8;
        }
        finished
    }
}

impl Loop for FinishTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Prepared { scale, bias, .. } = self.prepared;
        match (self.finisher.epilogue.stage, self.finisher.target) {
            (Stage::Raw, Target::I32(start)) => self.rows(start, &Raw),
            (Stage::Float { min, max, .. }, Target::F32(start)) => {
                self.rows(start, &Float { scale, bias, min, max })
            }
            (Stage::Quantized { zero_point, min, max, .. }, Target::Bytes(start)) => {
                let (low, high) = ((min - zero_point) as f32, (max - zero_point) as f32);
                let shift = zero_point.wrapping_sub(ROUNDING.to_bits() as i32);
                self.rows(start, &Quantize { multiplier: scale, low, high, shift });
            }
            // `new` refuses other pairs.
            _ => {}
        }
    }
}

impl FinishTile<'_> {
    #[inline(always)]
    fn rows<F: Finish>(&self, start: *mut F::Element, finish: &F) {
        if !self.finisher.columns.zero_points.is_empty() {
            self.chunks::<F, 8, true>(start, finish);
        } else if self.width.is_multiple_of(16) {
            self.chunks::<F, 16, false>(start, finish);
        } else {
            self.chunks::<F, 8, false>(start, finish);
        }
    }

    /// Finishes `L` columns at a time. Sums beyond the tile's width are those of other rows, and not stored.
    #[inline(always)]
    fn chunks<F: Finish, const L: usize, const HAS_ZEROS: bool>(&self, start: *mut F::Element, finish: &F) {
        let prepared = self.prepared;
        for first in (0..prepared.columns).step_by(L) {
            let (added, zeros) =
                (chunk::<_, L>(&prepared.added, first), chunk::<_, L>(&prepared.zeros, first));
            let columns = L.min(prepared.columns - first);
            let tile = (first, &added, &zeros);
            if columns == L {
                for row in 0..self.rows {
                    let finished = self.finished::<F, L, HAS_ZEROS>(row, tile, finish);
                    // SAFETY: the caller owns the tile, which has `L` columns from here on.
                    unsafe {
                        self.place(start, row, first).cast::<[F::Element; L]>().write_unaligned(finished)
                    };
                }
            } else {
                for row in 0..self.rows {
                    let finished = self.finished::<F, L, HAS_ZEROS>(row, tile, finish);
                    // SAFETY: the caller owns the tile, which has this many columns from here on.
                    unsafe {
                        self.place(start, row, first).copy_from_nonoverlapping(finished.as_ptr(), columns)
                    };
                }
            }
        }
    }
    /// The elements of a row from column `first` of the tile on.
    #[inline(always)]
    fn finished<F: Finish, const L: usize, const HAS_ZEROS: bool>(
        &self,
        row: usize,
        (first, added, zeros): (usize, &[i32; L], &[i32; L]),
        finish: &F,
    ) -> [F::Element; L] {
        let sums = self.sums.0[row * self.width + first..].first_chunk::<L>();
        let mut sums = sums.copied().unwrap_or([0; L]);
        for lane in 0..L {
            sums[lane] = sums[lane].wrapping_add(added[lane]);
        }
        if HAS_ZEROS {
            let row_sum = self.row_sums[row];
            for lane in 0..L {
                sums[lane] = sums[lane].wrapping_sub(zeros[lane].wrapping_mul(row_sum));
            }
        }
        finish.finish(sums, first)
    }

    /// Where an element of the tile is stored.
    #[inline(always)]
    fn place<T>(&self, start: *mut T, row: usize, column: usize) -> *mut T {
        start.wrapping_add((self.row + row) * self.finisher.stride + self.prepared.column + column)
    }
}
