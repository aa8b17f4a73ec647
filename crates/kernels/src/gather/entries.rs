//! Whole entries moved to places that data choose: sequences turned around, caches written into, indicator vectors.

use super::{GRAIN, Index, IndexError};
use crate::threads::Team;

/// ONNX `ReverseSequence` on bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reversal {
    /// Length of the axis of sequences, and rows from one index of it to the next.
    pub batch: (usize, usize),
    /// Length of the axis that is turned around, and rows from one index of it to the next.
    pub time: (usize, usize),
    /// Bytes of a row: what lies behind both axes.
    pub row: usize,
}

impl Reversal {
    /// Turns the first `lengths[i]` entries of sequence `i` around.
    ///
    /// # Errors
    /// When a length is negative or larger than the axis.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply.
    pub fn run<I: Index>(
        &self,
        team: &Team,
        lengths: &[I],
        x: &[u8],
        y: &mut [u8],
    ) -> Result<(), IndexError> {
        let ((batch, batch_stride), (time, time_stride)) = (self.batch, self.time);
        assert_eq!(lengths.len(), batch, "there is not one length per sequence");
        assert_eq!(x.len(), y.len(), "input and output differ in length");
        for length in lengths {
            let length = length.wide();
            if !(0..=time as i64).contains(&length) {
                return Err(IndexError { index: length, extent: time });
            }
        }
        if y.is_empty() {
            return Ok(());
        }
        let rows = GRAIN.div_ceil(self.row.max(1));
        team.parallel_chunks_mut(y, rows * self.row, &|task, y| {
            for (row, y) in (task * rows..).zip(y.chunks_exact_mut(self.row)) {
                let at = row / time_stride % time;
                let length = lengths[row / batch_stride % batch].wide() as usize;
                let from =
                    if at < length { row - at * time_stride + (length - 1 - at) * time_stride } else { row };
                y.copy_from_slice(&x[from * self.row..][..self.row]);
            }
        });
        Ok(())
    }
}

/// ONNX `TensorScatter` on bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheWrite {
    /// Slices before the axis, those of one item, and the length of the axis.
    pub cache: (usize, usize, usize),
    /// Entries of the update along the axis.
    pub entries: usize,
    /// Bytes of an entry.
    pub entry: usize,
    /// What does not fit behind the last entry goes on at the first.
    pub circular: bool,
}

impl CacheWrite {
    /// Writes the update into `y`, which holds the cache, from entry `starts[i]` on for item `i`, from 0 without starts.
    ///
    /// # Errors
    /// When entries fall outside of the cache.
    ///
    /// # Panics
    /// When a slice does not have the length that the sizes imply.
    pub fn run<I: Index>(&self, starts: Option<&[I]>, update: &[u8], y: &mut [u8]) -> Result<(), IndexError> {
        let (outer, per_item, len) = self.cache;
        assert_eq!(y.len(), outer * len * self.entry, "the cache's length differs from its shape's");
        assert_eq!(
            update.len(),
            outer * self.entries * self.entry,
            "the update's length differs from its shape's"
        );
        if update.is_empty() {
            return Ok(());
        }
        let (slice, new) = (len * self.entry, self.entries * self.entry);
        for (index, (y, update)) in y.chunks_exact_mut(slice).zip(update.chunks_exact(new)).enumerate() {
            let start = starts.map_or(0, |starts| starts[index / per_item].wide());
            let end = start.saturating_add(self.entries as i64);
            if !self.circular && (start < 0 || end > len as i64) {
                let index = if start < 0 { start } else { end - 1 };
                return Err(IndexError { index, extent: len });
            }
            let start = start.rem_euclid(len as i64) as usize;
            let first = self.entries.min(len - start) * self.entry;
            y[start * self.entry..][..first].copy_from_slice(&update[..first]);
            y[..new - first].copy_from_slice(&update[first..]);
        }
        Ok(())
    }
}

/// ONNX `OneHot`: for each index, marks among `depth` places; an index that names none marks none. Indices come in
/// `inner` neighbouring ones between which the places lie.
///
/// # Panics
/// When a slice does not have the length that the sizes imply.
pub fn one_hot<T: Copy + Send + Sync, I: Index>(
    team: &Team,
    (depth, inner): (usize, usize),
    indices: &[I],
    [off, on]: [T; 2],
    y: &mut [T],
) {
    assert_eq!(y.len(), indices.len() * depth, "the output's length differs from its shape's");
    if y.is_empty() {
        return;
    }
    let group = depth * inner;
    let groups = GRAIN.div_ceil(group.max(1));
    team.parallel_chunks_mut(y, groups * group, &|task, y| {
        y.fill(off);
        for (index, y) in (task * groups..).zip(y.chunks_exact_mut(group)) {
            for (column, index) in indices[index * inner..][..inner].iter().enumerate() {
                if let Ok(place) = index.resolve(depth) {
                    y[place * inner + column] = on;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_turned_around_whatever_axis_is_first() {
        // Two sequences of three entries of two bytes.
        let x: Vec<u8> = (0..12).collect();
        let mut y = vec![0; 12];
        let rows = Reversal { batch: (2, 3), time: (3, 1), row: 2 };
        rows.run(&Team::new(2), &[2i64, 3], &x, &mut y).unwrap();
        assert_eq!(y, [2, 3, 0, 1, 4, 5, 10, 11, 8, 9, 6, 7]);
        let columns = Reversal { batch: (3, 1), time: (2, 3), row: 2 };
        columns.run(&Team::single(), &[2i64, 0, 1], &x, &mut y).unwrap();
        assert_eq!(y, [6, 7, 2, 3, 4, 5, 0, 1, 8, 9, 10, 11]);
        let error = columns.run(&Team::single(), &[3i64, 0, 1], &x, &mut y).unwrap_err();
        assert_eq!(error, IndexError { index: 3, extent: 2 });
    }

    #[test]
    fn caches_are_written_to_their_end_or_around_it() {
        let write = CacheWrite { cache: (2, 1, 4), entries: 2, entry: 1, circular: false };
        let mut y = [0u8; 8];
        write.run(Some(&[2i64, 0]), &[1, 2, 3, 4], &mut y).unwrap();
        assert_eq!(y, [0, 0, 1, 2, 3, 4, 0, 0]);
        let error = write.run(Some(&[3i64, 0]), &[1, 2, 3, 4], &mut y).unwrap_err();
        assert_eq!(error, IndexError { index: 4, extent: 4 });
        let around = CacheWrite { circular: true, ..write };
        around.run(Some(&[7i64, -1]), &[5, 6, 7, 8], &mut y).unwrap();
        assert_eq!(y, [6, 0, 1, 5, 8, 4, 0, 7]);
    }

    #[test]
    fn indices_mark_their_places() {
        let mut y = [9u8; 12];
        one_hot(&Team::single(), (3, 2), &[0i64, -1, 7, 1], [0, 1], &mut y);
        assert_eq!(y, [1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0]);
    }
}
