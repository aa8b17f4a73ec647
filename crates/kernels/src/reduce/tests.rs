use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::{ArgReduce, NumberReduce, Reduce, Reduction, arg_reduce, reduce, reduce_number};
use crate::dispatch::variants;
use crate::isa::Isas;
use crate::threads::Team;
use crate::transpose::LayoutError;

/// The input elements behind each output.
fn groups<T: Copy>(shape: &[usize], axes: &[usize], x: &[T]) -> Vec<Vec<T>> {
    let outputs: usize =
        (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).product();
    let mut groups = vec![Vec::new(); outputs];
    for (flat, &x) in x.iter().enumerate() {
        let (mut rest, mut output, mut stride) = (flat, 0, 1);
        for axis in (0..shape.len()).rev() {
            if !axes.contains(&axis) {
                output += rest % shape[axis] * stride;
                stride *= shape[axis];
            }
            rest /= shape[axis];
        }
        groups[output].push(x);
    }
    groups
}

fn meaning(function: Reduce, group: &[f32]) -> f64 {
    let x = group.iter().map(|&x| f64::from(x));
    match function {
        Reduce::Sum => x.sum(),
        Reduce::Mean => x.sum::<f64>() / group.len() as f64,
        Reduce::Max => x.fold(f64::NEG_INFINITY, f64::max),
        Reduce::Min => x.fold(f64::INFINITY, f64::min),
        Reduce::Prod => x.product(),
        Reduce::L1 => x.map(f64::abs).sum(),
        Reduce::L2 => x.map(|x| x * x).sum::<f64>().sqrt(),
        Reduce::SumSquare => x.map(|x| x * x).sum(),
        Reduce::LogSum => x.sum::<f64>().ln(),
        Reduce::LogSumExp => x.map(f64::exp).sum::<f64>().ln(),
    }
}

const ALL: [Reduce; 10] = [
    Reduce::Sum,
    Reduce::Mean,
    Reduce::Max,
    Reduce::Min,
    Reduce::Prod,
    Reduce::L1,
    Reduce::L2,
    Reduce::SumSquare,
    Reduce::LogSum,
    Reduce::LogSumExp,
];

fn check(shape: &[usize], axes: &[usize], function: Reduce, isas: Isas, team: &Team) {
    let count: usize = shape.iter().product();
    // Positive for the logarithm of sums, around one for products.
    let x: Vec<f32> = (0..count)
        .map(|index| {
            let noise = ((index * 7919) % 4001) as f32 / 4000.0;
            match function {
                Reduce::Prod => 0.9 + noise * 0.2,
                Reduce::LogSum => noise,
                _ => noise * 20.0 - 10.0,
            }
        })
        .collect();
    let plan = Reduction::new(shape, axes).unwrap();
    let groups = groups(shape, axes, &x);
    let mut y = vec![f32::NAN; plan.output_length()];
    reduce(isas, team, function, &plan, &x, &mut y);
    assert_eq!(y.len(), groups.len());
    for (index, (&y, group)) in y.iter().zip(&groups).enumerate() {
        let expected = meaning(function, group);
        let scale = match function {
            Reduce::Sum | Reduce::Mean => {
                group.iter().map(|x| f64::from(x.abs())).sum::<f64>()
                    / if function == Reduce::Mean { group.len() as f64 } else { 1.0 }
            }
            _ => expected.abs(),
        };
        let bound = if function == Reduce::Prod { 1e-7 * group.len() as f64 } else { 5e-7 };
        let is_close = (f64::from(y) - expected).abs() <= bound * scale || f64::from(y) == expected;
        assert!(
            is_close,
            "{function:?} of {shape:?} over {axes:?} on {isas}, output {index}: {y} and {expected}"
        );
    }
}

