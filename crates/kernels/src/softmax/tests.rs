use super::{Softmax, softmax};
use crate::dispatch::variants;
use crate::threads::Team;

fn reference(function: Softmax, (outer, axis, inner): (usize, usize, usize), x: &[f32]) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for place in 0..outer * inner {
        let at = |index: usize| (place / inner * axis + index) * inner + place % inner;
        let largest = (0..axis).map(|index| f64::from(x[at(index)])).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..axis).map(|index| (f64::from(x[at(index)]) - largest).exp()).sum();
        for index in 0..axis {
            let shifted = f64::from(x[at(index)]) - largest;
            y[at(index)] = match function {
                Softmax::Probability => shifted.exp() / sum,
                Softmax::Logarithm => shifted - sum.ln(),
            };
        }
    }
    y
}

#[test]
fn softmax_equals_reference() {
    let shapes = [
        (1, 1, 1),
        (3, 7, 1),
        (5, 1000, 1),
        (1, 16, 8400),
        (2, 3, 5),
        (2, 33, 64),
        (1, 9, 65),
        (4, 1, 130),
        (0, 4, 3),
        (1, 70_000, 1),
    ];
    for shape in shapes {
        let count = shape.0 * shape.1 * shape.2;
        let x: Vec<f32> = (0..count).map(|index| ((index * 7919) % 4001) as f32 / 100.0 - 20.0).collect();
        for function in [Softmax::Probability, Softmax::Logarithm] {
            let expected = reference(function, shape, &x);
            for isas in variants() {
                let mut y = vec![f32::NAN; count];
                softmax(isas, &Team::new(2), function, shape, &x, &mut y);
                for (index, (&y, &expected)) in y.iter().zip(&expected).enumerate() {
                    // The rounded distance to the largest element is raised to a power.
                    let bound = match function {
                        Softmax::Probability => 4e-6 * expected.abs().max(1e-30),
                        Softmax::Logarithm => 5e-7 * (1.0 + expected.abs()),
                    };
                    assert!(
                        (f64::from(y) - expected).abs() <= bound,
                        "{function:?} {shape:?} {isas} {index}: {y} {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn infinities_count_for_nothing() {
    for isas in variants() {
        for (shape, x) in [((1, 3, 1), [1.0, f32::NEG_INFINITY, 1.0]), ((1, 3, 1), [1e38, -1e38, 1e38])] {
            let mut y = [0.0; 3];
            softmax(isas, &Team::single(), Softmax::Probability, shape, &x, &mut y);
            assert_eq!(y, [0.5, 0.0, 0.5]);
        }
        let mut y = [0.0; 4];
        let x = [f32::NEG_INFINITY, 5.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
        softmax(isas, &Team::single(), Softmax::Probability, (1, 2, 2), &x, &mut y);
        assert_eq!((y[1], y[3]), (1.0, 0.0));
        assert!(y[0].is_nan() && y[2].is_nan());
    }
}
