//! A function of one number, applied to each element.

/// A function of one number, applied to each element.
#[derive(Debug, Clone, PartialEq)]
pub struct Unary {
    /// Which function.
    pub kind: UnaryKind,
}

/// Functions of one number. Parameters are part of the function.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "each is the mathematical function of its name")]
pub enum UnaryKind {
    Abs, Neg, Exp, Log, Sqrt, Reciprocal, Floor, Ceil, Round, Sign, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh,
    Asinh, Acosh, Atanh, Erf, Sigmoid, Relu, Softplus, Softsign, Not, BitwiseNot, IsNan, HardSwish, Silu, Mish,
    /// `x` where positive, `alpha * x` elsewhere.
    LeakyRelu { alpha: f32 },
    /// `x` where positive, `alpha * (exp(x) - 1)` elsewhere.
    Elu { alpha: f32 },
    /// As ONNX Selu.
    Selu { alpha: f32, gamma: f32 },
    /// `max(0, min(1, alpha * x + beta))`.
    HardSigmoid { alpha: f32, beta: f32 },
    /// `x` limited to a range known beforehand.
    Clip { min: f32, max: f32 },
    /// `x * (1 + erf(x / sqrt 2)) / 2`, or its approximation by tanh.
    Gelu { tanh: bool },
    /// `x * sigmoid(alpha * x)`.
    Swish { alpha: f32 },
    /// `x` where above alpha, 0 elsewhere.
    ThresholdedRelu { alpha: f32 },
    /// As ONNX Celu.
    Celu { alpha: f32 },
    /// As ONNX Shrink.
    Shrink { bias: f32, lambd: f32 },
    /// 1 for infinities of the chosen signs.
    IsInf { negative: bool, positive: bool },
}

super::support::pending!(Unary);
