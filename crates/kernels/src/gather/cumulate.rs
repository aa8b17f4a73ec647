//! Running sums along an axis.

#![expect(unsafe_code, reason = "planes of the output are handed to tasks")]

use crate::elementwise::Number;
use crate::threads::{DisjointMut, Team};

/// ONNX `CumSum` along the axis of a tensor of `outer` by `axis` by `inner` elements: each output is the sum of the elements
/// up to it (from the end if `reverse`), without itself if `exclusive`.
///
/// # Panics
/// When a slice does not have the length that the sizes imply.
pub fn cumulative_sum<T: Number>(
    team: &Team,
    (outer, axis, inner): (usize, usize, usize),
    exclusive: bool,
    reverse: bool,
    x: &[T],
    y: &mut [T],
) {
    assert_eq!(x.len(), outer * axis * inner, "the input's length differs from its shape's");
    assert_eq!(y.len(), x.len(), "input and output differ in length");
    let plane = axis * inner;
    if plane == 0 {
        return;
    }
    let output = DisjointMut::new(y);
    team.parallel_ranges(outer, (16 * 1024_usize).div_ceil(plane), 1, &|start, end| {
        for index in start..end {
            let x = &x[index * plane..(index + 1) * plane];
            // SAFETY: every plane is written by the one task that has its index.
            let y = unsafe { output.slice_mut(index * plane, plane) };
            // Row `step` of the way, and what comes before it.
            let row = |step: usize| if reverse { axis - 1 - step } else { step };
            for step in 0..axis {
                let (here, before) = (row(step) * inner, row(step.saturating_sub(1)) * inner);
                for column in 0..inner {
                    let sum = if step == 0 { T::default() } else { y[before + column] };
                    let added = match (exclusive, step) {
                        (false, _) => x[here + column],
                        (true, 0) => T::default(),
                        (true, _) => x[before + column],
                    };
                    y[here + column] = sum.add(added);
                }
            }
        }
    });
}
