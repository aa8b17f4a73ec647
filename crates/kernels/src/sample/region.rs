//! `RoiAlign`: regions brought to one size.

use super::{Tap, combine};
use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::isa::Isas;
use crate::layout::ChannelOrder;
use crate::threads::{DisjointMut, Team};

/// Samples that are worked on together.
const SAMPLES: usize = 512;
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
    /// Where the channels lie in pictures and result.
    pub order: ChannelOrder,
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
        // Channels that lie together stay together.
        let width = if self.order == ChannelOrder::Last { self.channels } else { CHANNELS };
        let blocks = self.channels.div_ceil(width);
        team.parallel_ranges(count * blocks, 1, 1, &|start, end| {
            for task in start..end {
                let (index, first) = (task / blocks, task % blocks * width);
                let Ok((picture, bins_of)) = self.prepare(&region(index)) else { continue };
                let channels = width.min(self.channels - first);
                let x = &x[(picture * self.channels + first) * plane..][..channels * plane];
                let at = (index * self.channels + first) * bins;
                // SAFETY: every channel of every region is written by one task.
                let y = unsafe { output.slice_mut(at, channels * bins) };
                self.region(isas, bins_of, x, y);
            }
        });
        Ok(())
    }

    /// The taps of one sample of a bin.
    fn taps(&self, [rows, columns]: [Bins; 2], bin: usize, sample: usize, scale: f32) -> [Tap; 4] {
        let [height, width] = self.size;
        let at_y = rows.place(bin / self.output[1], sample / columns.samples);
        let at_x = columns.place(bin % self.output[1], sample % columns.samples);
        let (Some((top, bottom, low)), Some((left, right, by))) = (sides(at_y, height), sides(at_x, width))
        else {
            return [Tap::default(); 4];
        };
        let tap =
            |y: usize, x: usize, share: f32| Tap { offset: (y * width + x) as u32, share: share * scale };
        [
            tap(top, left, (1.0 - low) * (1.0 - by)),
            tap(top, right, (1.0 - low) * by),
            tap(bottom, left, low * (1.0 - by)),
            tap(bottom, right, low * by),
        ]
    }

    /// Some channels of one region.
    fn region(&self, isas: Isas, bins_of: [Bins; 2], x: &[f32], y: &mut [f32]) {
        let bins = self.output[0] * self.output[1];
        let total = bins_of[0].samples * bins_of[1].samples;
        let scale = if self.max { 1.0 } else { 1.0 / total.max(1) as f32 };
        y.fill(if self.max && total > 0 { f32::NEG_INFINITY } else { 0.0 });
        let mut taps = [Tap::default(); 4 * SAMPLES];
        // Samples of as many bins as there is room for, or of a part of one.
        let per_bin = total.clamp(1, SAMPLES);
        let together = SAMPLES / per_bin;
        for first in (0..bins).step_by(together) {
            let count = together.min(bins - first);
            for start in (0..total).step_by(per_bin) {
                let samples = per_bin.min(total - start);
                let groups = taps.as_chunks_mut::<4>().0.chunks_exact_mut(samples);
                for (bin, group) in (first..first + count).zip(groups) {
                    for (sample, taps) in (start..start + samples).zip(group) {
                        *taps = self.taps(bins_of, bin, sample, scale);
                    }
                }
                let (plane, per_bin) = (self.size[0] * self.size[1], 4 * samples);
                let taps = &taps[..count * per_bin];
                let work = Bin {
                    taps,
                    count: per_bin,
                    first,
                    pitches: (plane, bins),
                    order: self.order,
                    max: self.max,
                    x,
                    y,
                };
                dispatch(isas, work);
            }
        }
    }
}

/// Some samples of some bins of some channels.
struct Bin<'a> {
    taps: &'a [Tap],
    /// Taps of one bin.
    count: usize,
    /// The first of the bins.
    first: usize,
    /// Elements of a channel of the picture and of the result.
    pitches: (usize, usize),
    order: ChannelOrder,
    max: bool,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Bin<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { taps, count, first, pitches: (plane, bins), order, max, x, y } = self;
        if order == ChannelOrder::Last {
            let channels = x.len() / plane;
            for (y, taps) in y[first * channels..].chunks_exact_mut(channels).zip(taps.chunks_exact(count)) {
                for tap in taps {
                    if tap.share == 0.0 && !max {
                        continue;
                    }
                    let x = &x[tap.offset as usize * channels..][..channels];
                    match (max, tap.share == 0.0) {
                        (false, _) => {
                            y.iter_mut()
                                .zip(x)
                                .for_each(|(y, &x)| *y = multiply_add::<FMA>(tap.share, x, *y));
                        }
                        (true, false) => y.iter_mut().zip(x).for_each(|(y, &x)| *y = y.max(tap.share * x)),
                        (true, true) => y.iter_mut().for_each(|y| *y = y.max(0.0)),
                    }
                }
            }
            return;
        }
        for (x, y) in x.chunks_exact(plane).zip(y.chunks_exact_mut(bins)) {
            for (y, taps) in y[first..].iter_mut().zip(taps.chunks_exact(count)) {
                if max {
                    *y = taps.iter().map(|tap| tap.of(x)).fold(*y, f32::max);
                } else {
                    *y += combine(taps, x);
                }
            }
        }
    }
}
