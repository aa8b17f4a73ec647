//! Texts cut into parts along a new last axis.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::support::typing;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// Texts cut into parts along a new last axis, filled up with empty texts; the second result counts the parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringSplit {
    /// What stands between the parts; without it, white space of any length does.
    pub delimiter: Option<String>,
    /// Most cuts; the last part holds the rest.
    pub most: Option<usize>,
}

impl StringSplit {
    fn parts<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let most = self.most.unwrap_or(usize::MAX);
        if let Some(delimiter) = &self.delimiter {
            return text.splitn(most.saturating_add(1), delimiter.as_str()).collect();
        }
        let mut parts = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = if parts.len() == most { None } else { rest.find(char::is_whitespace) };
            let (part, behind) = rest.split_at(end.unwrap_or(rest.len()));
            parts.push(part);
            rest = behind.trim_start();
        }
        parts
    }
}

impl Operator for StringSplit {
    fn name(&self) -> &'static str {
        "StringSplit"
    }

    fn attributes(&self) -> Attributes {
        let attributes = match &self.delimiter {
            Some(delimiter) => Attributes::none().with("delimiter", delimiter.as_str()),
            None => Attributes::none(),
        };
        match self.most {
            Some(most) => attributes.with("maxsplit", most),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, self.name(), |element| element == ElementType::String)?;
        let dims = inputs.dims(0)?;
        let parts = dims.iter().cloned().chain([Dim::Unknown]);
        Ok(vec![
            TensorType::new(ElementType::String, parts).into(),
            TensorType::new(ElementType::I64, dims.iter().cloned()).into(),
        ])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let data = tensor(inputs, 0)?;
        if data.element() != ElementType::String {
            return Err(EvaluateError::ElementType { operator: self.name(), element: data.element() });
        }
        let parts: Vec<Vec<&str>> = data.strings().iter().map(|text| self.parts(text)).collect();
        let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
        let mut shape = data.shape().clone();
        shape.push(longest);
        let mut texts: Vec<String> = movement::reserve(movement::check_size(ElementType::String, &shape)?)?;
        for row in &parts {
            texts.extend(row.iter().map(|part| (*part).to_owned()));
            texts.resize(texts.len() + longest - row.len(), String::new());
        }
        let counts: Vec<i64> = parts.iter().map(|row| row.len() as i64).collect();
        Ok(vec![
            Tensor::from_strings(shape, texts)?.into(),
            Tensor::new(data.shape().clone(), &counts)?.into(),
        ])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let case = |name: &str, delimiter: Option<&str>, most, shape: &[usize], texts: &[&str]| {
            let texts = Tensor::from_strings(shape, texts.iter().map(|t| (*t).to_owned()).collect());
            let op = Self { delimiter: delimiter.map(str::to_owned), most };
            Case::new(name, op, texts).with_outputs(2).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("white space", None, None, &[2], &["  a  b c ", "one"]),
            case("two cuts at most", None, Some(2), &[1], &["a b c d "]),
            case("commas", Some(","), None, &[2, 1], &["a,,b", ""]),
            case("one comma", Some(","), Some(1), &[2], &["a,b,c", "d"]),
            case("nothing", None, None, &[0], &[]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_holds_the_rest() {
        let split = StringSplit { delimiter: None, most: Some(1) };
        assert_eq!(split.parts(" a  b  c "), ["a", "b  c "]);
        assert_eq!(StringSplit { delimiter: None, most: None }.parts(" "), [""; 0]);
        assert_eq!(StringSplit { delimiter: Some("--".into()), most: None }.parts("a----b"), ["a", "", "b"]);
    }
}
