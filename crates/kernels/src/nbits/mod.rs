//! Matrix products of 32-bit floats by weights of 2, 4 or 8 bits that are quantized block by block.
//!
//! Weights stay packed in memory: each task makes real numbers of a few columns at a time, in its scratch memory. A few
//! rows meet each column as it comes; more of them go through the tiles of matrix products.
//!
//! Contract: nothing allocates when it runs. Panics where slices are shorter than sizes say.

#![expect(unsafe_code, reason = "columns of the output are handed to tasks")]

#[cfg(test)]
mod tests;

use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::gemm::Alone;
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// Rows from which on tiles pay.
const MANY: usize = 8;
/// Rows of a block of results.
const BLOCK: usize = 64;
/// Independent sums of a product.
const LANES: usize = 32;
/// Weights worth a task of their own.
const GRAIN: usize = 16 * 1024;

/// Sizes of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows.
    pub rows: usize,
    /// Columns; the weights of each lie behind each other.
    pub columns: usize,
    /// Bits of a weight: 2, 4 or 8; the first in the lowest bits of a byte.
    pub bits: usize,
    /// Weights of a column that share a scale; each block has bytes of its own.
    pub block: usize,
}

impl Sizes {
    fn blocks(&self) -> usize {
        self.rows.div_ceil(self.block)
    }

    fn block_bytes(&self) -> usize {
        (self.block * self.bits).div_ceil(8)
    }
}

/// Weights as they are stored.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Their bits.
    pub packed: &'a [u8],
    /// The scale of each block of each column.
    pub scales: &'a [f32],
    /// The number that stands for zero in each.
    pub zeros: &'a [f32],
}

/// Products by weights of these sizes.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    isas: Isas,
    sizes: Sizes,
    tiles: Alone,
    /// Columns made real at once.
    width: usize,
}

impl Prepared {
    /// Prepares a run.
    ///
    /// # Panics
    /// When the bits are none of 2, 4 and 8, or blocks have no weights.
    pub fn new(isas: Isas, sizes: Sizes) -> Self {
        assert!(matches!(sizes.bits, 2 | 4 | 8) && sizes.block > 0, "weights that there are");
        let width = Alone::new(isas, sizes.rows, sizes.columns).panel_columns().min(sizes.columns.max(1));
        Self { isas, sizes, tiles: Alone::new(isas, sizes.rows, width), width }
    }

    /// The kernel that runs.
    pub fn kernel_name(&self) -> String {
        format!("matmul_f32_{}bits_{}", self.sizes.bits, self.isas.best())
    }

    /// The floats of scratch memory that a run of so many rows on so many threads wants.
    pub fn scratch_len(&self, m: usize, threads: usize) -> usize {
        self.scratch_per_thread(m) * threads
    }

    fn scratch_per_thread(&self, m: usize) -> usize {
        if m < MANY {
            return self.sizes.rows;
        }
        self.sizes.rows * self.width + self.tiles.packed_len() + BLOCK * self.width
    }

    /// Computes `m` rows of `y = x w + bias`.
    ///
    /// # Panics
    /// When a slice is too short.
    pub fn run(
        &self,
        team: &Team,
        m: usize,
        x: &[f32],
        weights: Weights<'_>,
        bias: Option<&[f32]>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Sizes { rows, columns, .. } = self.sizes;
        assert!(x.len() >= m * rows && y.len() >= m * columns, "as many elements as the sizes say");
        let blocks = columns * self.sizes.blocks();
        assert!(weights.packed.len() >= blocks * self.sizes.block_bytes(), "weights for every block");
        assert!(weights.scales.len() >= blocks && weights.zeros.len() >= blocks, "a scale for every block");
        assert!(bias.is_none_or(|bias| bias.len() >= columns), "a bias for every column");
        let per_thread = self.scratch_per_thread(m);
        assert!(scratch.len() >= self.scratch_len(m, team.threads()), "scratch memory for every thread");
        if m == 0 || columns == 0 {
            return;
        }
        let (y, scratch) = (DisjointMut::new(y), DisjointMut::new(scratch));
        let step = if m < MANY { GRAIN.div_ceil(rows.max(1)) } else { self.width };
        team.run_with_thread(columns.div_ceil(step), &|thread, task| {
            // SAFETY: no two tasks run with one thread index at a time.
            let own = unsafe { scratch.slice_mut(thread * per_thread, per_thread) };
            let range = task * step..((task + 1) * step).min(columns);
            if m < MANY {
                self.few(m, x, weights, bias, y, range, own);
            } else {
                self.many(m, x, weights, bias, y, range, own);
            }
        });
    }

