//! Deformable convolution: what its moved taps read, as the factor of a product of matrices.

use super::Tap;
use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// The taps of a deformable convolution over pictures whose channels lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeformTaps {
    /// Channels of a pixel.
    pub channels: usize,
    /// Rows and columns of the picture.
    pub size: [usize; 2],
    /// Rows and columns of the result.
    pub output: [usize; 2],
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Pixels from one window to the next.
    pub strides: [usize; 2],
    /// Pixels from one tap to the next.
    pub dilations: [usize; 2],
    /// Padding before the picture.
    pub begins: [usize; 2],
    /// Groups of channels, each with weights of its own.
    pub groups: usize,
    /// Groups of channels, each with offsets of its own.
    pub offset_groups: usize,
}

impl DeformTaps {
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Numbers that a window reads: groups, in each taps, in each the channels of the group.
    pub fn row(&self) -> usize {
        self.taps() * self.channels
    }

    /// The four pixels around a place, with their shares of it.
    fn around(&self, y: f32, x: f32, share: f32) -> [Tap; 4] {
        let [height, width] = self.size;
        let (top, left) = (y.floor(), x.floor());
        let (low, by) = (y - top, x - left);
        let tap = |row: f32, column: f32, part: f32| {
            let inside = (0.0..height as f32).contains(&row) && (0.0..width as f32).contains(&column);
            if inside {
                Tap { offset: (row as usize * width + column as usize) as u32, share: part * share }
            } else {
                Tap::default()
            }
        };
        [
            tap(top, left, (1.0 - low) * (1.0 - by)),
            tap(top, left + 1.0, (1.0 - low) * by),
            tap(top + 1.0, left, low * (1.0 - by)),
            tap(top + 1.0, left + 1.0, low * by),
        ]
    }

    /// What the windows from `first` on read of picture `x`, one row of `y` each; `offsets` and `mask` are those of the
    /// picture, with the windows innermost.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply.
    pub fn read(
        &self,
        isas: Isas,
        team: &Team,
        first: usize,
        x: &[f32],
        (offsets, mask): (&[f32], Option<&[f32]>),
        y: &mut [f32],
    ) {
        let windows = self.output[0] * self.output[1];
        let (taps, plane) = (self.taps(), self.size[0] * self.size[1]);
        assert!(u32::try_from(plane).is_ok(), "a plane has fewer than 2^32 elements");
        assert_eq!(x.len(), plane * self.channels, "the picture's length differs from its shape's");
        assert_eq!(offsets.len(), self.offset_groups * taps * 2 * windows, "the offsets' length differs");
        assert!(mask.is_none_or(|mask| 2 * mask.len() == offsets.len()), "the mask's length differs");
        assert!(y.len().is_multiple_of(self.row()), "the output is no whole rows");
        let count = y.len() / self.row();
        assert!(first + count <= windows, "there are not that many windows");
        let per_offset = self.channels / self.offset_groups;
        let output = DisjointMut::new(y);
        team.parallel_ranges(count, (8 * 1024_usize).div_ceil(self.row()), 1, &|start, end| {
            for index in start..end {
                // SAFETY: every row belongs to one task.
                let y = unsafe { output.slice_mut(index * self.row(), self.row()) };
                let window = first + index;
                let at = [window / self.output[1], window % self.output[1]];
                for group in 0..self.offset_groups {
                    for tap in 0..taps {
                        let place = [tap / self.kernel[1], tap % self.kernel[1]];
                        let row = group * taps + tap;
                        let coordinate = |axis: usize| {
                            let regular = at[axis] * self.strides[axis] + place[axis] * self.dilations[axis];
                            let moved = offsets[(2 * row + axis) * windows + window];
                            regular as f32 - self.begins[axis] as f32 + moved
                        };
                        let share = mask.map_or(1.0, |mask| mask[row * windows + window]);
                        let around = self.around(coordinate(0), coordinate(1), share);
                        self.channels_of(
                            isas,
                            (tap, &around),
                            group * per_offset..(group + 1) * per_offset,
                            x,
                            y,
                        );
                    }
                }
            }
        });
    }

    /// Some channels of one tap.
    fn channels_of(
        &self,
        isas: Isas,
        (tap, around): (usize, &[Tap; 4]),
        channels: std::ops::Range<usize>,
        x: &[f32],
        y: &mut [f32],
    ) {
        let per_group = self.channels / self.groups;
        let mut channel = channels.start;
        while channel < channels.end {
            let group = channel / per_group;
            let end = channels.end.min((group + 1) * per_group);
            let to = (group * self.taps() + tap) * per_group + channel % per_group;
            let y = &mut y[to..to + end - channel];
            dispatch(isas, Blend { around, pitch: self.channels, first: channel, x, y });
            channel = end;
        }
    }
}

/// Neighbouring channels of one place.
struct Blend<'a> {
    around: &'a [Tap; 4],
    pitch: usize,
    first: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Blend<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { around, pitch, first, x, y } = self;
        y.fill(0.0);
        for tap in around.iter().filter(|tap| tap.share != 0.0) {
            let x = &x[tap.offset as usize * pitch + first..][..y.len()];
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = multiply_add::<FMA>(tap.share, x, *y));
        }
    }
}
