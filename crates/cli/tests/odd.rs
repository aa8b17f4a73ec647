//! Odd models: names that act on terminals, numbers that floats cannot hold, versions that are not known yet.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

mod common;
#[expect(dead_code, reason = "some of its parts are for other tests")]
#[path = "../../engine/tests/onnx/mod.rs"]
mod onnx;

use std::path::Path;

use armet::{Tensor, npy};
use common::{armet, json, words};
use onnx::{FLOAT, Message, graph, node, tensor};

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), bytes).unwrap();
}

#[test]
fn names_do_not_act_on_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a\u{1b}[31m\nb\u{202e}c";
    let row = || tensor(FLOAT, &["2"]);
    let file = |op| onnx::file(&graph(&[node(op, &["x"], &[name], &[])], &[("x", row())], &[(name, row())]));
    write(folder.path(), "odd.onnx", file("Neg"));
    write(folder.path(), "unknown.onnx", file("Embroider"));
    for line in [
        "run odd.onnx -i random -o out --dump-layers layers",
        "run odd.onnx -i random --json",
        "inspect odd.onnx --json",
        "inspect odd.onnx --steps",
        "inspect odd.onnx --format dot",
        "inspect odd.onnx --dump-after fold_constants",
        "bench odd.onnx -s 0 --steps",
        "run unknown.onnx -i random",
    ] {
        let call = armet(folder.path(), words(line));
        assert_eq!(call.code, if line.contains("unknown") { 2 } else { 0 }, "{call:?}");
        for text in [&call.out, &call.err] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{line}: {text}");
            assert!(!text.lines().any(|line| line.starts_with('b')), "{line}: {text}");
        }
    }
    let found = json(folder.path(), words("run odd.onnx -i random --json"));
    assert_eq!(found["outputs"][0]["name"], name);
    let call = armet(folder.path(), words("run odd.onnx -i random -o out"));
    assert!(call.out.starts_with(r"a\u{1b}[31m\nb\u{202e}c: float32[1]"), "{call:?}");
    assert!(folder.path().join("out/a_[31m_b_c.npy").exists());
}

#[test]
fn integers_are_shown_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let row = || tensor(7, &["n"]);
    let neg = node("Neg", &["x"], &["y"], &[]);
    let file = onnx::file(&graph(&[neg], &[("x", row())], &[("y", row())]));
    write(folder.path(), "neg.onnx", file);
    let values = Tensor::vector(&[9_007_199_254_740_993i64, 5]);
    write(folder.path(), "x.npy", npy::write(&values).unwrap());
    let call = armet(folder.path(), words("run neg.onnx -i x.npy"));
    assert!(call.out.starts_with("y: int64[2]  min -9007199254740993  max -5  mean "), "{call:?}");
    assert!(call.out.ends_with("\n  first  -9007199254740993  -5\n"), "{call:?}");
    assert!(call.err.contains("placement: 1 step: 1 on "), "{call:?}");
    let found = json(folder.path(), words("run neg.onnx -i x.npy --json"));
    assert_eq!(found["outputs"][0]["summary"]["first"], serde_json::json!([-9_007_199_254_740_993i64, -5]));
}

#[test]
fn newer_versions_are_said_once_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let row = || tensor(FLOAT, &["n"]);
    let graph = graph(&[node("Neg", &["x"], &["y"], &[])], &[("x", row())], &[("y", row())]);
    let file = |format: u64, version: u64| {
        let opset = Message::default().with(1, "").number(2, version);
        Message::default().number(1, format).with(7, &graph).with(8, opset)
    };
    for (format, version, said) in [
        (99, 20, "the file's format (IR version 99) is newer than "),
        (9, 99, "operator set 99 of ai.onnx is newer than "),
    ] {
        write(folder.path(), "new.onnx", file(format, version));
        let call = armet(folder.path(), words("run new.onnx -i random --dim n=3"));
        assert_eq!((call.code, call.err.matches(said).count()), (0, 1), "{call:?}");
        let found = json(folder.path(), words("inspect new.onnx --dim n=3 --json"));
        let warnings = found["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].as_str().unwrap().starts_with(said), "{warnings:?}");
    }
    write(folder.path(), "new.onnx", file(9, 20));
    assert_eq!(
        json(folder.path(), words("inspect new.onnx --dim n=3 --json"))["warnings"],
        serde_json::json!([])
    );
}

#[test]
fn pictures_are_written_as_their_names_say() {
    let folder = tempfile::tempdir().unwrap();
    for (name, mark) in [("face.jpg", &b"\xff\xd8\xff"[..]), ("face.PNG", b"\x89PNG")] {
        let call = armet(folder.path(), ["demo", "-o", name]);
        assert_eq!(call.code, 0, "{call:?}");
        assert!(std::fs::read(folder.path().join(name)).unwrap().starts_with(mark), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn paths_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let model = OsStr::from_bytes(b"r\xff.onnx");
    std::fs::copy(common::asset("rnet.onnx"), folder.path().join(model)).unwrap();
    for line in ["run -i random --json", "bench -s 0 --json", "inspect --json"] {
        let arguments = words(line).into_iter().map(OsStr::new).chain([model]);
        json(folder.path(), arguments);
    }
    let picture = OsStr::from_bytes(b"p\xff.png");
    let found = json(folder.path(), [OsStr::new("demo"), OsStr::new("--json"), OsStr::new("-o"), picture]);
    assert_eq!(found["output"], "p\u{fffd}.png");
    assert!(folder.path().join(picture).exists());
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_said() {
    use std::process::{Command, Stdio};

    let folder = common::folder();
    let lines =
        ["run rnet.onnx -i random", "inspect rnet.onnx --json", "models list", "completions zsh", "--help"];
    for line in lines {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_armet"));
        let command = command.current_dir(folder.path()).args(words(line)).stdout(Stdio::from(full));
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {err}");
        assert!(err.contains("error: cannot write to the standard output\n"), "{line}: {err}");
    }
}
