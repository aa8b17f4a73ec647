//! The standard's own cases and those of ONNX Runtime's operators on both backends: none fails, and at least as many pass as
//! are promised.

use std::process::Command;

use armet_conformance::resources::{Resource, skip};

/// Of the node tests; the others are refused, each with a reason.
const PASSED: usize = 1800;

fn hold(backend: &str, test: &str) {
    let (Some(cases), Some(suites)) = (Resource::OnnxCases.find(), Resource::OnnxSuites.find()) else {
        skip(test, "target/onnx-cases and target/onnx-suites");
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_standard"));
    let mut folders: Vec<_> =
        ["simple", "pytorch-operator", "pytorch-converted"].map(|suite| suites.join(suite)).into();
    if backend == "cpu" {
        // Whole classifiers, which take minutes by scalar meaning.
        folders.push(suites.join("light"));
    }
    folders.push(cases);
    let output = command.args(folders).args(["--backend", backend]).output().expect("the runner starts");
    let (lines, failures) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{lines}\n{failures}");
    let last = lines.lines().last().unwrap_or_default();
    let passed = last.split(' ').next().and_then(|count| count.parse::<usize>().ok());
    assert!(passed.is_some_and(|passed| passed >= PASSED), "{lines}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All cases of ONNX Runtime's operators pass.
fn hold_microsoft(backend: &str, test: &str) {
    let Some(cases) = Resource::OnnxRuntimeCases.find() else {
        skip(test, "target/onnxruntime-cases");
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_standard"));
    let output = command.arg(cases).args(["--backend", backend]).output().expect("the runner starts");
    let (lines, failures) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{lines}\n{failures}");
    assert!(lines.ends_with(" passed, 0 failed, 0 refused\n") && !lines.starts_with("0 "), "{lines}");
}

#[test]
fn operators_of_onnx_runtime_hold_on_cpu() {
    hold_microsoft("cpu", "operators_of_onnx_runtime_hold_on_cpu");
}

#[test]
fn operators_of_onnx_runtime_hold_by_meaning() {
    hold_microsoft("reference", "operators_of_onnx_runtime_hold_by_meaning");
}

#[test]
fn the_standards_cases_hold_on_cpu() {
    hold("cpu", "the_standards_cases_hold_on_cpu");
}

#[test]
fn the_standards_cases_hold_by_meaning() {
    hold("reference", "the_standards_cases_hold_by_meaning");
}
