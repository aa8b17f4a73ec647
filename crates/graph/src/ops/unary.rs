//! A function of one number, applied to each element.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

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
    Abs,
    Neg,
    Exp,
    Log,
    Sqrt,
    Reciprocal,
    Floor,
    Ceil,
    Round,
    Sign,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
    Sigmoid,
    Relu,
    Softplus,
    Softsign,
    Not,
    BitwiseNot,
    IsNan,
    HardSwish,
    Silu,
    Mish,
    /// `x` where positive, `alpha * x` elsewhere.
    LeakyRelu {
        alpha: f32,
    },
    /// `x` where positive, `alpha * (exp(x) - 1)` elsewhere.
    Elu {
        alpha: f32,
    },
    /// As ONNX Selu.
    Selu {
        alpha: f32,
        gamma: f32,
    },
    /// `max(0, min(1, alpha * x + beta))`.
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    /// `x` limited to a range known beforehand.
    Clip {
        min: f32,
        max: f32,
    },
    /// `x * (1 + erf(x / sqrt 2)) / 2`, or its approximation by tanh.
    Gelu {
        tanh: bool,
    },
    /// `x * sigmoid(alpha * x)`.
    Swish {
        alpha: f32,
    },
    /// `x` where above alpha, 0 elsewhere.
    ThresholdedRelu {
        alpha: f32,
    },
    /// As ONNX Celu.
    Celu {
        alpha: f32,
    },
    /// As ONNX Shrink.
    Shrink {
        bias: f32,
        lambd: f32,
    },
    /// 1 for infinities of the chosen signs.
    IsInf {
        negative: bool,
        positive: bool,
    },
}

