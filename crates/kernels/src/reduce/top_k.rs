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
    let step = GRAIN.div_ceil(axis).max(lines.div_ceil(team.threads() * 4));
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
            for (index, slot) in order.iter_mut().enumerate() {
                *slot = index as u32;
            }
            if k < axis {
                order.select_nth_unstable_by(k, by);
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
