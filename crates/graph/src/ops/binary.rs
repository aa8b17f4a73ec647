//! A function of two numbers, applied with NumPy broadcasting.

/// A function of two numbers, applied with NumPy broadcasting.
#[derive(Debug, Clone, PartialEq)]
pub struct Binary {
    /// Which function.
    pub kind: BinaryKind,
}

/// Functions of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is ONNX's operator of its name")]
pub enum BinaryKind {
    Add, Sub, Mul, Div, Pow, Min, Max, PRelu, And, Or, Xor, BitwiseAnd, BitwiseOr, BitwiseXor, BitShiftLeft, BitShiftRight,
    Equal, Less, Greater, LessOrEqual, GreaterOrEqual,
    /// Remainder; `fmod` takes the dividend's sign, otherwise the divisor's.
    Mod { fmod: bool },
}

super::support::pending!(Binary);
