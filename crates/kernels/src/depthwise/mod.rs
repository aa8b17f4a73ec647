//! Depthwise convolutions, channels last: each output channel sees one input channel.
//!
//! Output rows are cut into tiles of pixels; a tile meets one vector of channels after the other. Widths of 3 and 5 with
//! strides of 1 and 2 have kernels that read each input vector once per kernel row; all others read it per tap. Rows and
//! columns outside the input are left out or read from zeros, nothing is copied.

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod table;
mod tile;

use crate::aligned::AlignedFloats;
use crate::conv::{ConvShape, Input, Output};
use crate::gemm::driver::RowTiles;
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};
use std::ops::Range;
use table::{Entry, Fast, FastTile, choose};
use tile::Tile;

/// Bytes of input rows that a tile should find in the nearest cache.
const NEAR_ROWS: usize = 24 << 10;
/// From this width on rows are long enough for all channels of a pixel to be done at once.
const WIDE: usize = 56;
/// The floats that take as much memory as a pointer.
const POINTER_FLOATS: usize = size_of::<*const f32>() / size_of::<f32>();

/// The weights of a depthwise convolution, for the best kernel of some instruction sets.
#[derive(Debug)]
pub(crate) struct DepthwiseWeights {
    entry: &'static Entry,
    /// For each tap all channels, filled up to whole vectors.
    data: AlignedFloats,
    padded: usize,
}

impl DepthwiseWeights {
    /// Pack weights in the order channel, row, column.
    pub(crate) fn pack(isas: Isas, shape: &ConvShape, weights: &[f32]) -> DepthwiseWeights {
        let entry = choose(isas);
        let padded = shape.out_c.next_multiple_of(entry.lanes);
        let taps = shape.taps();
        let mut data = AlignedFloats::zeroed(padded * taps);
        for (tap, line) in data.as_mut_slice().chunks_exact_mut(padded).enumerate() {
            for (to, from) in line.iter_mut().zip(weights.chunks_exact(taps)) {
                *to = from[tap];
            }
        }
        DepthwiseWeights { entry, data, padded }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.data.bytes()
    }

    /// The kernels for a shape that need not look at every tap of every pixel.
    fn fast(&self, shape: &ConvShape) -> Option<&'static Fast> {
        let fits = |fast: &&Fast| fast.kernel_w == shape.kernel_w && fast.stride_w == shape.stride_w;
        self.entry.fast.iter().find(fits).filter(|_| shape.dilation_w == 1)
    }

    pub(crate) fn kernel_name(&self, shape: &ConvShape) -> &'static str {
        if self.fast(shape).is_some() { self.entry.name } else { self.entry.any_name }
    }
}

/// What a depthwise convolution knows about its shape before it runs.
#[derive(Debug)]
pub(crate) struct Depthwise {
    /// Stands for a pixel of padding.
    zeros: Box<[f32]>,
}

/// A run's arguments.
#[derive(Clone, Copy)]
struct Job<'a> {
    weights: &'a DepthwiseWeights,
    shape: &'a ConvShape,
    input: Input<'a>,
    output: &'a Output<'a>,
}

impl Depthwise {
    pub(crate) fn new(shape: &ConvShape) -> Depthwise {
        Depthwise { zeros: vec![0.0; shape.in_c].into() }
    }

    /// Pointers that one thread keeps: the taps of a tile.
    fn pointers(shape: &ConvShape) -> usize {
        // The fast kernels' tiles have at most 14 pixels and see at most 31 columns; the others' have 8.
        shape.kernel_h * (8 * shape.kernel_w).max(31)
    }

    pub(crate) fn scratch_len(shape: &ConvShape, threads: usize) -> usize {
        (Depthwise::pointers(shape) + 1) * POINTER_FLOATS * threads
    }

