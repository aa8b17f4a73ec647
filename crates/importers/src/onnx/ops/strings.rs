//! Text.

use armet_graph::ops::{
    LetterCase, RegexFullMatch, StringConcat, StringNormalizer, StringSplit, TermWeight, TfIdfVectorizer,
};
use armet_tensor::Tensor;

use super::{Entry, onnx};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("StringNormalizer", 10, |n| {
        // Which letters belong together does not depend on a place in the texts that models see.
        n.ignore(&["locale"]);
        let cases = [("NONE", LetterCase::Kept), ("LOWER", LetterCase::Lower), ("UPPER", LetterCase::Upper)];
        let op = StringNormalizer {
            case: n.choice("case_change_action", LetterCase::Kept, &cases)?,
            case_sensitive: n.flag("is_case_sensitive", false)?,
            stop_words: n.words("stopwords")?.unwrap_or_default(),
        };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    }),
    onnx("StringConcat", 20, |n| {
        let inputs = n.inputs(2)?;
        n.emit(StringConcat, inputs)
    }),
    onnx("StringSplit", 20, |n| {
        let op = StringSplit {
            delimiter: n.word("delimiter")?.filter(|d| !d.is_empty()).map(str::to_owned),
            most: n.int("maxsplit")?.and_then(|most| usize::try_from(most).ok()),
        };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    }),
    onnx("RegexFullMatch", 20, |n| {
        let pattern = n.word("pattern")?.unwrap_or_default();
        let op = RegexFullMatch::new(pattern)
            .map_err(|error| Invalid::Other(format!("attribute pattern: {error}")))?;
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    }),
    onnx("TfIdfVectorizer", 9, tf_idf),
];

fn tf_idf(n: &mut NodeReader<'_, '_>) -> Read {
    let modes = [
        ("TF", TermWeight::Frequency),
        ("IDF", TermWeight::InverseDocumentFrequency),
        ("TFIDF", TermWeight::Both),
    ];
    let length = |value: i64, name, what| usize::try_from(value).map_err(|_| n.refuse(name, what));
    let shortest = length(n.required_int("min_gram_length")?, "min_gram_length", "must be positive")?;
    let longest = length(n.required_int("max_gram_length")?, "max_gram_length", "must be positive")?;
    let most_skipped = length(n.required_int("max_skip_count")?, "max_skip_count", "must not be negative")?;
    let pool = match (n.words("pool_strings")?, n.ints("pool_int64s")?) {
        (Some(texts), None) => {
            Tensor::from_strings([texts.len()], texts).map_err(|e| Invalid::Other(e.to_string()))?
        }
        (None, Some(numbers)) => Tensor::vector(&numbers),
        _ => return Err(Invalid::Other("either pool_strings or pool_int64s must be there".into()).into()),
    };
    let starts = n.sizes("ngram_counts")?;
    let places = n.sizes("ngram_indexes")?;
    let op = TfIdfVectorizer {
        mode: n.choice("mode", TermWeight::Frequency, &modes)?,
        shortest,
        longest,
        most_skipped,
        weights: n.floats("weights")?.unwrap_or_default(),
        pool,
        starts,
        places,
    };
    if shortest == 0 || longest < shortest || op.starts.len() < longest {
        return Err(n.refuse("max_gram_length", "does not fit ngram_counts and min_gram_length").into());
    }
    let in_order = op.starts.is_sorted() && op.starts.iter().all(|&start| start <= op.pool.len());
    // A place is a column of the result: as many as n-grams are plenty, up to what a tensor may have.
    let places_fit = op.places.iter().all(|&place| place < 1 << 28);
    if !in_order || !places_fit || (!op.weights.is_empty() && op.weights.len() != op.places.len()) {
        return Err(n.refuse("ngram_indexes", "does not fit pool, ngram_counts and weights").into());
    }
    let x = n.input(0)?;
    n.emit(op, vec![Some(x)])
}
