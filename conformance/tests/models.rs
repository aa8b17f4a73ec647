//! Real models through the library against their references, streams with their state carried along: what `cargo xtask
//! figures first-answers` measures through the command, as a test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use armet::{CompileSettings, Engine, Model, Tensor, ValueRef, npy};
use armet_conformance::resources::{self, Resource};
use armet_graph::ops::numbers;
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

/// A cosine below the reference's by no more than this is rounding of the sums, not of the model.
const COSINE_ROUNDING: f64 = 1e-4;

#[derive(Debug, Clone, Deserialize)]
struct Meta {
    model: String,
    quantised: bool,
    cases: BTreeMap<String, Case>,
}

#[derive(Debug, Clone, Deserialize)]
struct Case {
    inputs: Vec<Given>,
    outputs: Vec<Expected>,
    stream: Option<Stream>,
}

#[derive(Debug, Clone, Deserialize)]
struct Given {
    name: String,
    file: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Expected {
    name: String,
    file: String,
    spread: f64,
    cosine: f64,
    last_bit: f64,
}

#[derive(Debug, Clone, Deserialize)]
struct Stream {
    steps: usize,
    each_step: Vec<String>,
    carry: BTreeMap<String, String>,
}

fn main() {
    let arguments = Arguments::from_args();
    let (Some(references), Some(models)) = (Resource::References.find(), Resource::Models.find()) else {
        resources::skip("conformance.models", "models and references");
        libtest_mimic::run(&arguments, Vec::new()).exit();
    };
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(references).into_iter().flatten().flatten().map(|e| e.path()).collect();
    folders.sort();
    let mut trials = Vec::new();
    for folder in folders {
        let Ok(text) = std::fs::read_to_string(folder.join("meta.json")) else { continue };
        let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let models = models.clone();
        trials.push(Trial::test(id, move || check(&text, &folder, &models)));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn check(text: &str, folder: &Path, models: &Path) -> Result<(), Failed> {
    let meta: Meta = serde_json::from_str(text)?;
    let model = Model::load(models.join(&meta.model))?;
    let compiled = Engine::builder().threads(2).build()?.compile(&model, &CompileSettings::default())?;
    for (name, case) in &meta.cases {
        let mut session = compiled.session();
        let mut feed: BTreeMap<String, Tensor> = BTreeMap::new();
        for input in &case.inputs {
            let tensor = read(&folder.join(name).join("inputs").join(&input.file))?;
            feed.insert(input.name.clone(), tensor);
        }
        let moving: Vec<(String, Tensor)> =
            case.stream.iter().flat_map(|s| &s.each_step).map(|n| (n.clone(), feed[n].clone())).collect();
        let steps = case.stream.as_ref().map_or(1, |s| s.steps);
        let mut outputs: Vec<Vec<f64>> = vec![Vec::new(); case.outputs.len()];
        for step in 0..steps {
            for (name, all) in &moving {
                feed.insert(name.clone(), entry(all, step)?);
            }
            let inputs: Vec<(&str, ValueRef<'_>)> =
                feed.iter().map(|(n, t)| (n.as_str(), t.into())).collect();
            let results = session.run(&inputs)?;
            let mut carried = Vec::new();
            for (expected, values) in case.outputs.iter().zip(&mut outputs) {
                let tensor = results.tensor(&expected.name).ok_or("an output is no tensor")?;
                values.extend(numbers::to_f64(&tensor)?);
                if let Some(target) = case.stream.as_ref().and_then(|s| s.carry.get(&expected.name)) {
                    carried.push((target.clone(), tensor));
                }
            }
            drop(results);
            feed.extend(carried);
        }
        for (expected, ours) in case.outputs.iter().zip(&outputs) {
            let theirs = read(&folder.join(name).join("outputs").join(&expected.file))?;
            judge(ours, &numbers::to_f64(&theirs)?, expected, meta.quantised)
                .map_err(|e| format!("case {name}, output {}: {e}", expected.name))?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Tensor, Failed> {
    Ok(npy::read(&std::fs::read(path)?)?)
}

/// One entry of the first axis.
fn entry(all: &Tensor, index: usize) -> Result<Tensor, Failed> {
    let shape = &all.shape()[1..];
    let bytes = all.bytes().len() / all.shape()[0].max(1);
    Ok(Tensor::from_bytes(all.element(), shape, &all.bytes()[index * bytes..(index + 1) * bytes])?)
}

fn judge(ours: &[f64], theirs: &[f64], expected: &Expected, quantised: bool) -> Result<(), String> {
    if ours.len() != theirs.len() {
        return Err(format!("{} numbers, not {}", ours.len(), theirs.len()));
    }
    if quantised {
        let sum = |f: fn(f64, f64) -> f64| ours.iter().zip(theirs).map(|(a, b)| f(*a, *b)).sum::<f64>();
        let length = (sum(|a, _| a * a) * sum(|_, b| b * b)).sqrt();
        let cosine = if length > 0.0 { sum(|a, b| a * b) / length } else { 1.0 };
        let least = expected.cosine.min(expected.last_bit) - COSINE_ROUNDING;
        return if cosine >= least {
            Ok(())
        } else {
            Err(format!("cosine {cosine:.6}, should be {least:.6}"))
        };
    }
    let gap = ours
        .iter()
        .zip(theirs)
        .map(|(a, b)| if a == b || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() })
        .fold(0.0, |most: f64, gap| if gap > most || gap.is_nan() { gap } else { most });
    let finite = || theirs.iter().copied().filter(|v| v.is_finite());
    let range = finite().fold(f64::MIN, f64::max) - finite().fold(f64::MAX, f64::min);
    let range = if range > 0.0 { range } else { finite().map(f64::abs).fold(0.0, f64::max) };
    let limit = (range * 1e-4).max(2.0 * expected.spread);
    if gap <= limit { Ok(()) } else { Err(format!("largest gap {gap:.3e}, limit {limit:.3e}")) }
}
