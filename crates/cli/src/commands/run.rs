//! `armet run`: a model once, its outputs shown and saved.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use armet::{ElementType, NoProbe, Probe, StepReport, StepResult, Tensor, Value as Output, ValueRef, npy};
use clap::Args;
use serde_json::{Value, json};

use super::files::Files;
use super::inputs::{self, Given};
use super::report;
use crate::options::ModelOptions;
use crate::output::Terminal;
use crate::picture::PictureOptions;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    pictures: PictureOptions,
    /// An input: NAME=FILE.npy, NAME=FILE.png, NAME=random; without a name, the only input; `random` alone makes all up.
    /// Several for one name are the items of a sequence; NAME=none leaves an optional input out.
    #[arg(long, short, value_name = "NAME=FILE", value_parser = inputs::parse)]
    input: Vec<Given>,
    /// Save each output as DIR/<name>.npy, a sequence as DIR/<name>.0.npy, DIR/<name>.1.npy and so on.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Save each intermediate value as DIR/<name>.npy.
    #[arg(long, value_name = "DIR")]
    dump_layers: Option<PathBuf>,
    /// Start random operators from this number.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let started = Instant::now();
    let model = arguments.model.load(terminal)?;
    let load = started.elapsed();
    let compiled = arguments.model.compile(&model)?;
    let values = inputs::gather(&compiled, &arguments.input, &arguments.pictures, terminal)?;
    for folder in arguments.output.iter().chain(&arguments.dump_layers) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make folder {}", folder.display()))?;
    }
    let feed: Vec<(&str, ValueRef<'_>)> = values.iter().map(|(name, t)| (name.as_str(), t.into())).collect();
    let types = inputs::types(&values);

    let started = Instant::now();
    let mut session = compiled.session();
    session.set_seed(arguments.seed);
    session.prepare(&types)?;
    let compile = compiled.duration() + started.elapsed();

    let mut dump = arguments.dump_layers.as_deref().map(Dump::new);
    let probe: &mut dyn Probe = match &mut dump {
        Some(dump) => dump,
        None => &mut NoProbe,
    };
    let started = Instant::now();
    let outputs = session.run_with(&feed, probe)?;
    let duration = started.elapsed();
    let results: Vec<(String, Output)> =
        outputs.iter().map(|(name, value)| (name.to_owned(), value.to_value())).collect();
    drop(outputs);
    if let Some(dump) = dump {
        dump.finish(terminal)?;
    }
    let stages = session.stages();
    let mut files = arguments.output.as_deref().map(Files::new);
    if arguments.model.json {
        let outputs = results.iter().map(|(name, value)| as_json(files.as_mut(), name, value));
        let outputs: Vec<Value> = outputs.collect::<anyhow::Result<_>>()?;
        terminal.json(&json!({
            "model": arguments.model.model,
            "warnings": model.warnings(),
            "outputs": outputs,
            "placement": report::placement(&stages),
            "memory": report::memory(&stages),
            "timing": {"load_ms": ms(load), "compile_ms": ms(compile), "run_ms": ms(duration)},
            "threads": compiled.engine().threads(),
        }))?;
        return Ok(0);
    }
    for (name, value) in &results {
        show(terminal, files.as_mut(), name, value)?;
    }
    terminal.note(report::summary(&stages));
    terminal.note(format_args!(
        "timing: load {:.1} ms, compile {:.1} ms, run {:.2} ms on {} thread(s)",
        ms(load),
        ms(compile),
        ms(duration),
        compiled.engine().threads()
    ));
    Ok(0)
}

pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Shows a result, and saves it where there is a folder for it.
fn show(
    terminal: &mut Terminal,
    mut files: Option<&mut Files<'_>>,
    name: &str,
    value: &Output,
) -> anyhow::Result<()> {
    match value {
        Output::Tensor(tensor) => {
            // Saved before it is shown: a reader who leaves early still gets the files.
            if let Some(files) = files {
                let file = files.save(name, tensor)?;
                terminal.note(format_args!("saved {}", file.display()));
            }
            terminal.line(describe(name, tensor))?;
        }
        Output::Sequence(items) => {
            terminal.line(format_args!("{name}: sequence of {}", items.len()))?;
            for (index, item) in items.iter().enumerate() {
                show(terminal, files.as_deref_mut(), &format!("{name}.{index}"), item)?;
            }
        }
        Output::Optional(Some(inner)) => show(terminal, files, name, inner)?,
        Output::Optional(None) => terminal.line(format_args!("{name}: none"))?,
    }
    Ok(())
}

