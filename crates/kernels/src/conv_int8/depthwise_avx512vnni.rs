//! Depthwise convolutions for AVX-512 VNNI: 64 channels at a time, four taps of a kernel row per dot product.
//!
//! Interleaving the bytes of four taps gives, for each channel, the four bytes that a dot product takes. It is done within
//! the four quarters of a register, so the sums of 64 channels come out in four vectors of which vector `v` has, in quarter
//! `q`, the channels `16 q + 4 v` to `16 q + 4 v + 3`; the weights are packed in that order.

#![expect(unsafe_code, reason = "instruction set intrinsics on addresses inside of checked slices")]

use std::arch::x86_64::{
    __m128i, __m512i, _mm_storeu_si128, _mm512_dpbusd_epi32, _mm512_extracti32x4_epi32, _mm512_loadu_si512,
    _mm512_maskz_loadu_epi8, _mm512_mullo_epi32, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpacklo_epi8,
    _mm512_unpacklo_epi16, _mm512_xor_si512,
};
use std::ops::Range;

use super::depthwise::Line;
use crate::gemm_int8::pack::AlignedBytes;
use crate::gemm_int8::tile::{MOST_COLUMNS, Sums};
use crate::isa::{Isa, Isas};

/// Channels of a block.
const BLOCK: usize = 64;
/// Taps of a dot product.
const QUAD: usize = 4;

/// Weights in the order of their use.
#[derive(Debug, Clone)]
pub(super) struct QuadWeights {
    kernel: (usize, usize),
    channels: usize,
    /// For each block of channels and each tap, [`BLOCK`] weights in the order of the channels.
    plain: AlignedBytes,
    /// For each block of channels, each row of the kernel and each four taps of it, their weights interleaved.
    interleaved: AlignedBytes,
}

/// Bytes of four taps of a block.
const QUAD_BYTES: usize = QUAD * BLOCK;

impl QuadWeights {
    /// Packs weights, tap by tap and all channels of each; `None` if the machine lacks the instructions, or a weight less its
    /// zero point is not a byte.
    pub(super) fn pack(isas: Isas, kernel: (usize, usize), channels: usize, weights: &[i16]) -> Option<Self> {
        let taps = kernel.0 * kernel.1;
        if !isas.has(Isa::Avx512Vnni) {
            return None;
        }
        let bytes: Option<Vec<i8>> = weights.iter().map(|&weight| i8::try_from(weight).ok()).collect();
        let bytes = bytes?;
        let blocks = channels.div_ceil(BLOCK);
        let mut plain = AlignedBytes::zeroed(blocks * taps * BLOCK);
        for (index, to) in plain.as_mut_slice().chunks_exact_mut(BLOCK).enumerate() {
            let (block, tap) = (index / taps, index % taps);
            let first = block * BLOCK;
            let count = BLOCK.min(channels.saturating_sub(first));
            to[..count].copy_from_slice(&bytes[tap * channels + first..][..count]);
        }
        let quads = kernel.1.div_ceil(QUAD);
        let mut interleaved = AlignedBytes::zeroed(blocks * kernel.0 * quads * QUAD_BYTES);
        for (index, to) in interleaved.as_mut_slice().chunks_exact_mut(QUAD_BYTES).enumerate() {
            let (block, row, first) =
                (index / quads / kernel.0, index / quads % kernel.0, index % quads * QUAD);
            let taps = &plain.as_slice()[block * taps * BLOCK..(block + 1) * taps * BLOCK];
            // SAFETY: the machine has the instructions.
            unsafe { store(quad(taps, row, kernel.1, first, kernel.1), to) };
        }
        Some(Self { kernel, channels, plain, interleaved })
    }

    pub(super) fn bytes(&self) -> usize {
        self.plain.as_slice().len() + self.interleaved.as_slice().len()
    }

