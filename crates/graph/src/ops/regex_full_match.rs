//! Which texts are, from beginning to end, of a pattern.

use armet_tensor::{Bool, ElementType, Tensor};
use regex::{Regex, RegexBuilder};

use super::movement;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Operator, Tolerance, Value, ValueType,
};

/// Bytes that the automaton of a pattern may take.
const LARGEST_PATTERN: usize = 4 << 20;

/// Which texts are, from beginning to end, of a pattern in the syntax of RE2.
#[derive(Debug, Clone)]
pub struct RegexFullMatch {
    pattern: String,
    regex: Regex,
}

impl RegexFullMatch {
    /// The operator for a pattern.
    ///
    /// # Errors
    /// When it is no pattern, or one that takes too much memory.
    pub fn new(pattern: &str) -> Result<Self, String> {
        // The pattern alone, so that its faults are told as they are there.
        Regex::new(pattern).map_err(|error| error.to_string())?;
        let whole = RegexBuilder::new(&format!(r"\A(?:{pattern})\z")).size_limit(LARGEST_PATTERN).build();
        Ok(Self { pattern: pattern.to_owned(), regex: whole.map_err(|error| error.to_string())? })
    }
}

impl Operator for RegexFullMatch {
    fn name(&self) -> &'static str {
        "RegexFullMatch"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("pattern", self.pattern.as_str())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), |element| element == ElementType::String)?;
        Ok(typing::one(ElementType::Bool, inputs.dims(0)?.iter().cloned()))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (_, shape) = movement::result(self, inputs)?;
        let texts = tensor(inputs, 0)?.strings();
        let flags: Vec<Bool> = texts.iter().map(|text| Bool::from(self.regex.is_match(text))).collect();
        Ok(vec![Tensor::new(shape, &flags)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let case = |name: &str, pattern: &str, shape: &[usize], texts: &[&str]| {
            let texts = Tensor::from_strings(shape, texts.iter().map(|t| (*t).to_owned()).collect()).ok()?;
            let op = Self::new(pattern).ok()?;
            Some(Case::new(name, op, [texts]).with_tolerance(Tolerance::Exact))
        };
        [
            case("domains", r"www\.[\w.-]+\.\bcom\b", &[2, 1], &["www.a.com", "www.a.comx"]),
            case("one of two", "a|ab", &[3], &["a", "ab", "abc"]),
            case("nothing", "x*", &[0], &[]),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_patterns_are_told() {
        assert!(RegexFullMatch::new("(").is_err());
        assert!(RegexFullMatch::new("a)(b").is_err());
        assert!(RegexFullMatch::new("((a{1000}){1000}){1000}").is_err());
    }
}
