//! Reductions of numbers of any type.

#![expect(unsafe_code, reason = "parts of the output are handed to tasks")]

use super::Reduction;
use crate::dispatch::{Loop, dispatch};
use crate::elementwise::Number;
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};

/// What a reduction of any type of number computes; integers wrap around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "ONNX's Reduce operators of these names")]
pub enum NumberReduce {
    Sum,
    Max,
    Min,
    Prod,
    L1,
    SumSquare,
}

/// Reduces `x` into `y`. `neutral` is what an output is before its first element: zero for sums, one for products, the
/// type's least or greatest number for the greatest or least element.
///
/// # Panics
/// When a slice does not have the length that the reduction implies.
pub fn reduce_number<T: Number>(
    isas: Isas,
    team: &Team,
    function: NumberReduce,
    plan: &Reduction,
    neutral: T,
    x: &[T],
    y: &mut [T],
) {
    plan.check(x.len(), y.len());
    let output = DisjointMut::new(y);
    plan.for_stretches(team, &|index, first, count| {
        // SAFETY: stretches do not meet.
        let y = unsafe { output.slice_mut(index, count) };
        y.fill(neutral);
        for offset in plan.row_offsets() {
            let x = &x[first + offset..][..plan.row.max(count)];
            dispatch(isas, Row { function, x, y });
        }
    });
}

/// One row, folded into one output or into as many outputs as it has elements.
struct Row<'a, T> {
    function: NumberReduce,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Number> Loop for Row<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { function, x, y } = self;
        match function {
            NumberReduce::Sum => fold(x, y, Number::add),
            NumberReduce::Max => fold(x, y, Number::maximum),
            NumberReduce::Min => fold(x, y, Number::minimum),
            NumberReduce::Prod => fold(x, y, Number::multiply),
            NumberReduce::L1 => fold(x, y, |sum, x: T| sum.add(x.magnitude())),
            NumberReduce::SumSquare => fold(x, y, |sum, x: T| sum.add(x.multiply(x))),
        }
    }
}

#[inline(always)]
fn fold<T: Number>(x: &[T], y: &mut [T], join: impl Fn(T, T) -> T) {
    if let [y] = y {
        *y = x.iter().fold(*y, |total, &x| join(total, x));
    } else {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = join(*y, x));
    }
}
