//! Texts behind texts, with NumPy broadcasting.

use armet_tensor::{ElementType, Shape, Tensor};

use super::movement;
use super::support::{broadcast, typing};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Operator, Tolerance, Value, ValueType,
};

/// The texts of the second input behind those of the first, with NumPy broadcasting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringConcat;

impl Operator for StringConcat {
    fn name(&self) -> &'static str {
        "StringConcat"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        for input in 0..2 {
            typing::element(inputs, input, self.name(), |element| element == ElementType::String)?;
        }
        let dims = broadcast::dims(self.name(), &[inputs.dims(0)?, inputs.dims(1)?])?;
        Ok(typing::one(ElementType::String, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let (a, b) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
        let place = |of: &Shape, at: &[usize]| {
            let skipped = at.len() - of.len();
            at[skipped..].iter().zip(of.iter()).fold(0, |sum, (&i, &d)| sum * d + if d == 1 { 0 } else { i })
        };
        let mut texts: Vec<String> = movement::reserve(shape.elements())?;
        for at in movement::coordinates(&shape) {
            texts.push(format!(
                "{}{}",
                a.strings()[place(a.shape(), &at)],
                b.strings()[place(b.shape(), &at)]
            ));
        }
        Ok(vec![Tensor::from_strings(shape, texts)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let texts = |shape: &[usize], texts: &[&str]| {
            Tensor::from_strings(shape, texts.iter().map(|t| (*t).to_owned()).collect())
        };
        let case = |name: &str, a: (&[usize], &[&str]), b: (&[usize], &[&str])| {
            let inputs = [texts(a.0, a.1), texts(b.0, b.1)].into_iter().flatten();
            Case::new(name, Self, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("pairs", (&[2], &["ab", ""]), (&[2], &["c", "\u{e9}"])),
            case("one behind all", (&[2, 2], &["a", "b", "c", "d"]), (&[], &["."])),
            case("rows and columns", (&[2, 1], &["a", "b"]), (&[2], &["1", "2"])),
            case("nothing", (&[0], &[]), (&[1], &["x"])),
        ]
    }
}
