//! Convolutions as products of pixels and packed panels: the weights, and the algorithms for whole and strided rows.
//!
//! - Pointwise: a pixel is a row of A; nothing is copied.
//! - Indirect: a list of pointers per tile says where each tap of each output pixel is; padding points to zeros.
//! - Strip: the few input rows that an output row sees are copied, padded, into scratch memory, where all taps of all
//!   pixels lie at equal distances, and runs of `kernel_w` taps are contiguous. For few input channels.

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

use super::shape::{ConvShape, InputLayout};
use super::{Input, Output};
use crate::aligned::AlignedFloats;
use crate::gemm::driver::{Product, RowSource, RowTiles, Tasks};
use crate::gemm::pack::Panels;
use crate::gemm::table::Kernel;
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};
use std::ops::Range;

/// Pointers that one task of an indirect convolution makes at most: what fits the nearest cache beside the data.
const MOST_POINTERS: usize = 2048;

/// The order of the products of one output element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Kernel row, kernel column, channel.
    ChannelsLast,
    /// Channel, kernel row, kernel column.
    ChannelsFirst,
}

/// The weights of all groups, packed into panels.
#[derive(Debug)]
pub(super) struct GroupedPanels {
    /// The panels of one group.
    panels: Panels,
    groups: usize,
    order: Order,
    data: AlignedFloats,
}

impl GroupedPanels {
    /// Pack weights in the order output channel, input channel, row, column.
    pub(super) fn pack(isas: Isas, shape: &ConvShape, order: Order, weights: &[f32]) -> GroupedPanels {
        let (in_c, out_c, taps) = (shape.group_in_c(), shape.group_out_c(), shape.taps());
        let panels = Panels { kernel: Kernel::choose(isas), k: in_c * taps, n: out_c };
        let mut data = AlignedFloats::zeroed(panels.len() * shape.groups);
        let length = in_c * taps;
        for group in 0..shape.groups {
            let to = &mut data.as_mut_slice()[group * panels.len()..];
            let from = &weights[group * out_c * length..][..out_c * length];
            if order == Order::ChannelsFirst || taps == 1 {
                panels.pack(to, |row, column| from[column * length + row]);
            } else {
                panels.pack(to, |row, column| from[column * length + row % in_c * taps + row / in_c]);
            }
        }
        GroupedPanels { panels, groups: shape.groups, order, data }
    }

    pub(super) fn bytes(&self) -> usize {
        self.data.bytes()
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn kernel(&self) -> Kernel {
        self.panels.kernel
    }

    /// The product of one group: `tiles` of rows that begin at `first_row` of the output.
    fn product<'a>(
        &self,
        output: &'a Output<'_>,
        group: usize,
        depth: usize,
        tiles: RowTiles,
        first_row: usize,
    ) -> Product<'a> {
        let first_column = group * self.panels.n;
        Product {
            panels: self.panels,
            weights: self.data.as_slice()[group * self.panels.len()..].as_ptr(),
            tiles,
            depth,
            c: output.at(first_row, first_column),
            c_stride: output.pitch,
            first_row,
            row_step: 1,
            first_column,
            finisher: &output.finisher,
        }
    }

    /// The groups that a range of all groups' panels belongs to, each with its own panels.
    fn groups(&self, units: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let count = self.panels.count();
        (units.start / count..units.end.div_ceil(count)).map(move |group| {
            let start = units.start.max(group * count) - group * count;
            let end = units.end.min((group + 1) * count) - group * count;
            (group, start..end)
        })
    }

    /// Run a pointwise convolution.
    ///
    /// # Safety
    /// `shape` is pointwise, and these are its weights.
    pub(super) unsafe fn run_pointwise(
        &self,
        team: &Team,
        shape: &ConvShape,
        input: Input<'_>,
        output: &Output<'_>,
    ) {
        let tiles = RowTiles::new(shape.out_pixels(), self.panels.kernel.rows());
        let tasks = Tasks::new(tiles.count(), self.panels, self.groups, team.threads(), usize::MAX);
        let in_c = shape.group_in_c();
        team.run(tasks.count(), &|task| {
            let (rows, units) = tasks.ranges(task);
            for (group, panels) in self.groups(units) {
                let product = self.product(output, group, in_c, tiles, 0);
                let start = input.data[group * in_c..].as_ptr();
                let source = RowSource::Strided { start, stride: input.pitch, offsets: &[0] };
                // SAFETY: `Input` and `Output` were checked against the shape; each task has its own tiles or panels.
                unsafe { product.run(rows.clone(), panels, source) };
            }
        });
    }
}

