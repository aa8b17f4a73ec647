//! `armet run`: a model once, its outputs shown and saved.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use armet::{NoProbe, Probe, StepReport, StepResult, Value as Output, ValueRef, npy};
use clap::Args;
use serde_json::{Value, json};

use super::files::Files;
use super::inputs::{self, Given};
use super::report;
use super::summary::{describe, summary};
use crate::options::ModelOptions;
use crate::output::{self, Terminal, clean};
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
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let started = Instant::now();
    let model = arguments.model.load_given(&arguments.input, terminal)?;
    let load = started.elapsed();
    let compiled = arguments.model.compile(&model)?;
    let settings = arguments.model.settings();
    let gathered =
        inputs::gather((&model, &compiled), &settings, &arguments.input, &arguments.pictures, terminal)?;
    let values = gathered.values;
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
            "model": arguments.model.model.to_string_lossy(),
            "warnings": model.warnings(),
            "assumed": gathered.sizes.as_json(),
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
        "timing: load {:.1} ms, compile {:.1} ms, run {:.2} ms on {}",
        ms(load),
        ms(compile),
        ms(duration),
        output::count(compiled.engine().threads(), "thread")
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
            terminal.line(format_args!("{}: sequence of {}", clean(name), items.len()))?;
            for (index, item) in items.iter().enumerate() {
                show(terminal, files.as_deref_mut(), &format!("{name}.{index}"), item)?;
            }
        }
        Output::Optional(Some(inner)) => show(terminal, files, name, inner)?,
        Output::Optional(None) => terminal.line(format_args!("{}: none", clean(name)))?,
    }
    Ok(())
}

/// As [`show`], as an object.
fn as_json(mut files: Option<&mut Files<'_>>, name: &str, value: &Output) -> anyhow::Result<Value> {
    Ok(match value {
        Output::Tensor(tensor) => {
            let file = files.map(|files| files.save(name, tensor)).transpose()?;
            let file = file.as_ref().map(|file| file.to_string_lossy());
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
        terminal.note(format_args!(
            "saved {} in {}",
            output::count(saved - self.skipped.len(), "value"),
            self.files.folder().display()
        ));
        if !self.skipped.is_empty() {
            let names: Vec<String> = self.skipped.iter().map(|name| clean(name)).collect();
            terminal.note(format_args!("not saved, no type of NumPy: {}", names.join(", ")));
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
