//! Options that several commands share: which model, which backend, which shapes.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use armet::{
    CompileError, CompileSettings, Compiled, Engine, Graph, Isa, Isas, LoadError, LoadOptions, Model, Shape,
    ValueSpec,
};
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};

use crate::commands::inputs::Given;
use crate::commands::sizes::Sizes;
use crate::output::{Hint, Terminal, clean};

/// A model and how to run it.
#[derive(Debug, Args)]
pub(crate) struct ModelOptions {
    /// The ONNX file.
    pub(crate) model: PathBuf,
    /// Threads to run on [default: as many as there are processors].
    #[arg(long, short = 't')]
    pub(crate) threads: Option<usize>,
    /// Backend to run on: cpu, reference [default: cpu, and reference for what it does not take].
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) backend: Option<String>,
    /// Let kernels use only these instruction sets (scalar, avx2, avx512, avx512vnni, neon, ...).
    #[arg(long, value_delimiter = ',', value_name = "ISA", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) isa: Vec<String>,
    /// Shape of an input: input=1,3,640,640.
    #[arg(long, value_name = "NAME=DIMS", value_parser = parse_shape)]
    pub(crate) shape: Vec<(String, Vec<usize>)>,
    /// Number for a named dimension: batch=2.
    #[arg(long, value_name = "NAME=N", value_parser = parse_dim)]
    pub(crate) dim: Vec<(String, usize)>,
    /// Leave out a pass; may be given several times.
    #[arg(long, value_name = "PASS", value_parser = pass_names())]
    pub(crate) disable_pass: Vec<String>,
    /// Print the graph as it is after a pass of the same list, on standard error.
    #[arg(long, value_name = "PASS", value_parser = pass_names(), hide_possible_values = true)]
    pub(crate) dump_after: Vec<String>,
    /// Refuse to run nodes by their scalar meaning when no backend has a kernel for them.
    #[arg(long)]
    pub(crate) no_fallback: bool,
    /// Shared library of custom operators; may be given several times.
    #[arg(long, value_name = "LIBRARY")]
    pub(crate) operators: Vec<PathBuf>,
    /// Let custom operators take the place of the engine's own of the same names.
    #[arg(long, requires = "operators")]
    pub(crate) override_operators: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_shape(text: &str) -> Result<(String, Vec<usize>), String> {
    // Names may hold an equals sign; dimensions may not.
    let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let (name, dims) = parts.ok_or("expected NAME=DIMS, for instance input=1,3,640,640")?;
    let dims = dims
        .split([',', 'x'])
        .filter(|d| !dims.trim().is_empty() || !d.trim().is_empty())
        .map(|d| d.trim().parse().map_err(|_| format!("\"{d}\" is not a dimension")))
        .collect::<Result<_, _>>()?;
    Ok((name.to_owned(), dims))
}

/// The passes there are, for help, completions and checks.
fn pass_names() -> PossibleValuesParser {
    PossibleValuesParser::new(armet::PASSES.iter().map(|pass| pass.name))
}

/// Whether a shape sets other sizes than the model declares; a rank that differs is refused elsewhere.
fn changes(input: &ValueSpec, shape: &[usize]) -> bool {
    let dims = input.dims().filter(|dims| dims.len() == shape.len()).unwrap_or_default();
    dims.iter().zip(shape).any(|(dim, size)| dim.fixed().is_some_and(|declared| declared != *size))
}

/// Refuses a name that an option was given for twice.
fn once<'a>(option: &str, names: impl Iterator<Item = &'a str> + Clone) -> anyhow::Result<()> {
    for (index, name) in names.clone().enumerate() {
        if names.clone().take(index).any(|other| other == name) {
            anyhow::bail!("{option} was given for {name} more than once; give it once");
        }
    }
    Ok(())
}

fn parse_dim(text: &str) -> Result<(String, usize), String> {
    let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let (name, number) = parts.ok_or("expected NAME=N, for instance batch=2")?;
    let number = number.trim().parse().map_err(|_| format!("\"{number}\" is not a size"))?;
    Ok((name.to_owned(), number))
}

impl ModelOptions {
    /// For commands that choose the model and everything else themselves.
    pub(crate) fn plain(model: PathBuf, threads: Option<usize>) -> Self {
        Self {
            model,
            threads,
            backend: None,
            isa: Vec::new(),
            shape: Vec::new(),
            dim: Vec::new(),
            disable_pass: Vec::new(),
            dump_after: Vec::new(),
            no_fallback: false,
            operators: Vec::new(),
            override_operators: false,
            json: false,
        }
    }

