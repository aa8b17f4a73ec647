//! Packing B into panels, and what is known of it before it meets A.

use bytemuck::{Pod, Zeroable};

use super::table::Kernel;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([i8; 64]);

/// Bytes, zero at first, at a multiple of 64 bytes.
#[derive(Clone, Debug)]
pub(crate) struct AlignedBytes(Vec<Line>);

impl AlignedBytes {
    pub(crate) fn zeroed(length: usize) -> AlignedBytes {
        AlignedBytes(vec![Line::zeroed(); length.div_ceil(64)])
    }

    pub(crate) fn as_slice(&self) -> &[i8] {
        bytemuck::cast_slice(&self.0)
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [i8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// How a matrix is cut into panels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels {
    pub(crate) kernel: Kernel,
    /// Parts of each row of A, which lie at offsets of their own.
    pub(crate) taps: usize,
    /// Bytes of a row of A per tap.
    pub(crate) depth: usize,
    /// Columns of B.
    pub(crate) columns: usize,
}

impl Panels {
    /// How many panels there are.
    pub(crate) fn count(&self) -> usize {
        self.columns.div_ceil(self.kernel.columns())
    }

    /// Groups of four bytes of depth, over all taps.
    pub(crate) fn steps(&self) -> usize {
        self.taps * self.depth.div_ceil(4)
    }

    /// Columns of a panel.
    pub(crate) fn columns(&self, panel: usize) -> usize {
        (self.columns - panel * self.kernel.columns()).min(self.kernel.columns())
    }

    /// Vectors of a panel.
    pub(crate) fn vectors(&self, panel: usize) -> usize {
        self.columns(panel).div_ceil(self.kernel.entry().lanes)
    }

    /// Where a panel begins, in bytes.
    pub(crate) fn start(&self, panel: usize) -> usize {
        panel * self.kernel.columns() * 4 * self.steps()
    }

    /// Bytes of all panels.
    pub(crate) fn bytes(&self) -> usize {
        let Some(last) = self.count().checked_sub(1) else { return 0 };
        self.start(last) + self.vectors(last) * self.kernel.entry().lanes * 4 * self.steps()
    }

    /// Writes all panels; `read` gives the element of a tap, a depth and a column.
    pub(crate) fn pack(&self, read: impl Fn(usize, usize, usize) -> i8, to: &mut [i8]) {
        for panel in 0..self.count() {
            let width = self.vectors(panel) * self.kernel.entry().lanes;
            let first = panel * self.kernel.columns();
            let mut groups = to[self.start(panel)..].chunks_exact_mut(width * 4);
            for tap in 0..self.taps {
                for depth in (0..self.depth).step_by(4) {
                    let Some(group) = groups.next() else { return };
                    for (column, quad) in group.chunks_exact_mut(4).enumerate() {
                        for (offset, byte) in quad.iter_mut().enumerate() {
                            let is_inside = column < self.columns(panel) && depth + offset < self.depth;
                            *byte = if is_inside { read(tap, depth + offset, first + column) } else { 0 };
                        }
                    }
                }
            }
        }
    }
}

/// Packed panels of several groups of columns, with the sums that zero points need.
#[derive(Clone, Debug)]
pub(crate) struct PackedPanels {
    pub(crate) panels: Panels,
    pub(crate) groups: usize,
    data: AlignedBytes,
    /// Bytes from one group's panels to the next's.
    stride: usize,
    /// For each column of all groups, the sum of its elements less its zero point.
    pub(crate) column_sums: Vec<i32>,
    /// The zero point of each column of all groups; empty if all are zero.
    pub(crate) zero_points: Vec<i32>,
}

impl PackedPanels {
    /// Packs `groups` matrices of `panels` each. `read` gives the element of a tap, a depth, and a column of all groups;
    /// `zero_points` has none, one, or one per column.
    pub(crate) fn pack(
        panels: Panels,
        groups: usize,
        read: impl Fn(usize, usize, usize) -> i8,
        zero_points: &[i32],
    ) -> Self {
        let stride = panels.bytes().next_multiple_of(64);
        let mut data = AlignedBytes::zeroed(stride * groups);
        let columns = panels.columns * groups;
        let zero_point = |column: usize| match zero_points {
            [] => 0,
            [one] => *one,
            all => all[column],
        };
        let mut column_sums = vec![0_i32; columns];
        for (column, sum) in column_sums.iter_mut().enumerate() {
            for tap in 0..panels.taps {
                for depth in 0..panels.depth {
                    let element = i32::from(read(tap, depth, column)) - zero_point(column);
                    *sum = sum.wrapping_add(element);
                }
            }
        }
        for (group, to) in data.as_mut_slice().chunks_exact_mut(stride.max(1)).enumerate() {
            panels.pack(|tap, depth, column| read(tap, depth, group * panels.columns + column), to);
        }
        let zero_points: Vec<i32> = (0..columns).map(zero_point).collect();
        let zero_points = if zero_points.iter().all(|&zero| zero == 0) { Vec::new() } else { zero_points };
        Self { panels, groups, data, stride, column_sums, zero_points }
    }

    /// The panels of a group.
    pub(crate) fn group(&self, group: usize) -> &[i8] {
        &self.data.as_slice()[group * self.stride..(group + 1) * self.stride]
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.stride * self.groups + (self.column_sums.len() + self.zero_points.len()) * 4
    }
}