    /// Makes a column real.
    fn decode(&self, weights: Weights<'_>, column: usize, to: &mut [f32]) {
        let Sizes { bits, block, .. } = self.sizes;
        let (blocks, bytes) = (self.sizes.blocks(), self.sizes.block_bytes());
        let packed = &weights.packed[column * blocks * bytes..][..blocks * bytes];
        let scales = &weights.scales[column * blocks..][..blocks];
        let zeros = &weights.zeros[column * blocks..][..blocks];
        dispatch(self.isas, Decode { bits, block, bytes, packed, scales, zeros, to });
    }

    fn few(
        &self,
        m: usize,
        x: &[f32],
        weights: Weights<'_>,
        bias: Option<&[f32]>,
        y: DisjointMut<'_, f32>,
        range: std::ops::Range<usize>,
        scratch: &mut [f32],
    ) {
        let Sizes { rows, columns, .. } = self.sizes;
        let real = &mut scratch[..rows];
        for column in range {
            self.decode(weights, column, real);
            for row in 0..m {
                let sum = dispatch(self.isas, Dot { a: &x[row * rows..][..rows], b: real });
                // SAFETY: the task alone has this column.
                let y = unsafe { y.slice_mut(row * columns + column, 1) };
                y[0] = sum + bias.map_or(0.0, |bias| bias[column]);
            }
        }
    }

    fn many(
        &self,
        m: usize,
        x: &[f32],
        weights: Weights<'_>,
        bias: Option<&[f32]>,
        y: DisjointMut<'_, f32>,
        range: std::ops::Range<usize>,
        scratch: &mut [f32],
    ) {
        let Sizes { rows, columns, .. } = self.sizes;
        let (real, rest) = scratch.split_at_mut(rows * self.width);
        let (packed, results) = rest.split_at_mut(self.tiles.packed_len());
        let count = range.len();
        for at in 0..count {
            self.decode(weights, range.start + at, &mut real[at * rows..][..rows]);
        }
        // Columns that the last task lacks are computed from zeros.
        real[count * rows..].fill(0.0);
        self.tiles.pack(packed, real, 1, rows, 1.0);
        for first in (0..m).step_by(BLOCK) {
            let block = BLOCK.min(m - first);
            let x = &x[first * rows..];
            self.tiles.run(packed, (x, rows), block, rows, self.width, results, self.width);
            for (row, results) in results.chunks_exact(self.width).take(block).enumerate() {
                // SAFETY: the task alone has these columns.
                let y = unsafe { y.slice_mut((first + row) * columns + range.start, count) };
                y.copy_from_slice(&results[..count]);
                if let Some(bias) = bias {
                    y.iter_mut().zip(&bias[range.start..]).for_each(|(y, bias)| *y += bias);
                }
            }
        }
    }
}

/// Real numbers of one column.
struct Decode<'a> {
    bits: usize,
    block: usize,
    bytes: usize,
    packed: &'a [u8],
    scales: &'a [f32],
    zeros: &'a [f32],
    to: &'a mut [f32],
}

impl Loop for Decode<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let blocks = self.to.chunks_mut(self.block).zip(self.packed.chunks_exact(self.bytes));
        for ((to, packed), (scale, zero)) in blocks.zip(self.scales.iter().zip(self.zeros)) {
            match self.bits {
                8 => {
                    for (to, byte) in to.iter_mut().zip(packed) {
                        *to = (f32::from(*byte) - zero) * scale;
                    }
                }
                4 => {
                    for (to, byte) in to.chunks_mut(2).zip(packed) {
                        to[0] = (f32::from(byte & 15) - zero) * scale;
                        if let Some(to) = to.get_mut(1) {
                            *to = (f32::from(byte >> 4) - zero) * scale;
                        }
                    }
                }
                _ => {
                    for (to, byte) in to.chunks_mut(4).zip(packed) {
                        for (at, to) in to.iter_mut().enumerate() {
                            *to = (f32::from(byte >> (2 * at) & 3) - zero) * scale;
                        }
                    }
                }
            }
        }
    }
}

/// A product of two vectors.
struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl Loop for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f32 {
        let mut sums = [0.0f32; LANES];
        let (a_chunks, a_rest) = self.a.as_chunks::<LANES>();
        let (b_chunks, b_rest) = self.b.as_chunks::<LANES>();
        for (a, b) in a_chunks.iter().zip(b_chunks) {
            for lane in 0..LANES {
                sums[lane] = multiply_add::<FMA>(a[lane], b[lane], sums[lane]);
            }
        }
        for ((sum, a), b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
            *sum = multiply_add::<FMA>(*a, *b, *sum);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                sums[lane] += sums[lane + width];
            }
            width /= 2;
        }
        sums[0]
    }
}