impl UnaryKind {
    /// ONNX's name of the operator, where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abs => "Abs",
            Self::Neg => "Neg",
            Self::Exp => "Exp",
            Self::Log => "Log",
            Self::Sqrt => "Sqrt",
            Self::Reciprocal => "Reciprocal",
            Self::Floor => "Floor",
            Self::Ceil => "Ceil",
            Self::Round => "Round",
            Self::Sign => "Sign",
            Self::Sin => "Sin",
            Self::Cos => "Cos",
            Self::Tan => "Tan",
            Self::Asin => "Asin",
            Self::Acos => "Acos",
            Self::Atan => "Atan",
            Self::Sinh => "Sinh",
            Self::Cosh => "Cosh",
            Self::Tanh => "Tanh",
            Self::Asinh => "Asinh",
            Self::Acosh => "Acosh",
            Self::Atanh => "Atanh",
            Self::Erf => "Erf",
            Self::Sigmoid => "Sigmoid",
            Self::Relu => "Relu",
            Self::Softplus => "Softplus",
            Self::Softsign => "Softsign",
            Self::Not => "Not",
            Self::BitwiseNot => "BitwiseNot",
            Self::IsNan => "IsNaN",
            Self::HardSwish => "HardSwish",
            Self::Silu => "Silu",
            Self::Mish => "Mish",
            Self::LeakyRelu { .. } => "LeakyRelu",
            Self::Elu { .. } => "Elu",
            Self::Selu { .. } => "Selu",
            Self::HardSigmoid { .. } => "HardSigmoid",
            Self::Clip { .. } => "Clip",
            Self::Gelu { .. } => "Gelu",
            Self::Swish { .. } => "Swish",
            Self::ThresholdedRelu { .. } => "ThresholdedRelu",
            Self::Celu { .. } => "Celu",
            Self::Shrink { .. } => "Shrink",
            Self::IsInf { .. } => "IsInf",
        }
    }

    /// The function's parameters.
    pub fn attributes(self) -> Attributes {
        let none = Attributes::none();
        match self {
            Self::LeakyRelu { alpha }
            | Self::Elu { alpha }
            | Self::Swish { alpha }
            | Self::ThresholdedRelu { alpha }
            | Self::Celu { alpha } => none.with("alpha", alpha),
            Self::Selu { alpha, gamma } => none.with("alpha", alpha).with("gamma", gamma),
            Self::HardSigmoid { alpha, beta } => none.with("alpha", alpha).with("beta", beta),
            Self::Clip { min, max } => none.with("min", min).with("max", max),
            Self::Gelu { tanh } => none.with("approximate", if tanh { "tanh" } else { "none" }),
            Self::Shrink { bias, lambd } => none.with("bias", bias).with("lambd", lambd),
            Self::IsInf { negative, positive } => {
                none.with("detect_negative", negative).with("detect_positive", positive)
            }
            _ => none,
        }
    }

    /// The function itself. Functions of truth values take and give 0 and 1.
    pub fn apply(self, x: f64) -> f64 {
        let flag = |f: bool| f64::from(u8::from(f));
        match self {
            Self::Abs => x.abs(),
            Self::Neg => -x,
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Sqrt => x.sqrt(),
            Self::Reciprocal => x.recip(),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Round => x.round_ties_even(),
            // Zero and NaN are their own sign.
            Self::Sign => {
                if x == 0.0 || x.is_nan() {
                    x
                } else {
                    x.signum()
                }
            }
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Tan => x.tan(),
            Self::Asin => x.asin(),
            Self::Acos => x.acos(),
            Self::Atan => x.atan(),
            Self::Sinh => x.sinh(),
            Self::Cosh => x.cosh(),
            Self::Tanh => x.tanh(),
            Self::Asinh => x.asinh(),
            Self::Acosh => x.acosh(),
            Self::Atanh => x.atanh(),
            Self::Erf => erf(x),
            Self::Sigmoid => sigmoid(x),
            Self::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Self::Softplus => softplus(x),
            Self::Softsign => x / (1.0 + x.abs()),
            Self::Not => flag(x == 0.0),
            Self::BitwiseNot => !(x as i64) as f64,
            Self::IsNan => flag(x.is_nan()),
            Self::HardSwish => x * limit(x / 6.0 + 0.5, 0.0, 1.0),
            Self::Silu => x * sigmoid(x),
            Self::Mish => x * softplus(x).tanh(),
            Self::LeakyRelu { alpha } => {
                if x < 0.0 {
                    f64::from(alpha) * x
                } else {
                    x
                }
            }
            Self::Elu { alpha } => {
                if x < 0.0 {
                    f64::from(alpha) * x.exp_m1()
                } else {
                    x
                }
            }
            Self::Selu { alpha, gamma } => {
                f64::from(gamma) * if x > 0.0 { x } else { f64::from(alpha) * x.exp_m1() }
            }
            Self::HardSigmoid { alpha, beta } => limit(f64::from(alpha) * x + f64::from(beta), 0.0, 1.0),
            Self::Clip { min, max } => limit(x, f64::from(min), f64::from(max)),
            Self::Gelu { tanh: false } => x * 0.5 * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            Self::Gelu { tanh: true } => {
                let inner = std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x);
                x * 0.5 * (1.0 + inner.tanh())
            }
            Self::Swish { alpha } => x * sigmoid(f64::from(alpha) * x),
            Self::ThresholdedRelu { alpha } => {
                if x > f64::from(alpha) {
                    x
                } else {
                    0.0
                }
            }
            Self::Celu { alpha } => {
                let alpha = f64::from(alpha);
                if x > 0.0 { x } else { alpha * (x / alpha).exp_m1() }
            }
            Self::Shrink { bias, lambd } => {
                let (bias, lambd) = (f64::from(bias), f64::from(lambd));
                if x < -lambd {
                    x + bias
                } else if x > lambd {
                    x - bias
                } else {
                    0.0
                }
            }
            Self::IsInf { negative, positive } => {
                flag(x.is_infinite() && if x < 0.0 { negative } else { positive })
            }
        }
    }

    /// The function of an integer, for those that are exact.
    fn apply_integer(self, x: i128) -> i128 {
        match self {
            Self::Abs => x.abs(),
            Self::Neg => -x,
            Self::Sign => x.signum(),
            Self::Relu => x.max(0),
            Self::Not => i128::from(x == 0),
            Self::BitwiseNot => !x,
            Self::Clip { min, max } => {
                // A limit that is no whole number is rounded into the range.
                let (min, max) = (f64::from(min).ceil() as i128, f64::from(max).floor() as i128);
                x.max(min).min(max)
            }
            other => other.apply(x as f64) as i128,
        }
    }

    fn accepts(self, element: ElementType) -> bool {
        match self {
            Self::Not => element == ElementType::Bool,
            Self::BitwiseNot => element.is_integer(),
            Self::Abs | Self::Neg | Self::Sign | Self::Relu | Self::Clip { .. } | Self::Shrink { .. } => {
                typing::is_number(element)
            }
            _ => element.is_float(),
        }
    }
}

impl std::fmt::Display for UnaryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let attributes = self.attributes();
        f.write_str(self.name())?;
        if attributes.0.is_empty() { Ok(()) } else { write!(f, "({attributes})") }
    }
}

