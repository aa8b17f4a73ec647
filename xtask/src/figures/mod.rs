//! Figures: what an issue promises, measured and printed as a table.
//!
//! Each set is a list of [`Row`]s. A row that cannot be measured is printed with its reason and does not hold. The raw
//! numbers behind each row go to `target/figures/<set>/<row>.json`.

mod agreement;
mod first_answers;
mod npy;
mod operator;
mod standard;

use std::{fs, path::PathBuf, time::Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::{
    prepare,
    workspace::{Workspace, complain, say},
};

#[derive(Debug, Args)]
pub(crate) struct FiguresArguments {
    /// Which set.
    set: Set,
    /// Only these rows.
    #[arg(long = "row", value_name = "ROW")]
    rows: Vec<String>,
    /// Only models whose id contains one of these.
    #[arg(long = "model", value_name = "TEXT")]
    only: Vec<String>,
    /// The armet program to measure; built in release mode where not given.
    #[arg(long)]
    armet: Option<PathBuf>,
    /// The folder of `armet models fetch`; target/models where not given.
    #[arg(long)]
    models: Option<PathBuf>,
    /// The folder of tools/reference/make.py; target/references where not given.
    #[arg(long)]
    references: Option<PathBuf>,
    /// A Python with what tools/requirements.txt names; target/python's where not given.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Rounds of each timing.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each timing.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Set {
    FirstAnswers,
    Standard,
}

/// One promise.
struct Row {
    id: &'static str,
    what: &'static str,
    promised: &'static str,
    /// Measured only when named by `--row`.
    on_request: bool,
    measure: fn(&Bench<'_>) -> Result<Measured>,
}

/// What a row found.
struct Measured {
    text: String,
    holds: bool,
    raw: Value,
}

/// What rows measure with.
struct Bench<'a> {
    workspace: &'a Workspace,
    armet: PathBuf,
    models: PathBuf,
    references: PathBuf,
    python: PathBuf,
    scratch: PathBuf,
    only: &'a [String],
    rounds: u32,
    seconds: f64,
}

impl Bench<'_> {
    fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| id.contains(part.as_str()))
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &FiguresArguments) -> Result<bool> {
    let (name, rows) = match arguments.set {
        Set::FirstAnswers => ("first-answers", first_answers::ROWS),
        Set::Standard => ("standard", standard::ROWS),
    };
    if let Some(unknown) = arguments.rows.iter().find(|id| !rows.iter().any(|row| row.id == **id)) {
        let known: Vec<_> = rows.iter().map(|row| row.id).collect();
        bail!("no row is called {unknown}; there are {}", known.join(", "));
    }
    let folder = workspace.target("figures").join(name);
    let bench = Bench {
        workspace,
        armet: arguments.armet.clone().map_or_else(|| build(workspace), Ok)?,
        models: arguments.models.clone().unwrap_or_else(|| workspace.target("models")),
        references: arguments.references.clone().unwrap_or_else(|| workspace.target("references")),
        python: arguments.python.clone().unwrap_or_else(|| prepare::python_path(workspace)),
        scratch: folder.join("scratch"),
        only: &arguments.only,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
    };
    for path in [&bench.models, &bench.references, &bench.python] {
        if !path.exists() {
            bail!("{} is missing; `cargo xtask models` makes it", path.display());
        }
    }
    let mut lines = vec![
        "| what | figure to reach | measured | holds? |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    let mut well = true;
    for row in
        rows.iter().filter(|row| arguments.rows.is_empty() || arguments.rows.iter().any(|id| id == row.id))
    {
        let asked = arguments.rows.iter().any(|id| id == row.id);
        let (text, holds) = if row.on_request && !asked {
            (format!("not measured (`--row {}`)", row.id), "-")
        } else {
            complain(&format!("measuring: {}", row.id));
            let started = Instant::now();
            let measured = (row.measure)(&bench).unwrap_or_else(|error| Measured {
                text: format!("could not be measured: {error:#}"),
                holds: false,
                raw: Value::Null,
            });
            fs::create_dir_all(&folder)?;
            fs::write(
                folder.join(row.id).with_extension("json"),
                serde_json::to_string_pretty(&measured.raw)?,
            )?;
            complain(&format!("{}: {:.0} s", row.id, started.elapsed().as_secs_f64()));
            well &= measured.holds;
            (measured.text, if measured.holds { "yes" } else { "no" })
        };
        lines.push(format!(
            "| {} | {} | {} | {holds} |",
            row.what,
            row.promised,
            text.replace('|', "/").replace('\n', " ")
        ));
    }
    for line in &lines {
        say(line);
    }
    Ok(well)
}

fn build(workspace: &Workspace) -> Result<PathBuf> {
    complain("building armet");
    let mut command = workspace.command("cargo");
    command.args(["build", "--quiet", "--release", "--package", "armet-cli"]);
    if !command.status().context("cargo")?.success() {
        bail!("armet does not build");
    }
    Ok(workspace.target("release/armet"))
}