    /// Run the convolution.
    ///
    /// # Safety
    /// This and `weights` were made for `shape`, which is depthwise.
    pub(crate) unsafe fn run(
        &self,
        team: &Team,
        weights: &DepthwiseWeights,
        shape: &ConvShape,
        input: Input<'_>,
        output: &Output<'_>,
        scratch: &mut [f32],
    ) {
        let lanes = weights.entry.lanes;
        let blocks = shape.out_c.div_ceil(lanes);
        let row_bytes = shape.kernel_h * shape.in_w * lanes * size_of::<f32>();
        let near =
            if shape.out_w() >= WIDE { blocks } else { (NEAR_ROWS / row_bytes.max(1)).clamp(1, blocks) };
        let rows = shape.batch * shape.out_h();
        // Rows per task: enough to share input rows, few enough for every thread to have some.
        let rows_per_task =
            if team.threads() == 1 { rows } else { rows.div_ceil(team.threads() * 4).max(4) }.max(1);
        let row_tasks = rows.div_ceil(rows_per_task);
        let chunks = blocks.div_ceil(near);
        let per_thread = Depthwise::scratch_len(shape, 1);
        let scratch = DisjointMut::new(scratch);
        let job = Job { weights, shape, input, output };
        team.run_with_thread(row_tasks * chunks, &|thread, task| {
            let (chunk, row_task) = (task / row_tasks, task % row_tasks);
            // SAFETY: no two tasks run with one thread index at a time.
            let own = unsafe { scratch.slice_mut(thread * per_thread, per_thread) };
            // SAFETY: any bits are a pointer, as far as it is not followed; the places are written before they are read.
            let (_, pointers, _) = unsafe { own.align_to_mut::<*const f32>() };
            let channels = chunk * near * lanes..((chunk + 1) * near * lanes).min(shape.out_c);
            for row in row_task * rows_per_task..((row_task + 1) * rows_per_task).min(rows) {
                self.run_row(job, row, channels.clone(), pointers);
            }
        });
    }

    /// Compute some channels of an output row, counted over all images.
    fn run_row(&self, job: Job<'_>, row: usize, channels: Range<usize>, pointers: &mut [*const f32]) {
        let Job { weights, shape, output, .. } = job;
        let entry = weights.entry;
        let fast = weights.fast(shape);
        // Channels of whole vectors; the rest may need kernels that take parts.
        let whole = channels.len() / entry.lanes * entry.lanes;
        let fast_end = if entry.has_masks { channels.end } else { channels.start + whole };
        let out_w = shape.out_w();
        if let Some(fast) = fast.filter(|_| fast_end > channels.start) {
            let mut ox = 0;
            while ox < out_w {
                let tile = fast.tile(out_w - ox);
                self.run_fast(job, tile, row, ox, channels.start..fast_end, pointers);
                ox += tile.pixels;
            }
        }
        let rest = if fast.is_some() { fast_end..channels.end } else { channels.clone() };
        if !rest.is_empty() {
            let tiles = RowTiles::new(out_w, entry.any.len());
            for tile in 0..tiles.count() {
                self.run_any(job, row, tiles.start(tile), tiles.rows(tile), rest.clone(), pointers);
            }
        }
        for tile in 0..out_w.div_ceil(14) {
            let first = row * out_w + tile * 14;
            let pixels = 14.min(out_w - tile * 14);
            let at = output.at(first, channels.start);
            // SAFETY: these channels of these pixels were stored above, and no other task uses them.
            unsafe {
                output.finisher.finish(at, output.pitch, first, channels.start, pixels, channels.len());
            }
        }
    }

