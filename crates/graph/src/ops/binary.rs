//! A function of two numbers, applied with NumPy broadcasting.

use armet_tensor::{ElementType, Shape, Tensor};

use super::movement;
use super::numbers;
use super::support::{broadcast, typing};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance, Value,
    ValueType,
};

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
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Min,
    Max,
    PRelu,
    And,
    Or,
    Xor,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    BitShiftLeft,
    BitShiftRight,
    Equal,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    /// Remainder; `fmod` takes the dividend's sign, otherwise the divisor's.
    Mod {
        fmod: bool,
    },
}

impl BinaryKind {
    /// Every function.
    pub const ALL: [Self; 23] = [
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Pow,
        Self::Min,
        Self::Max,
        Self::PRelu,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::BitwiseAnd,
        Self::BitwiseOr,
        Self::BitwiseXor,
        Self::BitShiftLeft,
        Self::BitShiftRight,
        Self::Equal,
        Self::Less,
        Self::Greater,
        Self::LessOrEqual,
        Self::GreaterOrEqual,
        Self::Mod { fmod: false },
        Self::Mod { fmod: true },
    ];

    /// ONNX's name of the operator.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "Add",
            Self::Sub => "Sub",
            Self::Mul => "Mul",
            Self::Div => "Div",
            Self::Pow => "Pow",
            Self::Min => "Min",
            Self::Max => "Max",
            Self::PRelu => "PRelu",
            Self::And => "And",
            Self::Or => "Or",
            Self::Xor => "Xor",
            Self::BitwiseAnd => "BitwiseAnd",
            Self::BitwiseOr => "BitwiseOr",
            Self::BitwiseXor => "BitwiseXor",
            Self::BitShiftLeft | Self::BitShiftRight => "BitShift",
            Self::Equal => "Equal",
            Self::Less => "Less",
            Self::Greater => "Greater",
            Self::LessOrEqual => "LessOrEqual",
            Self::GreaterOrEqual => "GreaterOrEqual",
            Self::Mod { .. } => "Mod",
        }
    }

    /// Whether results are truth values.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Equal | Self::Less | Self::Greater | Self::LessOrEqual | Self::GreaterOrEqual)
    }

    /// The function itself. Functions that give truth values give 0 and 1.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        let flag = |f: bool| f64::from(u8::from(f));
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
            Self::Pow => a.powf(b),
            // NaN wins, as in NumPy.
            Self::Min => {
                if a.is_nan() || a < b {
                    a
                } else {
                    b
                }
            }
            Self::Max => {
                if a.is_nan() || a > b {
                    a
                } else {
                    b
                }
            }
            Self::PRelu => {
                if a < 0.0 {
                    a * b
                } else {
                    a
                }
            }
            Self::And => flag(a != 0.0 && b != 0.0),
            Self::Or => flag(a != 0.0 || b != 0.0),
            Self::Xor => flag((a != 0.0) != (b != 0.0)),
            Self::Equal => flag(a == b),
            Self::Less => flag(a < b),
            Self::Greater => flag(a > b),
            Self::LessOrEqual => flag(a <= b),
            Self::GreaterOrEqual => flag(a >= b),
            Self::Mod { fmod: true } => a % b,
            Self::Mod { fmod: false } => {
                let rest = a % b;
                if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
            }
            Self::BitwiseAnd => (a as i64 & b as i64) as f64,
            Self::BitwiseOr => (a as i64 | b as i64) as f64,
            Self::BitwiseXor => (a as i64 ^ b as i64) as f64,
            Self::BitShiftLeft => shift(a as i128, b as i128, 64, true) as f64,
            Self::BitShiftRight => shift(a as i128, b as i128, 64, false) as f64,
        }
    }

    /// The function of integers of this many bits, before wrapping to them.
    fn apply_integer(self, a: i128, b: i128, bits: usize) -> Result<i128, EvaluateError> {
        let by_zero =
            || EvaluateError::Invalid(format!("{} of the integer {a} by zero has no meaning", self.name()));
        Ok(match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            // Wrapping at 128 bits keeps the lower 64.
            Self::Mul => a.wrapping_mul(b),
            Self::Div => a.checked_div(b).ok_or_else(by_zero)?,
            Self::Pow => power(a, b),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::PRelu => {
                if a < 0 {
                    a.wrapping_mul(b)
                } else {
                    a
                }
            }
            Self::And => i128::from(a != 0 && b != 0),
            Self::Or => i128::from(a != 0 || b != 0),
            Self::Xor => i128::from((a != 0) != (b != 0)),
            Self::BitwiseAnd => a & b,
            Self::BitwiseOr => a | b,
            Self::BitwiseXor => a ^ b,
            Self::BitShiftLeft => shift(a, b, bits, true),
            Self::BitShiftRight => shift(a, b, bits, false),
            Self::Equal => i128::from(a == b),
            Self::Less => i128::from(a < b),
            Self::Greater => i128::from(a > b),
            Self::LessOrEqual => i128::from(a <= b),
            Self::GreaterOrEqual => i128::from(a >= b),
            Self::Mod { fmod } => {
                let rest = a.checked_rem(b).ok_or_else(by_zero)?;
                if !fmod && rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
            }
        })
    }

    fn accepts(self, element: ElementType) -> bool {
        match self {
            Self::And | Self::Or | Self::Xor => element == ElementType::Bool,
            Self::BitwiseAnd
            | Self::BitwiseOr
            | Self::BitwiseXor
            | Self::BitShiftLeft
            | Self::BitShiftRight => element.is_integer(),
            Self::Equal => {
                typing::is_number(element) || matches!(element, ElementType::Bool | ElementType::String)
            }
            _ => typing::is_number(element),
        }
    }
}

