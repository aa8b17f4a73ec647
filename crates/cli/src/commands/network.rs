//! A model as a step of a pipeline: planes in, outputs out, with its time and placement kept for the report.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use armet::{Model, Session, ValueRef};
use armet_vision::{Planes, Tensor};

use super::report;
use crate::options::ModelOptions;
use crate::output::{self, Terminal};
use crate::picture;

/// A loaded model with memory of its own.
#[derive(Debug)]
pub(crate) struct Network {
    name: String,
    model: Model,
    session: Session,
    input: String,
    duration: Duration,
    runs: usize,
}

impl Network {
    /// Loads a model from a file.
    pub(crate) fn load(path: &Path, threads: Option<usize>, terminal: &mut Terminal) -> anyhow::Result<Self> {
        let options = ModelOptions::plain(path.to_owned(), threads);
        let model = options.load(terminal)?;
        let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        Self::new(name, model, &options)
    }

    /// Loads a model that is part of the command.
    pub(crate) fn embedded(name: &str, bytes: &'static [u8], threads: Option<usize>) -> anyhow::Result<Self> {
        let options = ModelOptions::plain(name.into(), threads);
        let model =
            Model::from_bytes(bytes).with_context(|| format!("cannot load the embedded model {name}"))?;
        Self::new(name.to_owned(), model, &options)
    }

    fn new(name: String, model: Model, options: &ModelOptions) -> anyhow::Result<Self> {
        let compiled = options.compile(&model)?;
        let inputs = compiled.inputs();
        let input = inputs.first().with_context(|| format!("model {name} has no inputs"))?.name.clone();
        Ok(Self { name, model, session: compiled.session(), input, duration: Duration::ZERO, runs: 0 })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// All outputs for these planes.
    pub(crate) fn run(&mut self, planes: &Planes) -> anyhow::Result<Vec<Tensor>> {
        let tensor = picture::tensor(planes)?;
        let started = Instant::now();
        let outputs = self
            .session
            .run(&[(self.input.as_str(), ValueRef::from(&tensor))])
            .with_context(|| format!("cannot run {}", self.name))?;
        let results = outputs
            .iter()
            .map(|(name, value)| {
                let view = value.view().with_context(|| format!("output {name} is no tensor"))?;
                let data = view.values::<f32>().with_context(|| format!("output {name} holds no float32"))?;
                Ok(Tensor { shape: view.shape().to_vec(), data: data.into_owned() })
            })
            .collect();
        self.duration += started.elapsed();
        self.runs += 1;
        results
    }

    /// One line: how often it ran, how long, and where.
    pub(crate) fn summary(&self) -> String {
        let ms = self.duration.as_secs_f64() * 1e3;
        let (name, runs) = (output::clean(&self.name), output::count(self.runs, "run"));
        format!("{name}: {runs}, {ms:.1} ms; {}", report::summary(&self.session.stages()))
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        let stages = self.session.stages();
        serde_json::json!({
            "model": self.name,
            "warnings": self.model.warnings(),
            "runs": self.runs,
            "ms": self.duration.as_secs_f64() * 1e3,
            "placement": report::placement(&stages),
        })
    }
}