    fn run_fast(
        &self,
        job: Job<'_>,
        fast: &FastTile,
        row: usize,
        ox: usize,
        channels: Range<usize>,
        pointers: &mut [*const f32],
    ) {
        let Job { weights, shape, input, output } = job;
        let (image, oy) = (row / shape.out_h(), row % shape.out_h());
        let top = (oy * shape.stride_h).wrapping_sub(shape.pad_top);
        let left = (ox * shape.stride_w).wrapping_sub(shape.pad_left);
        let pixels = fast.pixels;
        let columns = (pixels - 1) * shape.stride_w + shape.kernel_w;
        // Kernel rows outside of the input are left out.
        let is_inside = |ky: &usize| top.wrapping_add(ky * shape.dilation_h) < shape.in_h;
        let Some(first_ky) = (0..shape.kernel_h).find(is_inside) else {
            return self.run_any(job, row, ox, pixels, channels, pointers);
        };
        let rows = (first_ky..shape.kernel_h).take_while(is_inside).count();
        let iy = top.wrapping_add(first_ky * shape.dilation_h);
        let is_inner = left < shape.in_w && left + columns <= shape.in_w;
        let first = (image * shape.in_h + iy).wrapping_mul(shape.in_w).wrapping_add(left);
        let x = input.data.as_ptr().wrapping_add(first.wrapping_mul(input.pitch));
        let x_row = shape.dilation_h * shape.in_w * input.pitch;
        if !is_inner {
            for ky in 0..rows {
                for column in 0..columns {
                    let is_column = left.wrapping_add(column) < shape.in_w;
                    pointers[ky * columns + column] = if is_column {
                        x.wrapping_add(ky * x_row + column * input.pitch)
                    } else {
                        self.zeros.as_ptr()
                    };
                }
            }
        }
        let kernel = if is_inner { fast.inner } else { fast.border };
        let pixel = row * shape.out_w() + ox;
        let data = weights.data.as_slice();
        for channel in channels.clone().step_by(weights.entry.lanes) {
            let tile = Tile {
                x: x.wrapping_add(channel),
                x_row,
                x_pixel: input.pitch,
                pixels: pointers.as_ptr(),
                channel,
                rows,
                weights: data[first_ky * shape.kernel_w * weights.padded + channel..].as_ptr(),
                weights_stride: weights.padded,
                y: output.at(pixel, channel),
                y_pixel: output.pitch,
                channels: weights.entry.lanes.min(channels.end - channel),
                epilogue: output.finisher.tile(pixel, channel),
            };
            // SAFETY: the entry's instruction set is available; the pointers are to pixels of the input or to zeros, as
            // are all pixels of an inner tile; `Output` checked the output, whose channels here are this task's own.
            unsafe { kernel(&tile) };
        }
    }

    fn run_any(
        &self,
        job: Job<'_>,
        row: usize,
        ox: usize,
        pixels: usize,
        channels: Range<usize>,
        pointers: &mut [*const f32],
    ) {
        let Job { weights, shape, input, output } = job;
        let most = weights.entry.any.len();
        if pixels > most {
            self.run_any(job, row, ox, most, channels.clone(), pointers);
            return self.run_any(job, row, ox + most, pixels - most, channels, pointers);
        }
        let (image, oy) = (row / shape.out_h(), row % shape.out_h());
        for ky in 0..shape.kernel_h {
            let iy = (oy * shape.stride_h + ky * shape.dilation_h).wrapping_sub(shape.pad_top);
            for kx in 0..shape.kernel_w {
                for pixel in 0..pixels {
                    let ix =
                        ((ox + pixel) * shape.stride_w + kx * shape.dilation_w).wrapping_sub(shape.pad_left);
                    pointers[(ky * shape.kernel_w + kx) * pixels + pixel] =
                        if iy < shape.in_h && ix < shape.in_w {
                            let first = (image * shape.in_h + iy) * shape.in_w + ix;
                            input.data.as_ptr().wrapping_add(first * input.pitch)
                        } else {
                            self.zeros.as_ptr()
                        };
                }
            }
        }
        let pixel = row * shape.out_w() + ox;
        for channel in channels.clone().step_by(weights.entry.lanes) {
            let tile = Tile {
                x: std::ptr::null(),
                x_row: 0,
                x_pixel: 0,
                pixels: pointers.as_ptr(),
                channel,
                rows: shape.taps(),
                weights: weights.data.as_slice()[channel..].as_ptr(),
                weights_stride: weights.padded,
                y: output.at(pixel, channel),
                y_pixel: output.pitch,
                channels: weights.entry.lanes.min(channels.end - channel),
                epilogue: output.finisher.tile(pixel, channel),
            };
            // SAFETY: the entry's instruction set is available; the pointers are to pixels of the input or to zeros;
            // `Output` checked the output, whose channels here are this task's own.
            unsafe { weights.entry.any[pixels - 1](&tile) };
        }
    }
}
