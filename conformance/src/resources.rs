//! Files that tests need beside the code, which `cargo xtask test` prepares below `target/`.
//!
//! Contract: a test that lacks a resource calls [`skip`] and returns; `cargo xtask test` counts the notes that this leaves
//! in one loud line, and in CI makes them a failure. So a test is never silently without its files.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The models of the table, with `media/` beside them.
    Models,
    /// Reference outputs; their layout is in `tools/reference/make.py`.
    References,
    /// ONNX's own operator cases, as its Python package writes them.
    OnnxCases,
    /// Cases of ONNX Runtime's operators, as `tools/reference/onnxruntime_cases.py` writes them.
    OnnxRuntimeCases,
    /// ONNX's model suites, as its Python package has them.
    OnnxSuites,
    /// The Python of the prepared environment.
    Python,
}

impl Resource {
    fn place(self) -> &'static str {
        match self {
            Self::Models => "models",
            Self::References => "references",
            Self::OnnxCases => "onnx-cases",
            Self::OnnxRuntimeCases => "onnxruntime-cases",
            Self::OnnxSuites => "onnx-suites",
            Self::Python => "python/bin/python",
        }
    }

    /// Where it is, where it is there.
    pub fn find(self) -> Option<PathBuf> {
        let path = target().join(self.place());
        path.exists().then_some(path)
    }
}

/// A model's file, where it was fetched.
pub fn model(id: &str) -> Option<PathBuf> {
    let path = Resource::Models.find()?.join(id).with_extension("onnx");
    path.exists().then_some(path)
}

/// Notes that `test` could not run for want of `what`.
///
/// # Panics
///
/// Where the note cannot be written: the skip would be a silent one.
pub fn skip(test: &str, what: &str) {
    let notes = target().join("skipped");
    let name: String =
        test.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '.' }).collect();
    fs::create_dir_all(&notes).expect("target/skipped can be made");
    fs::write(notes.join(name), format!("needs {what}")).expect("target/skipped can be written");
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target")
}
