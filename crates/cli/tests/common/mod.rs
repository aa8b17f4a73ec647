//! Calls of the built command.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// What a call gave.
#[derive(Debug)]
pub(crate) struct Call {
    /// The exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// The error stream.
    pub(crate) err: String,
}

/// Calls the command in `folder`.
pub(crate) fn armet<S: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = S>) -> Call {
    let mut command = Command::new(env!("CARGO_BIN_EXE_armet"));
    let Output { status, stdout, stderr } = command.current_dir(folder).args(arguments).output().unwrap();
    Call {
        code: status.code().expect("it is not ended by a signal"),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// The arguments of a line, cut at spaces.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The one JSON object that a call with `--json` prints when all went well.
pub(crate) fn json<S: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = S>) -> Value {
    let call = armet(folder, arguments);
    assert_eq!(call.code, 0, "{call:?}");
    let value: Value = serde_json::from_str(&call.out).unwrap();
    assert!(value.is_object());
    value
}

/// A folder with the embedded models in it.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pnet.onnx", "rnet.onnx", "onet.onnx", "astronaut.jpg"] {
        std::fs::copy(asset(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// A file of the command's own.
pub(crate) fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(name)
}