/// Shifts out of the type's bits, or by a negative number, leave nothing but the sign when they go right.
fn shift(a: i128, by: i128, bits: usize, left: bool) -> i128 {
    match u32::try_from(by) {
        Ok(by) if (by as usize) < bits => {
            if left {
                a << by
            } else {
                a >> by
            }
        }
        _ if left => 0,
        _ => a.signum().min(0),
    }
}

/// Power of integers by squaring, wrapping; a negative exponent truncates the fraction.
fn power(base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    let (mut result, mut square, mut left) = (1i128, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}

/// Pairs of elements, broadcast to the shape of the result.
fn pairs<T: Clone>(
    (a, a_shape): (Vec<T>, &[usize]),
    (b, b_shape): (Vec<T>, &[usize]),
    shape: &Shape,
) -> Result<impl Iterator<Item = (T, T)>, EvaluateError> {
    let a = broadcast::expand(a, a_shape, shape)?;
    let b = broadcast::expand(b, b_shape, shape)?;
    Ok(a.into_iter().zip(b))
}

impl Operator for Binary {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn attributes(&self) -> Attributes {
        match self.kind {
            BinaryKind::Mod { fmod } => Attributes::none().with("fmod", fmod),
            BinaryKind::BitShiftLeft => Attributes::none().with("direction", "LEFT"),
            BinaryKind::BitShiftRight => Attributes::none().with("direction", "RIGHT"),
            _ => Attributes::none(),
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), |e| self.kind.accepts(e))?;
        typing::element(inputs, 1, self.name(), |e| self.kind.accepts(e))?;
        if self.kind != BinaryKind::Pow {
            typing::same_elements(inputs, self.name(), &[0, 1])?;
        }
        let element = if self.kind.is_comparison() { ElementType::Bool } else { element };
        Ok(typing::one(element, broadcast::dims(self.name(), &[inputs.dims(0)?, inputs.dims(1)?])?))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (a, b) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let (element, shape) = movement::result(self, inputs)?;
        let kind = self.kind;
        let result: Tensor = if a.element() == ElementType::String {
            let equal: Vec<i128> =
                pairs((a.strings().to_vec(), a.shape()), (b.strings().to_vec(), b.shape()), &shape)?
                    .map(|(a, b)| i128::from(a == b))
                    .collect();
            numbers::from_i128(element, shape, &equal)?
        } else if a.element().is_float() || b.element().is_float() {
            let (a_values, b_values) = (numbers::to_f64(a)?, numbers::to_f64(b)?);
            let values: Vec<f64> = pairs((a_values, a.shape()), (b_values, b.shape()), &shape)?
                .map(|(a, b)| kind.apply(a, b))
                .collect();
            numbers::from_f64(element, shape, &values)?
        } else {
            let bits = element.bits();
            let (a_values, b_values) = (numbers::to_i128(a)?, numbers::to_i128(b)?);
            let values: Result<Vec<i128>, EvaluateError> =
                pairs((a_values, a.shape()), (b_values, b.shape()), &shape)?
                    .map(|(a, b)| kind.apply_integer(a, b, bits))
                    .collect();
            numbers::from_i128(element, shape, &values?)?
        };
        Ok(vec![result.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        typing::count(outputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(2);
        let mut cases = Vec::new();
        for kind in BinaryKind::ALL {
            let op = Binary { kind };
            let label = match kind {
                BinaryKind::Mod { fmod } => format!("Mod fmod={fmod}"),
                BinaryKind::BitShiftLeft => "BitShift left".to_owned(),
                BinaryKind::BitShiftRight => "BitShift right".to_owned(),
                _ => kind.name().to_owned(),
            };
            let inputs = match kind {
                BinaryKind::And | BinaryKind::Or | BinaryKind::Xor => {
                    [numbers.tensor(ElementType::Bool, [3, 5]), numbers.tensor(ElementType::Bool, [3, 5])]
                }
                BinaryKind::BitwiseAnd | BinaryKind::BitwiseOr | BinaryKind::BitwiseXor => {
                    [numbers.ints::<i32>([2, 9], -99, 99), numbers.ints::<i32>([9], -99, 99)]
                }
                BinaryKind::BitShiftLeft | BinaryKind::BitShiftRight => {
                    [numbers.ints::<u8>([2, 9], 0, 255), numbers.ints::<u8>([2, 9], 0, 7)]
                }
                BinaryKind::Mod { fmod: false } => {
                    [numbers.ints::<i64>([2, 9], -99, 99), numbers.ints::<i64>([2, 1], 1, 7)]
                }
                BinaryKind::Pow => {
                    [numbers.floats([2, 3, 7], 0.1, 3.0), numbers.floats([2, 3, 7], -2.0, 2.0)]
                }
                BinaryKind::Div | BinaryKind::Mod { fmod: true } => {
                    [numbers.floats([2, 3, 7], -5.0, 5.0), numbers.floats([2, 3, 7], 0.5, 2.0)]
                }
                _ if kind.is_comparison() => {
                    [numbers.ints::<i32>([4, 5], 0, 2), numbers.ints::<i32>([4, 1], 0, 2)]
                }
                _ => [numbers.floats([2, 3, 7], -3.0, 3.0), numbers.floats([2, 3, 7], -3.0, 3.0)],
            };
            let tolerance =
                if inputs[0].element().is_float() { Tolerance::Relative(1e-5) } else { Tolerance::Exact };
            cases.push(Case::new(label, op, inputs).with_tolerance(tolerance));
        }
        let mut case = |name: &str, kind: BinaryKind, a: Tensor, b: Tensor| {
            cases.push(Case::new(name, Binary { kind }, [a, b]));
        };
        let mut f = |shape: &[usize]| numbers.floats(shape, -3.0, 3.0);
        case("Add a scalar", BinaryKind::Add, f(&[3, 17]), f(&[]));
        case("Sub from a scalar", BinaryKind::Sub, f(&[]), f(&[3, 17]));
        case("Add per channel", BinaryKind::Add, f(&[2, 5, 3, 3]), f(&[5, 1, 1]));
        case("Mul per picture and channel", BinaryKind::Mul, f(&[2, 5, 3, 3]), f(&[2, 5, 1, 1]));
        case("Mul both broadcast", BinaryKind::Mul, f(&[4, 1, 3]), f(&[2, 1]));
        case("Add empty", BinaryKind::Add, f(&[0, 3]), f(&[1]));
        case("Add empty rows to repeated ones", BinaryKind::Add, f(&[2, 0, 3]), f(&[2, 1, 1]));
        case("Max of rows without elements", BinaryKind::Max, f(&[4, 0]), f(&[4, 1]));
        case("PRelu per channel", BinaryKind::PRelu, f(&[1, 5, 4, 3]), f(&[5, 1, 1]));
        case("Less floats", BinaryKind::Less, f(&[5, 7]), f(&[7]));
        let mut i = |shape: &[usize]| numbers.ints::<i64>(shape, 1, 9);
        case("Add int64", BinaryKind::Add, i(&[2, 3]), i(&[3]));
        case("Mul int64", BinaryKind::Mul, i(&[2, 3]), i(&[]));
        case("Pow int64", BinaryKind::Pow, i(&[2, 3]), i(&[2, 3]));
        case(
            "Div int32 truncates",
            BinaryKind::Div,
            Tensor::vector(&[7i32, -7, 7, -7]),
            Tensor::vector(&[2i32, 2, -2, -2]),
        );
        let squares = Tensor::vector(&[2i64]);
        case("Pow of a float by an int64", BinaryKind::Pow, numbers.floats([3, 4], -3.0, 3.0), squares);
        let (a, b) = (numbers.tensor(ElementType::F16, [3, 5]), numbers.tensor(ElementType::F16, [5]));
        cases.push(
            Case::new("Mul float16", Binary { kind: BinaryKind::Mul }, [a, b])
                .with_tolerance(Tolerance::Relative(1e-2)),
        );
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TensorType;

    fn evaluate(kind: BinaryKind, a: Tensor, b: Tensor) -> Result<Tensor, EvaluateError> {
        let (a, b) = (Value::from(a), Value::from(b));
        let mut results = Binary { kind }.evaluate(&[Some(&a), Some(&b)], &Context::default())?;
        Ok(results.remove(0).tensor().unwrap().clone())
    }

    #[test]
    fn integers_wrap_and_truncate() {
        let v = |kind, a: i8, b: i8| {
            evaluate(kind, Tensor::scalar(a), Tensor::scalar(b)).map(|t| t.expect::<i8>()[0]).ok()
        };
        assert_eq!(v(BinaryKind::Add, 127, 1), Some(-128));
        assert_eq!(v(BinaryKind::Div, -7, 2), Some(-3));
        assert_eq!(v(BinaryKind::Div, -128, -1), Some(-128));
        assert_eq!(v(BinaryKind::Div, 1, 0), None);
        assert_eq!(v(BinaryKind::Mod { fmod: false }, -7, 3), Some(2));
        assert_eq!(v(BinaryKind::Mod { fmod: false }, 7, -3), Some(-2));
        assert_eq!(v(BinaryKind::Mod { fmod: true }, -7, 3), Some(-1));
        assert_eq!(v(BinaryKind::Pow, 2, 9), Some(0));
        assert_eq!(v(BinaryKind::Pow, -1, -3), Some(-1));
        assert_eq!(v(BinaryKind::BitShiftLeft, 1, 9), Some(0));
    }

    #[test]
    fn products_of_the_largest_integers_wrap() {
        let most = Tensor::scalar(u64::MAX);
        let product = evaluate(BinaryKind::Mul, most.clone(), most).unwrap();
        assert_eq!(product.expect::<u64>()[0], 1);
    }

    #[test]
    fn text_can_be_compared() {
        let a = Tensor::from_strings([2], vec!["a".into(), "b".into()]).unwrap();
        let b = Tensor::from_strings([1], vec!["b".into()]).unwrap();
        let equal = evaluate(BinaryKind::Equal, a, b).unwrap();
        assert_eq!((equal.element(), equal.bytes()), (ElementType::Bool, &[0u8, 1][..]));
    }

    #[test]
    fn powers_take_mixed_types() {
        let power = evaluate(BinaryKind::Pow, Tensor::vector(&[2i32, 9]), Tensor::vector(&[0.5f32])).unwrap();
        assert_eq!(power.expect::<i32>().as_ref(), [1, 3]);
    }

    #[test]
    fn nan_wins() {
        for kind in [BinaryKind::Min, BinaryKind::Max] {
            assert!(kind.apply(f64::NAN, 1.0).is_nan() && kind.apply(1.0, f64::NAN).is_nan());
        }
    }

    #[test]
    fn symbols_broadcast() {
        let (a, b) = (
            ValueType::from(TensorType::new(ElementType::F32, [crate::Dim::symbol("n"), 3.into()])),
            ValueType::from(TensorType::fixed(ElementType::F32, &[1, 3])),
        );
        let input = |ty| Some(crate::InferInput { ty, value: None, entries: None });
        let types = Binary { kind: BinaryKind::Add }.infer(&InferInputs(&[input(&a), input(&b)])).unwrap();
        assert_eq!(types, [a]);
    }
}
