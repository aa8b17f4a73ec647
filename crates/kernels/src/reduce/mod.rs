//! Reductions over any axes, and the places of largest and smallest elements along one.
//!
//! A [`Reduction`] is built once from a shape and axes. Adjacent axes of one kind are merged, so the loops alternate between
//! kept and reduced dimensions. If the innermost is reduced, each output folds contiguous rows in many lanes; if it is kept,
//! a stretch of outputs is folded together, row by row. Long sums move to double precision every few thousand elements.

#![expect(unsafe_code, reason = "parts of the output are handed to tasks")]

mod arg;
mod number;
#[cfg(test)]
mod tests;
mod top_k;

pub use arg::{ArgReduce, arg_reduce};
pub use number::{NumberReduce, reduce_number};
pub use top_k::{TopK, top_k};

use smallvec::SmallVec;

use crate::dispatch::{Loop, dispatch};
use crate::elementwise::math;
use crate::isa::Isas;
use crate::lanes::{self, Fold, Largest, Sum, SumOfSquares};
use crate::threads::{DisjointMut, Team};
use crate::transpose::LayoutError;

/// Elements worth a task of their own.
const GRAIN: usize = 16 * 1024;
/// Outputs folded together where the innermost dimension is kept.
const COLUMNS: usize = 64;
/// Rows added in single precision before the sum moves to double precision.
const STRETCH: usize = 64;

/// What a reduction computes; the names are those of ONNX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "ONNX's Reduce operators of these names")]
pub enum Reduce {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    SumSquare,
    LogSum,
    LogSumExp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimension {
    extent: usize,
    /// Elements of the input from one index to the next.
    stride: usize,
}

type Dimensions = SmallVec<[Dimension; 4]>;

/// Which elements of a tensor are reduced together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduction {
    /// Merged kept dimensions, outermost first, without `columns`.
    kept: Dimensions,
    /// Merged reduced dimensions, outermost first, without `row`.
    reduced: Dimensions,
    /// Length of a contiguous row that is reduced; one if the innermost dimension is kept.
    row: usize,
    /// Length of a contiguous row of which each element is an output's; one if the innermost dimension is reduced.
    columns: usize,
    input_length: usize,
    output_length: usize,
    count: usize,
}

impl Reduction {
    /// Reduces `axes` of a tensor of `shape`. No axes: every element by itself.
    pub fn new(shape: &[usize], axes: &[usize]) -> Result<Self, LayoutError> {
        if let Some(&axis) = axes.iter().find(|&&axis| axis >= shape.len()) {
            return Err(LayoutError::OutOfBounds { axis, extent: shape.len(), index: axis as isize });
        }
        let strides = crate::transpose::row_major(shape, 1)?;
        // Merged dimensions with whether they are reduced; extents of one join any neighbour.
        let mut merged: SmallVec<[(Dimension, bool); 8]> = SmallVec::new();
        for axis in (0..shape.len()).filter(|&axis| shape[axis] != 1) {
            let (extent, is_reduced) = (shape[axis], axes.contains(&axis));
            match merged.last_mut() {
                Some((last, kind)) if *kind == is_reduced => {
                    *last = Dimension { extent: last.extent * extent, stride: strides[axis] };
                }
                _ => merged.push((Dimension { extent, stride: strides[axis] }, is_reduced)),
            }
        }
        let (mut row, mut columns) = (1, 1);
        match merged.pop() {
            Some((last, true)) => row = last.extent,
            Some((last, false)) => columns = last.extent,
            None => {}
        }
        let of_kind =
            |kind: bool| merged.iter().filter(|entry| entry.1 == kind).map(|entry| entry.0).collect();
        let product = |reduced: bool| -> usize {
            (0..shape.len()).filter(|axis| axes.contains(axis) == reduced).map(|axis| shape[axis]).product()
        };
        Ok(Self {
            kept: of_kind(false),
            reduced: of_kind(true),
            row,
            columns,
            input_length: shape.iter().product(),
            output_length: product(false),
            count: product(true),
        })
    }

