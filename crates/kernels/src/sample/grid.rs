//! `GridSample`: a result for each place of a grid.

use smallvec::SmallVec;

use super::{Tap, combine};
use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::isa::Isas;
use crate::layout::ChannelOrder;
use crate::threads::{DisjointMut, Team};

/// Places worked on together.
const BLOCK: usize = 32;
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

    /// Samples `x` at the places of `grid`.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply, or there are not one to three axes.
    pub fn run(&self, isas: Isas, team: &Team, x: &[f32], grid: &[f32], y: &mut [f32]) {
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
        if plane == 0 || y.is_empty() {
            y.fill(0.0);
            return;
        }
        let per_place = self.taps_per_place();
        let output = DisjointMut::new(y);
        let blocks = self.places.div_ceil(BLOCK);
        let grain = 16 * 1024 / (BLOCK * per_place * self.channels) + 1;
        team.parallel_ranges(self.batch * blocks, grain, 1, &|start, end| {
            let mut taps = [Tap::default(); BLOCK * MOST_TAPS];
            for block in start..end {
                let (item, first) = (block / blocks, block % blocks * BLOCK);
                let count = BLOCK.min(self.places - first);
                let places = &grid[(item * self.places + first) * axes..][..count * axes];
                let taps = &mut taps[..count * per_place];
                for (place, taps) in places.chunks_exact(axes).zip(taps.chunks_exact_mut(per_place)) {
                    self.taps(place, taps);
                }
                let x = &x[item * self.channels * plane..][..self.channels * plane];
                if self.order == ChannelOrder::Last {
                    let at = (item * self.places + first) * self.channels;
                    // SAFETY: every place is written by the one task that has its block.
                    let y = unsafe { output.slice_mut(at, count * self.channels) };
                    dispatch(isas, Pixels { taps, per_place, channels: self.channels, x, y });
                    continue;
                }
                for (channel, x) in x.chunks_exact(plane).enumerate() {
                    let at = (item * self.channels + channel) * self.places + first;
                    // SAFETY: every place of every channel is written by the one task that has its block.
                    let y = unsafe { output.slice_mut(at, count) };
                    dispatch(isas, Plane { taps, per_place, x, y });
                }
            }
        });
    }
}

/// The places of one channel.
struct Plane<'a> {
    taps: &'a [Tap],
    per_place: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        if self.per_place == 4 {
            for (y, taps) in self.y.iter_mut().zip(self.taps.as_chunks::<4>().0) {
                *y = combine(taps, self.x);
            }
            return;
        }
        for (y, taps) in self.y.iter_mut().zip(self.taps.chunks_exact(self.per_place)) {
            *y = combine(taps, self.x);
        }
    }
}

/// All channels of places, of data whose channels lie together.
struct Pixels<'a> {
    taps: &'a [Tap],
    per_place: usize,
    channels: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { taps, per_place, channels, x, y } = self;
        for (y, taps) in y.chunks_exact_mut(channels).zip(taps.chunks_exact(per_place)) {
            y.fill(0.0);
            for tap in taps.iter().filter(|tap| tap.share != 0.0) {
                let x = &x[tap.offset as usize * channels..][..channels];
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = multiply_add::<FMA>(tap.share, x, *y));
            }
        }
    }
}
