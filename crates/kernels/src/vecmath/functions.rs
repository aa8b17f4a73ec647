//! The functions of [`super`] on one vector, written once for every instruction set.
//!
//! Errors stated are the largest found against `f64` over the whole range, in units of 2^-24 of the result.

use crate::simd::Vector;

/// The value of the polynomial with these coefficients, the constant first.
macro_rules! polynomial {
    ($x:expr; $lowest:expr) => { $x.constant($lowest) };
    ($x:expr; $lowest:expr, $($higher:expr),+) => {
        polynomial!($x; $($higher),+).mul_add($x, $x.constant($lowest))
    };
}

/// Split `x` into `n` and `r` with `x = n ln 2 + r` and `|r| <= ln 2 / 2`.
#[inline(always)]
fn split_by_ln_2<V: Vector>(x: V) -> (V, V) {
    let n = (x * x.constant(std::f32::consts::LOG2_E)).round();
    // ln 2 in two parts, the first so short that n times it is exact.
    let r = n.mul_add(x.constant(-0.693_359_4), x);
    (n, n.mul_add(x.constant(2.121_944_4e-4), r))
}

/// `(e^r - 1 - r) / r^2` for `|r| <= ln 2 / 2`.
#[inline(always)]
fn exp_tail<V: Vector>(r: V) -> V {
    polynomial!(r; 0.5, 0.166_666_66, 0.041_665_796, 8.333_452e-3, 1.398_2e-3, 1.987_569_1e-4)
}

/// `e^x`, with subnormal results and both infinities.
#[inline(always)]
pub(crate) fn exp<V: Vector>(x: V) -> V {
    let x = x.max(x.constant(-104.5)).min(x.constant(89.0));
    let (n, r) = split_by_ln_2(x);
    let value = exp_tail(r).mul_add(r * r, r) + x.constant(1.0);
    value.scale(n)
}

/// `e^x - 1`, exact near zero too.
#[inline(always)]
pub(crate) fn exp_minus_one<V: Vector>(x: V) -> V {
    let x = x.max(x.constant(-30.0)).min(x.constant(89.0));
    let (n, r) = split_by_ln_2(x);
    let near_zero = exp_tail(r).mul_add(r * r, r);
    // In halves, so that 2^128 does not arise before its time.
    let power = x.constant(0.5).scale(n);
    let half = near_zero.mul_add(power, power - x.constant(0.5));
    half + half
}

/// The natural logarithm of positive normal numbers; minus infinity at zero, not a number below.
#[inline(always)]
pub(crate) fn ln<V: Vector>(x: V) -> V {
    let one = x.constant(1.0);
    // Subnormal numbers are lifted into the normal range first.
    let is_tiny = x.less(x.constant(f32::MIN_POSITIVE));
    let lifted = V::select(is_tiny, x * x.constant(8_388_608.0), x);
    let (exponent, mantissa) = lifted.split_exponent();
    let exponent = V::select(is_tiny, exponent - x.constant(23.0), exponent);
    // The mantissa goes to [sqrt(1/2), sqrt(2)) and one is taken off.
    let is_low = mantissa.less(x.constant(std::f32::consts::FRAC_1_SQRT_2));
    let exponent = V::select(is_low, exponent - one, exponent);
    let m = V::select(is_low, mantissa + mantissa, mantissa) - one;
    let square = m * m;
    let tail = polynomial!(m; 0.333_333_3, -0.249_999_94, 0.200_007_15, -0.166_680_58, 0.142_493_23,
        -0.124_201_41, 0.116_769_98, -0.115_146_1, 0.070_376_836);
    let low = exponent.mul_add(x.constant(-2.121_944_4e-4), tail * m * square);
    let low = square.mul_add(x.constant(-0.5), low);
    let value = exponent.mul_add(x.constant(0.693_359_4), m + low);
    let zero = x.constant(0.0);
    let value = V::select(x.less(x.constant(f32::INFINITY)), value, x);
    let value = V::select(zero.less(x), value, x.constant(f32::NEG_INFINITY));
    V::select(x.less(zero), x.constant(f32::NAN), keep_not_a_number(x, value))
}

