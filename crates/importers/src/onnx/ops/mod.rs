//! The operators of ONNX that are read: a table per family, and the search for the right version.
//!
//! An [`Entry`] says from which version of its operator set on its reader is right, up to the next entry of the same
//! operator. A reader turns a node into nodes of the graph, or says which attribute, value or input it has no operator for.

mod attention;
mod block_quantized;
mod compose;
mod control;
mod convolution;
mod einsum;
mod elementwise;
mod indexing;
mod learning;
mod losses;
mod microsoft;
mod movement;
mod normalization;
mod pooling;
mod products;
mod qlinear;
mod quantization;
mod recurrent;
mod reduction;
mod resizing;
mod sequences;
mod signal;
mod sources;
mod strings;
mod support_vectors;
mod training;
mod transformers;
mod trees;
mod vision;

use super::error::Reason;
use super::node::{NodeReader, Read};

/// In which form a reader gets quantized values; see [`super::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    /// As plain integers.
    Raw,
    /// As they are: the operator moves or chooses elements, so its results are quantized in the same way.
    Kept,
}

/// One version of one operator.
#[derive(Debug)]
pub(super) struct Entry {
    name: &'static str,
    domain: &'static str,
    since: i64,
    /// Turns a node into nodes of the graph.
    pub(super) read: fn(&mut NodeReader<'_, '_>) -> Read,
    /// In which form it gets quantized values.
    pub(super) forms: Forms,
    /// Inputs from the first on that are moved; the others are indices, sizes and the like.
    moved_inputs: usize,
    moves_all_outputs: bool,
}

impl Entry {
    /// Stands for operators that have no reader of their own.
    pub(super) const fn custom() -> Self {
        onnx("", 1, |_| Ok(()))
    }

    /// Number of leading inputs whose elements are moved.
    pub(super) fn data_inputs(&self) -> usize {
        self.moved_inputs
    }

    /// Whether all outputs hold moved elements, rather than the first only.
    pub(super) fn all_outputs_moved(&self) -> bool {
        self.moves_all_outputs
    }

    /// The operator moves elements of its first `inputs` inputs to its first output.
    const fn moves(mut self, inputs: usize) -> Self {
        self.forms = Forms::Kept;
        self.moved_inputs = inputs;
        self
    }

    /// The operator moves elements of its first input to all outputs.
    const fn deals(mut self) -> Self {
        self.moves_all_outputs = true;
        self.moves(1)
    }
}

/// An operator of ONNX's own operator set.
const fn onnx(name: &'static str, since: i64, read: fn(&mut NodeReader<'_, '_>) -> Read) -> Entry {
    Entry { name, domain: "", since, read, forms: Forms::Raw, moved_inputs: 0, moves_all_outputs: false }
}

/// An operator of ONNX Runtime's operator set.
const fn microsoft(name: &'static str, read: fn(&mut NodeReader<'_, '_>) -> Read) -> Entry {
    Entry { domain: "com.microsoft", ..onnx(name, 1, read) }
}

/// An operator of ONNX's set of operators on trial.
const fn preview(name: &'static str, read: fn(&mut NodeReader<'_, '_>) -> Read) -> Entry {
    Entry { domain: "ai.onnx.preview", ..onnx(name, 1, read) }
}

/// An operator of ONNX's operator set for what is called traditional machine learning.
const fn learning(name: &'static str, since: i64, read: fn(&mut NodeReader<'_, '_>) -> Read) -> Entry {
    Entry { domain: "ai.onnx.ml", ..onnx(name, since, read) }
}

const TABLES: &[&[Entry]] = &[
    attention::ENTRIES,
    elementwise::ENTRIES,
    reduction::ENTRIES,
    convolution::ENTRIES,
    pooling::ENTRIES,
    products::ENTRIES,
    einsum::ENTRIES,
    normalization::ENTRIES,
    movement::ENTRIES,
    indexing::ENTRIES,
    resizing::ENTRIES,
    vision::ENTRIES,
    signal::ENTRIES,
    losses::ENTRIES,
    training::ENTRIES,
    sources::ENTRIES,
    recurrent::ENTRIES,
    control::ENTRIES,
    sequences::ENTRIES,
    strings::ENTRIES,
    learning::ENTRIES,
    trees::ENTRIES,
    support_vectors::ENTRIES,
    quantization::ENTRIES,
    qlinear::ENTRIES,
    microsoft::ENTRIES,
    transformers::ENTRIES,
    block_quantized::ENTRIES,
];

/// The newest version of an operator set that the readers know.
pub(super) fn newest(domain: &str) -> Option<i64> {
    match domain {
        "" => Some(28),
        "com.microsoft" | "ai.onnx.preview" => Some(1),
        "ai.onnx.ml" => Some(5),
        _ => None,
    }
}

/// The entry for an operator at a version of its operator set.
pub(super) fn find(domain: &str, name: &str, version: i64) -> Result<&'static Entry, Reason> {
    let all = || TABLES.iter().flat_map(|t| t.iter()).filter(|e| e.name == name && e.domain == domain);
    match all().filter(|e| e.since <= version).max_by_key(|e| e.since) {
        Some(entry) => Ok(entry),
        None => Err(match (domain, name, all().map(|e| e.since).min()) {
            (_, _, Some(since)) => Reason::Version { since },
            ("ai.onnx.preview.training", ..) => Reason::Training,
            ("", "ImageDecoder", _) => Reason::ImageFile,
            _ => Reason::Operator,
        }),
    }
}

/// The operators that are read: domain, name and first version.
pub(super) fn names() -> impl Iterator<Item = (&'static str, &'static str, i64)> {
    TABLES.iter().flat_map(|t| t.iter()).map(|e| (e.domain, e.name, e.since))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_operator_has_one_entry_for_a_version() {
        let mut seen = HashSet::new();
        for entry in names() {
            assert!(seen.insert(entry), "{entry:?} is there twice");
        }
    }

    #[test]
    fn the_last_entry_that_is_not_too_new_is_found() {
        assert_eq!(find("", "Slice", 9).unwrap().since, 1);
        assert_eq!(find("", "Slice", 17).unwrap().since, 10);
        assert_eq!(find("", "LayerNormalization", 16).unwrap_err(), Reason::Version { since: 17 });
        assert_eq!(find("", "NoSuchThing", 16).unwrap_err(), Reason::Operator);
        assert_eq!(find("other", "Slice", 9).unwrap_err(), Reason::Operator);
    }

    #[test]
    fn what_is_left_to_others_is_refused_with_a_reason_of_its_own() {
        assert_eq!(find("ai.onnx.preview.training", "Adam", 1).unwrap_err(), Reason::Training);
        assert_eq!(find("", "ImageDecoder", 20).unwrap_err(), Reason::ImageFile);
    }
}