    /// Sums of up to 14 pixels and 64 channels, which begin at `channel`: the first 32 in `sums[0]`, the others in `sums[1]`.
    pub(super) fn sums(
        &self,
        line: &Line<'_>,
        pixels: Range<usize>,
        channel: usize,
        channels: usize,
        sums: &mut [Sums; 2],
    ) {
        debug_assert!(channel.is_multiple_of(BLOCK) && channel < self.channels);
        let (block, (kernel_h, kernel_w)) = (channel / BLOCK, self.kernel);
        let taps =
            &self.plain.as_slice()[block * kernel_h * kernel_w * BLOCK..][..kernel_h * kernel_w * BLOCK];
        let quads = kernel_h * kernel_w.div_ceil(QUAD) * QUAD_BYTES;
        let interleaved = &self.interleaved.as_slice()[block * quads..(block + 1) * quads];
        let shape = line.shape;
        let zero = line.zero_point + if line.is_signed { 128 } else { 0 };
        let mut before: Option<(Range<usize>, Correction)> = None;
        let mut out_x = pixels.start;
        while out_x < pixels.end {
            let columns = line.columns(out_x);
            let correction = match &before {
                Some((same, correction)) if *same == columns => *correction,
                // SAFETY: `pack` found the instructions to be available.
                _ => unsafe { correction(taps, shape.kernel_w, &line.rows, &columns, zero) },
            };
            let row = (out_x - pixels.start) * MOST_COLUMNS;
            let interior = line.interior.end.min(pixels.end);
            let is_interior = line.interior.contains(&out_x) && matches!(shape.kernel_w, 3 | 5);
            let run = if is_interior { Run::new(line, out_x, interior - out_x, channels) } else { None };
            if let Some(run) = run {
                let halves = sums.each_mut().map(|half| &mut half.0[row..]);
                // SAFETY: `pack` found the instructions to be available, `Run::new` that the pixels lie in the input.
                unsafe {
                    match (shape.kernel_w, line.is_signed) {
                        (3, false) => run.sums::<3, false>(interleaved, correction, halves),
                        (3, true) => run.sums::<3, true>(interleaved, correction, halves),
                        (_, false) => run.sums::<5, false>(interleaved, correction, halves),
                        (_, true) => run.sums::<5, true>(interleaved, correction, halves),
                    }
                }
                out_x = interior;
            } else {
                let halves = sums.each_mut().map(|half| &mut half.0[row..row + MOST_COLUMNS]);
                // SAFETY: `pack` found the instructions to be available.
                unsafe { pixel(line, (taps, interleaved), out_x, &columns, channels, correction, halves) };
                out_x += 1;
            }
            before = Some((columns, correction));
        }
    }
}

/// Neighbouring pixels all of whose columns of the kernel are inside of the image.
struct Run {
    /// The first pixel's first tap.
    start: *const u8,
    /// From one row of the kernel to the next.
    row_step: usize,
    /// From one column of the kernel to the next.
    column_step: usize,
    /// From one pixel to the next.
    pixel_step: usize,
    first_row: usize,
    rows: usize,
    pixels: usize,
    mask: u64,
}

impl Run {
    /// `None` if there is nothing to add up; panics if the pixels do not lie in the input.
    fn new(line: &Line<'_>, out_x: usize, pixels: usize, channels: usize) -> Option<Self> {
        if line.rows.is_empty() || pixels == 0 {
            return None;
        }
        let start = line.place(out_x, line.rows.start, 0);
        let end = line.place(out_x + pixels - 1, line.rows.end - 1, line.shape.kernel_w - 1) + channels;
        Some(Self {
            start: line.x[start..end].as_ptr(),
            row_step: line.shape.dilation_h * line.shape.in_w * line.pitch,
            column_step: line.shape.dilation_w * line.pitch,
            pixel_step: line.shape.stride_w * line.pitch,
            first_row: line.rows.start,
            rows: line.rows.len(),
            pixels,
            mask: if channels >= BLOCK { u64::MAX } else { (1 << channels) - 1 },
        })
    }

