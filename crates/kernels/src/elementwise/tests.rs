use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::{
    Binary, Bits, Broadcast, Chain, ChainError, Comparison, NumberUnary, Source, Step, Unary, binary, bits,
    cast, cast_to_bool, compare, complement, not, select, unary, unary_in_place, unary_number,
};
use crate::dispatch::variants;
use crate::threads::Team;

/// Distance in units in the last place of the expected value, at least of the smallest normal number.
fn units(found: f32, expected: f64) -> f64 {
    if found.is_nan() || expected.is_nan() {
        return if found.is_nan() && expected.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = expected as f32;
    if rounded.is_infinite() || found.is_infinite() {
        return if rounded == found { 0.0 } else { f64::INFINITY };
    }
    let magnitude = rounded.abs().max(f32::MIN_POSITIVE);
    let unit = f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude);
    (f64::from(found) - expected).abs() / unit
}

/// The error function by its series and its continued fraction.
fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    let value = if magnitude < 3.0 {
        let (mut term, mut sum) = (magnitude, magnitude);
        for n in 1..80 {
            term *= -magnitude * magnitude / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let mut fraction = 0.0;
        for n in (1..60).rev() {
            fraction = f64::from(n) / 2.0 / (magnitude + fraction);
        }
        1.0 - (-magnitude * magnitude).exp() / (magnitude + fraction) / std::f64::consts::PI.sqrt()
    };
    value.copysign(x)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn meaning(function: Unary, x: f64) -> f64 {
    match function {
        Unary::Identity => x,
        Unary::Abs => x.abs(),
        Unary::Acos => x.acos(),
        Unary::Acosh => x.acosh(),
        Unary::Asin => x.asin(),
        Unary::Asinh => x.asinh(),
        Unary::Atan => x.atan(),
        Unary::Atanh => x.atanh(),
        Unary::Ceil => x.ceil(),
        Unary::Celu { alpha } => {
            x.max(0.0) + (f64::from(alpha) * ((x / f64::from(alpha)).exp() - 1.0)).min(0.0)
        }
        Unary::Clip { min, max } => x.max(f64::from(min)).min(f64::from(max)),
        Unary::Cos => x.cos(),
        Unary::Cosh => x.cosh(),
        Unary::Elu { alpha } => {
            if x > 0.0 {
                x
            } else {
                f64::from(alpha) * (x.exp() - 1.0)
            }
        }
        Unary::Erf => erf(x),
        Unary::Exp => x.exp(),
        Unary::Floor => x.floor(),
        Unary::Gelu => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Unary::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        }
        Unary::HardSigmoid { alpha, beta } => (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0),
        Unary::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Unary::LeakyRelu { alpha } => {
            if x < 0.0 {
                f64::from(alpha) * x
            } else {
                x
            }
        }
        Unary::Log => x.ln(),
        Unary::Mish => x * softplus(x).tanh(),
        Unary::Neg => -x,
        Unary::QuickGelu { alpha } => x * sigmoid(f64::from(alpha) * x),
        Unary::Reciprocal => 1.0 / x,
        Unary::Relu => x.max(0.0),
        Unary::Round => x.round_ties_even(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Selu { alpha, gamma } => {
            f64::from(gamma) * if x > 0.0 { x } else { f64::from(alpha) * (x.exp() - 1.0) }
        }
        Unary::Shrink { bias, lambd } => {
            let (bias, lambd) = (f64::from(bias), f64::from(lambd));
            if x < -lambd {
                x + bias
            } else if x > lambd {
                x - bias
            } else {
                0.0
            }
        }
        Unary::Sigmoid => sigmoid(x),
        Unary::Sign => {
            if x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        Unary::Silu => x * sigmoid(x),
        Unary::Sin => x.sin(),
        Unary::Sinh => x.sinh(),
        Unary::Softplus => softplus(x),
        Unary::Softsign => x / (1.0 + x.abs()),
        Unary::Sqrt => x.sqrt(),
        Unary::Square => x * x,
        Unary::Tan => x.tan(),
        Unary::Tanh => x.tanh(),
        Unary::ThresholdedRelu { alpha } => {
            if x > f64::from(alpha) {
                x
            } else {
                0.0
            }
        }
    }
}

/// Every function, its range in the test, its largest error in units in the last place, and an absolute error that is
/// forgiven where the result is small.
const FUNCTIONS: &[(Unary, f32, f32, f64, f64)] = &[
    (Unary::Identity, -9.0, 9.0, 0.0, 0.0),
    (Unary::Abs, -9.0, 9.0, 0.0, 0.0),
    (Unary::Acos, -1.0, 1.0, 1.0, 0.0),
    (Unary::Acosh, 1.0, 90.0, 2.0, 1e-6),
    (Unary::Asin, -1.0, 1.0, 1.0, 0.0),
    (Unary::Asinh, -90.0, 90.0, 2.0, 0.0),
    (Unary::Atan, -90.0, 90.0, 1.0, 0.0),
    (Unary::Atanh, -0.99, 0.99, 2.0, 0.0),
    (Unary::Ceil, -9.0, 9.0, 0.0, 0.0),
    (Unary::Celu { alpha: 0.7 }, -9.0, 9.0, 2.0, 2e-7),
    (Unary::Clip { min: -1.5, max: 2.5 }, -9.0, 9.0, 0.0, 0.0),
    (Unary::Cos, -3000.0, 3000.0, 1.5, 1e-7),
    (Unary::Cosh, -80.0, 80.0, 2.0, 0.0),
    (Unary::Elu { alpha: 1.3 }, -9.0, 9.0, 2.0, 2e-7),
    (Unary::Erf, -6.0, 6.0, 1.5, 0.0),
    (Unary::Exp, -110.0, 90.0, 1.5, 0.0),
    (Unary::Floor, -9.0, 9.0, 0.0, 0.0),
    (Unary::Gelu, -9.0, 9.0, 3.0, 5e-7),
    (Unary::GeluTanh, -9.0, 9.0, 4.0, 2e-7),
    (Unary::HardSigmoid { alpha: 0.2, beta: 0.5 }, -9.0, 9.0, 1.5, 1e-7),
    (Unary::HardSwish, -9.0, 9.0, 2.0, 2e-7),
    (Unary::LeakyRelu { alpha: 0.1 }, -9.0, 9.0, 0.5, 0.0),
    (Unary::Log, 1e-42, 3e38, 1.5, 0.0),
    (Unary::Log, 0.5, 2.0, 1.5, 0.0),
    (Unary::Log, -2.0, 0.1, 1.5, 0.0),
    (Unary::Mish, -30.0, 30.0, 5.0, 0.0),
    (Unary::Neg, -9.0, 9.0, 0.0, 0.0),
    (Unary::QuickGelu { alpha: 1.702 }, -30.0, 30.0, 4.0, 2e-7),
    (Unary::Reciprocal, -9.0, 9.0, 0.5, 0.0),
    (Unary::Relu, -9.0, 9.0, 0.0, 0.0),
    (Unary::Round, -9.0, 9.0, 0.0, 0.0),
    (Unary::Rsqrt, 0.001, 9.0, 1.5, 0.0),
    (Unary::Selu { alpha: 1.67326, gamma: 1.0507 }, -9.0, 9.0, 2.0, 3e-7),
    (Unary::Shrink { bias: 0.3, lambd: 0.7 }, -2.0, 2.0, 0.5, 0.0),
    (Unary::Sigmoid, -80.0, 80.0, 2.5, 0.0),
    (Unary::Sign, -1.0, 1.0, 0.0, 0.0),
    (Unary::Silu, -80.0, 80.0, 3.0, 0.0),
    (Unary::Sin, -3000.0, 3000.0, 1.5, 1e-7),
    (Unary::Sin, -1.0, 1.0, 1.5, 0.0),
    (Unary::Sinh, -80.0, 80.0, 2.0, 0.0),
    (Unary::Softplus, -80.0, 80.0, 3.0, 0.0),
    (Unary::Softsign, -9.0, 9.0, 1.5, 0.0),
    (Unary::Sqrt, 0.0, 9.0, 0.5, 0.0),
    (Unary::Square, -9.0, 9.0, 0.5, 0.0),
    (Unary::Tan, -1.5, 1.5, 3.0, 0.0),
    (Unary::Tan, -3000.0, 3000.0, 4.0, 1e-6),
    (Unary::Tanh, -12.0, 12.0, 2.0, 0.0),
    (Unary::ThresholdedRelu { alpha: 0.5 }, -9.0, 9.0, 0.0, 0.0),
];

#[test]
fn unary_functions_are_exact_to_their_bounds() {
    let team = Team::new(2);
    for &(function, low, high, bound, forgiven) in FUNCTIONS {
        let x: Vec<f32> = (0..20_003)
            .map(|index| {
                let place = f64::from(index) / 20_002.0;
                if low > 0.0 && high / low > 1e6 {
                    (f64::from(low) * (f64::from(high) / f64::from(low)).powf(place)) as f32
                } else {
                    (f64::from(low) + (f64::from(high) - f64::from(low)) * place) as f32
                }
            })
            .collect();
        for isas in variants() {
            let mut y = vec![0.0; x.len()];
            unary(isas, &team, function, &x, &mut y);
            let mut worst = (0.0, 0.0, 0.0);
            for (&x, &y) in x.iter().zip(&y) {
                let expected = meaning(function, f64::from(x));
                let error = units(y, expected);
                if error > worst.0 && (f64::from(y) - expected).abs() > forgiven {
                    worst = (error, x, y);
                }
            }
            // Without fused multiplication and addition one more rounding happens.
            let slack = if isas == crate::isa::Isas::scalar() { bound.min(1.0) } else { 0.0 };
            assert!(worst.0 <= bound + slack + 1e-3, "{function:?} on {isas}: {worst:?}");
            let mut in_place = x.clone();
            unary_in_place(isas, &team, function, &mut in_place);
            assert!(
                in_place.iter().zip(&y).all(|(a, b)| a.to_bits() == b.to_bits()),
                "{function:?} in place"
            );
        }
    }
}

#[test]
fn special_values_pass_through_functions() {
    let team = Team::single();
    let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, f32::MAX, f32::MIN, 1e9, 1e-45, -1e-45];
    let functions = [
        Unary::Abs,
        Unary::Ceil,
        Unary::Clip { min: -1.0, max: 1.0 },
        Unary::Cos,
        Unary::Elu { alpha: 1.0 },
        Unary::Erf,
        Unary::Exp,
        Unary::Floor,
        Unary::LeakyRelu { alpha: 0.5 },
        Unary::Log,
        Unary::Neg,
        Unary::Relu,
        Unary::Round,
        Unary::Sigmoid,
        Unary::Sign,
        Unary::Sin,
        Unary::Softplus,
        Unary::Sqrt,
        Unary::Tanh,
        Unary::Reciprocal,
    ];
    for isas in variants() {
        for function in functions {
            let mut y = [0.0; 10];
            unary(isas, &team, function, &x, &mut y);
            assert!(y[0].is_nan(), "{function:?} of NaN is {} on {isas}", y[0]);
            for (&x, &y) in x.iter().zip(&y).skip(1) {
                let expected = match function {
                    Unary::Erf => f64::from(x).clamp(-6.0, 6.0),
                    _ => f64::from(x),
                };
                let expected = meaning(function, expected);
                assert!(
                    units(y, expected) < 2.5,
                    "{function:?} of {x:e} is {y:e}, not {expected:e}, on {isas}"
                );
            }
        }
    }
}

fn numbers(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|index| ((index.wrapping_mul(2654435761) ^ seed) % 2001) as f32 / 100.0 - 10.0)
        .collect()
}

