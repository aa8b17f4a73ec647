//! Where the largest or smallest element along an axis is.

#![expect(unsafe_code, reason = "parts of the output are handed to tasks")]

use crate::dispatch::{Loop, dispatch};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// Elements worth a task of their own.
const GRAIN: usize = 16 * 1024;
/// Outputs searched together where the axis is not innermost.
const COLUMNS: usize = 64;

/// Which element is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgReduce {
    /// The smallest instead of the largest.
    pub smallest: bool,
    /// The last of equal ones instead of the first.
    pub last: bool,
}

/// The index of the wanted element along the axis of a tensor of `outer` by `axis` by `inner` elements.
///
/// # Panics
/// When a slice does not have the length that the shape implies, or the axis is empty though there are outputs.
pub fn arg_reduce<T: Copy + Default + PartialOrd + Sync>(
    isas: Isas,
    team: &Team,
    wanted: ArgReduce,
    (outer, axis, inner): (usize, usize, usize),
    x: &[T],
    y: &mut [i64],
) {
    assert_eq!(x.len(), outer * axis * inner, "the input's length differs from its shape's");
    assert_eq!(y.len(), outer * inner, "the output's length differs from its shape's");
    assert!(axis > 0 || y.is_empty(), "an empty axis has no largest element");
    let output = DisjointMut::new(y);
    let blocks = inner.div_ceil(COLUMNS);
    team.parallel_ranges(
        outer * blocks,
        GRAIN.div_ceil(axis.max(1) * COLUMNS.min(inner.max(1))),
        1,
        &|start, end| {
            for item in start..end {
                let (index, column) = (item / blocks, item % blocks * COLUMNS);
                let count = COLUMNS.min(inner - column);
                // SAFETY: every output belongs to one item.
                let y = unsafe { output.slice_mut(index * inner + column, count) };
                let x = &x[index * axis * inner + column..];
                match wanted {
                    ArgReduce { smallest: false, last: false } => {
                        dispatch(isas, Search { axis, inner, x, y, better: |a, b| a > b });
                    }
                    ArgReduce { smallest: false, last: true } => {
                        dispatch(isas, Search { axis, inner, x, y, better: |a, b| a >= b });
                    }
                    ArgReduce { smallest: true, last: false } => {
                        dispatch(isas, Search { axis, inner, x, y, better: |a, b| a < b });
                    }
                    ArgReduce { smallest: true, last: true } => {
                        dispatch(isas, Search { axis, inner, x, y, better: |a, b| a <= b });
                    }
                }
            }
        },
    );
}

struct Search<'a, T, B> {
    axis: usize,
    inner: usize,
    x: &'a [T],
    y: &'a mut [i64],
    /// Whether a later element is preferred to an earlier one.
    better: B,
}

impl<T: Copy + Default + PartialOrd, B: Fn(T, T) -> bool> Loop for Search<'_, T, B> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { axis, inner, x, y, better } = self;
        if let ([y], 1) = (&mut *y, inner) {
            *y = search_row(&x[..axis], better);
            return;
        }
        let mut best = [T::default(); COLUMNS];
        let best = &mut best[..y.len()];
        best.copy_from_slice(&x[..y.len()]);
        y.fill(0);
        for index in 1..axis {
            let x = &x[index * inner..];
            for ((best, y), &x) in best.iter_mut().zip(y.iter_mut()).zip(x) {
                let is_better = better(x, *best);
                *best = if is_better { x } else { *best };
                *y = if is_better { index as i64 } else { *y };
            }
        }
    }
}

/// Searches a row in stretches: most stretches hold nothing better, which is found out in lanes.
#[inline(always)]
fn search_row<T: Copy + PartialOrd>(x: &[T], better: impl Fn(T, T) -> bool) -> i64 {
    const STRETCH: usize = 32;
    let (mut best, mut place) = (x[0], 0);
    let mut start = 0;
    for stretch in x.chunks(STRETCH) {
        let any = stretch.iter().fold(false, |any, &x| any | better(x, best));
        if any {
            for (offset, &x) in stretch.iter().enumerate() {
                if better(x, best) {
                    (best, place) = (x, start + offset);
                }
            }
        }
        start += stretch.len();
    }
    place as i64
}
