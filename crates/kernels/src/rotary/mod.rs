//! Rotary embedding of 32-bit floats: pairs of elements of each head turned by the angles of its position.
//!
//! Contract: nothing allocates when it runs. Panics where slices are shorter than sizes say or where a row of angles that
//! is asked for is not there.

#![expect(unsafe_code, reason = "rows of the output are handed to tasks")]

#[cfg(test)]
mod tests;

use crate::dispatch::{Loop, dispatch, multiply_add};
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// Elements worth a task of their own.
const GRAIN: usize = 4 * 1024;

/// Heads in memory and what is turned of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of heads: each has one position.
    pub rows: usize,
    /// Heads beside each other in a row.
    pub heads: usize,
    /// Elements of a head.
    pub size: usize,
    /// Pairs that are turned, from the begin of a head on; the rest is copied.
    pub half: usize,
    /// Pairs are neighbours; else they are `half` apart.
    pub interleaved: bool,
}

/// Cosines and sines, `half` of each in a row.
#[derive(Clone, Copy, Debug)]
pub struct Angles<'a> {
    /// Cosines.
    pub cos: &'a [f32],
    /// Sines.
    pub sin: &'a [f32],
}

/// Turns all heads; `angle` is the row of angles of each row of heads.
///
/// # Panics
/// When a slice is too short, a head too small, or a row of angles out of range.
pub fn rotary(
    isas: Isas,
    team: &Team,
    sizes: Sizes,
    x: &[f32],
    y: &mut [f32],
    angles: Angles<'_>,
    angle: &(dyn Fn(usize) -> usize + Sync),
) {
    let Sizes { rows, heads, size, half, .. } = sizes;
    let width = heads * size;
    assert!(half * 2 <= size, "the pairs of a head lie in it");
    assert!(x.len() == rows * width && y.len() == x.len(), "as many elements as the sizes say");
    if x.is_empty() {
        return;
    }
    let y = DisjointMut::new(y);
    team.parallel_ranges(rows, GRAIN.div_ceil(width), 1, &|start, end| {
        // SAFETY: tasks have rows that do not meet.
        let y = unsafe { y.slice_mut(start * width, (end - start) * width) };
        for (row, (x, y)) in
            x[start * width..end * width].chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate()
        {
            let at = angle(start + row) * half;
            let (cos, sin) = (&angles.cos[at..at + half], &angles.sin[at..at + half]);
            dispatch(isas, Row { sizes, x, y, cos, sin });
        }
    });
}

/// The heads of one position.
struct Row<'a> {
    sizes: Sizes,
    x: &'a [f32],
    y: &'a mut [f32],
    cos: &'a [f32],
    sin: &'a [f32],
}

impl Loop for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Sizes { size, half, interleaved, .. } = self.sizes;
        for (x, y) in self.x.chunks_exact(size).zip(self.y.chunks_exact_mut(size)) {
            if interleaved {
                let pairs = x.as_chunks::<2>().0.iter().zip(y.as_chunks_mut::<2>().0);
                for (([a, b], y), (cos, sin)) in pairs.zip(self.cos.iter().zip(self.sin)) {
                    y[0] = multiply_add::<FMA>(*cos, *a, -sin * b);
                    y[1] = multiply_add::<FMA>(*sin, *a, cos * b);
                }
            } else {
                let (first, second) = (&x[..half], &x[half..2 * half]);
                let (y_first, y_second) = y[..2 * half].split_at_mut(half);
                for i in 0..half {
                    let (cos, sin) = (self.cos[i], self.sin[i]);
                    y_first[i] = multiply_add::<FMA>(cos, first[i], -sin * second[i]);
                    y_second[i] = multiply_add::<FMA>(sin, first[i], cos * second[i]);
                }
            }
            y[2 * half..].copy_from_slice(&x[2 * half..]);
        }
    }
}
