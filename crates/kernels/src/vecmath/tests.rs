//! Every function on every instruction set against `f64`.

use super::{Function, apply, apply_in_place};
use crate::isa::{Isa, Isas};

/// The instruction sets to test: each alone.
fn each_isa() -> Vec<Isas> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available()).map(|isa| Isas::only(&[isa])).collect()
}

fn erf(x: f64) -> f64 {
    // The series near zero, the continued fraction of erfc far from it.
    let size = x.abs();
    let value = if size < 2.5 {
        let mut term = size;
        let mut sum = size;
        for n in 1..80 {
            term *= -size * size / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let fraction = (1..120).rev().fold(size, |rest, n| size + f64::from(n) / 2.0 / rest);
        1.0 - (-size * size).exp() / (fraction * std::f64::consts::PI.sqrt())
    };
    value.copysign(x)
}

fn exact(function: Function, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match function {
        Function::Exp => x.exp(),
        Function::ExpMinusOne => x.exp_m1(),
        Function::Ln => x.ln(),
        Function::Sigmoid => sigmoid(x),
        Function::Silu => x * sigmoid(x),
        Function::Tanh => x.tanh(),
        Function::Erf => erf(x),
        Function::Gelu => 0.5 * x * (1.0 + erf(x / 2.0_f64.sqrt())),
        Function::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
        Function::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        Function::Mish => x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh(),
        Function::Elu { alpha } => {
            if x > 0.0 {
                x
            } else {
                f64::from(alpha) * x.exp_m1()
            }
        }
        Function::HardSigmoid { alpha, beta } => (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0),
        Function::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Function::LeakyRelu { slope } => {
            if x < 0.0 {
                x * f64::from(slope)
            } else {
                x
            }
        }
        Function::Clip { min, max } => x.clamp(f64::from(min), f64::from(max)),
    }
}

/// A size for an argument.
type Size = fn(f64) -> f64;

/// Each function, the largest relative error it may have, and what its result counts as at least: for functions that
/// subtract, the size of what they subtract.
fn functions() -> Vec<(Function, f64, Size)> {
    let nothing: Size = |_| 0.0;
    vec![
        (Function::Exp, 2e-7, nothing),
        (Function::ExpMinusOne, 3e-7, nothing),
        (Function::Ln, 3e-7, nothing),
        (Function::Sigmoid, 3e-7, nothing),
        (Function::Silu, 3e-7, nothing),
        (Function::Tanh, 5e-7, nothing),
        (Function::Erf, 3e-7, nothing),
        (Function::Gelu, 3e-7, f64::abs),
        (Function::GeluTanh, 5e-7, f64::abs),
        (Function::Softplus, 4e-7, nothing),
        (Function::Mish, 5e-7, nothing),
        (Function::Elu { alpha: 0.7 }, 4e-7, nothing),
        (Function::HardSigmoid { alpha: 0.2, beta: 0.5 }, 2e-7, |_| 0.5),
        (Function::HardSwish, 2e-7, f64::abs),
        (Function::LeakyRelu { slope: 0.1 }, 1e-7, nothing),
        (Function::Clip { min: -0.5, max: 6.0 }, 0.0, nothing),
    ]
}

/// Floats of all sizes, dense where functions bend.
fn arguments() -> Vec<f32> {
    let mut all: Vec<f32> = (0..60_000).map(|index| (index - 30_000) as f32 * 0.0007).collect();
    all.extend((0..40_000).map(|index| (index - 20_000) as f32 * 0.0052));
    for power in -40..39 {
        for mantissa in [1.0_f32, 1.3, 1.9, 2.7, 5.1, 7.7] {
            let size = mantissa * 10.0_f32.powi(power);
            all.extend([size, -size]);
        }
    }
    all.extend([0.0, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::MIN]);
    all
}

#[test]
fn functions_are_precise() {
    let x = arguments();
    for isas in each_isa() {
        for (function, relative, floor) in functions() {
            let mut y = vec![0.0; x.len()];
            apply(isas, function, &x, &mut y);
            let mut worst = (0.0, 0.0, 0.0, 0.0);
            for (&x, &y) in x.iter().zip(&y) {
                let expected = exact(function, f64::from(x));
                if expected.is_nan() || (expected as f32).is_infinite() {
                    assert!(
                        y.is_nan() || f64::from(y) == f64::from(expected as f32),
                        "{isas} {function:?}({x}) = {y}"
                    );
                    continue;
                }
                // Where a factor is near or below the least normal number it is held to that number's size.
                let x_size = f64::from(x.abs());
                let size = expected.abs().max(floor(x_size)).max(4e-36 * x_size.max(1.0));
                let error = (f64::from(y) - expected).abs() / size;
                if error > worst.0 || error.is_nan() {
                    worst = (error, f64::from(x), f64::from(y), expected);
                }
            }
            let (error, x, y, expected) = worst;
            assert!(
                error <= relative,
                "{isas} {function:?}({x:e}) = {y:e}, not {expected:e}: error {error:e}"
            );
        }
    }
}

#[test]
fn special_values_are_kept() {
    for isas in each_isa() {
        let value = |function, x: f32| {
            let mut data = [x; 3];
            apply_in_place(isas, function, &mut data);
            data[2]
        };
        for (function, _, _) in functions() {
            assert!(value(function, f32::NAN).is_nan(), "{isas} {function:?}");
        }
        let infinity = f32::INFINITY;
        assert_eq!(value(Function::Exp, infinity), infinity);
        assert_eq!(value(Function::Exp, -infinity), 0.0);
        assert_eq!(value(Function::Ln, infinity), infinity);
        assert_eq!(value(Function::Ln, 0.0), -infinity);
        assert!(value(Function::Ln, -1.0).is_nan());
        assert_eq!(value(Function::Sigmoid, infinity), 1.0);
        assert_eq!(value(Function::Sigmoid, -infinity), 0.0);
        assert!((value(Function::Tanh, infinity) - 1.0).abs() < 3e-7);
        assert!((value(Function::Tanh, -infinity) + 1.0).abs() < 3e-7);
        assert_eq!(value(Function::Erf, infinity), 1.0);
        assert_eq!(value(Function::Erf, -infinity), -1.0);
        assert_eq!(value(Function::Gelu, infinity), infinity);
        assert_eq!(value(Function::Mish, infinity), infinity);
        assert_eq!(value(Function::Elu { alpha: 2.0 }, -infinity), -2.0);
        assert_eq!(value(Function::Softplus, infinity), infinity);
        assert_eq!(value(Function::Softplus, -infinity), 0.0);
    }
}

#[test]
fn every_length_and_place_is_written_and_nothing_else() {
    for isas in each_isa() {
        for length in 0..70 {
            let x: Vec<f32> = (0..length).map(|index| index as f32 * 0.1 - 3.0).collect();
            let mut whole = vec![7.0_f32; length + 8];
            apply(isas, Function::Tanh, &x, &mut whole[3..3 + length]);
            assert!(whole[..3].iter().chain(&whole[3 + length..]).all(|&guard| guard == 7.0));
            let mut in_place = x.clone();
            apply_in_place(isas, Function::Tanh, &mut in_place);
            assert_eq!(in_place, whole[3..3 + length]);
            for (&x, &y) in x.iter().zip(&in_place) {
                assert!((f64::from(y) - f64::from(x).tanh()).abs() < 1e-6, "{isas} tanh({x}) = {y}");
            }
        }
    }
}