#[test]
fn reductions_equal_reference() {
    let team = Team::new(2);
    let cases: &[(&[usize], &[usize])] = &[
        (&[7], &[0]),
        (&[7], &[]),
        (&[5, 1000], &[1]),
        (&[5, 1000], &[0]),
        (&[1, 49, 130], &[1]),
        (&[2, 7, 7, 70], &[1, 2]),
        (&[2, 70, 7, 7], &[2, 3]),
        (&[3, 4, 5, 6], &[0, 2]),
        (&[3, 4, 5, 6], &[1, 3]),
        (&[3, 4, 5, 6], &[0, 1, 2, 3]),
        (&[3, 1, 5, 1], &[1, 2]),
        (&[20_000], &[0]),
        (&[3000, 3], &[0]),
        (&[1], &[0]),
    ];
    for (shape, axes) in cases {
        for function in ALL {
            for isas in variants() {
                check(shape, axes, function, isas, &team);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_axes(shape in prop::collection::vec(1_usize..6, 1..6), chosen in prop::collection::vec(prop::bool::ANY, 6)) {
        let axes: Vec<usize> = (0..shape.len()).filter(|&axis| chosen[axis]).collect();
        for function in [Reduce::Sum, Reduce::Max] {
            check(&shape, &axes, function, Isas::detect(), &Team::single());
        }
        let x: Vec<i64> = (0..shape.iter().product::<usize>() as i64).map(|x| x * 31 % 17 - 8).collect();
        let plan = Reduction::new(&shape, &axes).unwrap();
        let groups = groups(&shape, &axes, &x);
        let mut y = vec![0; groups.len()];
        for (function, neutral, meaning) in [
            (NumberReduce::Sum, 0, (|g| g.iter().sum()) as fn(&[i64]) -> i64),
            (NumberReduce::Max, i64::MIN, |g| g.iter().copied().max().unwrap()),
            (NumberReduce::Min, i64::MAX, |g| g.iter().copied().min().unwrap()),
            (NumberReduce::L1, 0, |g| g.iter().map(|x| x.abs()).sum()),
            (NumberReduce::SumSquare, 0, |g| g.iter().map(|x| x * x).sum()),
        ] {
            reduce_number(Isas::detect(), &Team::single(), function, &plan, neutral, &x, &mut y);
            for (y, group) in y.iter().zip(&groups) {
                prop_assert_eq!(*y, meaning(group));
            }
        }
    }

    #[test]
    fn arg_reduce_finds_first_or_last(
        outer in 1_usize..4, axis in 1_usize..200, inner in 1_usize..90, smallest: bool, last: bool,
    ) {
        let x: Vec<f32> = (0..outer * axis * inner).map(|index| ((index * 7919) % 37) as f32).collect();
        let mut y = vec![-1; outer * inner];
        for isas in variants() {
            arg_reduce(isas, &Team::new(2), ArgReduce { smallest, last }, (outer, axis, inner), &x, &mut y);
            for (place, &y) in y.iter().enumerate() {
                let at = |index: usize| x[(place / inner * axis + index) * inner + place % inner];
                let found = at(y as usize);
                for index in 0..axis {
                    let equal_is_fine = if last { index <= y as usize } else { index >= y as usize };
                    let other = at(index);
                    let not_better = if smallest { found < other } else { found > other };
                    prop_assert!(not_better || (found == other && equal_is_fine));
                }
            }
        }
    }
}

#[test]
fn special_values() {
    let plan = Reduction::new(&[40], &[0]).unwrap();
    for isas in variants() {
        for place in [0, 5, 39] {
            let mut x = [1.0; 40];
            x[place] = f32::NAN;
            for function in [Reduce::Max, Reduce::Min, Reduce::Sum] {
                let mut y = [0.0];
                reduce(isas, &Team::single(), function, &plan, &x, &mut y);
                assert!(y[0].is_nan(), "{function:?} with NaN at {place} on {isas} is {}", y[0]);
            }
        }
        let mut y = [0.0];
        let mut x = [0.0; 40];
        x[3] = f32::INFINITY;
        reduce(isas, &Team::single(), Reduce::LogSumExp, &plan, &x, &mut y);
        assert_eq!(y[0], f32::INFINITY);
        reduce(isas, &Team::single(), Reduce::LogSumExp, &plan, &[1000.0; 40], &mut y);
        assert!((y[0] - 1_003.688_9).abs() < 1e-3);
    }
}

#[test]
fn nothing_reduced_is_the_neutral_element() {
    let plan = Reduction::new(&[3, 0], &[1]).unwrap();
    for (function, expected) in [(Reduce::Sum, 0.0), (Reduce::Prod, 1.0), (Reduce::Max, f32::NEG_INFINITY)] {
        let mut y = [7.0; 3];
        reduce(Isas::detect(), &Team::single(), function, &plan, &[], &mut y);
        assert_eq!(y, [expected; 3]);
    }
    let plan = Reduction::new(&[0, 3], &[0]).unwrap();
    let mut y = [7.0; 3];
    reduce(Isas::detect(), &Team::single(), Reduce::Sum, &plan, &[], &mut y);
    assert_eq!(y, [0.0; 3]);
    assert!(matches!(Reduction::new(&[2], &[1]), Err(LayoutError::OutOfBounds { .. })));
}
