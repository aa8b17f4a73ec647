//! Sampling pictures between their elements: grids of places, regions, and the moved taps of convolutions.
//!
//! A place becomes a few taps, elements with their shares, which serve all channels. Where a tap has no share its
//! element is not looked at, so what lies outside of a picture may be named by any element.

#![expect(unsafe_code, reason = "parts of the output are handed to tasks")]

mod deform;
mod grid;
mod region;
#[cfg(test)]
mod tests;

pub use deform::DeformTaps;
pub use grid::{GridInterpolation, GridPadding, GridSample};
pub use region::{Region, RegionAlign, RegionError};

/// An element of a plane and its share of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Tap {
    offset: u32,
    share: f32,
}

impl Tap {
    /// As one number, for scratch memory.
    #[inline(always)]
    fn packed(self) -> u64 {
        u64::from(self.offset) | u64::from(self.share.to_bits()) << 32
    }

    #[inline(always)]
    fn unpacked(packed: u64) -> Self {
        Self { offset: packed as u32, share: f32::from_bits((packed >> 32) as u32) }
    }

    /// Its part of a result: nothing where it has no share, whatever the element is.
    #[inline(always)]
    fn of(self, plane: &[f32]) -> f32 {
        // The element is read in any case, so that there is no branch.
        let value = plane[self.offset as usize];
        if self.share == 0.0 { 0.0 } else { self.share * value }
    }
}

/// The sum of a plane's elements by their shares.
#[inline(always)]
fn combine(taps: &[Tap], plane: &[f32]) -> f32 {
    let (fours, rest) = taps.as_chunks::<4>();
    // Four sums, none of which waits for another.
    let mut sums = [0.0; 4];
    for taps in fours {
        for (sum, tap) in sums.iter_mut().zip(taps) {
            *sum += tap.of(plane);
        }
    }
    let rest: f32 = rest.iter().map(|tap| tap.of(plane)).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}
