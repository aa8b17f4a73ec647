//! Open dimensions: what is known of one holds for all inputs that have it, what is not is assumed and said.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

mod common;
#[expect(dead_code, reason = "some of its parts are for other tests")]
#[path = "../../engine/tests/onnx/mod.rs"]
mod onnx;

use armet::{ElementType, Tensor, npy};
use common::{armet, json, words};
use onnx::{FLOAT, graph, int, node, tensor};

/// A folder with `sum.onnx`, which adds its inputs `a` and `b` of one length, and arrays of three and four numbers.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let row = || tensor(FLOAT, &["batch", "length"]);
    let file = onnx::file(&graph(
        &[node("Add", &["a", "b"], &["sum"], &[])],
        &[("a", row()), ("b", row())],
        &[("sum", row())],
    ));
    std::fs::write(folder.path().join("sum.onnx"), file).unwrap();
    for (name, length) in [("three.npy", 3), ("four.npy", 4), ("is=four.npy", 4)] {
        let tensor = Tensor::zeros(ElementType::F32, [1, length]).unwrap();
        std::fs::write(folder.path().join(name), npy::write(&tensor).unwrap()).unwrap();
    }
    folder
}

#[test]
fn one_name_is_one_size() {
    let folder = folder();
    for line in [
        "run sum.onnx -i b=four.npy -i random --json",
        "run sum.onnx -i random -i a=is=four.npy --json",
        "run sum.onnx -i random --dim batch=1 --dim length=4 --json",
        "run sum.onnx -i random --shape b=1,4 --json",
        "run sum.onnx -i random -i a=four.npy --shape b=1,4 --json",
    ] {
        let found = json(folder.path(), words(line));
        assert_eq!(found["outputs"][0]["shape"], serde_json::json!([1, 4]), "{line}");
        assert_eq!(found["assumed"], serde_json::json!({}), "{line}");
    }
    let found = json(folder.path(), words("inspect sum.onnx --shape b=2,4 --json"));
    assert_eq!((&found["operations"], &found["assumed"]), (&serde_json::json!(8), &serde_json::json!({})));
}

#[test]
fn two_sizes_are_refused() {
    let folder = folder();
    let end = "a dimension has one size in all inputs";
    for (options, said) in [
        ("-i a=three.npy -i b=four.npy", "length is 3 by input a (three.npy) and 4 by input b (four.npy)"),
        (
            "-i a=three.npy -i random --dim length=5",
            "length is 5 by --dim length=5 and 3 by input a (three.npy)",
        ),
        ("-i random --shape a=1,2 --shape b=1,3", "length is 2 by --shape a=[1,2] and 3 by --shape b=[1,3]"),
    ] {
        let call = armet(folder.path(), words(&format!("run sum.onnx {options}")));
        assert_eq!((call.code, call.out.as_str()), (2, ""), "{options}");
        assert_eq!(call.err, format!("error: dimension {said}; {end}\n"), "{options}");
    }
    let call = armet(folder.path(), words("run sum.onnx -i a=three.npy -i random --shape a=1,4"));
    assert_eq!(
        call.err,
        "error: --shape gives input a the shape [1,4], and three.npy has [1,3]; leave --shape out\n"
    );
}

#[test]
fn what_is_assumed_is_said() {
    let folder = folder();
    let note = "note: the model leaves batch, length open, taken as 1; set them with --dim batch=SIZE or --shape INPUT=SIZES\n";
    for line in ["run sum.onnx -i random", "bench sum.onnx -s 0", "inspect sum.onnx"] {
        let call = armet(folder.path(), words(line));
        assert_eq!(call.code, 0, "{call:?}");
        assert!(call.err.starts_with(note), "{line}: {call:?}");
        assert_eq!(call.err.contains("says little about real ones"), line.starts_with("bench"), "{line}");
        let found = json(folder.path(), words(&format!("{line} --json")));
        assert_eq!(found["assumed"], serde_json::json!({"batch": 1, "length": 1}), "{line}");
    }
    let call = armet(folder.path(), words("bench sum.onnx -s 0 --dim length=9"));
    assert!(call.err.contains("leaves batch open") && !call.err.contains("says little"), "{call:?}");
}

#[test]
fn declared_sizes_that_are_changed_are_said() {
    let folder = common::folder();
    let call = armet(folder.path(), words("inspect rnet.onnx --shape input_2=1,48,48,3"));
    let note =
        "note: input input_2 is declared float32[N,24,24,3] and taken as [1,48,48,3], as --shape says\n";
    assert!(call.err.starts_with(note), "{call:?}");
    let call = armet(folder.path(), words("inspect rnet.onnx --shape input_2=2,24,24,3"));
    assert_eq!((call.code, call.err.as_str()), (0, ""));
}

#[test]
fn pictures_of_open_size_need_one() {
    let folder = common::folder();
    let call = armet(folder.path(), words("run pnet.onnx -i astronaut.jpg --preset mtcnn"));
    assert_eq!((call.code, call.out.as_str()), (2, ""));
    assert!(call.err.contains("leaves the size of a picture open"), "{call:?}");
    assert!(call.err.contains("hint: state it with --size WIDTHxHEIGHT"), "{call:?}");
    let call = armet(folder.path(), words("run onet.onnx -i astronaut.jpg --preset mtcnn --size 60x40"));
    assert_eq!(call.code, 2);
    let said =
        "error: --size 60x40 contradicts input input_3, which is float32[N,48,48,3]; leave --size out\n";
    assert_eq!(call.err, said);
    let call = armet(folder.path(), words("run onet.onnx -i astronaut.jpg --preset mtcnn --size 48x48"));
    assert_eq!(call.code, 0, "{call:?}");
}

#[test]
fn what_cannot_be_planned_is_still_shown() {
    let folder = tempfile::tempdir().unwrap();
    // A row twice as long as the one it is multiplied by: only a length of none would do.
    let concat = node("Concat", &["a", "b"], &["both"], &[int("axis", 0)]);
    let row = || tensor(FLOAT, &["length"]);
    let file = onnx::file(&graph(
        &[concat, node("MatMul", &["both", "c"], &["sum"], &[])],
        &[("a", row()), ("b", row()), ("c", tensor(FLOAT, &["length"]))],
        &[("sum", tensor(FLOAT, &[]))],
    ));
    std::fs::write(folder.path().join("product.onnx"), file).unwrap();
    let why = "needs sizes: set them with --dim length=SIZE or --shape INPUT=SIZES; with 1 for length it fails at node ";
    let call = armet(folder.path(), words("inspect product.onnx"));
    assert_eq!((call.code, call.err.as_str()), (0, ""), "{call:?}");
    for line in
        ["input   a: float32[length]", "model   2 nodes: Concat 1, MatMul 1", &format!("plan    {why}")]
    {
        assert!(call.out.contains(line), "{call:?}");
    }
    let found = json(folder.path(), words("inspect product.onnx --json"));
    assert_eq!(found["operators"], serde_json::json!({"Concat": 1, "MatMul": 1}));
    assert!(found["plan_needs_sizes"].as_str().unwrap().starts_with("set them with --dim length"), "{found}");
    let call = armet(folder.path(), words("inspect product.onnx --format dot"));
    assert!(call.code == 0 && call.out.starts_with("digraph") && call.err.contains(why), "{call:?}");
    let call = armet(folder.path(), words("inspect product.onnx --dim length=1"));
    assert_eq!((call.code, call.out.as_str()), (2, ""), "{call:?}");
}