#[test]
fn binary_functions_equal_their_meaning_over_broadcasts() {
    type Meaning = fn(f32, f32) -> f32;
    let functions: [(Binary, Meaning); 8] = [
        (Binary::Add, |a, b| a + b),
        (Binary::Sub, |a, b| a - b),
        (Binary::Mul, |a, b| a * b),
        (Binary::Div, |a, b| a / b),
        (Binary::Min, f32::min),
        (Binary::Max, f32::max),
        (Binary::PRelu, |a, b| if a < 0.0 { a * b } else { a }),
        (Binary::SquaredDifference, |a, b| (a - b) * (a - b)),
    ];
    let shapes: &[(&[usize], &[usize])] = &[
        (&[3000], &[3000]),
        (&[3000], &[1]),
        (&[1], &[3000]),
        (&[1], &[1, 1]),
        (&[2, 5, 7, 16], &[16]),
        (&[16], &[2, 5, 7, 16]),
        (&[2, 16, 9, 9], &[16, 1, 1]),
        (&[40, 1], &[1, 90]),
        (&[6, 1, 200], &[1, 4, 1]),
    ];
    let team = Team::new(2);
    for isas in variants() {
        for (a_shape, b_shape) in shapes {
            let plan = Broadcast::new(&[a_shape, b_shape]).unwrap();
            let (a, b) = (numbers(a_shape.iter().product(), 5), numbers(b_shape.iter().product(), 77));
            let (whole_a, whole_b) = (expand(&a, a_shape, &plan), expand(&b, b_shape, &plan));
            for (function, meaning) in functions {
                let mut y = vec![0.0; plan.length()];
                binary(isas, &team, function, &plan, (&a, &b), &mut y);
                for index in 0..y.len() {
                    let expected = meaning(whole_a[index], whole_b[index]);
                    assert!(
                        y[index] == expected || (y[index].is_nan() && expected.is_nan()),
                        "{function:?} {a_shape:?} {b_shape:?} on {isas}: element {index} is {} not {expected}",
                        y[index]
                    );
                }
            }
        }
    }
}

