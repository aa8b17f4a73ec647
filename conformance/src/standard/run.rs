//! One case: load, compile, run, compare.

use std::path::Path;

use armet::{CompileSettings, Engine, LoadError, Model, TensorType, Value, ValueRef, ValueType};
use armet_importers::Limits;
use armet_importers::onnx::{ImportError, read_value};
use armet_tensor::ElementType;

use super::{Case, Reason, Verdict, compare};

/// Runs the case in a folder on an engine.
pub fn run(engine: &Engine, folder: &Path, case: &Case) -> Verdict {
    let model = match Model::load(folder.join("model.onnx")) {
        Ok(model) => model,
        Err(LoadError::Import(ImportError::Unsupported(items))) => {
            let reason = |item: &armet_importers::onnx::UnsupportedItem| Reason {
                operator: item.operator.clone(),
                reason: item.reason.to_string(),
            };
            return Verdict::Refused { reasons: items.iter().map(reason).collect() };
        }
        Err(error) => return Verdict::Failed { why: format!("does not load: {error}") },
    };
    match outputs(engine, &model, folder, case) {
        Ok(compare::Match::Tolerances) => Verdict::Passed,
        Ok(compare::Match::Rounding) => Verdict::Rounded,
        Err(why) => Verdict::Failed { why },
    }
}

fn outputs(engine: &Engine, model: &Model, folder: &Path, case: &Case) -> Result<compare::Match, String> {
    let compiled = engine
        .compile(model, &CompileSettings::default())
        .map_err(|e| format!("does not compile: {}", chain(&e)))?;
    let inputs: Vec<(String, Value)> = model
        .inputs()
        .into_iter()
        .enumerate()
        .map(|(index, input)| Ok((input.name, value(folder, "input", index, &input.ty)?)))
        .collect::<Result<_, String>>()?;
    let feed: Vec<(&str, ValueRef<'_>)> =
        inputs.iter().map(|(name, value)| (name.as_str(), value.into())).collect();
    let mut session = compiled.session();
    let mut worst = compare::Match::Tolerances;
    // The second run goes through the plans that the first one made.
    for turn in ["first", "second"] {
        let outputs = session.run(&feed).map_err(|e| format!("does not run: {}", chain(&e)))?;
        for index in 0..outputs.len() {
            let found = outputs.at(index).ok_or_else(|| format!("output {index} is missing"))?.to_value();
            // What came tells which kind of message the file holds.
            let wanted = value(folder, "output", index, &kind(&found))?;
            let near = compare::compare(case, &wanted, &found)
                .map_err(|e| format!("output {index} of the {turn} run: {e}"))?;
            worst = worst.max(near);
        }
    }
    Ok(worst)
}

fn value(folder: &Path, side: &str, index: usize, ty: &ValueType) -> Result<Value, String> {
    let path = folder.join(format!("{side}_{index}.pb"));
    if !path.exists() {
        return Ok(Value::Optional(None));
    }
    let told = |error: &dyn std::fmt::Display| format!("{side}_{index}.pb: {error}");
    let bytes = std::fs::read(path).map_err(|e| told(&e))?;
    Ok(read_value(bytes.into(), ty, &Limits::default()).map_err(|e| told(&e))?.1)
}

fn kind(value: &Value) -> ValueType {
    let tensor = || ValueType::from(TensorType::unranked(ElementType::F32));
    match value {
        Value::Tensor(_) => tensor(),
        Value::Sequence(_) => ValueType::Sequence(Box::new(tensor())),
        Value::Optional(_) => ValueType::Optional(Box::new(tensor())),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        at = cause.source();
    }
    text
}
