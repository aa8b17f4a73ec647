//! ONNX's own cases of control flow, lists, optional values and text through the library on the CPU backend.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

use std::path::Path;

use armet::{CompileSettings, Engine, Model, Tensor, Value, ValueRef, ValueType};
use armet_conformance::resources::{Resource, skip};
use armet_graph::Tolerance;
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

#[test]
fn text_passes_through_shapes() {
    let tensor = Tensor::from_strings([2, 1], vec!["a".into(), "b".into()]).unwrap();
    let view = tensor.view();
    assert_eq!(view.with_shape(&[2]).unwrap().to_tensor().strings(), ["a", "b"]);
}
