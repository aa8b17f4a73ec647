//! `RoiAlign`: regions brought to one size.

use super::{Tap, combine};
use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// Samples of a bin that are worked on together.
const SAMPLES: usize = 64;
/// Channels that one task works on.
const CHANNELS: usize = 32;
/// Along one side of a bin, more samples than this cannot be meant.
const MOST_SAMPLES: f32 = 4096.0;

/// One use of `RoiAlign` on `f32`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionAlign {
    /// Pictures.
    pub batch: usize,
    /// Channels of a picture.
    pub channels: usize,
    /// Rows and columns of a picture.
    pub size: [usize; 2],
    /// Rows and columns of a result.
    pub output: [usize; 2],
    /// Samples along each side of a bin; 0 for one to each element that the bin is long.
    pub sampling_ratio: usize,
    /// What coordinates are multiplied with.
    pub scale: f32,
    /// The largest share of an element rather than the mean of what was interpolated.
    pub max: bool,
    /// Coordinates are those of the corners of pixels, and regions may be of any size.
    pub half_pixel: bool,
}

/// A region of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Which picture.
    pub picture: i64,
    /// Corners: x, y, x, y.
    pub corners: [f32; 4],
}

/// A region that cannot be sampled.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RegionError {
    /// There is no such picture.
    #[error("there is no picture {0}")]
    Picture(i64),
    /// It is not finite, or has too many samples.
    #[error("a region from {0} to {1} is too large")]
    Size(f32, f32),
}

/// Where the bins of a region lie along one axis.
#[derive(Debug, Clone, Copy)]
struct Bins {
    start: f32,
    size: f32,
    samples: usize,
}

/// The two elements on both sides of a place, and the share of the second; `None` outside.
fn sides(at: f32, len: usize) -> Option<(usize, usize, f32)> {
    if !(-1.0..=len as f32).contains(&at) {
        return None;
    }
    let at = at.max(0.0);
    let low = at as usize;
    if low + 1 >= len { Some((len - 1, len - 1, 0.0)) } else { Some((low, low + 1, at - low as f32)) }
}

impl Bins {
    fn place(&self, bin: usize, sample: usize) -> f32 {
        self.start + bin as f32 * self.size + (sample as f32 + 0.5) * self.size / self.samples as f32
    }
}

impl RegionAlign {
    fn bins(&self, from: f32, to: f32, count: usize) -> Result<Bins, RegionError> {
        let offset = if self.half_pixel { 0.5 } else { 0.0 };
        let start = from * self.scale - offset;
        let mut extent = to * self.scale - offset - start;
        if !self.half_pixel {
            extent = extent.max(1.0);
        }
        let size = extent / count as f32;
        let samples = if self.sampling_ratio > 0 { self.sampling_ratio as f32 } else { size.ceil().max(0.0) };
        if samples > MOST_SAMPLES || !extent.is_finite() {
            return Err(RegionError::Size(from, to));
        }
        Ok(Bins { start, size, samples: samples as usize })
    }

    fn prepare(&self, region: &Region) -> Result<(usize, [Bins; 2]), RegionError> {
        let picture = usize::try_from(if region.picture < 0 {
            region.picture.saturating_add(self.batch as i64)
        } else {
            region.picture
        });
        let picture = picture.ok().filter(|picture| *picture < self.batch);
        let picture = picture.ok_or(RegionError::Picture(region.picture))?;
        let [left, top, right, bottom] = region.corners;
        let rows = self.bins(top, bottom, self.output[0])?;
        Ok((picture, [rows, self.bins(left, right, self.output[1])?]))
    }

