//! Folds of a slice into one number with enough independent lanes for vectors, and enough care for accuracy.

/// Independent accumulators: two vectors of the widest instruction set, and a few of the others.
const LANES: usize = 32;
/// Elements summed in single precision before the sum moves to double precision.
const STRETCH: usize = 4096;

/// How elements are folded.
pub(crate) trait Fold: Copy {
    /// What changes nothing.
    const NEUTRAL: f32;
    /// Whether folding is addition, which loses accuracy as the accumulator grows.
    const IS_SUM: bool;
    /// What is folded of an element.
    fn map<const FMA: bool>(self, x: f32) -> f32;
    /// Two results as one.
    fn join(a: f32, b: f32) -> f32;
}

/// Folds all elements; sums in double precision beyond a few thousand elements.
#[inline(always)]
pub(crate) fn fold<F: Fold, const FMA: bool>(fold: F, x: &[f32]) -> f64 {
    let mut total = f64::from(F::NEUTRAL);
    for stretch in x.chunks(STRETCH) {
        let mut lanes = [F::NEUTRAL; LANES];
        let (chunks, rest) = stretch.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                lanes[lane] = F::join(lanes[lane], fold.map::<FMA>(chunk[lane]));
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = F::join(*lane, fold.map::<FMA>(x));
        }
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] = F::join(lanes[lane], lanes[lane + width]);
            }
            width /= 2;
        }
        total =
            if F::IS_SUM { total + f64::from(lanes[0]) } else { f64::from(F::join(total as f32, lanes[0])) };
    }
    total
}

/// The largest element; NaN if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Largest;

impl Fold for Largest {
    const NEUTRAL: f32 = f32::NEG_INFINITY;
    const IS_SUM: bool = false;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        // False for NaN on either side; where `a` is NaN it must win.
        let larger = if a > b { a } else { b };
        if a.is_nan() { a } else { larger }
    }
}

/// The sum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum;

impl Fold for Sum {
    const NEUTRAL: f32 = 0.0;
    const IS_SUM: bool = true;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a + b
    }
}

/// The sum of squared distances from a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SumOfSquares {
    /// The number.
    pub(crate) center: f32,
}

impl Fold for SumOfSquares {
    const NEUTRAL: f32 = 0.0;
    const IS_SUM: bool = true;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        let distance = x - self.center;
        distance * distance
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a + b
    }
}
