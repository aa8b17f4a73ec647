use std::f64::consts::TAU;

use proptest::prelude::{prop_assert, proptest};

use super::*;

/// The definition, in double precision.
fn direct(x: &[[f64; 2]], n: usize, inverse: bool) -> Vec<[f64; 2]> {
    let direction = if inverse { 1.0 } else { -1.0 };
    (0..n)
        .map(|k| {
            let mut sum = [0.0; 2];
            for (m, [a, b]) in x.iter().enumerate().take(n) {
                let (sin, cos) = (direction * TAU * ((k * m) % n) as f64 / n as f64).sin_cos();
                sum = [sum[0] + a * cos - b * sin, sum[1] + a * sin + b * cos];
            }
            let scale = if inverse { 1.0 / n as f64 } else { 1.0 };
            [sum[0] * scale, sum[1] * scale]
        })
        .collect()
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919) % 401) as f32 / 100.0 - 2.0).collect()
}

fn run(lines: Lines, x: &[f32]) -> Vec<f32> {
    let dft = Dft::new(lines);
    let parts = if dft.gives_real() { 1 } else { 2 };
    let mut y = vec![f32::NAN; lines.outer * dft.count() * lines.inner * parts];
    let team = Team::new(2);
    let mut scratch = vec![0.0; dft.scratch_length(team.threads())];
    dft.run(&team, x, &mut y, &mut scratch);
    y
}

#[test]
fn lengths_are_products_of_their_factors() {
    assert_eq!(factors(1), []);
    assert_eq!(factors(400), [4, 4, 5, 5]);
    assert_eq!(factors(8), [4, 2]);
    assert_eq!(factors(97), [97]);
    for n in 1..500 {
        assert_eq!(factors(n).iter().product::<usize>(), n);
    }
}

proptest! {
    #[test]
    fn transforms_equal_their_definition(
        (outer, inner, len, n) in (1_usize..4, 1_usize..4, 1_usize..40, 1_usize..70),
        complex: bool, inverse: bool, onesided: bool,
    ) {
        // Half of the frequencies are given of a real signal alone, and stand for complex numbers.
        let complex = if onesided { inverse } else { complex };
        let lines = Lines { outer, len, inner, complex, n, inverse, onesided };
        let parts = if complex { 2 } else { 1 };
        let x = numbers(outer * len * inner * parts);
        let y = run(lines, &x);
        let (gives_real, count) = (onesided && inverse, if onesided && !inverse { n / 2 + 1 } else { n });
        for line in 0..outer * inner {
            let place = |m: usize| ((line / inner * len + m) * inner + line % inner) * parts;
            let number = |m: usize| [f64::from(x[place(m)]), if complex { f64::from(x[place(m) + 1]) } else { 0.0 }];
            let mut signal: Vec<[f64; 2]> = (0..n).map(|m| if m < len { number(m) } else { [0.0; 2] }).collect();
            if gives_real {
                signal[0][1] = 0.0;
                for m in 1..n.div_ceil(2) {
                    signal[n - m] = [signal[m][0], -signal[m][1]];
                }
                if n % 2 == 0 {
                    signal[n / 2][1] = 0.0;
                }
            }
            let wanted = direct(&signal, n, inverse);
            for (k, wanted) in wanted.iter().enumerate().take(count) {
                let at = (line / inner * count + k) * inner + line % inner;
                let found = if gives_real { vec![y[at]] } else { y[2 * at..2 * at + 2].to_vec() };
                for (found, wanted) in found.iter().zip(wanted) {
                    prop_assert!((f64::from(*found) - wanted).abs() < 1e-3, "{found}, not {wanted}, at {k} of {line}");
                }
            }
        }
    }
}

#[test]
fn long_lines_stay_precise() {
    for n in [1024, 1200, 1009] {
        let x = numbers(n);
        let lines = Lines { outer: 1, len: n, inner: 1, complex: false, n, inverse: false, onesided: true };
        let y = run(lines, &x);
        let signal: Vec<[f64; 2]> = x.iter().map(|&x| [f64::from(x), 0.0]).collect();
        let wanted = direct(&signal, n, false);
        let largest = wanted.iter().flatten().fold(0.0f64, |largest, v| largest.max(v.abs()));
        for (found, wanted) in y.iter().zip(wanted.iter().flatten()) {
            assert!((f64::from(*found) - wanted).abs() < 1e-6 * largest, "{n}: {found}, not {wanted}");
        }
    }
}

#[test]
fn nothing_is_transformed_to_nothing() {
    let lines = Lines { outer: 2, len: 3, inner: 1, complex: false, n: 0, inverse: false, onesided: false };
    assert_eq!(run(lines, &numbers(6)), []);
}
