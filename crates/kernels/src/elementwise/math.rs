//! Functions of one `f32` without branches, for loops that the compiler vectorises.
//!
//! Errors are at most about two units in the last place against the exact function, over the whole range unless said
//! otherwise; NaN stays NaN.

use crate::dispatch::multiply_add;

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

/// Adding and subtracting this rounds a small number to an integer, which then stands in the lowest bits.
const ROUNDING: f32 = 12582912.0;
const ROUNDING_F64: f64 = 6755399441055744.0;

#[inline(always)]
fn polynomial<const FMA: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    let mut index = 1;
    while index < N {
        sum = multiply_add::<FMA>(sum, x, coefficients[index]);
        index += 1;
    }
    sum
}

/// `e^x`.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Outside of these bounds the result is infinite or zero. The comparisons keep NaN.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let rounded = multiply_add::<FMA>(x, LOG2_E, ROUNDING);
    let n = rounded - ROUNDING;
    let r = multiply_add::<FMA>(n, -LN_2_HIGH, x);
    let r = multiply_add::<FMA>(n, -LN_2_LOW, r);
    let p = polynomial::<FMA, 6>(
        r,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5],
    );
    let p = multiply_add::<FMA>(p, r * r, r) + 1.0;
    // 2^n in two factors, so that neither overflows and denormal results are rounded once.
    let n = (rounded.to_bits() as i32).wrapping_sub(ROUNDING.to_bits() as i32);
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn log<const FMA: bool>(x: f32) -> f32 {
    let is_denormal = x < f32::MIN_POSITIVE;
    let scaled = if is_denormal { x * 8388608.0 } else { x };
    let offset = if is_denormal { 23.0 } else { 0.0 };
    // Mantissa in [sqrt(1/2), sqrt(2)).
    let bits = scaled.to_bits() as i32;
    let shifted = bits.wrapping_sub(0x3f35_04f3);
    let exponent = (shifted >> 23) as f32 - offset;
    let m = f32::from_bits(((shifted & 0x007f_ffff).wrapping_add(0x3f35_04f3)) as u32) - 1.0;
    let square = m * m;
    let p = polynomial::<FMA, 9>(
        m,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_8e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let y = multiply_add::<FMA>(p * m, square, exponent * -2.121_944_4e-4);
    let y = multiply_add::<FMA>(square, -0.5, y);
    let y = multiply_add::<FMA>(exponent, 0.693_359_4, m + y);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// `ln(1 + x)` for `x` in `[0, 1]`.
#[inline(always)]
fn log_1p_of_unit<const FMA: bool>(x: f32) -> f32 {
    let u = 1.0 + x;
    let rounded_away = u - 1.0;
    let y = log::<FMA>(u) * (x / rounded_away);
    if rounded_away == 0.0 { x } else { y }
}

/// The largest magnitude for which [`sin`], [`cos`] and [`tan`] reduce their argument well.
pub(crate) const REDUCTION_LIMIT: f32 = 1.0e8;

/// The argument less a multiple of pi/2, and which multiple, modulo 4.
#[inline(always)]
fn reduce(x: f32) -> (f32, u32) {
    const PI_2_HIGH: f64 = 1.570_796_326_734_125_6;
    const PI_2_LOW: f64 = 6.077_100_506_506_192e-11;
    let wide = f64::from(x);
    let rounded = wide * std::f64::consts::FRAC_2_PI + ROUNDING_F64;
    let n = rounded - ROUNDING_F64;
    let r = (wide - n * PI_2_HIGH) - n * PI_2_LOW;
    (r as f32, rounded.to_bits() as u32)
}

#[inline(always)]
fn sin_of_reduced<const FMA: bool>(r: f32) -> f32 {
    let s = r * r;
    let p = polynomial::<FMA, 3>(s, [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1]);
    multiply_add::<FMA>(p * s, r, r)
}

#[inline(always)]
fn cos_of_reduced<const FMA: bool>(r: f32) -> f32 {
    let s = r * r;
    let p = polynomial::<FMA, 3>(s, [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]);
    multiply_add::<FMA>(p * s, s, multiply_add::<FMA>(s, -0.5, 1.0))
}

/// The sine, for magnitudes up to [`REDUCTION_LIMIT`].
#[inline(always)]
pub(crate) fn sin<const FMA: bool>(x: f32) -> f32 {
    let (r, quadrant) = reduce(x);
    let y = if quadrant & 1 == 0 { sin_of_reduced::<FMA>(r) } else { cos_of_reduced::<FMA>(r) };
    if quadrant & 2 == 0 { y } else { -y }
}

/// The cosine, for magnitudes up to [`REDUCTION_LIMIT`].
#[inline(always)]
pub(crate) fn cos<const FMA: bool>(x: f32) -> f32 {
    let (r, quadrant) = reduce(x);
    let y = if quadrant & 1 == 0 { cos_of_reduced::<FMA>(r) } else { sin_of_reduced::<FMA>(r) };
    if quadrant.wrapping_add(1) & 2 == 0 { y } else { -y }
}

/// The tangent, for magnitudes up to [`REDUCTION_LIMIT`].
#[inline(always)]
pub(crate) fn tan<const FMA: bool>(x: f32) -> f32 {
    let (r, quadrant) = reduce(x);
    let (s, c) = (sin_of_reduced::<FMA>(r), cos_of_reduced::<FMA>(r));
    if quadrant & 1 == 0 { s / c } else { -c / s }
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let s = x * x;
    let p = polynomial::<FMA, 5>(
        s,
        [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328e-1],
    );
    let small = multiply_add::<FMA>(p * s, x, x);
    let magnitude = x.abs();
    let large = 1.0 - 2.0 / (exp::<FMA>(magnitude + magnitude) + 1.0);
    if magnitude < 0.625 { small } else { large.copysign(x) }
}

/// The error function.
#[inline(always)]
pub(crate) fn erf<const FMA: bool>(x: f32) -> f32 {
    let t = x.abs();
    let s = x * x;
    let tail = polynomial::<FMA, 2>(t, [-1.728_534_7e-5, 3.831_971_3e-4]);
    let tail = multiply_add::<FMA>(tail, s, polynomial::<FMA, 2>(t, [-3.883_964_4e-3, 2.425_462_2e-2]));
    let tail = multiply_add::<FMA>(tail, t, -1.067_778_8e-1);
    let tail = multiply_add::<FMA>(tail, t, -6.348_467e-1);
    let tail = multiply_add::<FMA>(tail, t, -1.287_175_1e-1);
    let tail = 1.0 - exp::<FMA>(multiply_add::<FMA>(tail, t, -t));
    let near = polynomial::<FMA, 6>(
        s,
        [-5.967_617e-4, 4.991_194_2e-3, -2.676_813_5e-2, 1.128_199_3e-1, -3.761_253_4e-1, 1.283_791_7e-1],
    );
    let near = multiply_add::<FMA>(near, x, x);
    if t > 0.927_734_4 { tail.copysign(x) } else { near }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FMA>(-x))
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub(crate) fn softplus<const FMA: bool>(x: f32) -> f32 {
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + log_1p_of_unit::<FMA>(exp::<FMA>(-x.abs()))
}

/// `x * tanh(softplus(x))`.
#[inline(always)]
pub(crate) fn mish<const FMA: bool>(x: f32) -> f32 {
    // tanh(ln(1 + e)) is (e^2 + 2 e) / (e^2 + 2 e + 2), which is one for the e that are cut off here.
    let e = exp::<FMA>(if x > 20.0 { 20.0 } else { x });
    let n = e * (e + 2.0);
    x * (n / (n + 2.0))
}

/// `x * (1 + erf(x / sqrt(2))) / 2`.
#[inline(always)]
pub(crate) fn gelu<const FMA: bool>(x: f32) -> f32 {
    0.5 * x * (1.0 + erf::<FMA>(x * FRAC_1_SQRT_2))
}

/// The approximation of [`gelu`] by a hyperbolic tangent.
#[inline(always)]
pub(crate) fn gelu_tanh<const FMA: bool>(x: f32) -> f32 {
    // (1 + tanh(u)) / 2 is sigmoid(2 u).
    const SQRT_8_OVER_PI: f32 = 1.595_769;
    x * sigmoid::<FMA>(SQRT_8_OVER_PI * x * multiply_add::<FMA>(0.044715 * x, x, 1.0))
}