fn expand(x: &[f32], shape: &[usize], plan: &Broadcast) -> Vec<f32> {
    let mut y = vec![0.0; plan.length()];
    crate::transpose::Expansion::new(shape, plan.output_shape(), 4).unwrap().run(
        &Team::single(),
        bytemuck::cast_slice(x),
        bytemuck::cast_slice_mut(&mut y),
    );
    y
}

proptest! {
    #[test]
    fn integers_of_all_widths(a in prop::collection::vec(-300_i64..300, 1..200), b in -20_i64..20) {
        let plan = Broadcast::new(&[&[a.len()], &[]]).unwrap();
        let team = Team::single();
        for isas in variants() {
            let mut y = vec![0; a.len()];
            binary(isas, &team, Binary::Modulo, &plan, (&a, &[b]), &mut y);
            for (&a, &y) in a.iter().zip(&y) {
                prop_assert_eq!(y, if b == 0 { 0 } else { a - b * (a as f64 / b as f64).floor() as i64 });
            }
            let narrow: Vec<i8> = a.iter().map(|&a| a as i8).collect();
            let mut y = vec![0; a.len()];
            binary(isas, &team, Binary::Mul, &plan, (&narrow, &[b as i8]), &mut y);
            for (&a, &y) in narrow.iter().zip(&y) {
                prop_assert_eq!(y, a.wrapping_mul(b as i8));
            }
            let mut truth = vec![0; a.len()];
            compare(isas, &team, Comparison::LessOrEqual, &plan, (&a, &[b]), &mut truth);
            for (&a, &truth) in a.iter().zip(&truth) {
                prop_assert_eq!(truth == 1, a <= b);
            }
            let mut y = vec![0; a.len()];
            bits(isas, &team, Bits::Xor, &plan, (&a, &[b]), &mut y);
            for (&a, &y) in a.iter().zip(&y) {
                prop_assert_eq!(y, a ^ b);
            }
            let mut y = vec![0; a.len()];
            unary_number(isas, &team, NumberUnary::Clip { min: -5, max: b.max(-5) }, &a, &mut y);
            for (&a, &y) in a.iter().zip(&y) {
                prop_assert_eq!(y, a.clamp(-5, b.max(-5)));
            }
        }
    }

    #[test]
    fn select_takes_from_one_or_the_other(condition in prop::collection::vec(0_u8..2, 1..3000), row in 1_usize..50) {
        let rows = condition.len().div_ceil(row);
        let condition: Vec<u8> = condition.iter().copied().cycle().take(rows * row).collect();
        let a: Vec<i32> = (0..row as i32).collect();
        let plan = Broadcast::new(&[&[rows, row], &[row], &[]]).unwrap();
        let mut y = vec![0; plan.length()];
        for isas in variants() {
            select(isas, &Team::new(2), &plan, &condition, (&a, &[-7]), &mut y);
            for (index, &y) in y.iter().enumerate() {
                prop_assert_eq!(y, if condition[index] == 1 { a[index % row] } else { -7 });
            }
        }
    }
}

