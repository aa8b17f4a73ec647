//! Two-dimensional transposed convolutions of 32-bit floats, channels last, finished by an epilogue.
//!
//! Output pixels whose places leave the same remainders by the strides see the same taps: they are the pixels of an
//! ordinary convolution of stride one with these taps. So each such phase has its own packed weights, every output
//! element is summed up in registers and stored once, and nothing is scattered.
//!
//! Contract: as [`crate::conv`].

#![expect(unsafe_code, reason = "hands checked slices to tile kernels")]

mod shape;
#[cfg(test)]
mod tests;

pub use shape::ConvTransposeShape;

use crate::aligned::AlignedFloats;
use crate::conv::{ConvError, Input, Output};
use crate::epilogue::{Epilogue, Finisher, check_matrix};
use crate::gemm::driver::{Product, RowSource, RowTiles};
use crate::gemm::pack::Panels;
use crate::gemm::table::Kernel;
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};
use std::sync::Arc;

/// The floats that take as much memory as a pointer.
const POINTER_FLOATS: usize = size_of::<*const f32>() / size_of::<f32>();
/// Tiles that meet a panel one after the other.
const GROUP: usize = 4;

/// The taps along one side that the output places of one phase see, and how many whole strides before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PhaseTaps {
    /// Kernel index of each tap.
    taps: Vec<usize>,
    /// Input places before the phase's place.
    steps: Vec<usize>,
}

/// For each remainder by the stride the taps that are seen.
fn phases(kernel: usize, stride: usize, dilation: usize) -> Vec<PhaseTaps> {
    let mut phases = vec![PhaseTaps::default(); stride];
    for tap in 0..kernel {
        let phase = &mut phases[tap * dilation % stride];
        phase.taps.push(tap);
        phase.steps.push(tap * dilation / stride);
    }
    phases
}

/// The packed weights of one phase, of all groups.
#[derive(Debug)]
struct Phase {
    panels: Panels,
    data: AlignedFloats,
}

/// The weights of a transposed convolution, packed for the best kernel of some instruction sets.
#[derive(Debug)]
pub struct PackedConvTranspose {
    isas: Isas,
    in_c: usize,
    out_c: usize,
    groups: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    rows: Vec<PhaseTaps>,
    columns: Vec<PhaseTaps>,
    /// For each remainder of the row, and in it of the column.
    phases: Vec<Phase>,
}

impl PackedConvTranspose {
    /// Pack weights in the order input channel, output channel of the group, kernel row, kernel column.
    pub fn pack(
        isas: Isas,
        shape: &ConvTransposeShape,
        weights: &[f32],
    ) -> Result<PackedConvTranspose, ConvError> {
        shape.check()?;
        if weights.len() != shape.weights_len() {
            return Err(ConvError::Weights { expected: shape.weights_len(), found: weights.len() });
        }
        let rows = phases(shape.kernel_h, shape.stride_h, shape.dilation_h);
        let columns = phases(shape.kernel_w, shape.stride_w, shape.dilation_w);
        let (in_c, out_c) = (shape.group_in_c(), shape.group_out_c());
        let area = shape.kernel_h * shape.kernel_w;
        let pack = |row: &PhaseTaps, column: &PhaseTaps| {
            let taps: Vec<usize> = row
                .taps
                .iter()
                .flat_map(|ky| column.taps.iter().map(move |kx| ky * shape.kernel_w + kx))
                .collect();
            let panels = Panels { kernel: Kernel::choose(isas), k: taps.len() * in_c, n: out_c };
            let mut data = AlignedFloats::zeroed(panels.len() * shape.groups);
            for group in 0..shape.groups {
                let from = &weights[group * in_c * out_c * area..];
                let to = &mut data.as_mut_slice()[group * panels.len()..];
                panels.pack(to, |k, column| from[(k % in_c * out_c + column) * area + taps[k / in_c]]);
            }
            Phase { panels, data }
        };
        let phases = rows.iter().flat_map(|row| columns.iter().map(|column| pack(row, column)));
        Ok(PackedConvTranspose {
            isas,
            in_c: shape.in_c,
            out_c: shape.out_c,
            groups: shape.groups,
            kernel: [shape.kernel_h, shape.kernel_w],
            stride: [shape.stride_h, shape.stride_w],
            dilation: [shape.dilation_h, shape.dilation_w],
            phases: phases.collect(),
            rows,
            columns,
        })
    }

    /// The memory that the packed weights take.
    pub fn bytes(&self) -> usize {
        self.phases.iter().map(|phase| phase.data.bytes()).sum()
    }

