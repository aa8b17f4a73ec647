//! `GridSample`: a result for each place of a grid.

use smallvec::SmallVec;

use super::Tap;
use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::isa::Isas;
use crate::layout::ChannelOrder;
use crate::threads::{DisjointMut, Team};

/// Taps that are kept: half a megabyte.
const MOST_KEPT: usize = 64 * 1024;
/// Taps of a place: four along each of three axes.
const MOST_TAPS: usize = 64;

/// How a value between elements is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridInterpolation {
    /// The nearest element.
    Nearest,
    /// Linear along each axis.
    Linear,
    /// Cubic along each axis, with coefficient -0.75.
    Cubic,
}

/// What lies outside of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridPadding {
    /// Zeros.
    Zeros,
    /// The outermost elements.
    Border,
    /// The data mirrored.
    Reflection,
}

/// One use of `GridSample` on `f32`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridSample {
    /// Items, each with a grid of its own.
    pub batch: usize,
    /// Channels, which share a grid.
    pub channels: usize,
    /// Lengths of one to three spatial axes.
    pub lengths: SmallVec<[usize; 3]>,
    /// Places of a grid.
    pub places: usize,
    /// How a value between elements is found.
    pub interpolation: GridInterpolation,
    /// What lies outside of the data.
    pub padding: GridPadding,
    /// -1 and 1 are the centres of the outermost elements, rather than their outer edges.
    pub align_corners: bool,
    /// Where the channels lie in data and result.
    pub order: ChannelOrder,
}

/// Taps along one axis.
type Line = SmallVec<[Tap; 4]>;

/// Mirrors a place at two edges until it is between them.
fn reflect(at: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 {
        return low;
    }
    let turned = (at - low).abs() % (2.0 * range);
    low + turned.min(2.0 * range - turned)
}

impl GridSample {
    fn edges(&self, len: usize) -> (f64, f64) {
        let last = len as f64 - 1.0;
        if self.align_corners { (0.0, last) } else { (-0.5, last + 0.5) }
    }

    /// The tap of an element that may lie outside; without a share where there is none.
    fn tap(&self, index: f64, len: usize, share: f64) -> Tap {
        let last = len as f64 - 1.0;
        let inside = match self.padding {
            GridPadding::Zeros => index,
            GridPadding::Border => index.clamp(0.0, last),
            GridPadding::Reflection => {
                let (low, high) = self.edges(len);
                reflect(index, low, high).trunc().clamp(0.0, last)
            }
        };
        if (0.0..=last).contains(&inside) {
            Tap { offset: inside as u32, share: share as f32 }
        } else {
            Tap::default()
        }
    }

    fn line(&self, place: f32, len: usize) -> Line {
        let (place, length) = (f64::from(place), len as f64);
        let mut at = if self.align_corners {
            (place + 1.0) * (length - 1.0) / 2.0
        } else {
            ((place + 1.0) * length - 1.0) / 2.0
        };
        if self.interpolation == GridInterpolation::Nearest {
            at = at.round_ties_even();
        }
        let (low, high) = self.edges(len);
        if at < low || at > high {
            match self.padding {
                GridPadding::Zeros => {}
                GridPadding::Border => at = at.clamp(0.0, length - 1.0),
                GridPadding::Reflection => at = reflect(at, low, high),
            }
        }
        let first = at.floor();
        let part = at - first;
        match self.interpolation {
            GridInterpolation::Nearest => SmallVec::from_slice(&[self.tap(at.trunc(), len, 1.0)]),
            GridInterpolation::Linear => {
                SmallVec::from_slice(&[self.tap(first, len, 1.0 - part), self.tap(first + 1.0, len, part)])
            }
            GridInterpolation::Cubic => {
                const A: f64 = -0.75;
                let near = |t: f64| ((A + 2.0) * t - (A + 3.0)) * t * t + 1.0;
                let far = |t: f64| ((A * t - 5.0 * A) * t + 8.0 * A) * t - 4.0 * A;
                SmallVec::from_slice(&[
                    self.tap(first - 1.0, len, far(part + 1.0)),
                    self.tap(first, len, near(part)),
                    self.tap(first + 1.0, len, near(1.0 - part)),
                    self.tap(first + 2.0, len, far(2.0 - part)),
                ])
            }
        }
    }

    /// Taps of each place.
    fn taps_per_place(&self) -> usize {
        let along: usize = match self.interpolation {
            GridInterpolation::Nearest => 1,
            GridInterpolation::Linear => 2,
            GridInterpolation::Cubic => 4,
        };
        along.pow(self.lengths.len() as u32)
    }

    /// The taps of a place, whose coordinates name the last axis first.
    fn taps(&self, place: &[f32], taps: &mut [Tap]) {
        taps[0] = Tap { offset: 0, share: 1.0 };
        let mut count = 1;
        for (&len, &at) in self.lengths.iter().zip(place.iter().rev()) {
            let line = self.line(at, len);
            // Backwards, so that taps are read before they are replaced.
            for old in (0..count).rev() {
                let outer = taps[old];
                for (new, tap) in line.iter().enumerate().rev() {
                    taps[old * line.len() + new] = Tap {
                        offset: outer.offset * len as u32 + tap.offset,
                        share: outer.share * tap.share,
                    };
                }
            }
            count *= line.len();
        }
    }

    /// Places whose taps are kept while channel after channel is sampled at them.
    fn together(&self) -> usize {
        (MOST_KEPT / self.taps_per_place()).min(self.places)
    }