#[test]
fn comparisons_and_complements() {
    let plan = Broadcast::new(&[&[4], &[4]]).unwrap();
    let (a, b) = ([1.0, 2.0, f32::NAN, 3.0], [1.0, 3.0, 1.0, 2.0]);
    for (comparison, expected) in [
        (Comparison::Equal, [1, 0, 0, 0]),
        (Comparison::NotEqual, [0, 1, 1, 1]),
        (Comparison::Less, [0, 1, 0, 0]),
        (Comparison::LessOrEqual, [1, 1, 0, 0]),
        (Comparison::Greater, [0, 0, 0, 1]),
        (Comparison::GreaterOrEqual, [1, 0, 0, 1]),
    ] {
        for isas in variants() {
            let mut y = [9; 4];
            compare(isas, &Team::single(), comparison, &plan, (&a, &b), &mut y);
            assert_eq!(y, expected, "{comparison:?}");
        }
    }
    let mut y = [9; 3];
    not(&[0, 1, 2], &mut y);
    assert_eq!(y, [1, 0, 0]);
    complement(&[0_u8, 1, 255], &mut y);
    assert_eq!(y, [255, 254, 0]);
}

#[test]
fn casts_truncate_round_and_wrap() {
    use half::{bf16, f16};
    let team = Team::single();
    for isas in variants() {
        let mut y = [0_i32; 6];
        cast(isas, &team, &[1.9_f32, -1.9, f32::NAN, 3e9, -3e9, 0.5], &mut y);
        assert_eq!(y, [1, -1, 0, i32::MAX, i32::MIN, 0]);
        let mut y = [0_u8; 3];
        cast(isas, &team, &[-1_i64, 256, 300], &mut y);
        assert_eq!(y, [255, 0, 44]);
        let mut y = [0_f32; 2];
        cast(isas, &team, &[16_777_217_i64, -3], &mut y);
        assert_eq!(y, [16_777_216.0, -3.0]);
        let mut y = [f16::ZERO; 3];
        cast(isas, &team, &[1.0_f32, 65_520.0, 1e-8], &mut y);
        assert_eq!(y, [f16::ONE, f16::INFINITY, f16::ZERO]);
        let mut z = [bf16::ZERO; 3];
        cast(isas, &team, &y, &mut z);
        assert_eq!(z, [bf16::ONE, bf16::INFINITY, bf16::ZERO]);
        let mut y = [0_i8; 3];
        cast(isas, &team, &[f16::from_f32(-2.5), f16::ONE, f16::ZERO], &mut y);
        assert_eq!(y, [-2, 1, 0]);
        let mut y = [9; 4];
        cast_to_bool(isas, &team, &[0.0_f32, -0.0, 0.1, f32::NAN], &mut y);
        assert_eq!(y, [0, 0, 1, 1]);
    }
}