    /// The number of outputs.
    pub fn output_length(&self) -> usize {
        self.output_length
    }

    /// The number of elements behind each output.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `body` on stretches of outputs: index of the first output, of its first input, and the number of outputs.
    fn for_stretches(&self, team: &Team, body: &(dyn Fn(usize, usize, usize) + Sync)) {
        let rows = self.output_length / self.columns.max(1);
        let blocks = self.columns.div_ceil(COLUMNS);
        let per_item = self.count.max(1) * self.columns.clamp(1, COLUMNS);
        team.parallel_ranges(rows * blocks, GRAIN.div_ceil(per_item), 1, &|start, end| {
            for item in start..end {
                let (index, column) = (item / blocks, item % blocks * COLUMNS);
                let first = offset(&self.kept, index) + column;
                body(index * self.columns + column, first, COLUMNS.min(self.columns - column));
            }
        });
    }

    /// The offsets of all rows behind an output, from its first element.
    fn row_offsets(&self) -> impl Iterator<Item = usize> + '_ {
        let rows =
            if self.count == 0 { 0 } else { self.reduced.iter().map(|dimension| dimension.extent).product() };
        (0..rows).map(|row| offset(&self.reduced, row))
    }

    fn check(&self, input: usize, output: usize) {
        assert_eq!(input, self.input_length, "the input's length differs from its shape's");
        assert_eq!(output, self.output_length, "the output's length differs from its shape's");
    }
}

#[inline]
fn offset(dimensions: &[Dimension], mut index: usize) -> usize {
    let mut offset = 0;
    if let [only] = dimensions {
        return index * only.stride;
    }
    for dimension in dimensions.iter().rev() {
        offset += index % dimension.extent * dimension.stride;
        index /= dimension.extent;
    }
    offset
}

/// Reduces `x` into `y`.
///
/// Over no elements, a sum is zero, a product one, a mean NaN, a maximum minus infinity and a minimum infinity.
///
/// # Panics
/// When a slice does not have the length that the reduction implies.
pub fn reduce(isas: Isas, team: &Team, function: Reduce, plan: &Reduction, x: &[f32], y: &mut [f32]) {
    plan.check(x.len(), y.len());
    let output = DisjointMut::new(y);
    plan.for_stretches(team, &|index, first, count| {
        // SAFETY: stretches do not meet.
        let y = unsafe { output.slice_mut(index, count) };
        dispatch(isas, Stretch { function, plan, x, first, y });
    });
}

/// The outputs of one stretch.
struct Stretch<'a> {
    function: Reduce,
    plan: &'a Reduction,
    x: &'a [f32],
    first: usize,
    y: &'a mut [f32],
}

impl Loop for Stretch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let count = self.plan.count as f64;
        match self.function {
            Reduce::Sum => self.fold::<_, FMA>(Sum, |sum| sum),
            Reduce::Mean => self.fold::<_, FMA>(Sum, |sum| sum / count),
            Reduce::Max => self.fold::<_, FMA>(Largest, |largest| largest),
            Reduce::Min => self.fold::<_, FMA>(LargestNegated, |largest| -largest),
            Reduce::Prod => self.fold::<_, FMA>(Product, |product| product),
            Reduce::L1 => self.fold::<_, FMA>(SumOfMagnitudes, |sum| sum),
            Reduce::L2 => self.fold::<_, FMA>(SumOfSquares { center: 0.0 }, f64::sqrt),
            Reduce::SumSquare => self.fold::<_, FMA>(SumOfSquares { center: 0.0 }, |sum| sum),
            Reduce::LogSum => self.fold::<_, FMA>(Sum, f64::ln),
            Reduce::LogSumExp => self.log_sum_exp::<FMA>(),
        }
    }
}

