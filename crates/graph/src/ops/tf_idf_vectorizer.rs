//! How often each n-gram of a pool is in a row of words, weighted.

use std::collections::HashMap;

use armet_tensor::{ElementType, Tensor};

use super::movement;
use super::numbers;
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// How often each n-gram of a pool is in a row of words or numbers, weighted.
///
/// The words of an n-gram lie apart by 1, 2, ... up to `most_skipped` + 1 places.
#[derive(Debug, Clone, PartialEq)]
pub struct TfIdfVectorizer {
    /// What a count becomes.
    pub mode: TermWeight,
    /// Shortest n-grams that are counted.
    pub shortest: usize,
    /// Longest n-grams that are counted.
    pub longest: usize,
    /// Words that may lie between those of an n-gram.
    pub most_skipped: usize,
    /// The n-grams, those of one word first: their words, one behind another.
    pub pool: Tensor,
    /// Where in the pool the n-grams of one word, of two words ... begin.
    pub starts: Vec<usize>,
    /// For each n-gram its place in the result.
    pub places: Vec<usize>,
    /// For each n-gram its weight; 1 where there are none.
    pub weights: Vec<f32>,
}

/// What the count of a term becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermWeight {
    /// The count.
    Frequency,
    /// The weight, where the term is there at all.
    InverseDocumentFrequency,
    /// Count times weight.
    Both,
}

/// A word, or an integer, that n-grams are made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Word<'t> {
    Text(&'t str),
    Number(i64),
}

fn words(tensor: &Tensor) -> Option<Vec<Word<'_>>> {
    match tensor.element() {
        ElementType::String => Some(tensor.strings().iter().map(|text| Word::Text(text)).collect()),
        ElementType::I32 | ElementType::I64 => Some(tensor.to_i64()?.into_iter().map(Word::Number).collect()),
        _ => None,
    }
}

impl TfIdfVectorizer {
    /// Length of a row of the result.
    fn width(&self) -> usize {
        self.places.iter().max().map_or(0, |most| most + 1)
    }

    /// The number of each n-gram of the pool whose length is counted.
    fn terms<'p>(&self, pool: &'p [Word<'p>]) -> HashMap<&'p [Word<'p>], usize> {
        let mut terms = HashMap::new();
        let mut number = 0;
        for (index, &start) in self.starts.iter().enumerate() {
            let length = index + 1;
            let end = self.starts.get(index + 1).copied().unwrap_or(pool.len());
            for term in pool.get(start..end).unwrap_or_default().chunks_exact(length) {
                if (self.shortest..=self.longest).contains(&length) {
                    terms.insert(term, number);
                }
                number += 1;
            }
        }
        terms
    }

    fn row(&self, row: &[Word<'_>], terms: &HashMap<&[Word<'_>], usize>, out: &mut [f64]) {
        let mut counts = vec![0u32; self.places.len()];
        let mut term = Vec::with_capacity(self.longest);
        // Words farther apart than the row is long are no n-gram.
        for step in 1..=self.most_skipped.saturating_add(1).min(row.len().max(1)) {
            for length in self.shortest..=self.longest {
                // Single words do not lie apart.
                if length == 1 && step > 1 {
                    continue;
                }
                for first in 0..row.len() {
                    term.clear();
                    term.extend(row[first..].iter().step_by(step).take(length).cloned());
                    if term.len() < length {
                        break;
                    }
                    if let Some(count) = terms.get(&term[..]).and_then(|&number| counts.get_mut(number)) {
                        *count += 1;
                    }
                }
            }
        }
        for (number, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let weight = self.weights.get(number).map_or(1.0, |&w| f64::from(w));
            out[self.places[number]] = match self.mode {
                TermWeight::Frequency => f64::from(count),
                TermWeight::InverseDocumentFrequency => weight,
                TermWeight::Both => f64::from(count) * weight,
            };
        }
    }
}

impl Operator for TfIdfVectorizer {
    fn name(&self) -> &'static str {
        "TfIdfVectorizer"
    }

