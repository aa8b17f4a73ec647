//! The standard's own cases: prepared, run, and told by operator in docs/conformance.md.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::{
    prepare,
    workspace::{Workspace, complain},
};

#[derive(Debug, Args)]
pub(crate) struct ConformanceArguments {
    /// Whose cases.
    standard: Standard,
    /// `cpu`, or `reference`: every node by its scalar meaning.
    #[arg(long, default_value = "cpu")]
    backend: String,
    /// Only cases whose name has one of these texts in it; the page is left alone then.
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Do not bring what is missing; use what is there.
    #[arg(long)]
    offline: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Standard {
    /// The node tests and model suites of the Python package onnx, and cases of ONNX Runtime's operators.
    Onnx,
}

/// The page by operator.
pub(crate) const PAGE: &str = "docs/conformance.md";

pub(crate) fn run(workspace: &Workspace, arguments: &ConformanceArguments) -> Result<bool> {
    let Standard::Onnx = arguments.standard;
    if !arguments.offline {
        let missing = prepare::cases(workspace);
        for reason in &missing.0 {
            complain(&format!("MISSING: {reason}"));
        }
    }
    let mut command = workspace.command(program(workspace, "standard")?);
    command.args(suites(workspace)?).args(["--backend", &arguments.backend]);
    for text in &arguments.cases {
        command.args(["--case", text]);
    }
    if arguments.json {
        command.arg("--json");
    }
    if arguments.cases.is_empty() && arguments.backend == "cpu" {
        command.arg("--page").arg(workspace.path(PAGE));
    }
    let status = command.status().context("the runner of cases")?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("the cases could not be run ({status})"),
    }
}

/// The folders of cases, the node tests last.
pub(crate) fn suites(workspace: &Workspace) -> Result<[PathBuf; 3]> {
    let folders = ["onnx-suites", "onnxruntime-cases", "onnx-cases"].map(|name| workspace.target(name));
    match folders.iter().find(|folder| !folder.exists()) {
        Some(folder) => bail!("{} is missing; `cargo xtask models` makes it", folder.display()),
        None => Ok(folders),
    }
}

/// A program of the conformance crate, built for speed.
pub(crate) fn program(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let mut build = workspace.command("cargo");
    build.args(["build", "--quiet", "--release", "-p", "armet-conformance", "--bin", name]);
    complain(&format!("building {name}"));
    if !build.status().context("cargo")?.success() {
        bail!("{name} cannot be built");
    }
    Ok(workspace.target("release").join(name))
}
