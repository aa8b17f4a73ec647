//! Sampling pictures between their elements: grids of places, regions, and the moved taps of convolutions.
//!
//! A place becomes a few [`Tap`]s, elements with their shares, which serve all channels. Where a tap has no share its
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

use crate::dispatch::multiply_add;

/// An element of a plane and its share of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Tap {
    offset: u32,
    share: f32,
}

/// The sum of a plane's elements by their shares.
#[inline(always)]
fn combine<const FMA: bool>(taps: &[Tap], plane: &[f32]) -> f32 {
    taps.iter().fold(0.0, |sum, tap| {
        let value = if tap.share == 0.0 { 0.0 } else { plane[tap.offset as usize] };
        multiply_add::<FMA>(tap.share, value, sum)
    })
}
