//! ONNX's own cases of control flow, lists, optional values and text through the library on the CPU backend.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

use std::path::Path;
use std::time::Duration;

use armet::{
    CompileSettings, Engine, Model, Probe, StepReport, StepResult, Tensor, Value, ValueRef, ValueType,
};
use armet_conformance::resources::{Resource, skip};
use armet_graph::{Numbers, Tolerance};
use armet_importers::{Limits, onnx};

const FAMILIES: [&str; 13] = [
    "test_loop",
    "test_scan",
    "test_if",
    "test_identity",
    "test_sequence_",
    "test_split_to_sequence",
    "test_optional_",
    "test_range_",
    "test_string_",
    "test_strnormalizer",
    "test_regex_",
    "test_tfidf",
    "test_ai_onnx_ml_",
];

fn value(case: &Path, side: &str, index: usize, ty: &ValueType) -> Value {
    let Ok(bytes) = std::fs::read(case.join(format!("{side}_{index}.pb"))) else {
        return Value::Optional(None);
    };
    onnx::read_value(bytes.into(), ty, &Limits::default()).unwrap().1
}

fn run(engine: &Engine, case: &Path) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let model = Model::load(case.join("model.onnx")).map_err(|e| text(&e))?;
    let compiled = engine.compile(&model, &CompileSettings::default()).map_err(|e| text(&e))?;
    let inputs: Vec<(String, Value)> = model
        .inputs()
        .into_iter()
        .enumerate()
        .map(|(index, input)| (input.name.clone(), value(case, "input", index, &input.ty)))
        .collect();
    let feed: Vec<(&str, ValueRef<'_>)> = inputs.iter().map(|(name, v)| (name.as_str(), v.into())).collect();
    let mut session = compiled.session();
    for round in 0..2 {
        let outputs = session.run(&feed).map_err(|e| text(&e))?;
        for (index, _) in model.outputs().iter().enumerate() {
            let found = outputs.at(index).ok_or("a result is missing")?.to_value();
            let wanted = value(case, "output", index, &kind(&found));
            near(&wanted, &found).map_err(|e| format!("output {index}, run {round}: {e}"))?;
        }
    }
    Ok(())
}

/// What came tells which kind of message its file holds.
fn kind(value: &Value) -> ValueType {
    let tensor = || ValueType::from(armet::TensorType::unranked(armet::ElementType::F32));
    match value {
        Value::Tensor(_) => tensor(),
        Value::Sequence(_) => ValueType::Sequence(Box::new(tensor())),
        Value::Optional(_) => ValueType::Optional(Box::new(tensor())),
    }
}

fn near(wanted: &Value, found: &Value) -> Result<(), String> {
    match (wanted, found) {
        (Value::Sequence(a), Value::Sequence(b)) if a.len() == b.len() => {
            a.iter().zip(b).try_for_each(|(a, b)| near(a, b))
        }
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => near(a, b),
        _ => armet_conformance::compare(wanted, found, Tolerance::Relative(1e-4)),
    }
}

#[test]
fn the_standards_cases_of_these_families_pass() {
    let Some(root) = Resource::OnnxCases.find() else {
        skip("the_standards_cases_of_these_families_pass", "target/onnx-cases");
        return;
    };
    let engine = Engine::builder().threads(1).build().unwrap();
    let mut names: Vec<String> =
        std::fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| FAMILIES.iter().any(|family| name.starts_with(family)));
    names.sort();
    assert!(names.len() > 60, "only {} cases are there", names.len());
    let failures: Vec<String> = names
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", run(&engine, &root.join(name)).err()?)))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), names.len(), failures.join("\n"));
}

/// Ends runs that a changed file makes long.
struct Patience(usize);

impl Probe for Patience {
    fn wants_results(&self) -> bool {
        false
    }

    fn wants_stop(&self) -> bool {
        self.0 == 0
    }

    fn step(&mut self, _: &StepReport, _: Duration, _: &[StepResult<'_>]) {
        self.0 -= 1;
    }
}

/// Reads a model, compiles it, and runs it on the case's inputs as far as they fit; what goes wrong is told, if it is told.
fn try_run(engine: &Engine, case: &Path, file: &[u8]) -> Option<String> {
    let told = |error: &dyn std::error::Error| Some(error.to_string());
    let model = match Model::from_bytes(file.to_vec()) {
        Ok(model) => model,
        Err(error) => return told(&error),
    };
    let compiled = match engine.compile(&model, &CompileSettings::default()) {
        Ok(compiled) => compiled,
        Err(error) => return told(&error),
    };
    let inputs = model.inputs().into_iter().enumerate().filter_map(|(index, input)| {
        let bytes = std::fs::read(case.join(format!("input_{index}.pb"))).ok()?;
        let value = onnx::read_value(bytes.into(), &input.ty, &Limits::default()).ok()?.1;
        Some((input.name, value))
    });
    let inputs: Vec<(String, Value)> = inputs.collect();
    let feed: Vec<(&str, ValueRef<'_>)> = inputs.iter().map(|(name, v)| (name.as_str(), v.into())).collect();
    compiled.session().run_with(&feed, &mut Patience(2000)).err().and_then(|error| told(&error))
}

#[test]
fn changed_files_of_these_families_end_in_errors_or_results() {
    let Some(root) = Resource::OnnxCases.find() else {
        skip("changed_files_of_these_families_end_in_errors_or_results", "target/onnx-cases");
        return;
    };
    let engine = Engine::builder().threads(1).build().unwrap();
    let mut random = Numbers::new(7);
    let (mut refused, mut panics) = (0, Vec::new());
    for entry in std::fs::read_dir(&root).unwrap() {
        let case = entry.unwrap().path();
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        if !FAMILIES.iter().any(|family| name.starts_with(family)) {
            continue;
        }
        let whole = std::fs::read(case.join("model.onnx")).unwrap();
        for round in 0..60 {
            let mut file = whole.clone();
            for _ in 0..=random.int(0, 2) {
                let at = random.int(0, file.len() as i64 - 1) as usize;
                file[at] = random.int(0, 255) as u8;
            }
            let run = || try_run(&engine, &case, &file);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(told) => refused += usize::from(told.is_some()),
                Err(_) => panics.push(format!("{name}, round {round}")),
            }
        }
    }
    assert!(panics.is_empty(), "{} panics: {}", panics.len(), panics.join("; "));
    assert!(refused > 500, "only {refused} changed files were refused");
}

#[test]
fn text_passes_through_shapes() {
    let tensor = Tensor::from_strings([2, 1], vec!["a".into(), "b".into()]).unwrap();
    let view = tensor.view();
    assert_eq!(view.with_shape(&[2]).unwrap().to_tensor().strings(), ["a", "b"]);
}