    fn fits(&self, shape: &ConvTransposeShape) -> bool {
        (self.in_c, self.out_c, self.groups) == (shape.in_c, shape.out_c, shape.groups)
            && self.kernel == [shape.kernel_h, shape.kernel_w]
            && self.stride == [shape.stride_h, shape.stride_w]
            && self.dilation == [shape.dilation_h, shape.dilation_w]
    }
}

/// What may be chosen about a transposed convolution besides its sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvTransposeOptions {
    /// Elements from one input pixel to the next, when more than the channels.
    pub input_pitch: Option<usize>,
    /// Elements from one output pixel to the next, when more than the channels.
    pub output_pitch: Option<usize>,
}

/// A transposed convolution that is ready to run.
#[derive(Clone, Debug)]
pub struct ConvTranspose {
    shape: ConvTransposeShape,
    in_pitch: usize,
    out_pitch: usize,
    packed: Arc<PackedConvTranspose>,
    /// Stands for a pixel outside the input.
    zeros: Arc<[f32]>,
}

impl ConvTranspose {
    /// Pack the weights (input channel, output channel of the group, kernel row, kernel column) and plan the run.
    pub fn new(
        isas: Isas,
        shape: &ConvTransposeShape,
        weights: &[f32],
        options: ConvTransposeOptions,
    ) -> Result<ConvTranspose, ConvError> {
        let packed = PackedConvTranspose::pack(isas, shape, weights)?;
        ConvTranspose::from_packed(Arc::new(packed), shape, options)
    }

    /// Plan a run with weights that were packed before, for any number and size of images.
    pub fn from_packed(
        packed: Arc<PackedConvTranspose>,
        shape: &ConvTransposeShape,
        options: ConvTransposeOptions,
    ) -> Result<ConvTranspose, ConvError> {
        shape.check()?;
        if !packed.fits(shape) {
            return Err(ConvError::OtherWeights);
        }
        let in_pitch = options.input_pitch.unwrap_or(shape.in_c);
        let out_pitch = options.output_pitch.unwrap_or(shape.out_c);
        for (channels, pitch) in [(shape.in_c, in_pitch), (shape.out_c, out_pitch)] {
            if pitch < channels {
                return Err(ConvError::Pitch { channels, pitch });
            }
        }
        Ok(ConvTranspose { shape: *shape, in_pitch, out_pitch, packed, zeros: vec![0.0; shape.in_c].into() })
    }

    /// The same transposed convolution of images of another size or number, with the same packed weights.
    pub fn replan(&self, shape: &ConvTransposeShape) -> Result<ConvTranspose, ConvError> {
        let options = ConvTransposeOptions {
            input_pitch: Some(self.in_pitch).filter(|&pitch| pitch != self.shape.in_c),
            output_pitch: Some(self.out_pitch).filter(|&pitch| pitch != self.shape.out_c),
        };
        ConvTranspose::from_packed(Arc::clone(&self.packed), shape, options)
    }

    /// The sizes.
    pub fn shape(&self) -> &ConvTransposeShape {
        &self.shape
    }

    /// The packed weights.
    pub fn packed(&self) -> &Arc<PackedConvTranspose> {
        &self.packed
    }

    /// The memory that the packed weights take.
    pub fn packed_bytes(&self) -> usize {
        self.packed.bytes()
    }