/// What an indirect convolution knows about its shape before it runs.
#[derive(Debug)]
pub(super) struct Indirect {
    /// Stands for a pixel of padding.
    zeros: Box<[f32]>,
    /// Elements from the first tap's pixel to each tap's.
    taps: Box<[usize]>,
}

impl Indirect {
    pub(super) fn new(shape: &ConvShape, pitch: usize) -> Indirect {
        let columns = |ky: usize| (0..shape.kernel_w).map(move |kx| (ky, kx));
        let taps = (0..shape.kernel_h)
            .flat_map(columns)
            .map(|(ky, kx)| (ky * shape.dilation_h * shape.in_w + kx * shape.dilation_w) * pitch);
        Indirect { zeros: vec![0.0; shape.in_c].into(), taps: taps.collect() }
    }

    fn tasks(&self, weights: &GroupedPanels, shape: &ConvShape, threads: usize) -> (RowTiles, Tasks) {
        let rows = weights.panels.kernel.rows();
        let tiles = RowTiles::new(shape.out_pixels(), rows);
        let most = (MOST_POINTERS / (rows * self.taps.len())).max(1);
        (tiles, Tasks::new(tiles.count(), weights.panels, weights.groups, threads, most))
    }

    /// Pointers that one thread keeps at a time.
    fn pointers(&self, weights: &GroupedPanels, tasks: Tasks) -> usize {
        tasks.tiles_per_task() * self.taps.len() * weights.panels.kernel.rows()
    }

    pub(super) fn scratch_len(&self, weights: &GroupedPanels, shape: &ConvShape, threads: usize) -> usize {
        let (_, tasks) = self.tasks(weights, shape, threads);
        // One pointer more, because scratch memory may begin between two pointers' places.
        (self.pointers(weights, tasks) + 1) * POINTER_FLOATS * threads
    }

    /// Run the convolution.
    ///
    /// # Safety
    /// This and `weights` were made for `shape`.
    pub(super) unsafe fn run(
        &self,
        team: &Team,
        weights: &GroupedPanels,
        shape: &ConvShape,
        input: Input<'_>,
        output: &Output<'_>,
        scratch: &mut [f32],
    ) {
        let (tiles, tasks) = self.tasks(weights, shape, team.threads());
        let per_thread = (self.pointers(weights, tasks) + 1) * POINTER_FLOATS;
        let most_rows = weights.panels.kernel.rows();
        let scratch = DisjointMut::new(scratch);
        team.run_with_thread(tasks.count(), &|thread, task| {
            let (rows, units) = tasks.ranges(task);
            // SAFETY: no two tasks run with one thread index at a time.
            let own = unsafe { scratch.slice_mut(thread * per_thread, per_thread) };
            // SAFETY: any bits are a pointer, as far as it is not followed; the places are written before they are read.
            let (_, pointers, _) = unsafe { own.align_to_mut::<*const f32>() };
            let pitch = self.taps.len() * most_rows;
            for (tile, to) in rows.clone().zip(pointers.chunks_exact_mut(pitch)) {
                self.locate(shape, input, tiles.start(tile), tiles.rows(tile), to);
            }
            for (group, panels) in weights.groups(units) {
                let product = weights.product(output, group, shape.group_in_c(), tiles, 0);
                let source = RowSource::Indirect {
                    rows: pointers.as_ptr(),
                    pitch,
                    taps: self.taps.len(),
                    offset: group * shape.group_in_c(),
                };
                // SAFETY: each pointer is to the channels of a pixel of the input, or to as many zeros; each task has
                // its own tiles or panels of the output, which `Output` checked.
                unsafe { product.run(rows.clone(), panels, source) };
            }
        });
    }