    /// Numbers of scratch memory.
    pub fn scratch_length(&self) -> usize {
        if self.order == ChannelOrder::Last { 0 } else { self.together() * self.taps_per_place() }
    }

    /// Samples `x` at the places of `grid`.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply, or there are not one to three axes.
    pub fn run(&self, isas: Isas, team: &Team, x: &[f32], grid: &[f32], y: &mut [f32], scratch: &mut [u64]) {
        let axes = self.lengths.len();
        assert!((1..=3).contains(&axes), "grids have one to three axes");
        let plane: usize = self.lengths.iter().product();
        assert!(u32::try_from(plane).is_ok(), "a plane has fewer than 2^32 elements");
        assert_eq!(
            x.len(),
            self.batch * self.channels * plane,
            "the input's length differs from its shape's"
        );
        assert_eq!(grid.len(), self.batch * self.places * axes, "the grid's length differs from its shape's");
        assert_eq!(y.len(), self.batch * self.channels * self.places, "the output's length differs");
        assert!(scratch.len() >= self.scratch_length(), "the scratch memory is too small");
        if plane == 0 || y.is_empty() {
            y.fill(0.0);
        } else if self.order == ChannelOrder::Last {
            self.pixels(isas, team, (x, plane), grid, y);
        } else {
            self.planes(isas, team, (x, plane), grid, y, scratch);
        }
    }

    /// Channels that lie together: place by place.
    fn pixels(&self, isas: Isas, team: &Team, (x, plane): (&[f32], usize), grid: &[f32], y: &mut [f32]) {
        let (axes, per_place) = (self.lengths.len(), self.taps_per_place());
        let output = DisjointMut::new(y);
        let grain = 16 * 1024 / (per_place * self.channels) + 1;
        team.parallel_ranges(self.batch * self.places, grain, 1, &|start, end| {
            let mut taps = [Tap::default(); MOST_TAPS];
            let taps = &mut taps[..per_place];
            for place in start..end {
                self.taps(&grid[place * axes..][..axes], taps);
                let x = &x[place / self.places * self.channels * plane..][..self.channels * plane];
                // SAFETY: every place is written by one task.
                let y = unsafe { output.slice_mut(place * self.channels, self.channels) };
                dispatch(isas, Pixel { taps, x, y });
            }
        });
    }

    /// Channels one after the other: the taps of many places are made first, and serve every channel.
    fn planes(
        &self,
        isas: Isas,
        team: &Team,
        (x, plane): (&[f32], usize),
        grid: &[f32],
        y: &mut [f32],
        scratch: &mut [u64],
    ) {
        let (axes, per_place, together) = (self.lengths.len(), self.taps_per_place(), self.together());
        let output = DisjointMut::new(y);
        for item in 0..self.batch {
            let x = &x[item * self.channels * plane..][..self.channels * plane];
            for first in (0..self.places).step_by(together) {
                let count = together.min(self.places - first);
                let places = &grid[(item * self.places + first) * axes..][..count * axes];
                let kept = &mut scratch[..count * per_place];
                let shared = DisjointMut::new(&mut *kept);
                team.parallel_ranges(count, 512, 1, &|start, end| {
                    let mut taps = [Tap::default(); MOST_TAPS];
                    for place in start..end {
                        self.taps(&places[place * axes..][..axes], &mut taps[..per_place]);
                        // SAFETY: every place belongs to one task.
                        let kept = unsafe { shared.slice_mut(place * per_place, per_place) };
                        for (kept, tap) in kept.iter_mut().zip(&taps) {
                            *kept = tap.packed();
                        }
                    }
                });
                let taps = &*kept;
                team.parallel_ranges(self.channels, 8 * 1024 / (count * per_place) + 1, 1, &|start, end| {
                    for channel in start..end {
                        let x = &x[channel * plane..][..plane];
                        let at = (item * self.channels + channel) * self.places + first;
                        // SAFETY: every channel belongs to one task.
                        let y = unsafe { output.slice_mut(at, count) };
                        dispatch(isas, Plane { taps, per_place, x, y });
                    }
                });
            }
        }
    }
}

/// The places of one channel.
struct Plane<'a> {
    taps: &'a [u64],
    per_place: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { taps, per_place, x, y } = self;
        let of = |tap: u64| Tap::unpacked(tap).of(x);
        match per_place {
            1 => y.iter_mut().zip(taps).for_each(|(y, &tap)| *y = of(tap)),
            4 => {
                for (y, &[a, b, c, d]) in y.iter_mut().zip(taps.as_chunks::<4>().0) {
                    *y = (of(a) + of(b)) + (of(c) + of(d));
                }
            }
            _ => {
                for (y, taps) in y.iter_mut().zip(taps.chunks_exact(per_place)) {
                    let mut sums = [0.0; 2];
                    for taps in taps.as_chunks::<2>().0 {
                        sums.iter_mut().zip(taps).for_each(|(sum, &tap)| *sum += of(tap));
                    }
                    *y = sums[0] + sums[1];
                }
            }
        }
    }
}

/// All channels of a place, of data whose channels lie together.
struct Pixel<'a> {
    taps: &'a [Tap],
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Pixel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { taps, x, y } = self;
        y.fill(0.0);
        for tap in taps.iter().filter(|tap| tap.share != 0.0) {
            let x = &x[tap.offset as usize * y.len()..][..y.len()];
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = multiply_add::<FMA>(tap.share, x, *y));
        }
    }
}
