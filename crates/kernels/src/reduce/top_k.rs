//! The largest or smallest elements along an axis, in order.

#![expect(unsafe_code, reason = "columns of the outputs and scratch memory are handed to tasks")]

use std::cmp::Ordering;

use crate::threads::{DisjointMut, Team};

/// Elements worth a task of their own.
const GRAIN: usize = 8 * 1024;

/// Which elements of a tensor of `outer` by `axis` by `inner` elements are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopK {
    /// Lines of the outer axes.
    pub outer: usize,
    /// Length of the axis, below 2^32.
    pub axis: usize,
    /// Lines of the inner axes.
    pub inner: usize,
    /// How many are wanted of each line, at most `axis`.
    pub k: usize,
    /// The largest rather than the smallest.
    pub largest: bool,
}

impl TopK {
    /// Numbers of scratch memory for a team of so many threads.
    pub fn scratch_length(&self, threads: usize) -> usize {
        self.axis * threads
    }
}

/// Where a line is this many times longer than what is wanted of it, most elements are passed over at a glance.
const FEW: usize = 8;
/// Elements glanced at together.
const STRETCH: usize = 32;

/// Leaves the indices of the best elements of a line in `best`, in any order. `may_win` must hold for every element that is
/// better than another; `by` orders indices, the better first.
#[inline(always)]
fn keep_best<T: Copy>(
    best: &mut [u32],
    len: usize,
    at: impl Fn(usize) -> T,
    may_win: impl Fn(T, T) -> bool,
    by: impl Fn(&u32, &u32) -> Ordering,
) {
    let k = best.len();
    if k == 0 {
        return;
    }
    for (index, slot) in best.iter_mut().enumerate() {
        *slot = index as u32;
    }
    // A heap with the worst at its root.
    for root in (0..k / 2).rev() {
        sink(best, root, &by);
    }
    let mut start = k;
    while start < len {
        let end = len.min(start + STRETCH);
        let worst = at(best[0] as usize);
        let any = (start..end).fold(false, |any, index| any | may_win(at(index), worst));
        if any {
            for index in start..end {
                if by(&(index as u32), &best[0]).is_lt() {
                    best[0] = index as u32;
                    sink(best, 0, &by);
                }
            }
        }
        start = end;
    }
}

/// Moves the root of a part of a heap down to where it belongs.
#[inline(always)]
fn sink(heap: &mut [u32], mut root: usize, by: &impl Fn(&u32, &u32) -> Ordering) {
    loop {
        let mut worst = root;
        for child in [2 * root + 1, 2 * root + 2] {
            if child < heap.len() && by(&heap[child], &heap[worst]).is_gt() {
                worst = child;
            }
        }
        if worst == root {
            return;
        }
        heap.swap(root, worst);
        root = worst;
    }
}

/// Whether `a` is larger than `b`, or one of them is NaN.
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "what cannot be compared counts")]
#[inline(always)]
fn not_at_most<T: PartialOrd>(a: T, b: T) -> bool {
    !(a <= b)
}

/// The order of numbers, NaN behind all others.
#[expect(clippy::eq_op, reason = "only NaN differs from itself, and the trait has no other test")]
#[inline(always)]
fn compare<T: PartialOrd + Copy>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| (a != a).cmp(&(b != b)))
}

/// Of each line the wanted elements and their indices, the best first; of equal ones the one with the lower index.
///
/// # Panics
/// When a slice does not have the length that the sizes imply, or `k` is larger than the axis.
pub fn top_k<T: PartialOrd + Copy + Send + Sync>(
    team: &Team,
    wanted: TopK,
    x: &[T],
    values: Option<&mut [T]>,
    indices: Option<&mut [i64]>,
    scratch: &mut [u32],
) {
    let TopK { outer, axis, inner, k, largest } = wanted;
    assert_eq!(x.len(), outer * axis * inner, "the input's length differs from its shape's");
    let count = outer * k * inner;
    assert!(values.as_ref().is_none_or(|values| values.len() == count), "the values' length differs");
    assert!(indices.as_ref().is_none_or(|indices| indices.len() == count), "the indices' length differs");
    assert!(k <= axis && scratch.len() >= axis * team.threads(), "k or the scratch memory does not fit");
    if count == 0 {
        return;
    }
    let values = values.map(DisjointMut::new);
    let indices = indices.map(DisjointMut::new);
    let scratch = DisjointMut::new(scratch);
    let lines = outer * inner;
    let step = GRAIN.div_ceil(axis.max(1)).max(lines.div_ceil(team.threads() * 4));
    team.run_with_thread(lines.div_ceil(step), &|thread, task| {
        // SAFETY: every thread has a part of its own, and runs one task at a time.
        let order = unsafe { scratch.slice_mut(thread * axis, axis) };
        for line in task * step..((task + 1) * step).min(lines) {
            let (i, j) = (line / inner, line % inner);
            let column = &x[i * axis * inner + j..];
            let by = |a: &u32, b: &u32| {
                let order = compare(column[*a as usize * inner], column[*b as usize * inner]);
                (if largest { order.reverse() } else { order }).then(a.cmp(b))
            };
            if k * FEW <= axis {
                let (order, len) = (&mut order[..k], axis);
                let at = |index: usize| column[index * inner];
                if largest {
                    keep_best(order, len, at, not_at_most, by);
                } else {
                    keep_best(order, len, at, |x, worst| not_at_most(worst, x), by);
                }
            } else {
                for (index, slot) in order.iter_mut().enumerate() {
                    *slot = index as u32;
                }
                if k < axis {
                    order.select_nth_unstable_by(k, by);
                }
            }
            order[..k].sort_unstable_by(by);
            for (place, &index) in order[..k].iter().enumerate() {
                let to = (i * k + place) * inner + j;
                if let Some(values) = &values {
                    // SAFETY: every output belongs to one line.
                    let value = unsafe { values.slice_mut(to, 1) };
                    value[0] = column[index as usize * inner];
                }
                if let Some(indices) = &indices {
                    // SAFETY: as above.
                    let place = unsafe { indices.slice_mut(to, 1) };
                    place[0] = i64::from(index);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn the_best_are_those_of_a_sorted_line(
            (outer, axis, inner) in (1_usize..3, 1_usize..200, 1_usize..4), share in 0.0..1.0_f64, largest: bool,
        ) {
            let k = (axis as f64 * share * share) as usize;
            let wanted = TopK { outer, axis, inner, k, largest };
            // Many equal numbers, and some that are none.
            let x: Vec<f32> = (0..outer * axis * inner)
                .map(|index| if index % 37 == 5 { f32::NAN } else { ((index * 7919) % 41) as f32 - 20.0 })
                .collect();
            let (mut values, mut indices) = (vec![0.0; outer * k * inner], vec![0; outer * k * inner]);
            let team = Team::new(2);
            let mut scratch = vec![0; wanted.scratch_length(2)];
            top_k(&team, wanted, &x, Some(&mut values), Some(&mut indices), &mut scratch);
            for line in 0..outer * inner {
                let (i, j) = (line / inner, line % inner);
                let at = |index: usize| x[(i * axis + index) * inner + j];
                let mut order: Vec<usize> = (0..axis).collect();
                // The sort is stable, so that of equal ones the first comes first.
                order.sort_by(|&a, &b| if largest { compare(at(b), at(a)) } else { compare(at(a), at(b)) });
                for (place, &index) in order[..k].iter().enumerate() {
                    let to = (i * k + place) * inner + j;
                    prop_assert_eq!(indices[to], index as i64);
                    prop_assert_eq!(values[to].to_bits(), at(index).to_bits());
                }
            }
        }
    }
}
