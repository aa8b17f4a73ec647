//! The element types of arithmetic, and what ONNX says about their arithmetic.

/// An element type with the arithmetic of ONNX: integers wrap around, and nothing traps.
#[expect(clippy::return_self_not_must_use, reason = "these are the arithmetic operators by name")]
pub trait Number: Copy + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static {
    /// One.
    const ONE: Self;
    /// Two.
    const TWO: Self;
    /// Three.
    const THREE: Self;

    /// `self + other`.
    fn add(self, other: Self) -> Self;
    /// `self - other`.
    fn subtract(self, other: Self) -> Self;
    /// `self * other`.
    fn multiply(self, other: Self) -> Self;
    /// `self / other`, towards zero for integers; an integer divided by zero is zero.
    fn divide(self, other: Self) -> Self;
    /// `self` to the power of `other`.
    fn power(self, other: Self) -> Self;
    /// The remainder with the sign of `other` (`Mod` with `fmod = 0`); modulo zero is zero for integers.
    fn modulo(self, other: Self) -> Self;
    /// The remainder with the sign of `self` (`Mod` with `fmod = 1`); modulo zero is zero for integers.
    fn remainder(self, other: Self) -> Self;
    /// The magnitude.
    fn magnitude(self) -> Self;
    /// `-self`.
    fn negate(self) -> Self;
    /// One, zero or minus one.
    fn signum(self) -> Self;

    /// The smaller one; NaN if either is.
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        if self < other || is_nan(self) { self } else { other }
    }

    /// The larger one; NaN if either is.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        if self > other || is_nan(self) { self } else { other }
    }
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself, and the trait has no other test")]
#[inline(always)]
fn is_nan<T: PartialOrd + Copy>(value: T) -> bool {
    value != value
}

