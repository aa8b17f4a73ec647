//! Softmax and its logarithm over one axis.
//!
//! A tensor is seen as `outer` by `axis` by `inner`; the axis is normalised for every outer and inner index. The largest
//! element is subtracted first, so nothing overflows. An axis of which all elements are minus infinity gives NaN, as in
//! ONNX's definition.

#![expect(unsafe_code, reason = "rows of the output are handed to tasks")]

#[cfg(test)]
mod tests;

use crate::dispatch::{Loop, dispatch};
use crate::elementwise::math;
use crate::isa::Isas;
use crate::lanes::{self, Largest, Sum};
use crate::threads::{DisjointMut, Team};

/// Elements worth a task of their own.
const GRAIN: usize = 4 * 1024;
/// Columns done together where the axis is not innermost.
const COLUMNS: usize = 64;

/// Which function is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Softmax {
    /// `e^x` over the sum of `e^x`.
    Probability,
    /// The logarithm of that.
    Logarithm,
}

/// Normalises the axis of a tensor of `outer` by `axis` by `inner` elements.
///
/// # Panics
/// When `x` or `y` does not have that many elements.
pub fn softmax(
    isas: Isas,
    team: &Team,
    function: Softmax,
    (outer, axis, inner): (usize, usize, usize),
    x: &[f32],
    y: &mut [f32],
) {
    assert_eq!(x.len(), outer * axis * inner, "the input's length differs from its shape's");
    assert_eq!(y.len(), x.len(), "input and output differ in length");
    if x.is_empty() {
        return;
    }
    let output = DisjointMut::new(y);
    if inner == 1 {
        team.parallel_ranges(outer, GRAIN.div_ceil(axis.max(1)), 1, &|start, end| {
            // SAFETY: tasks have rows that do not meet.
            let y = unsafe { output.slice_mut(start * axis, (end - start) * axis) };
            dispatch(isas, Rows { function, axis, x: &x[start * axis..end * axis], y });
        });
        return;
    }
    let blocks = inner.div_ceil(COLUMNS);
    team.parallel_ranges(
        outer * blocks,
        GRAIN.div_ceil((axis * COLUMNS.min(inner)).max(1)),
        1,
        &|start, end| {
            for item in start..end {
                let column = item % blocks * COLUMNS;
                let first = item / blocks * axis * inner + column;
                dispatch(
                    isas,
                    Columns {
                        function,
                        axis,
                        inner,
                        count: COLUMNS.min(inner - column),
                        first,
                        x,
                        y: &output,
                    },
                );
            }
        },
    );
}

/// Rows that are normalised each.
struct Rows<'a> {
    function: Softmax,
    axis: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Loop for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (x, y) in self.x.chunks_exact(self.axis).zip(self.y.chunks_exact_mut(self.axis)) {
            let largest = lanes::fold::<_, FMA>(Largest, x) as f32;
            for (y, &x) in y.iter_mut().zip(x) {
                *y = math::exp::<FMA>(x - largest);
            }
            let sum = lanes::fold::<_, FMA>(Sum, y);
            match self.function {
                Softmax::Probability => {
                    let scale = (1.0 / sum) as f32;
                    for y in y.iter_mut() {
                        *y *= scale;
                    }
                }
                Softmax::Logarithm => {
                    let logarithm = sum.ln() as f32;
                    for (y, &x) in y.iter_mut().zip(x) {
                        *y = x - largest - logarithm;
                    }
                }
            }
        }
    }
}

/// Neighbouring columns, `inner` elements from one element of the axis to the next.
struct Columns<'a, 'b> {
    function: Softmax,
    axis: usize,
    inner: usize,
    count: usize,
    /// Index of the first column's first element.
    first: usize,
    x: &'a [f32],
    y: &'a DisjointMut<'b, f32>,
}

impl Loop for Columns<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { function, axis, inner, count, first, x, y } = self;
        let (mut largest, mut sum) = ([f32::NEG_INFINITY; COLUMNS], [0.0_f32; COLUMNS]);
        let (largest, sum) = (&mut largest[..count], &mut sum[..count]);
        let row = |index: usize| &x[first + index * inner..][..count];
        for index in 0..axis {
            for (largest, &x) in largest.iter_mut().zip(row(index)) {
                *largest = if *largest > x { *largest } else { x };
            }
        }
        for index in 0..axis {
            // SAFETY: no other task has these columns, and this loop has one part of them at a time.
            let y = unsafe { y.slice_mut(first + index * inner, count) };
            for (((y, &x), &largest), sum) in y.iter_mut().zip(row(index)).zip(&*largest).zip(sum.iter_mut())
            {
                let exponential = math::exp::<FMA>(x - largest);
                *y = exponential;
                *sum += exponential;
            }
        }
        for sum in sum.iter_mut() {
            *sum = match function {
                Softmax::Probability => 1.0 / *sum,
                Softmax::Logarithm => math::log::<FMA>(*sum),
            };
        }
        for index in 0..axis {
            // SAFETY: as above.
            let y = unsafe { y.slice_mut(first + index * inner, count) };
            match function {
                Softmax::Probability => y.iter_mut().zip(&*sum).for_each(|(y, &scale)| *y *= scale),
                Softmax::Logarithm => {
                    for (((y, &x), &largest), &logarithm) in
                        y.iter_mut().zip(row(index)).zip(&*largest).zip(&*sum)
                    {
                        *y = x - largest - logarithm;
                    }
                }
            }
        }
    }
}
