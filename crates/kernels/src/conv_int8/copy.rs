//! Copying an image with padding, and with its sign bits flipped if need be.

#![expect(unsafe_code, reason = "rows of the copy are handed to tasks")]

use crate::dispatch::dispatch;
use crate::gemm_int8::Flip;
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// How an image is copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaddedCopy {
    pub(super) in_h: usize,
    pub(super) in_w: usize,
    pub(super) channels: usize,
    /// Bytes from one input pixel to the next.
    pub(super) pitch: usize,
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) bottom: usize,
    pub(super) right: usize,
    /// Whether sign bits are flipped.
    pub(super) flips: bool,
}

impl PaddedCopy {
    /// Bytes of a row of the copy.
    pub(super) fn row(&self) -> usize {
        (self.left + self.in_w + self.right) * self.channels
    }

    /// Bytes of the copy.
    pub(super) fn length(&self) -> usize {
        self.row() * (self.top + self.in_h + self.bottom)
    }

    /// Bytes of the copy and of what kernels may read beyond it.
    pub(super) fn room(&self) -> usize {
        self.length() + 3
    }

    /// Copies the image at the begin of `x`, with `padding` around it.
    pub(super) fn run(&self, isas: Isas, team: &Team, x: &[u8], padding: u8, y: &mut [u8]) {
        let row = self.row();
        let output = DisjointMut::new(y);
        let rows = self.top + self.in_h + self.bottom;
        team.parallel_ranges(rows, (32 * 1024_usize).div_ceil(row.max(1)), 1, &|start, end| {
            for index in start..end {
                // SAFETY: every row is written by the one task that has its index.
                let y = unsafe { output.slice_mut(index * row, row) };
                if index < self.top || index >= self.top + self.in_h {
                    y.fill(padding);
                    continue;
                }
                let (left, rest) = y.split_at_mut(self.left * self.channels);
                let (middle, right) = rest.split_at_mut(self.in_w * self.channels);
                left.fill(padding);
                right.fill(padding);
                let x = &x[(index - self.top) * self.in_w * self.pitch..];
                if self.pitch == self.channels {
                    self.copy(isas, &x[..middle.len()], middle);
                } else {
                    for (y, x) in middle.chunks_exact_mut(self.channels).zip(x.chunks(self.pitch)) {
                        self.copy(isas, &x[..self.channels], y);
                    }
                }
            }
        });
    }

    fn copy(&self, isas: Isas, x: &[u8], y: &mut [u8]) {
        if self.flips {
            dispatch(isas, Flip { x, y });
        } else {
            y.copy_from_slice(x);
        }
    }
}