    /// Write where each tap of `rows` output pixels from `first` on is: for each tap one pointer per pixel.
    fn locate(&self, shape: &ConvShape, input: Input<'_>, first: usize, rows: usize, to: &mut [*const f32]) {
        let (out_h, out_w) = (shape.out_h(), shape.out_w());
        let data = input.data.as_ptr();
        let reach_h = (shape.kernel_h - 1) * shape.dilation_h;
        let reach_w = (shape.kernel_w - 1) * shape.dilation_w;
        let mut ox = first % out_w;
        let mut oy = first / out_w % out_h;
        let mut image = first / out_w / out_h;
        for row in 0..rows {
            // Rows and columns above and before the input wrap around to large numbers.
            let top = (oy * shape.stride_h).wrapping_sub(shape.pad_top);
            let left = (ox * shape.stride_w).wrapping_sub(shape.pad_left);
            let pixel = (image * shape.in_h).wrapping_add(top).wrapping_mul(shape.in_w).wrapping_add(left);
            let start = data.wrapping_add(pixel.wrapping_mul(input.pitch));
            let is_inside = top < shape.in_h
                && top + reach_h < shape.in_h
                && left < shape.in_w
                && left + reach_w < shape.in_w;
            if is_inside {
                for (to, offset) in to[row..].iter_mut().step_by(rows).zip(&self.taps) {
                    *to = start.wrapping_add(*offset);
                }
            } else {
                let mut tap = 0;
                for ky in 0..shape.kernel_h {
                    let is_row = top.wrapping_add(ky * shape.dilation_h) < shape.in_h;
                    for kx in 0..shape.kernel_w {
                        let is_column = left.wrapping_add(kx * shape.dilation_w) < shape.in_w;
                        to[tap * rows + row] = if is_row && is_column {
                            start.wrapping_add(self.taps[tap])
                        } else {
                            self.zeros.as_ptr()
                        };
                        tap += 1;
                    }
                }
            }
            ox += 1;
            if ox == out_w {
                ox = 0;
                oy += 1;
                if oy == out_h {
                    oy = 0;
                    image += 1;
                }
            }
        }
    }
}

/// The floats that take as much memory as a pointer.
const POINTER_FLOATS: usize = size_of::<*const f32>() / size_of::<f32>();

/// What a strip convolution knows about its shape before it runs.
#[derive(Debug)]
pub(super) struct Strip {
    /// Planes of the strip: the channels of a channels-first input, otherwise one.
    planes: usize,
    /// Floats of a pixel of a plane.
    unit: usize,
    /// Floats of a padded row of a plane.
    row: usize,
    /// Output rows per task.
    rows_per_task: usize,
    /// Input rows that these see.
    in_rows: usize,
    /// Products from one offset on.
    depth: usize,
    /// Floats from the first product of an output pixel to each run of `depth` products.
    offsets: Box<[usize]>,
}

impl Strip {
    pub(super) fn new(shape: &ConvShape, order: Order) -> Strip {
        let (planes, unit) = match order {
            Order::ChannelsFirst => (shape.in_c, 1),
            Order::ChannelsLast => (1, shape.in_c),
        };
        let out_w = shape.out_w().max(1);
        let row = ((out_w - 1) * shape.stride_w + (shape.kernel_w - 1) * shape.dilation_w + 1) * unit;
        // Several output rows share input rows; strips of about 48 KiB stay near.
        let reach = (shape.kernel_h - 1) * shape.dilation_h + 1;
        let affordable = (12_288 / (row * planes)).saturating_sub(reach) / shape.stride_h + 1;
        let rows_per_task = affordable.clamp(1, 8).min(shape.out_h().max(1));
        let in_rows = (rows_per_task - 1) * shape.stride_h + reach;
        let plane = in_rows * row;
        let (runs, depth) =
            if shape.dilation_w == 1 { (1, shape.kernel_w * unit) } else { (shape.kernel_w, unit) };
        let mut offsets = Vec::with_capacity(planes * shape.kernel_h * runs);
        for channel in 0..planes {
            for ky in 0..shape.kernel_h {
                for run in 0..runs {
                    offsets
                        .push(channel * plane + ky * shape.dilation_h * row + run * shape.dilation_w * unit);
                }
            }
        }
        Strip { planes, unit, row, rows_per_task, in_rows, depth, offsets: offsets.into() }
    }