    /// Reads the model; remarks go to standard error.
    pub(crate) fn load(&self, terminal: &mut Terminal) -> anyhow::Result<Model> {
        self.load_given(&[], terminal)
    }

    /// As [`ModelOptions::load`], with inputs that are given though the file may have values for them.
    pub(crate) fn load_given(&self, given: &[Given], terminal: &mut Terminal) -> anyhow::Result<Model> {
        once("--shape", self.shape.iter().map(|(name, _)| name.as_str()))?;
        once("--dim", self.dim.iter().map(|(name, _)| name.as_str()))?;
        let inputs = given.iter().flat_map(Given::possible_names).collect();
        let mut options = LoadOptions { inputs, ..LoadOptions::default() };
        for library in &self.operators {
            for mut operator in armet::load_operators(library)? {
                operator.overrides = self.override_operators;
                options.operators.add(operator);
            }
        }
        let model = Model::load_with(&self.model, &options).map_err(|error| self.explain(error))?;
        for warning in model.warnings() {
            terminal.note(format_args!("note: {}", clean(warning)));
        }
        for (name, shape) in &self.shape {
            let inputs = model.inputs();
            if let Some(input) = inputs.iter().find(|input| input.name == *name)
                && changes(input, shape)
            {
                let given = Shape::new(shape);
                terminal.note(format_args!(
                    "note: input {} is declared {} and taken as {given}, as --shape says",
                    clean(name),
                    clean(&input.ty.to_string())
                ));
            }
        }
        Ok(model)
    }

    fn explain(&self, error: LoadError) -> anyhow::Error {
        let path = self.model.display();
        let hint = match &error {
            LoadError::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "check the path; `armet models fetch` brings real models to try".to_owned()
            }
            LoadError::Read { source, .. } if source.kind() == std::io::ErrorKind::IsADirectory => {
                let is_tensorflow = self.model.join("saved_model.pb").exists();
                if is_tensorflow {
                    format!(
                        "it is a TensorFlow SavedModel; convert it: python -m tf2onnx.convert --saved-model {path} \
                         --output model.onnx"
                    )
                } else {
                    "give the .onnx file itself, not the folder that it is in".to_owned()
                }
            }
            _ => return anyhow::Error::new(error).context(format!("cannot load {path}")),
        };
        anyhow::Error::new(error).context(Hint::new(format!("cannot load {path}"), hint))
    }

    /// The engine asked for.
    pub(crate) fn engine(&self) -> anyhow::Result<Engine> {
        let mut builder = Engine::builder();
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        if let Some(backend) = &self.backend {
            builder = builder.backend(backend);
        }
        if !self.isa.is_empty() {
            builder = builder.isas(isas(&self.isa)?);
        }
        Ok(builder.build()?)
    }

    /// The settings asked for.
    pub(crate) fn settings(&self) -> CompileSettings {
        let wanted = self.dump_after.clone();
        let after_pass = (!wanted.is_empty()).then(|| {
            let dump = move |name: &'static str, graph: &Graph| {
                if wanted.iter().any(|w| w == name) {
                    Terminal::new().note(format_args!("# after {name}\n{}", armet::graph_text(graph)));
                }
            };
            Arc::new(dump) as Arc<dyn Fn(&'static str, &Graph) + Send + Sync>
        });
        CompileSettings {
            shapes: self.shape.clone(),
            dims: self.dim.clone(),
            disabled_passes: self.disable_pass.clone(),
            after_pass,
            forbid_reference: self.no_fallback,
        }
    }

    /// Compiles the model for the engine asked for.
    pub(crate) fn compile(&self, model: &Model) -> anyhow::Result<Compiled> {
        let settings = self.settings();
        Sizes::new(model, &settings)?;
        let compiled = self.engine()?.compile(model, &settings);
        compiled.map_err(|error| match error {
            CompileError::UnknownInput { .. } => {
                anyhow::Error::new(error).context("--shape does not fit the model")
            }
            CompileError::UnknownDim { .. } => {
                anyhow::Error::new(error).context("--dim does not fit the model")
            }
            other => anyhow::Error::new(other).context(format!("cannot compile {}", self.model.display())),
        })
    }
}

fn isas(names: &[String]) -> anyhow::Result<Isas> {
    let wanted = names
        .iter()
        .map(|name| {
            let known = || Isa::ALL.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Isa::from_name(name)
                .with_context(|| format!("there is no instruction set {name}; there are {}", known()))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(missing) = wanted.iter().find(|isa| !isa.is_available()) {
        anyhow::bail!("this processor does not have {missing}");
    }
    Ok(Isas::only(&wanted))
}
