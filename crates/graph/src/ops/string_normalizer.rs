//! Words of a list left out, and the others in one case.

use armet_tensor::{ElementType, Tensor};

use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// Words of a list left out, and the others in one case. The data are a list of texts, or one row of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringNormalizer {
    /// What becomes of letters.
    pub case: LetterCase,
    /// Whether words that are left out must agree in case too.
    pub case_sensitive: bool,
    /// The words that are left out.
    pub stop_words: Vec<String>,
}

/// What becomes of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterCase {
    /// They stay.
    Kept,
    /// Small letters.
    Lower,
    /// Capital letters.
    Upper,
}

impl LetterCase {
    fn apply(self, text: &str) -> String {
        match self {
            Self::Kept => text.to_owned(),
            Self::Lower => text.to_lowercase(),
            Self::Upper => text.to_uppercase(),
        }
    }
}

impl Operator for StringNormalizer {
    fn name(&self) -> &'static str {
        "StringNormalizer"
    }

    fn attributes(&self) -> Attributes {
        let case = match self.case {
            LetterCase::Kept => "NONE",
            LetterCase::Lower => "LOWER",
            LetterCase::Upper => "UPPER",
        };
        Attributes::none()
            .with("case_change_action", case)
            .with("is_case_sensitive", self.case_sensitive)
            .with("stopwords", format!("{:?}", self.stop_words))
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), |element| element == ElementType::String)?;
        let dims = match inputs.dims(0)? {
            [_] => vec![Dim::Unknown],
            [rows, _] if rows.fixed().is_none_or(|rows| rows == 1) => vec![Dim::Fixed(1), Dim::Unknown],
            dims => {
                let shape = super::movement::show(dims);
                return Err(InferError::Mismatch(format!("{} takes one row, not {shape}", self.name())));
            }
        };
        Ok(vec![TensorType::new(ElementType::String, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let data = tensor(inputs, 0)?;
        let of_rank = match data.shape()[..] {
            [_] => 1,
            [1, _] => 2,
            _ => 0,
        };
        if data.element() != ElementType::String || of_rank == 0 {
            return Err(EvaluateError::Invalid(format!(
                "{} takes one row of text, not {}{}",
                self.name(),
                data.element(),
                data.shape()
            )));
        }
        let folded = |text: &str| if self.case_sensitive { text.to_owned() } else { text.to_lowercase() };
        let stop: std::collections::HashSet<String> =
            self.stop_words.iter().map(|word| folded(word)).collect();
        let kept = data.strings().iter().filter(|text| !stop.contains(&folded(text)));
        let mut kept: Vec<String> = kept.map(|text| self.case.apply(text)).collect();
        // Where nothing is left, one empty text stands.
        if kept.is_empty() {
            kept.push(String::new());
        }
        let shape = if of_rank == 1 { vec![kept.len()] } else { vec![1, kept.len()] };
        Ok(vec![Tensor::from_strings(shape, kept)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let words = ["Monday", "tuesday", "MONDAY", "\u{c9}t\u{e9}"];
        let row = |shape: &[usize]| {
            Tensor::from_strings(shape, words.iter().map(|w| (*w).to_owned()).collect()).into_iter()
        };
        let case = |name: &str, case, case_sensitive, stop: &[&str], shape: &[usize]| {
            let stop_words = stop.iter().map(|w| (*w).to_owned()).collect();
            let op = Self { case, case_sensitive, stop_words };
            Case::new(name, op, row(shape)).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("small letters", LetterCase::Lower, true, &[], &[4]),
            case("without Monday", LetterCase::Kept, true, &["Monday"], &[4]),
            case("without Monday in any case", LetterCase::Upper, false, &["monday"], &[1, 4]),
            case("nothing left", LetterCase::Kept, false, &["monday", "tuesday", "\u{e9}t\u{e9}"], &[4]),
        ]
    }
}