/// As [`show`], as an object.
fn as_json(mut files: Option<&mut Files<'_>>, name: &str, value: &Output) -> anyhow::Result<Value> {
    Ok(match value {
        Output::Tensor(tensor) => {
            let file = files.map(|files| files.save(name, tensor)).transpose()?;
            json!({"name": name, "type": tensor.element().name(), "shape": tensor.shape().to_vec(),
                "summary": summary(tensor), "file": file})
        }
        Output::Sequence(items) => {
            let items = items.iter().enumerate();
            let items =
                items.map(|(index, item)| as_json(files.as_deref_mut(), &format!("{name}.{index}"), item));
            json!({"name": name, "type": "sequence", "items": items.collect::<anyhow::Result<Vec<_>>>()?})
        }
        Output::Optional(Some(inner)) => as_json(files, name, inner)?,
        Output::Optional(None) => json!({"name": name, "type": "none"}),
    })
}

/// The numbers of a tensor as `f64`, when it holds numbers.
fn numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    match tensor.element() {
        ElementType::F32 => Some(tensor.values::<f32>().ok()?.iter().map(|&v| f64::from(v)).collect()),
        ElementType::F64 => Some(tensor.values::<f64>().ok()?.into_owned()),
        ElementType::F16 => Some(tensor.values::<half::f16>().ok()?.iter().map(|v| v.to_f64()).collect()),
        _ => Some(tensor.to_i64()?.iter().map(|&v| v as f64).collect()),
    }
}

fn summary(tensor: &Tensor) -> Value {
    let Some(values) = numbers(tensor) else {
        return json!({"first": tensor.strings().iter().take(8).collect::<Vec<_>>()});
    };
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let count = finite().count();
    json!({
        "min": finite().reduce(f64::min),
        "max": finite().reduce(f64::max),
        "mean": (count > 0).then(|| finite().sum::<f64>() / count as f64),
        "not_finite": values.len() - count,
        "first": values.iter().take(8).map(|v| if v.is_finite() { json!(v) } else { json!(v.to_string()) }).collect::<Vec<_>>(),
    })
}

fn describe(name: &str, tensor: &Tensor) -> String {
    let mut text = format!("{name}: {}{}", tensor.element(), tensor.shape());
    let Some(values) = numbers(tensor) else {
        let shown: Vec<&str> = tensor.strings().iter().take(8).map(String::as_str).collect();
        return format!("{text} {shown:?}");
    };
    if values.is_empty() {
        return format!("{text} (empty)");
    }
    let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    if let (Some(low), Some(high)) =
        (finite.iter().copied().reduce(f64::min), finite.iter().copied().reduce(f64::max))
    {
        let mean = finite.iter().sum::<f64>() / finite.len() as f64;
        text.push_str(&format!("  min {low:.5}  max {high:.5}  mean {mean:.5}"));
    }
    if finite.len() < values.len() {
        text.push_str(&format!("  NOT FINITE: {} of {}", values.len() - finite.len(), values.len()));
    }
    // A row of many scores is most likely one per class: the best are what one wants to see.
    let shape = tensor.shape();
    let is_scores = tensor.element().is_float()
        && shape.last().is_some_and(|&n| (10..=100_000).contains(&n))
        && shape.iter().rev().skip(1).all(|&d| d == 1);
    if is_scores {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        let best: Vec<String> = order.iter().take(5).map(|&i| format!("{i}: {:.4}", values[i])).collect();
        text.push_str(&format!("\n  largest  {}", best.join("  ")));
    } else {
        let first: Vec<String> = values.iter().take(6).map(|v| format!("{v:.5}")).collect();
        text.push_str(&format!(
            "\n  first  {}{}",
            first.join("  "),
            if values.len() > 6 { "  …" } else { "" }
        ));
    }
    text
}

/// Saves every result of every step.
struct Dump<'a> {
    files: Files<'a>,
    seen: HashMap<String, usize>,
    skipped: Vec<String>,
    failure: Option<anyhow::Error>,
}

impl<'a> Dump<'a> {
    fn new(folder: &'a Path) -> Self {
        Self { files: Files::new(folder), seen: HashMap::new(), skipped: Vec::new(), failure: None }
    }

    fn finish(self, terminal: &mut Terminal) -> anyhow::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let saved: usize = self.seen.values().sum();
        terminal.note(format_args!("saved {saved} values in {}", self.files.folder().display()));
        if !self.skipped.is_empty() {
            terminal.note(format_args!("not saved, no type of NumPy: {}", self.skipped.join(", ")));
        }
        Ok(())
    }
}

impl Probe for Dump<'_> {
    fn wants_results(&self) -> bool {
        true
    }

    fn step(&mut self, _: &StepReport, _: Duration, results: &[StepResult<'_>]) {
        for result in results {
            if self.failure.is_some() {
                return;
            }
            let count = self.seen.entry(result.name.to_owned()).or_default();
            *count += 1;
            // Values of one name, from several branches, are told apart by a number.
            let name = if *count > 1 { format!("{}.{count}", result.name) } else { result.name.to_owned() };
            match result.to_tensor().filter(|t| npy::write(t).is_ok()) {
                Some(tensor) => {
                    if let Err(error) = self.files.save(&name, &tensor) {
                        self.failure = Some(error);
                    }
                }
                None => self.skipped.push(name),
            }
        }
    }
}