macro_rules! float {
    ($float:ty) => {
        impl Number for $float {
            const ONE: Self = 1.0;
            const TWO: Self = 2.0;
            const THREE: Self = 3.0;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn divide(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn power(self, other: Self) -> Self {
                self.powf(other)
            }
            #[inline(always)]
            fn modulo(self, other: Self) -> Self {
                let rest = self % other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) { rest + other } else { rest }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                self % other
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn negate(self) -> Self {
                -self
            }
            #[inline(always)]
            fn signum(self) -> Self {
                // Zero and NaN stay what they are.
                let negative = if self < 0.0 { -1.0 } else { self };
                if self > 0.0 { 1.0 } else { negative }
            }
        }
    };
}

macro_rules! integer {
    ($integer:ty, $magnitude:expr, $signum:expr, $modulo:expr) => {
        impl Number for $integer {
            const ONE: Self = 1;
            const TWO: Self = 2;
            const THREE: Self = 3;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn divide(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            #[allow(unused_comparisons, clippy::allow_attributes, reason = "unsigned types never hold less than zero")]
            fn power(self, other: Self) -> Self {
                if other < 0 {
                    // The reciprocal, towards zero: only one and minus one have one other than zero.
                    let odd = other & 1 == 1;
                    return if self == 1 || (self.wrapping_add(1) == 0 && self < 0 && !odd) {
                        1
                    } else if self < 0 && self.wrapping_add(1) == 0 {
                        self
                    } else {
                        0
                    };
                }
                let (mut base, mut exponent, mut result): (Self, Self, Self) = (self, other, 1);
                while exponent != 0 {
                    if exponent & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                result
            }
            #[inline(always)]
            fn modulo(self, other: Self) -> Self {
                let modulo: fn(Self, Self) -> Self = $modulo;
                if other == 0 { 0 } else { modulo(self, other) }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                let magnitude: fn(Self) -> Self = $magnitude;
                magnitude(self)
            }
            #[inline(always)]
            fn negate(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn signum(self) -> Self {
                let signum: fn(Self) -> Self = $signum;
                signum(self)
            }
        }
    };
    (signed $($integer:ty),*) => { $(
        integer!($integer, <$integer>::wrapping_abs, <$integer>::signum, |a, b| {
            let rest = a.wrapping_rem(b);
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        });
    )* };
    (unsigned $($integer:ty),*) => { $(
        integer!($integer, |a| a, |a| <$integer>::from(a != 0), |a, b| a % b);
    )* };
}

float!(f32);
float!(f64);
integer!(signed i8, i16, i32, i64);
integer!(unsigned u8, u16, u32, u64);

/// An integer type with the bit operations of ONNX.
#[expect(clippy::return_self_not_must_use, reason = "these are the arithmetic operators by name")]
pub trait Integer: Number {
    /// `self & other`.
    fn and(self, other: Self) -> Self;
    /// `self | other`.
    fn or(self, other: Self) -> Self;
    /// `self ^ other`.
    fn exclusive_or(self, other: Self) -> Self;
    /// `!self`.
    fn complement(self) -> Self;
    /// Bits moved up by `other`; zero when all are moved out.
    fn shift_left(self, other: Self) -> Self;
    /// Bits moved down by `other`; zero (or the sign) when all are moved out.
    fn shift_right(self, other: Self) -> Self;
}

macro_rules! bits {
    ($($integer:ty),*) => { $(
        impl Integer for $integer {
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn exclusive_or(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn complement(self) -> Self {
                !self
            }
            #[inline(always)]
            fn shift_left(self, other: Self) -> Self {
                u32::try_from(other).ok().and_then(|shift| self.checked_shl(shift)).unwrap_or(0)
            }
            #[inline(always)]
            fn shift_right(self, other: Self) -> Self {
                let last = <$integer>::BITS - 1;
                let all_out = self >> last >> 1;
                u32::try_from(other).ok().and_then(|shift| self.checked_shr(shift)).unwrap_or(all_out)
            }
        }
    )* };
}

bits!(i8, i16, i32, i64, u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::{Integer, Number};

    #[test]
    fn integers_follow_python_and_c() {
        for (a, b, modulo, remainder) in
            [(7, 3, 1, 1), (-7, 3, 2, -1), (7, -3, -2, 1), (-7, -3, -1, -1), (5, 0, 0, 0)]
        {
            assert_eq!(Number::modulo(a, b), modulo);
            assert_eq!(Number::remainder(a, b), remainder);
        }
        assert_eq!(Number::divide(-7, 2), -3);
        assert_eq!(Number::divide(i32::MIN, -1), i32::MIN);
        assert_eq!(Number::modulo(i64::MIN, -1), 0);
        assert_eq!(Number::divide(3_u8, 0), 0);
        assert_eq!(Number::power(-2_i64, 3), -8);
        assert_eq!(Number::power(3_u8, 2), 9);
        assert_eq!(Number::power(-1_i32, -3), -1);
        assert_eq!(Number::power(-1_i32, -2), 1);
        assert_eq!(Number::power(2_i32, -1), 0);
        assert_eq!(Number::magnitude(i8::MIN), i8::MIN);
        assert_eq!(Number::signum(200_u8), 1);
        assert_eq!(Integer::shift_left(1_u8, 9), 0);
        assert_eq!(Integer::shift_right(-4_i32, 40), -1);
        assert_eq!(Integer::shift_right(0x80_u8, 7), 1);
    }

    #[test]
    fn floats_keep_nan() {
        assert!(Number::minimum(f32::NAN, 1.0).is_nan());
        assert!(Number::minimum(1.0, f32::NAN).is_nan());
        assert!(Number::maximum(f64::NAN, 1.0).is_nan());
        assert!(Number::maximum(1.0, f64::NAN).is_nan());
        assert!(Number::signum(f32::NAN).is_nan());
        assert_eq!(Number::modulo(-7.5_f32, 2.0), 0.5);
        assert_eq!(Number::remainder(-7.5_f32, 2.0), -1.5);
    }
}
