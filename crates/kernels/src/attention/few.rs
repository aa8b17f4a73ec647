//! One query with keys and values as they lie in memory, each read once.

use crate::dispatch::{Loop, multiply_add};

/// Independent sums of a product.
const LANES: usize = 32;

/// Rows of keys or values.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) data: &'a [f32],
    pub(super) stride: usize,
    /// The first one that counts.
    pub(super) first: usize,
}

/// The scaled product of a query with each key.
pub(super) struct Scores<'a> {
    pub(super) q: &'a [f32],
    pub(super) keys: Rows<'a>,
    pub(super) scale: f32,
    pub(super) to: &'a mut [f32],
}

impl Loop for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let size = self.q.len();
        for (row, score) in self.to.iter_mut().enumerate() {
            let key = &self.keys.data[(self.keys.first + row) * self.keys.stride..][..size];
            let mut sums = [0.0f32; LANES];
            let (q_chunks, q_rest) = self.q.as_chunks::<LANES>();
            let (k_chunks, k_rest) = key.as_chunks::<LANES>();
            for (q, k) in q_chunks.iter().zip(k_chunks) {
                for lane in 0..LANES {
                    sums[lane] = multiply_add::<FMA>(q[lane], k[lane], sums[lane]);
                }
            }
            for ((sum, q), k) in sums.iter_mut().zip(q_rest).zip(k_rest) {
                *sum = multiply_add::<FMA>(*q, *k, *sum);
            }
            let mut width = LANES / 2;
            while width > 0 {
                for lane in 0..width {
                    sums[lane] += sums[lane + width];
                }
                width /= 2;
            }
            *score = self.scale * sums[0];
        }
    }
}

/// The sum of values, each times its weight; `y` holds zeros before.
pub(super) struct Weighted<'a> {
    pub(super) values: Rows<'a>,
    pub(super) weights: &'a [f32],
    /// Factor of all weights.
    pub(super) factor: f32,
    pub(super) y: &'a mut [f32],
}

impl Loop for Weighted<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let size = self.y.len();
        for (row, weight) in self.weights.iter().enumerate() {
            let value = &self.values.data[(self.values.first + row) * self.values.stride..][..size];
            let weight = weight * self.factor;
            for (y, v) in self.y.iter_mut().zip(value) {
                *y = multiply_add::<FMA>(weight, *v, *y);
            }
        }
    }
}
