//! Running sums and products along an axis.

#![expect(unsafe_code, reason = "planes of the output are handed to tasks")]

use crate::elementwise::Number;
use crate::threads::{DisjointMut, Team};

/// What a running result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cumulate {
    /// Elements are multiplied rather than added.
    pub product: bool,
    /// An element does not count itself.
    pub exclusive: bool,
    /// From the end.
    pub reverse: bool,
}

/// ONNX `CumSum` or `CumProd` along the axis of a tensor of `outer` by `axis` by `inner` elements.
///
/// # Panics
/// When a slice does not have the length that the sizes imply.
pub fn cumulate<T: Number>(
    team: &Team,
    wanted: Cumulate,
    (outer, axis, inner): (usize, usize, usize),
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
            if wanted.product {
                plane_of(wanted, inner, x, y, T::ONE, T::multiply);
            } else {
                plane_of(wanted, inner, x, y, T::default(), T::add);
            }
        }
    });
}

#[inline(always)]
fn plane_of<T: Number>(
    wanted: Cumulate,
    inner: usize,
    x: &[T],
    y: &mut [T],
    first: T,
    join: impl Fn(T, T) -> T,
) {
    let axis = x.len() / inner;
    // Row `step` of the way, and what comes before it.
    let row = |step: usize| if wanted.reverse { axis - 1 - step } else { step };
    for step in 0..axis {
        let (here, before) = (row(step) * inner, row(step.saturating_sub(1)) * inner);
        for column in 0..inner {
            let so_far = if step == 0 { first } else { y[before + column] };
            let next = match (wanted.exclusive, step) {
                (false, _) => x[here + column],
                (true, 0) => first,
                (true, _) => x[before + column],
            };
            y[here + column] = join(so_far, next);
        }
    }
}