    fn attributes(&self) -> Attributes {
        let mode = match self.mode {
            TermWeight::Frequency => "TF",
            TermWeight::InverseDocumentFrequency => "IDF",
            TermWeight::Both => "TFIDF",
        };
        Attributes::none()
            .with("mode", mode)
            .with("min_gram_length", self.shortest)
            .with("max_gram_length", self.longest)
            .with("max_skip_count", self.most_skipped)
            .with("pool", self.pool.clone())
            .with("ngram_counts", self.starts.as_slice())
            .with("ngram_indexes", self.places.as_slice())
            .with("weights", self.weights.as_slice())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        let is_text = |element| element == ElementType::String;
        if is_text(element) != is_text(self.pool.element())
            || !matches!(element, ElementType::String | ElementType::I32 | ElementType::I64)
        {
            return Err(InferError::ElementType { input: 0, element, operator: self.name() });
        }
        let width = Dim::Fixed(self.width());
        let dims = match inputs.dims(0)? {
            [_] => vec![width],
            [rows, _] => vec![rows.clone(), width],
            dims => {
                let shape = movement::show(dims);
                return Err(InferError::Mismatch(format!("{} takes rows, not {shape}", self.name())));
            }
        };
        Ok(vec![TensorType::new(ElementType::F32, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let unreadable =
            || EvaluateError::ElementType { operator: "TfIdfVectorizer", element: data.element() };
        let (row, pool) = (words(data).ok_or_else(unreadable)?, words(&self.pool).ok_or_else(unreadable)?);
        let terms = self.terms(&pool);
        let mut out = vec![0.0; movement::check_size(element, &shape)?];
        let (length, width) = (data.shape().last().copied().unwrap_or(0), self.width());
        if width > 0 {
            for (index, out) in out.chunks_exact_mut(width).enumerate() {
                self.row(&row[index * length..(index + 1) * length], &terms, out);
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        movement::element_count(outputs)
    }

    fn cases() -> Vec<Case> {
        let pool = Tensor::vector(&[2i64, 3, 5, 4, 5, 6, 7, 8, 6, 7]);
        let op = |mode, shortest, longest, most_skipped, weights: &[f32]| Self {
            mode,
            shortest,
            longest,
            most_skipped,
            pool: pool.clone(),
            starts: vec![0, 4],
            places: vec![0, 1, 2, 3, 4, 5, 6],
            weights: weights.to_vec(),
        };
        let words = |texts: &[&str]| {
            Tensor::from_strings([texts.len()], texts.iter().map(|t| (*t).to_owned()).collect())
        };
        let row = Tensor::vector(&[1i64, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8]);
        let rows = Tensor::new([2, 6], &[1i32, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8]).into_iter();
        let weights = [2.0, 0.5, 1.0, 1.0, 3.0, 0.25, 4.0];
        let of_words = words(&["a", "b", "a", "c"]).map(|pool| Self {
            pool,
            starts: vec![0, 2],
            places: vec![1, 0, 2],
            ..op(TermWeight::Frequency, 1, 2, 0, &[])
        });
        let mut cases = vec![
            Case::new("pairs", op(TermWeight::Frequency, 2, 2, 0, &[]), [row.clone()]),
            Case::new("pairs apart", op(TermWeight::Frequency, 2, 2, 5, &[]), [row.clone()]),
            Case::new("rows", op(TermWeight::Both, 1, 2, 5, &weights), rows),
            Case::new("there or not", op(TermWeight::InverseDocumentFrequency, 1, 2, 0, &weights), [row]),
        ];
        if let (Ok(op), Ok(text)) = (of_words, words(&["b", "a", "c", "b", "x"])) {
            cases.push(Case::new("words", op, [text]));
        }
        cases.into_iter().map(|case| case.with_tolerance(Tolerance::Exact)).collect()
    }
}