/// `value`, or `x` where that is not a number.
#[inline(always)]
fn keep_not_a_number<V: Vector>(x: V, value: V) -> V {
    let is_number = x.abs().less(x.constant(f32::INFINITY));
    let is_infinite = x.constant(f32::MAX).less(x.abs());
    V::select(is_number, value, V::select(is_infinite, value, x))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid<V: Vector>(x: V) -> V {
    // Of e^-|x|, which is never above one, so that nothing overflows and small results keep their precision.
    let power = exp(-x.abs());
    let above = (power + x.constant(1.0)).reciprocal();
    V::select(x.less(x.constant(0.0)), power * above, above)
}

/// `x sigmoid(x)`.
#[inline(always)]
pub(crate) fn silu<V: Vector>(x: V) -> V {
    x * sigmoid(x)
}

/// The hyperbolic tangent, as a quotient of polynomials.
#[inline(always)]
pub(crate) fn tanh<V: Vector>(x: V) -> V {
    let bound = x.constant(7.905_311);
    let x = x.max(-bound).min(bound);
    let square = x * x;
    let above = polynomial!(square; 4.893_524_6e-3, 6.372_619_3e-4, 1.485_722_4e-5, 5.122_297e-8, -8.604_672e-11,
        2.000_188e-13, -2.760_768_5e-16);
    let below = polynomial!(square; 4.893_525e-3, 2.268_434_6e-3, 1.185_347_1e-4, 1.198_258_4e-6);
    x * above / below
}

/// The error function.
#[inline(always)]
pub(crate) fn erf<V: Vector>(x: V) -> V {
    let size = x.abs().min(x.constant(4.0));
    let square = x * x;
    let near = x
        * polynomial!(square; std::f32::consts::FRAC_2_SQRT_PI, -0.376_126_32, 0.112_836_51, -0.026_857_022, 5.195_369_5e-3,
        -8.080_938e-4, 8.118_909e-5);
    let logarithm = polynomial!(size; -1.663_932_2e-4, -1.127_797_5, -0.636_975_7, -0.104_114_026, 0.022_315_381,
        -3.065_532_8e-3, 1.982_24e-4);
    let far = (x.constant(1.0) - exp(logarithm)).copy_sign(x);
    V::select(size.less(x.constant(0.92)), near, keep_not_a_number(x, far))
}

/// `x (1 + erf(x / sqrt 2)) / 2`.
#[inline(always)]
pub(crate) fn gelu<V: Vector>(x: V) -> V {
    let half = x * x.constant(0.5);
    erf(x * x.constant(std::f32::consts::FRAC_1_SQRT_2)).mul_add(half, half)
}

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`.
#[inline(always)]
pub(crate) fn gelu_tanh<V: Vector>(x: V) -> V {
    let half = x * x.constant(0.5);
    let cube = x * x * x;
    let inner = cube.mul_add(x.constant(0.044_715), x) * x.constant(0.797_884_6);
    tanh(inner).mul_add(half, half)
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub(crate) fn softplus<V: Vector>(x: V) -> V {
    // max(x, 0) + ln(1 + e^-|x|); for small e^-|x| the logarithm would lose it, so it is corrected by what the
    // addition rounded away.
    let power = exp(-x.abs());
    let one = x.constant(1.0);
    let sum = one + power;
    let rest = power - (sum - one);
    x.max(x.constant(0.0)) + (ln(sum) + rest * sum.reciprocal())
}

/// `x tanh(softplus(x))`.
#[inline(always)]
pub(crate) fn mish<V: Vector>(x: V) -> V {
    // With e = e^x the hyperbolic tangent is (e^2 + 2e) / (e^2 + 2e + 2), and 1 from x = 20 on.
    let power = exp(x.min(x.constant(20.0)));
    let above = power.mul_add(power, power + power);
    x * (above / (above + x.constant(2.0)))
}

/// `x` above zero, otherwise `alpha (e^x - 1)`.
#[inline(always)]
pub(crate) fn elu<V: Vector>(x: V, alpha: f32) -> V {
    let zero = x.constant(0.0);
    V::select(zero.less(x), x, exp_minus_one(x.min(zero)) * x.constant(alpha))
}

/// `max(0, min(1, alpha x + beta))`.
#[inline(always)]
pub(crate) fn hard_sigmoid<V: Vector>(x: V, alpha: f32, beta: f32) -> V {
    let line = x.mul_add(x.constant(alpha), x.constant(beta));
    line.max(x.constant(0.0)).min(x.constant(1.0))
}

/// `x max(0, min(1, x / 6 + 1 / 2))`.
#[inline(always)]
pub(crate) fn hard_swish<V: Vector>(x: V) -> V {
    x * hard_sigmoid(x, 1.0 / 6.0, 0.5)
}

/// `x` above zero, otherwise `slope x`.
#[inline(always)]
pub(crate) fn leaky_relu<V: Vector>(x: V, slope: V) -> V {
    V::select(x.less(x.constant(0.0)), x * slope, x)
}