/// `x` limited to a range; the upper limit wins where they contradict, NaN stays.
fn limit(x: f64, min: f64, max: f64) -> f64 {
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// The error function: `2 / sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (2n+1)!!`, a series without cancellation.
fn erf(x: f64) -> f64 {
    // What is missing to one is below double precision.
    if x.abs() > 6.0 {
        return x.signum();
    }
    let twice = 2.0 * x * x;
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > sum.abs() * 1e-17 {
        odd += 2.0;
        term *= twice / odd;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// Applies a function that a pass fused into another operator.
pub(super) fn activate(activation: Option<UnaryKind>, values: &mut [f64]) {
    if let Some(kind) = activation {
        for value in values {
            *value = kind.apply(*value);
        }
    }
}

/// A function that a pass fused into another operator, as an attribute.
pub(super) fn with_activation(attributes: Attributes, activation: Option<UnaryKind>) -> Attributes {
    match activation {
        Some(kind) => attributes.with("activation", kind.to_string()),
        None => attributes,
    }
}

impl Operator for Unary {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn attributes(&self) -> Attributes {
        self.kind.attributes()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let mut ty = inputs.tensor(0)?.clone();
        typing::element(inputs, 0, self.name(), |e| self.kind.accepts(e))?;
        if matches!(self.kind, UnaryKind::IsNan | UnaryKind::IsInf { .. }) {
            ty.element = ElementType::Bool;
        }
        Ok(vec![ty.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (element, shape) = movement::result(self, inputs)?;
        let y: Tensor = if x.element().is_float() {
            let mut values = numbers::to_f64(x)?;
            activate(Some(self.kind), &mut values);
            numbers::from_f64(element, shape, &values)?
        } else {
            let values: Vec<i128> =
                numbers::to_i128(x)?.into_iter().map(|v| self.kind.apply_integer(v)).collect();
            numbers::from_i128(element, shape, &values)?
        };
        Ok(vec![y.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(1);
        let mut cases = Vec::new();
        for (kind, low, high) in KINDS {
            let x = numbers.floats([3, 5, 7], low, high);
            cases.push(Case::new(kind.name(), Unary { kind }, [x]));
        }
        let mut case = |name: &str, kind: UnaryKind, x: Tensor, tolerance: Tolerance| {
            cases.push(Case::new(name, Unary { kind }, [x]).with_tolerance(tolerance));
        };
        let exact = Tolerance::Exact;
        let halves = Tensor::vector(&[-2.5f32, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4, -0.6]);
        let special = Tensor::vector(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0]);
        case(
            "Gelu tanh",
            UnaryKind::Gelu { tanh: true },
            numbers.floats([2, 33], -4.0, 4.0),
            Tolerance::Relative(1e-5),
        );
        case("Round halves", UnaryKind::Round, halves, exact);
        case("Not", UnaryKind::Not, numbers.tensor(ElementType::Bool, [4, 3]), exact);
        case("BitwiseNot uint8", UnaryKind::BitwiseNot, numbers.ints::<u8>([17], 0, 255), exact);
        case("IsNaN", UnaryKind::IsNan, special.clone(), exact);
        case("IsInf", UnaryKind::IsInf { negative: true, positive: true }, special.clone(), exact);
        case("IsInf negative", UnaryKind::IsInf { negative: true, positive: false }, special, exact);
        case("Abs int64", UnaryKind::Abs, numbers.ints::<i64>([5], -9, 9), exact);
        case("Neg int32", UnaryKind::Neg, numbers.ints::<i32>([5], -9, 9), exact);
        case("Sign int8", UnaryKind::Sign, numbers.ints::<i8>([5], -2, 2), exact);
        case("Relu scalar", UnaryKind::Relu, Tensor::scalar(-1.0f32), exact);
        case("Relu empty", UnaryKind::Relu, numbers.floats([2, 0, 3], 0.0, 1.0), exact);
        case("Relu one row", UnaryKind::Relu, numbers.floats([1, 1, 1, 1027], -1.0, 1.0), exact);
        for element in [ElementType::F16, ElementType::Bf16, ElementType::F64] {
            let tolerance = Tolerance::Relative(if element == ElementType::F64 { 1e-6 } else { 1e-2 });
            case(&format!("Tanh {element}"), UnaryKind::Tanh, numbers.tensor(element, [3, 11]), tolerance);
        }
        cases
    }
}

/// Every function of real numbers with a range of arguments that it has a meaning for.
const KINDS: [(UnaryKind, f32, f32); 40] = [
    (UnaryKind::Abs, -3.0, 3.0),
    (UnaryKind::Neg, -3.0, 3.0),
    (UnaryKind::Exp, -9.0, 3.0),
    (UnaryKind::Log, 0.01, 9.0),
    (UnaryKind::Sqrt, 0.0, 9.0),
    (UnaryKind::Reciprocal, 0.1, 4.0),
    (UnaryKind::Floor, -3.0, 3.0),
    (UnaryKind::Ceil, -3.0, 3.0),
    (UnaryKind::Round, -3.0, 3.0),
    (UnaryKind::Sign, -3.0, 3.0),
    (UnaryKind::Sin, -7.0, 7.0),
    (UnaryKind::Cos, -7.0, 7.0),
    (UnaryKind::Tan, -1.2, 1.2),
    (UnaryKind::Asin, -1.0, 1.0),
    (UnaryKind::Acos, -1.0, 1.0),
    (UnaryKind::Atan, -3.0, 3.0),
    (UnaryKind::Sinh, -3.0, 3.0),
    (UnaryKind::Cosh, -3.0, 3.0),
    (UnaryKind::Tanh, -5.0, 5.0),
    (UnaryKind::Asinh, -3.0, 3.0),
    (UnaryKind::Acosh, 1.0, 9.0),
    (UnaryKind::Atanh, -0.9, 0.9),
    (UnaryKind::Erf, -4.0, 4.0),
    (UnaryKind::Sigmoid, -9.0, 9.0),
    (UnaryKind::Relu, -3.0, 3.0),
    (UnaryKind::Softplus, -30.0, 30.0),
    (UnaryKind::Softsign, -3.0, 3.0),
    (UnaryKind::HardSwish, -5.0, 5.0),
    (UnaryKind::Silu, -9.0, 9.0),
    (UnaryKind::Mish, -9.0, 9.0),
    (UnaryKind::LeakyRelu { alpha: 0.1 }, -3.0, 3.0),
    (UnaryKind::Elu { alpha: 1.5 }, -3.0, 3.0),
    (UnaryKind::Selu { alpha: 1.673_263_2, gamma: 1.050_701 }, -3.0, 3.0),
    (UnaryKind::HardSigmoid { alpha: 0.2, beta: 0.5 }, -5.0, 5.0),
    (UnaryKind::Clip { min: -1.0, max: 0.5 }, -3.0, 3.0),
    (UnaryKind::Gelu { tanh: false }, -4.0, 4.0),
    (UnaryKind::Swish { alpha: 1.702 }, -5.0, 5.0),
    (UnaryKind::ThresholdedRelu { alpha: 0.7 }, -3.0, 3.0),
    (UnaryKind::Celu { alpha: 2.0 }, -3.0, 3.0),
    (UnaryKind::Shrink { bias: 0.5, lambd: 1.0 }, -3.0, 3.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_known_at_some_places() {
        for (x, y) in
            [(0.0, 0.0), (0.5, 0.5204998778130465), (2.0, 0.9953222650189527), (5.0, 0.9999999999984626)]
        {
            assert!((erf(x) - y).abs() < 1e-15, "{x}: {}", erf(x));
            assert!((erf(-x) + y).abs() < 1e-15);
        }
        assert_eq!(erf(f64::INFINITY), 1.0);
        assert!(erf(f64::NAN).is_nan());
    }

    #[test]
    fn nan_goes_through_limits() {
        for kind in [UnaryKind::Relu, UnaryKind::Clip { min: 0.0, max: 1.0 }, UnaryKind::Sign] {
            assert!(kind.apply(f64::NAN).is_nan(), "{kind}");
        }
    }

    #[test]
    fn large_arguments_do_not_overflow() {
        assert_eq!(UnaryKind::Sigmoid.apply(-1e4), 0.0);
        assert_eq!(UnaryKind::Softplus.apply(1e4), 1e4);
        assert_eq!(UnaryKind::Softplus.apply(-1e4), 0.0);
    }

    #[test]
    fn functions_refuse_types_that_they_have_no_meaning_for() {
        let x = Value::from(Tensor::vector(&[1i32]));
        let error = Unary { kind: UnaryKind::Exp }.evaluate(&[Some(&x)], &Context::default()).unwrap_err();
        assert_eq!(error.to_string(), "input 0 holds int32, which Exp does not take");
    }

    #[test]
    fn a_fused_function_shows_its_parameters() {
        assert_eq!(UnaryKind::Clip { min: 0.0, max: 6.0 }.to_string(), "Clip(min=0, max=6)");
        assert_eq!(UnaryKind::Relu.to_string(), "Relu");
    }
}