    /// Samples all regions; `region` gives the one with an index below `count`.
    ///
    /// # Errors
    /// When a region cannot be sampled; the output is then unspecified.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply.
    #[expect(clippy::panic_in_result_fn, reason = "lengths are the caller's contract, regions are data")]
    pub fn run(
        &self,
        isas: Isas,
        team: &Team,
        (count, region): (usize, &(dyn Fn(usize) -> Region + Sync)),
        x: &[f32],
        y: &mut [f32],
    ) -> Result<(), RegionError> {
        let plane = self.size[0] * self.size[1];
        assert!(u32::try_from(plane).is_ok(), "a plane has fewer than 2^32 elements");
        let bins = self.output[0] * self.output[1];
        assert_eq!(
            x.len(),
            self.batch * self.channels * plane,
            "the input's length differs from its shape's"
        );
        assert_eq!(y.len(), count * self.channels * bins, "the output's length differs from its shape's");
        (0..count).try_for_each(|index| self.prepare(&region(index)).map(drop))?;
        if plane == 0 || y.is_empty() {
            y.fill(0.0);
            return Ok(());
        }
        let output = DisjointMut::new(y);
        let blocks = self.channels.div_ceil(CHANNELS);
        team.parallel_ranges(count * blocks, 1, 1, &|start, end| {
            for task in start..end {
                let (index, first) = (task / blocks, task % blocks * CHANNELS);
                let Ok((picture, bins_of)) = self.prepare(&region(index)) else { continue };
                let channels = CHANNELS.min(self.channels - first);
                let x = &x[(picture * self.channels + first) * plane..][..channels * plane];
                let at = (index * self.channels + first) * bins;
                // SAFETY: every channel of every region is written by one task.
                let y = unsafe { output.slice_mut(at, channels * bins) };
                self.region(isas, bins_of, (x, plane), (y, bins));
            }
        });
        Ok(())
    }

    /// Some channels of one region.
    fn region(
        &self,
        isas: Isas,
        [rows, columns]: [Bins; 2],
        (x, plane): (&[f32], usize),
        (y, bins): (&mut [f32], usize),
    ) {
        let [height, width] = self.size;
        let total = rows.samples * columns.samples;
        let scale = if self.max { 1.0 } else { 1.0 / total.max(1) as f32 };
        y.fill(if self.max && total > 0 { f32::NEG_INFINITY } else { 0.0 });
        let mut taps = [Tap::default(); 4 * SAMPLES];
        for bin in 0..bins {
            let (row, column) = (bin / self.output[1], bin % self.output[1]);
            let mut sample = 0;
            while sample < total {
                let count = SAMPLES.min(total - sample);
                for (index, taps) in (sample..sample + count).zip(taps.as_chunks_mut::<4>().0) {
                    let at_y = rows.place(row, index / columns.samples);
                    let at_x = columns.place(column, index % columns.samples);
                    *taps = [Tap::default(); 4];
                    if let (Some((top, bottom, low)), Some((left, right, by))) =
                        (sides(at_y, height), sides(at_x, width))
                    {
                        let tap = |y: usize, x: usize, share: f32| Tap {
                            offset: (y * width + x) as u32,
                            share: share * scale,
                        };
                        *taps = [
                            tap(top, left, (1.0 - low) * (1.0 - by)),
                            tap(top, right, (1.0 - low) * by),
                            tap(bottom, left, low * (1.0 - by)),
                            tap(bottom, right, low * by),
                        ];
                    }
                }
                let taps = &taps[..4 * count];
                dispatch(isas, Bin { taps, plane, bins, max: self.max, x, y: &mut y[bin..] });
                sample += count;
            }
        }
    }
}

/// Some samples of one bin of some channels.
struct Bin<'a> {
    taps: &'a [Tap],
    plane: usize,
    bins: usize,
    max: bool,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Bin<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { taps, plane, bins, max, x, y } = self;
        for (x, y) in x.chunks_exact(plane).zip(y.iter_mut().step_by(bins)) {
            if max {
                let value =
                    |tap: &Tap| if tap.share == 0.0 { 0.0 } else { tap.share * x[tap.offset as usize] };
                *y = taps.iter().map(value).fold(*y, f32::max);
            } else {
                *y += combine::<FMA>(taps, x);
            }
        }
    }
}