    pub(super) fn scratch_len(&self, threads: usize) -> usize {
        self.planes * self.in_rows * self.row * threads
    }

    /// Run the convolution.
    ///
    /// # Safety
    /// This and `weights` were made for `shape`, of one group, and for the layout.
    pub(super) unsafe fn run(
        &self,
        team: &Team,
        weights: &GroupedPanels,
        shape: &ConvShape,
        layout: InputLayout,
        input: Input<'_>,
        output: &Output<'_>,
        scratch: &mut [f32],
    ) {
        let (out_h, out_w) = (shape.out_h(), shape.out_w());
        let tiles = RowTiles::new(out_w, weights.panels.kernel.rows());
        let strips = out_h.div_ceil(self.rows_per_task);
        let per_thread = self.scratch_len(1);
        let scratch = DisjointMut::new(scratch);
        team.run_with_thread(shape.batch * strips, &|thread, task| {
            let (image, strip) = (task / strips, task % strips);
            let first = strip * self.rows_per_task;
            let rows = self.rows_per_task.min(out_h - first);
            // SAFETY: no two tasks run with one thread index at a time.
            let own = unsafe { scratch.slice_mut(thread * per_thread, per_thread) };
            self.fill(shape, layout, input, image, first, rows, own);
            for row in 0..rows {
                let first_row = (image * out_h + first + row) * out_w;
                let product = weights.product(output, 0, self.depth, tiles, first_row);
                let source = RowSource::Strided {
                    start: own[row * shape.stride_h * self.row..].as_ptr(),
                    stride: shape.stride_w * self.unit,
                    offsets: &self.offsets,
                };
                // SAFETY: the strip has a padded row for every tap of every output pixel of these rows; each task has its
                // own rows of the output, which `Output` checked.
                unsafe { product.run(0..tiles.count(), 0..weights.panels.count(), source) };
            }
        });
    }

    /// Copy the input rows that `rows` output rows from `first` on see, with their padding.
    fn fill(
        &self,
        shape: &ConvShape,
        layout: InputLayout,
        input: Input<'_>,
        image: usize,
        first: usize,
        rows: usize,
        strip: &mut [f32],
    ) {
        let reach = (shape.kernel_h - 1) * shape.dilation_h + 1;
        let in_rows = (rows - 1) * shape.stride_h + reach;
        let top = (first * shape.stride_h).wrapping_sub(shape.pad_top);
        let before = (shape.pad_left * self.unit).min(self.row);
        // What the last output column sees may end before the input does.
        let inside = (shape.in_w * self.unit).min(self.row - before);
        for plane in 0..self.planes {
            for in_row in 0..in_rows {
                let to = &mut strip[(plane * self.in_rows + in_row) * self.row..][..self.row];
                let iy = top.wrapping_add(in_row);
                if iy >= shape.in_h {
                    to.fill(0.0);
                    continue;
                }
                to[..before].fill(0.0);
                to[before + inside..].fill(0.0);
                let to = &mut to[before..before + inside];
                match layout {
                    InputLayout::ChannelsFirst => {
                        let from = ((image * self.planes + plane) * shape.in_h + iy) * shape.in_w;
                        to.copy_from_slice(&input.data[from..][..inside]);
                    }
                    InputLayout::ChannelsLast => {
                        let from = (image * shape.in_h + iy) * shape.in_w * input.pitch;
                        let from = &input.data[from..];
                        if input.pitch == self.unit {
                            to.copy_from_slice(&from[..inside]);
                        } else {
                            for (to, from) in to.chunks_mut(self.unit).zip(from.chunks(input.pitch)) {
                                to.copy_from_slice(&from[..to.len()]);
                            }
                        }
                    }
                }
            }
        }
    }
}