    /// Writes the sums of all pixels, a row of [`MOST_COLUMNS`] each in either half.
    ///
    /// # Safety
    /// The taps lie in the input, and the kernel is `WIDTH` wide.
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn sums<const WIDTH: usize, const IS_SIGNED: bool>(
        &self,
        interleaved: &[i8],
        correction: Correction,
        halves: [&mut [i32]; 2],
    ) {
        let flip = _mm512_set1_epi8(i8::MIN);
        let quads = const { WIDTH.div_ceil(QUAD) };
        let weights = &interleaved[self.first_row * quads * QUAD_BYTES..][..self.rows * quads * QUAD_BYTES];
        let [first, second] = halves.map(|half| half.as_chunks_mut::<MOST_COLUMNS>().0);
        for (pixel, (first, second)) in first.iter_mut().zip(second).take(self.pixels).enumerate() {
            let mut sums = correction;
            let mut from = self.start.wrapping_add(pixel * self.pixel_step);
            for row in weights.chunks_exact(quads * QUAD_BYTES) {
                for (quad, weights) in row.chunks_exact(QUAD_BYTES).enumerate() {
                    let mut x = [_mm512_setzero_si512(); QUAD];
                    for (tap, x) in x.iter_mut().enumerate() {
                        let column = quad * QUAD + tap;
                        if column < WIDTH {
                            let from = from.wrapping_add(column * self.column_step);
                            // SAFETY: the mask selects bytes of the channels, which lie in the input.
                            *x = unsafe { _mm512_maskz_loadu_epi8(self.mask, from.cast()) };
                            if IS_SIGNED {
                                *x = _mm512_xor_si512(*x, flip);
                            }
                        }
                    }
                    for ((sum, x), weights) in sums.iter_mut().zip(interleave(x)).zip(load(weights)) {
                        *sum = _mm512_dpbusd_epi32(*sum, x, weights);
                    }
                }
                from = from.wrapping_add(self.row_step);
            }
            store_pixel(sums, first, second);
        }
    }
}

/// What sums begin with, in the order of the dot products.
type Correction = [__m512i; 4];

/// Four taps, interleaved.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn interleave(taps: [__m512i; QUAD]) -> [__m512i; 4] {
    let (low, high) = (_mm512_unpacklo_epi8(taps[0], taps[1]), _mm512_unpackhi_epi8(taps[0], taps[1]));
    let (low2, high2) = (_mm512_unpacklo_epi8(taps[2], taps[3]), _mm512_unpackhi_epi8(taps[2], taps[3]));
    [
        _mm512_unpacklo_epi16(low, low2),
        _mm512_unpackhi_epi16(low, low2),
        _mm512_unpacklo_epi16(high, high2),
        _mm512_unpackhi_epi16(high, high2),
    ]
}

/// The weights of four taps, interleaved.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn quad(taps: &[i8], row: usize, kernel_w: usize, first: usize, end: usize) -> [__m512i; 4] {
    let mut vectors = [_mm512_setzero_si512(); QUAD];
    for (offset, vector) in vectors.iter_mut().enumerate() {
        if first + offset < end {
            let weights = &taps[(row * kernel_w + first + offset) * BLOCK..][..BLOCK];
            // SAFETY: 64 bytes of the slice.
            *vector = unsafe { _mm512_loadu_si512(weights.as_ptr().cast()) };
        }
    }
    interleave(vectors)
}

/// Four interleaved vectors at the begin of a slice.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn load(from: &[i8]) -> [__m512i; 4] {
    let from = from[..QUAD_BYTES].as_ptr();
    // SAFETY: each is 64 bytes of the slice.
    [0, 1, 2, 3].map(|vector| unsafe { _mm512_loadu_si512(from.add(vector * BLOCK).cast()) })
}