    /// How it is computed.
    pub fn algorithm_name(&self) -> &'static str {
        "phases"
    }

    /// The kernel that runs.
    pub fn kernel_name(&self) -> &'static str {
        Kernel::choose(self.packed.isas).entry().indirect_name
    }

    /// Elements that the input has at least.
    pub fn input_len(&self) -> usize {
        matrix_len(self.shape.in_pixels(), self.shape.in_c, self.in_pitch)
    }

    /// Elements that the output has at least.
    pub fn output_len(&self) -> usize {
        matrix_len(self.shape.out_pixels(), self.shape.out_c, self.out_pitch)
    }

    /// Pointers that one thread keeps at a time.
    fn pointers(&self) -> usize {
        let most = |phases: &[PhaseTaps]| phases.iter().map(|phase| phase.taps.len()).max().unwrap_or(0);
        let rows = Kernel::choose(self.packed.isas).rows();
        GROUP * rows * (most(&self.packed.rows) * most(&self.packed.columns)).max(1)
    }

    /// The floats of scratch memory that a run on so many threads wants.
    pub fn scratch_len(&self, threads: usize) -> usize {
        // One pointer more, because scratch memory may begin between two pointers' places.
        (self.pointers() + 1) * POINTER_FLOATS * threads
    }

    /// Compute `y`, the transposed convolution of `x`.
    ///
    /// # Panics
    /// When `x`, `y` or `scratch` is too short, or the epilogue does not fit.
    pub fn run(&self, team: &Team, x: &[f32], y: &mut [f32], epilogue: &Epilogue<'_>, scratch: &mut [f32]) {
        let shape = &self.shape;
        assert!(x.len() >= self.input_len(), "the whole input");
        assert!(scratch.len() >= self.scratch_len(team.threads()), "scratch memory for every thread");
        let pixels = shape.out_pixels();
        check_matrix(y.len(), pixels, shape.out_c, self.out_pitch);
        if pixels == 0 {
            return;
        }
        let start = y.as_mut_ptr();
        let finisher = Finisher::new(self.packed.isas, epilogue, pixels, shape.out_c, start, self.out_pitch);
        let output = Output::new(start, self.out_pitch, finisher.spaced(shape.stride_w));
        let input = Input { data: x, pitch: self.in_pitch };
        let per_thread = self.scratch_len(1);
        let scratch = DisjointMut::new(scratch);
        let rows = shape.batch * shape.out_h();
        team.run_with_thread(rows, &|thread, row| {
            // SAFETY: no two tasks run with one thread index at a time.
            let own = unsafe { scratch.slice_mut(thread * per_thread, per_thread) };
            // SAFETY: any bits are a pointer, as far as it is not followed; the places are written before they are read.
            let (_, pointers, _) = unsafe { own.align_to_mut::<*const f32>() };
            for phase in 0..shape.stride_w.min(shape.out_w()) {
                self.run_phase(row, phase, input, &output, pointers);
            }
        });
    }

    /// Compute every `stride_w`-th pixel of an output row, counted over all images, from `first` on.
    fn run_phase(
        &self,
        row: usize,
        first: usize,
        input: Input<'_>,
        output: &Output<'_>,
        pointers: &mut [*const f32],
    ) {
        let shape = &self.shape;
        let (image, oy) = (row / shape.out_h(), row % shape.out_h());
        let (phase_y, base_y) =
            ((oy + shape.pad_top) % shape.stride_h, (oy + shape.pad_top) / shape.stride_h);
        let (phase_x, base_x) =
            ((first + shape.pad_left) % shape.stride_w, (first + shape.pad_left) / shape.stride_w);
        let (rows, columns) = (&self.packed.rows[phase_y], &self.packed.columns[phase_x]);
        let phase = &self.packed.phases[phase_y * shape.stride_w + phase_x];
        let taps = rows.taps.len() * columns.taps.len();
        let kernel = phase.panels.kernel;
        let tiles = RowTiles::new((shape.out_w() - first).div_ceil(shape.stride_w), kernel.rows());
        let pitch = taps * kernel.rows();
        let pixel = row * shape.out_w() + first;
        for begin in (0..tiles.count()).step_by(GROUP) {
            let range = begin..(begin + GROUP).min(tiles.count());
            for (position, tile) in range.clone().enumerate() {
                let (start, height) = (tiles.start(tile), tiles.rows(tile));
                let mut tap = position * pitch;
                for step_y in &rows.steps {
                    let iy = base_y.wrapping_sub(*step_y);
                    for step_x in &columns.steps {
                        for (place, to) in pointers[tap..tap + height].iter_mut().enumerate() {
                            let ix = (base_x + start + place).wrapping_sub(*step_x);
                            *to = if iy < shape.in_h && ix < shape.in_w {
                                let at = ((image * shape.in_h + iy) * shape.in_w + ix) * input.pitch;
                                input.data.as_ptr().wrapping_add(at)
                            } else {
                                self.zeros.as_ptr()
                            };
                        }
                        tap += height;
                    }
                }
            }
            for group in 0..shape.groups {
                let first_column = group * shape.group_out_c();
                let product = Product {
                    panels: phase.panels,
                    weights: phase.data.as_slice()[group * phase.panels.len()..].as_ptr(),
                    tiles,
                    depth: shape.group_in_c(),
                    c: output.at(pixel, first_column),
                    c_stride: shape.stride_w * output.pitch,
                    first_row: pixel,
                    row_step: shape.stride_w,
                    first_column,
                    finisher: &output.finisher,
                };
                let offset = group * shape.group_in_c();
                let source = RowSource::Indirect { rows: pointers.as_ptr(), pitch, taps, offset };
                // SAFETY: each pointer is to the channels of a pixel of the input, or to as many zeros; each task has its
                // own rows of the output, which `run` checked.
                unsafe { product.run(range.clone(), 0..phase.panels.count(), source) };
            }
        }
    }
}

/// The elements from the first to the last of a matrix.
fn matrix_len(rows: usize, columns: usize, pitch: usize) -> usize {
    if rows == 0 { 0 } else { (rows - 1) * pitch + columns }
}
