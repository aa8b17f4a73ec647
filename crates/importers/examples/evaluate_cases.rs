//! Runs ONNX's operator cases through import and evaluation by meaning: `evaluate_cases <directory> [name...]`.
//!
//! The directory holds one folder per case with `model.onnx`, `input_<n>.pb` and `output_<n>.pb`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use armet_graph::ops::numbers;
use armet_graph::{TensorType, Value, ValueType, evaluate_graph};
use armet_importers::onnx::{ImportError, ImportOptions, import, read_value};
use armet_importers::{Directory, Limits};
use armet_tensor::{ElementType, Tensor};

fn values(case: &Path, side: &str, types: &[ValueType]) -> Result<Vec<Value>, String> {
    let read = |(index, ty): (usize, &ValueType)| {
        let path = case.join(format!("{side}_{index}.pb"));
        let Ok(bytes) = std::fs::read(path) else { return Ok(Value::Optional(None)) };
        let value = read_value(bytes.into(), ty, &Limits::default()).map_err(|e| e.to_string())?;
        Ok(value.1)
    };
    types.iter().enumerate().map(read).collect()
}

fn differ_in_any(wanted: &Value, found: &Value) -> Option<String> {
    match (wanted, found) {
        (Value::Tensor(wanted), Value::Tensor(found)) => differ(wanted, found),
        (Value::Sequence(wanted), Value::Sequence(found)) if wanted.len() == found.len() => {
            wanted.iter().zip(found).find_map(|(wanted, found)| differ_in_any(wanted, found))
        }
        (Value::Optional(Some(wanted)), Value::Optional(Some(found))) => differ_in_any(wanted, found),
        (Value::Optional(None), Value::Optional(None)) => None,
        _ => Some(format!("{wanted:?} was wanted, {found:?} came")),
    }
}

fn differ(wanted: &Tensor, found: &Tensor) -> Option<String> {
    if wanted.element() != found.element() || wanted.shape() != found.shape() {
        return Some(format!("{wanted:?} was wanted, {found:?} came"));
    }
    if wanted.element() == ElementType::String {
        return (wanted.strings() != found.strings()).then(|| "texts differ".into());
    }
    let (Ok(wanted), Ok(found)) = (numbers::to_f64(wanted), numbers::to_f64(found)) else {
        return (wanted.bytes() != found.bytes()).then(|| "bytes differ".into());
    };
    let close =
        |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 + 1e-3 * a.abs();
    let at = wanted.iter().zip(&found).position(|pair| !close(pair))?;
    Some(format!("element {at} is {} and should be {}", found[at], wanted[at]))
}

fn kind(value: &Value) -> ValueType {
    let tensor = || Box::new(ValueType::from(TensorType::unranked(ElementType::F32)));
    match value {
        Value::Tensor(_) => *tensor(),
        Value::Sequence(_) => ValueType::Sequence(tensor()),
        Value::Optional(_) => ValueType::Optional(tensor()),
    }
}

fn run(case: &Path) -> Result<(), (&'static str, String)> {
    let bytes = std::fs::read(case.join("model.onnx")).map_err(|e| ("file", e.to_string()))?;
    let directory = Directory::new(case);
    let options = ImportOptions { external: Some(&directory), ..ImportOptions::default() };
    let model = import(bytes.into(), &options).map_err(|e| match e {
        ImportError::Unsupported(items) => (
            "unsupported",
            items.iter().map(|i| format!("{} {}", i.operator, i.reason)).collect::<Vec<_>>().join("; "),
        ),
        other => ("import", other.to_string()),
    })?;
    let graph = &model.graph;
    let types: Vec<ValueType> = graph.inputs().iter().map(|id| graph.value(*id).ty.clone()).collect();
    let inputs = values(case, "input", &types).map_err(|e| ("file", e))?;
    let found = evaluate_graph(&model.graph, &inputs, 0).map_err(|e| ("evaluate", e.to_string()))?;
    // What came tells which kind of message each file holds.
    let types: Vec<ValueType> = found.iter().map(kind).collect();
    let wanted = values(case, "output", &types).map_err(|e| ("file", e))?;
    for (index, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
        if let Some(difference) = differ_in_any(wanted, found) {
            return Err(("result", format!("output {index}: {difference}")));
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().ok_or("a directory is needed")?;
    let wanted: Vec<String> = arguments.collect();
    let mut cases: Vec<_> = std::fs::read_dir(&root)?.filter_map(Result::ok).map(|e| e.path()).collect();
    cases.retain(|c| c.join("model.onnx").exists());
    cases.sort();
    let mut out = std::io::stdout().lock();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        match run(&case) {
            Ok(()) => *counts.entry("passed").or_default() += 1,
            Err((kind, text)) => {
                *counts.entry(kind).or_default() += 1;
                writeln!(out, "{kind:12} {name}: {}", text.replace('\n', " "))?;
            }
        }
    }
    writeln!(out, "{counts:?}")?;
    Ok(())
}
