//! Floats at addresses that are multiples of a cache line, for packed weights.

use bytemuck::{Pod, Zeroable};

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// A fixed number of floats, zero at first, at a multiple of 64 bytes.
#[derive(Clone, Debug)]
pub(crate) struct AlignedFloats {
    lines: Vec<Line>,
    length: usize,
}

impl AlignedFloats {
    pub(crate) fn zeroed(length: usize) -> AlignedFloats {
        AlignedFloats { lines: vec![Line::zeroed(); length.div_ceil(16)], length }
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.length]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.length]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}