impl Stretch<'_> {
    #[inline(always)]
    fn fold<F: Fold, const FMA: bool>(self, fold: F, finish: impl Fn(f64) -> f64) {
        let Self { plan, x, first, y, .. } = self;
        if plan.columns == 1 {
            let mut total = f64::from(F::NEUTRAL);
            for offset in plan.row_offsets() {
                let row = lanes::fold::<F, FMA>(fold, &x[first + offset..][..plan.row]);
                total = if F::IS_SUM { total + row } else { f64::from(F::join(total as f32, row as f32)) };
            }
            if let [y] = y {
                *y = finish(total) as f32;
            }
            return;
        }
        let (mut narrow, mut wide) = ([F::NEUTRAL; COLUMNS], [0.0_f64; COLUMNS]);
        let (narrow, wide) = (&mut narrow[..y.len()], &mut wide[..y.len()]);
        let mut rows = 0;
        for offset in plan.row_offsets() {
            for (lane, &x) in narrow.iter_mut().zip(&x[first + offset..][..y.len()]) {
                *lane = F::join(*lane, fold.map::<FMA>(x));
            }
            rows += 1;
            if F::IS_SUM && rows == STRETCH {
                for (wide, narrow) in wide.iter_mut().zip(narrow.iter_mut()) {
                    *wide += f64::from(*narrow);
                    *narrow = 0.0;
                }
                rows = 0;
            }
        }
        for ((y, &narrow), &wide) in y.iter_mut().zip(&*narrow).zip(&*wide) {
            *y = finish(f64::from(narrow) + wide) as f32;
        }
    }

    #[inline(always)]
    fn log_sum_exp<const FMA: bool>(self) {
        let Self { plan, x, first, y, .. } = self;
        let mut largest = [f32::NEG_INFINITY; COLUMNS];
        let largest = &mut largest[..y.len()];
        for offset in plan.row_offsets() {
            if plan.columns == 1 {
                let row = lanes::fold::<_, FMA>(Largest, &x[first + offset..][..plan.row]) as f32;
                largest[0] = Largest::join(largest[0], row);
            } else {
                for (lane, &x) in largest.iter_mut().zip(&x[first + offset..]) {
                    *lane = Largest::join(*lane, x);
                }
            }
        }
        // Infinite maxima are not subtracted, so that the result is infinite instead of NaN.
        for lane in largest.iter_mut() {
            *lane = if lane.is_infinite() { 0.0 } else { *lane };
        }
        let mut sums = [0.0_f64; COLUMNS];
        for offset in plan.row_offsets() {
            if plan.columns == 1 {
                let fold = SumOfExponentials { center: largest[0] };
                sums[0] += lanes::fold::<_, FMA>(fold, &x[first + offset..][..plan.row]);
            } else {
                for ((sum, &x), &largest) in sums.iter_mut().zip(&x[first + offset..]).zip(&*largest) {
                    *sum += f64::from(math::exp::<FMA>(x - largest));
                }
            }
        }
        for ((y, &largest), &sum) in y.iter_mut().zip(&*largest).zip(&sums) {
            *y = (f64::from(largest) + sum.ln()) as f32;
        }
    }
}

/// The largest negated element.
#[derive(Debug, Clone, Copy)]
struct LargestNegated;

impl Fold for LargestNegated {
    const NEUTRAL: f32 = f32::NEG_INFINITY;
    const IS_SUM: bool = false;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        -x
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        Largest::join(a, b)
    }
}

/// The product.
#[derive(Debug, Clone, Copy)]
struct Product;

impl Fold for Product {
    const NEUTRAL: f32 = 1.0;
    const IS_SUM: bool = false;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        x
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a * b
    }
}

/// The sum of magnitudes.
#[derive(Debug, Clone, Copy)]
struct SumOfMagnitudes;

impl Fold for SumOfMagnitudes {
    const NEUTRAL: f32 = 0.0;
    const IS_SUM: bool = true;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        x.abs()
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a + b
    }
}

/// The sum of exponentials of distances from a number.
#[derive(Debug, Clone, Copy)]
struct SumOfExponentials {
    center: f32,
}

impl Fold for SumOfExponentials {
    const NEUTRAL: f32 = 0.0;
    const IS_SUM: bool = true;
    #[inline(always)]
    fn map<const FMA: bool>(self, x: f32) -> f32 {
        math::exp::<FMA>(x - self.center)
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a + b
    }
}