/// Writes four vectors to a slice.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn store(vectors: [__m512i; 4], to: &mut [i8]) {
    for (vector, to) in vectors.into_iter().zip(to.chunks_exact_mut(BLOCK)) {
        // SAFETY: 64 bytes of the slice.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) };
    }
}

/// The sums of the weights that lie inside of the image, times the zero point, negated.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn correction(
    taps: &[i8],
    kernel_w: usize,
    rows: &Range<usize>,
    columns: &Range<usize>,
    zero_point: i32,
) -> Correction {
    let mut sums = [_mm512_setzero_si512(); 4];
    let ones = _mm512_set1_epi8(1);
    for row in rows.clone() {
        for first in columns.clone().step_by(QUAD) {
            for (sum, weights) in sums.iter_mut().zip(quad(taps, row, kernel_w, first, columns.end)) {
                *sum = _mm512_dpbusd_epi32(*sum, ones, weights);
            }
        }
    }
    let factor = _mm512_set1_epi32(-zero_point);
    sums.map(|sum| _mm512_mullo_epi32(sum, factor))
}

/// Writes the sums of one pixel: the first 32 channels, and the others.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn pixel(
    line: &Line<'_>,
    (taps, interleaved): (&[i8], &[i8]),
    out_x: usize,
    columns: &Range<usize>,
    channels: usize,
    correction: Correction,
    halves: [&mut [i32]; 2],
) {
    let mut sums = correction;
    let mask = if channels >= BLOCK { u64::MAX } else { (1 << channels) - 1 };
    let flip = _mm512_set1_epi8(if line.is_signed { i8::MIN } else { 0 });
    let kernel_w = line.shape.kernel_w;
    let step = line.shape.dilation_w * line.pitch;
    let is_whole = *columns == (0..kernel_w);
    for row in line.rows.clone() {
        for first in columns.clone().step_by(QUAD) {
            let place = line.place(out_x, row, first);
            let end = columns.end;
            let mut x = [_mm512_setzero_si512(); QUAD];
            for (offset, x) in x.iter_mut().enumerate() {
                if first + offset < end {
                    let from = &line.x[place + offset * step..][..channels];
                    // SAFETY: the mask selects `channels` bytes, which the slice has.
                    let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, from.as_ptr().cast()) };
                    *x = _mm512_xor_si512(bytes, flip);
                }
            }
            let weights = if is_whole {
                load(&interleaved[(row * kernel_w.div_ceil(QUAD) + first / QUAD) * QUAD_BYTES..])
            } else {
                quad(taps, row, kernel_w, first, end)
            };
            for ((sum, x), weights) in sums.iter_mut().zip(interleave(x)).zip(weights) {
                *sum = _mm512_dpbusd_epi32(*sum, x, weights);
            }
        }
    }
    let [first, second] = halves;
    if let (Some(first), Some(second)) = (first.first_chunk_mut(), second.first_chunk_mut()) {
        store_pixel(sums, first, second);
    }
}

/// Writes sums in the order of the channels.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn store_pixel(sums: [__m512i; 4], first: &mut [i32; MOST_COLUMNS], second: &mut [i32; MOST_COLUMNS]) {
    let (first, second) = (first.as_chunks_mut::<4>().0, second.as_chunks_mut::<4>().0);
    for (vector, &sum) in sums.iter().enumerate() {
        store_quarter(_mm512_extracti32x4_epi32::<0>(sum), &mut first[vector]);
        store_quarter(_mm512_extracti32x4_epi32::<1>(sum), &mut first[4 + vector]);
        store_quarter(_mm512_extracti32x4_epi32::<2>(sum), &mut second[vector]);
        store_quarter(_mm512_extracti32x4_epi32::<3>(sum), &mut second[4 + vector]);
    }
}

#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn store_quarter(sums: __m128i, to: &mut [i32; 4]) {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), sums) };
}
