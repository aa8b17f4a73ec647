//! Aligned memory, without unsafe: bytes are carved out of a vector of 64-byte chunks.

use bytemuck::{Pod, Zeroable};

/// Alignment of every buffer and arena offset: one cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
struct Chunk([u8; ALIGNMENT]);

/// Zeroed bytes that begin at a multiple of [`ALIGNMENT`].
#[derive(Clone, Default)]
pub struct AlignedBytes {
    chunks: Vec<Chunk>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes. Large blocks come as untouched pages from the system.
    pub fn zeroed(len: usize) -> Self {
        Self { chunks: bytemuck::zeroed_vec(len.div_ceil(ALIGNMENT)), len }
    }

    /// As [`AlignedBytes::zeroed`]; `None` when the system has no such block.
    pub fn try_zeroed(len: usize) -> Option<Self> {
        Some(Self { chunks: bytemuck::try_zeroed_vec(len.div_ceil(ALIGNMENT)).ok()?, len })
    }

    /// A copy of `bytes`; `None` when the system has no such block.
    pub fn try_copy_from(bytes: &[u8]) -> Option<Self> {
        let mut out = Self::try_zeroed(bytes.len())?;
        out.copy_from_slice(bytes);
        Some(out)
    }

    /// A copy of `bytes`.
    pub fn copy_from(bytes: &[u8]) -> Self {
        let mut out = Self::zeroed(bytes.len());
        out.copy_from_slice(bytes);
        out
    }
}

impl std::ops::Deref for AlignedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.chunks)[..self.len]
    }
}

impl std::ops::DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.chunks)[..self.len]
    }
}

impl std::fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBytes({})", self.len)
    }
}

/// One block of memory that holds all values of a plan at fixed offsets.
///
/// A step reads some ranges while it writes others. [`Arena::split`] hands both out at once and keeps the borrow
/// checker's promise: a range that is written overlaps no other.
#[derive(Debug, Default)]
pub struct Arena {
    bytes: AlignedBytes,
}

/// Ranges of an arena of which some are written: writes in the order asked, and the gaps between them for reading.
#[derive(Debug)]
pub struct Split<'a> {
    writes: smallvec::SmallVec<[(usize, Option<&'a mut [u8]>); 4]>,
    gaps: smallvec::SmallVec<[(usize, &'a [u8]); 5]>,
}

impl Arena {
    /// An arena of `len` zero bytes; `None` when the system has no such block.
    pub fn try_new(len: usize) -> Option<Self> {
        Some(Self { bytes: AlignedBytes::try_zeroed(len)? })
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes from `offset`.
    pub fn read(&self, offset: usize, len: usize) -> &[u8] {
        &self.bytes[offset..offset + len]
    }

    /// Bytes from `offset`, to be written.
    pub fn write(&mut self, offset: usize, len: usize) -> &mut [u8] {
        &mut self.bytes[offset..offset + len]
    }

    /// Splits the arena into the ranges to be written, each `(offset, length)`, and what lies between them.
    ///
    /// # Panics
    /// When two writes overlap: the planner's promise is broken.
    pub fn split(&mut self, writes: &[(usize, usize)]) -> Split<'_> {
        let mut order: smallvec::SmallVec<[usize; 4]> = (0..writes.len()).collect();
        order.sort_unstable_by_key(|&i| writes[i]);
        let mut out = Split {
            writes: writes.iter().map(|&(offset, _)| (offset, None)).collect(),
            gaps: smallvec::SmallVec::new(),
        };
        let (mut rest, mut at) = (&mut self.bytes[..], 0);
        for &i in &order {
            let (offset, len) = writes[i];
            if len == 0 {
                out.writes[i].1 = Some(&mut []);
                continue;
            }
            assert!(offset >= at, "two written ranges of a step overlap");
            let (gap, tail) = rest.split_at_mut(offset - at);
            let (write, tail) = tail.split_at_mut(len);
            out.gaps.push((at, gap));
            out.writes[i].1 = Some(write);
            (rest, at) = (tail, offset + len);
        }
        out.gaps.push((at, rest));
        out
    }
}

impl<'a> Split<'a> {
    /// Takes the written range with this index; `None` when it was taken before.
    pub fn take_write(&mut self, index: usize) -> Option<&'a mut [u8]> {
        self.writes.get_mut(index).and_then(|(_, slice)| slice.take())
    }

    /// Bytes to be read; `None` when they overlap a written range.
    pub fn read(&self, offset: usize, len: usize) -> Option<&'a [u8]> {
        if len == 0 {
            return Some(&[]);
        }
        self.gaps.iter().find_map(|&(at, gap)| {
            let start = offset.checked_sub(at)?;
            gap.get(start..start.checked_add(len)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writes_and_reads_are_disjoint() {
        let mut arena = Arena::try_new(256).unwrap();
        arena.write(0, 64).fill(7);
        {
            let mut split = arena.split(&[(128, 64), (64, 32)]);
            let first = split.take_write(0).unwrap();
            first.fill(1);
            assert_eq!(split.read(0, 64).unwrap(), [7; 64]);
            assert!(split.read(100, 40).is_none(), "a read may not touch a written range");
            assert!(split.take_write(0).is_none(), "a written range is handed out once");
            split.take_write(1).unwrap().fill(2);
        }
        assert_eq!((arena.read(128, 1)[0], arena.read(64, 1)[0], arena.read(96, 1)[0]), (1, 2, 0));
    }

    proptest! {
        #[test]
        fn every_byte_outside_the_writes_can_be_read(cuts in proptest::collection::btree_set(0usize..200, 2..8)) {
            let cuts: Vec<usize> = cuts.into_iter().collect();
            let writes: Vec<(usize, usize)> = cuts.chunks_exact(2).map(|c| (c[0], c[1] - c[0])).collect();
            let mut arena = Arena::try_new(200).unwrap();
            let split = arena.split(&writes);
            for byte in 0..200 {
                let written = writes.iter().any(|&(o, l)| byte >= o && byte < o + l);
                prop_assert_eq!(split.read(byte, 1).is_none(), written);
            }
        }
    }
}
