//! Lists, optional values and text through the command: given, shown, saved.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

#[expect(dead_code, reason = "some of its parts are for other tests")]
mod common;
#[expect(dead_code, reason = "some of its parts are for other tests")]
#[path = "../../engine/tests/onnx/mod.rs"]
mod onnx;

use std::path::Path;

use armet::{Tensor, npy};
use common::{armet, json, words};
use onnx::{FLOAT, TEXT, graph, list, node, optional, tensor};

fn save(folder: &Path, name: &str, tensor: &Tensor) {
    std::fs::write(folder.join(name), npy::write(tensor).unwrap()).unwrap();
}

fn read(folder: &Path, name: &str) -> Tensor {
    npy::read(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn lists_are_given_item_by_item_and_saved_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let item = || tensor(FLOAT, &["n"]);
    let file = onnx::file(&graph(
        &[node("SequenceInsert", &["xs", "x"], &["more"], &[])],
        &[("xs", list(&item())), ("x", item())],
        &[("more", list(&item()))],
    ));
    std::fs::write(folder.join("m.onnx"), file).unwrap();
    let [a, b, c] = [&[1f32][..], &[2.0, 3.0], &[4.0]].map(Tensor::vector);
    for (name, tensor) in [("a.npy", &a), ("b.npy", &b), ("c.npy", &c)] {
        save(folder, name, tensor);
    }
    let call = armet(folder, words("run m.onnx -i xs=a.npy -i xs=b.npy -i x=c.npy -o out"));
    assert_eq!(call.code, 0, "{call:?}");
    assert!(call.out.starts_with("more: sequence of 3\nmore.0: float32[1]"), "{}", call.out);
    for (index, tensor) in [a, b, c].iter().enumerate() {
        assert_eq!(read(folder, &format!("out/more.{index}.npy")), *tensor);
    }
    let found = json(folder, words("run m.onnx -i xs=a.npy -i x=c.npy --json"));
    assert_eq!(found["outputs"][0]["type"], "sequence");
    assert_eq!(found["outputs"][0]["items"][1]["name"], "more.1");
    assert_eq!(found["warnings"], serde_json::json!([]));
    // Nothing given is an empty list only where nothing is left out by mistake.
    let call = armet(folder, words("run m.onnx -i random"));
    assert_eq!(call.code, 2);
    assert!(call.err.contains("input xs is a sequence"), "{}", call.err);
}

#[test]
fn optional_values_may_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = onnx::file(&graph(
        &[node("OptionalHasElement", &["x"], &["has"], &[]), node("Identity", &["x"], &["y"], &[])],
        &[("x", optional(&tensor(FLOAT, &["n"])))],
        &[("has", tensor(9, &[])), ("y", optional(&tensor(FLOAT, &["n"])))],
    ));
    std::fs::write(folder.join("m.onnx"), file).unwrap();
    save(folder, "a.npy", &Tensor::vector(&[1f32, 2.0]));
    let call = armet(folder, words("run m.onnx -i x=none"));
    assert!(call.out.contains("y: none"), "{call:?}");
    let call = armet(folder, words("run m.onnx -i x=a.npy -o out"));
    assert!(call.out.contains("y: float32[2]"), "{call:?}");
    assert_eq!(read(folder, "out/y.npy"), Tensor::vector(&[1f32, 2.0]));
}

#[test]
fn text_is_read_shown_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = onnx::file(&graph(
        &[node("StringConcat", &["x", "x"], &["y"], &[])],
        &[("x", tensor(TEXT, &["n"]))],
        &[("y", tensor(TEXT, &["n"]))],
    ));
    std::fs::write(folder.join("m.onnx"), file).unwrap();
    let texts = |texts: &[&str]| {
        Tensor::from_strings([texts.len()], texts.iter().map(|t| (*t).to_owned()).collect()).unwrap()
    };
    save(folder, "a.npy", &texts(&["ab", "\u{e9}"]));
    let call = armet(folder, words("run m.onnx -i x=a.npy -o out"));
    assert!(call.out.starts_with("y: string[2] [\"abab\", "), "{call:?}");
    assert_eq!(read(folder, "out/y.npy"), texts(&["abab", "\u{e9}\u{e9}"]));
}

#[test]
fn declared_shapes_that_are_wrong_are_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = onnx::file(&graph(
        &[node("Constant", &[], &["axes"], &[axes()]), node("Unsqueeze", &["x", "axes"], &["y"], &[])],
        &[("x", tensor(FLOAT, &["n"]))],
        &[("y", tensor(FLOAT, &["n"]))],
    ));
    std::fs::write(folder.join("m.onnx"), file).unwrap();
    for command in ["run m.onnx -i random", "inspect m.onnx"] {
        let call = armet(folder, words(command));
        assert_eq!((call.code, call.err.matches("the model declares y").count()), (0, 1), "{call:?}");
    }
    let found = json(folder, words("inspect m.onnx --json"));
    assert_eq!(found["warnings"].as_array().unwrap().len(), 1);
}

/// The attribute `value_ints` of one zero.
fn axes() -> onnx::Message {
    onnx::Message::default().with(1, "value_ints").with(8, [0]).number(20, 7)
}
