//! Where each value lies in the arena: a pure function of how large values are and how long they live.

use armet_tensor::storage::ALIGNMENT;

/// One value that needs memory from the step that writes it to the last step that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Bytes.
    pub bytes: usize,
    /// First step.
    pub first: usize,
    /// Last step, included.
    pub last: usize,
}

/// Offsets for intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Offset of each interval, in the order given.
    pub offsets: Vec<usize>,
    /// Bytes of the arena.
    pub total: usize,
}

/// Places intervals so that those alive at the same time do not overlap: largest first, each in the smallest gap that
/// fits between the already placed ones it lives with.
pub fn plan_memory(intervals: &[Interval]) -> MemoryPlan {
    let mut order: Vec<usize> = (0..intervals.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(intervals[i].bytes), intervals[i].first));
    let mut offsets = vec![0usize; intervals.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(intervals.len());
    let mut total = 0;
    for &index in &order {
        let interval = intervals[index];
        let bytes = interval.bytes.next_multiple_of(ALIGNMENT);
        if bytes == 0 {
            continue;
        }
        // `placed` is kept in order of offset, so one sweep sees every gap.
        let (mut best, mut cursor) = (None::<(usize, usize)>, 0usize);
        for &other in &placed {
            let neighbour = intervals[other];
            if neighbour.last < interval.first || interval.last < neighbour.first {
                continue;
            }
            if let Some(gap) = offsets[other].checked_sub(cursor)
                && gap >= bytes
                && best.is_none_or(|(size, _)| gap < size)
            {
                best = Some((gap, cursor));
            }
            cursor = cursor.max(offsets[other] + neighbour.bytes.next_multiple_of(ALIGNMENT));
        }
        let offset = best.map_or(cursor, |(_, at)| at);
        offsets[index] = offset;
        total = total.max(offset + bytes);
        let at = placed.partition_point(|&other| offsets[other] <= offset);
        placed.insert(at, index);
    }
    MemoryPlan { offsets, total }
}

/// The largest sum of bytes alive in one step: no plan can be smaller.
pub(crate) fn lower_bound(intervals: &[Interval]) -> usize {
    let steps = intervals.iter().map(|i| i.last + 1).max().unwrap_or(0);
    let mut change = vec![0isize; steps + 1];
    for interval in intervals {
        let bytes = interval.bytes.next_multiple_of(ALIGNMENT) as isize;
        change[interval.first] += bytes;
        change[interval.last + 1] -= bytes;
    }
    let (mut alive, mut peak) = (0isize, 0isize);
    for step in change {
        alive += step;
        peak = peak.max(alive);
    }
    peak as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chain_takes_two_buffers() {
        let chain: Vec<Interval> = (0..10).map(|i| Interval { bytes: 640, first: i, last: i + 1 }).collect();
        assert_eq!(plan_memory(&chain).total, 1280);
    }

    proptest! {
        #[test]
        fn nothing_alive_together_overlaps(
            raw in proptest::collection::vec((0usize..5000, 0usize..40, 0usize..10), 0..60)
        ) {
            let intervals: Vec<Interval> =
                raw.iter().map(|&(bytes, first, n)| Interval { bytes, first, last: first + n }).collect();
            let plan = plan_memory(&intervals);
            for (i, a) in intervals.iter().enumerate() {
                prop_assert_eq!(plan.offsets[i] % ALIGNMENT, 0);
                prop_assert!(a.bytes == 0 || plan.offsets[i] + a.bytes <= plan.total);
                for (j, b) in intervals.iter().enumerate().skip(i + 1) {
                    let together = a.first <= b.last && b.first <= a.last && a.bytes > 0 && b.bytes > 0;
                    let apart = plan.offsets[i] + a.bytes <= plan.offsets[j]
                        || plan.offsets[j] + b.bytes <= plan.offsets[i];
                    prop_assert!(!together || apart);
                }
            }
            let naive: usize = intervals.iter().map(|i| i.bytes.next_multiple_of(ALIGNMENT)).sum();
            prop_assert!(plan.total <= naive && plan.total >= lower_bound(&intervals));
        }
    }
}