#[test]
fn a_chain_is_its_steps_one_by_one() {
    let shape: &[usize] = &[3, 40, 50];
    let steps = [
        Step::Binary(Binary::Mul, Source::Operand(0), Source::Operand(1)),
        Step::Binary(Binary::Add, Source::Step(0), Source::Operand(2)),
        Step::Unary(Unary::Sigmoid, Source::Step(1)),
        Step::Binary(Binary::Mul, Source::Step(1), Source::Step(2)),
        Step::Binary(Binary::Sub, Source::Constant(1.0), Source::Step(3)),
        Step::Binary(Binary::Max, Source::Step(4), Source::Step(0)),
        Step::Binary(Binary::Div, Source::Step(5), Source::Operand(3)),
    ];
    let chain = Chain::new(&[shape, &[50], &[40, 1], &[]], &steps).unwrap();
    let (x, scale, bias) = (numbers(6000, 1), numbers(50, 2), numbers(40, 3));
    let team = Team::new(2);
    for isas in variants() {
        let mut y = vec![0.0; 6000];
        chain.run(isas, &team, &[&x, &scale, &bias, &[2.0]], &mut y);
        for (index, &y) in y.iter().enumerate() {
            let product = x[index] * scale[index % 50];
            let sum = product + bias[index / 50 % 40];
            let silu = sum * (1.0 / (1.0 + (-sum).exp()));
            let expected = (1.0 - silu).max(product) / 2.0;
            assert!(
                (y - expected).abs() <= 1e-5 * expected.abs().max(1.0),
                "element {index}: {y} and {expected}"
            );
        }
        let mut over = x.clone();
        chain.run_over(isas, &team, &[&[], &scale, &bias, &[2.0]], 0, &mut over);
        assert_eq!(over, y);
    }
}

#[test]
fn what_is_not_a_chain_is_refused() {
    let shapes: &[&[usize]] = &[&[2]];
    let identity = |source| Step::Unary(Unary::Identity, source);
    assert_eq!(Chain::new(shapes, &[]), Err(ChainError::Empty));
    assert_eq!(Chain::new(shapes, &[identity(Source::Operand(1))]), Err(ChainError::Missing { step: 0 }));
    assert_eq!(Chain::new(shapes, &[identity(Source::Step(0))]), Err(ChainError::Missing { step: 0 }));
    let unused = [identity(Source::Operand(0)), identity(Source::Operand(0))];
    assert_eq!(Chain::new(shapes, &unused), Err(ChainError::Unused { step: 0 }));
    let mut many: Vec<Step> = (0..8).map(|_| identity(Source::Operand(0))).collect();
    many.push(Step::Binary(Binary::Add, Source::Step(0), Source::Step(1)));
    for step in 2..8 {
        many.push(Step::Binary(Binary::Add, Source::Step(many.len() - 1), Source::Step(step)));
    }
    assert!(matches!(Chain::new(shapes, &many), Err(ChainError::TooLong { what: "values", .. })));
}
