//! What the tests need beside the code: a Python environment, models, references, ONNX's operator cases.
//!
//! All of it goes below `target/` (`python`, `models`, `references`, `onnx-cases`, `onnx-suites`, `onnxruntime-cases`), is
//! kept between runs, and is only made again when its recipe changed. What cannot be had is named, never a panic: the tests that need it are skipped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    process::{logged, tail},
    workspace::{Workspace, complain},
};

/// What could not be prepared, each with its reason.
#[derive(Debug, Default)]
pub(crate) struct Missing(pub Vec<String>);

/// The `models` task.
pub(crate) fn run(workspace: &Workspace) -> bool {
    let missing = all(workspace);
    for reason in &missing.0 {
        complain(&format!("MISSING: {reason}"));
    }
    missing.0.is_empty()
}

/// Prepares everything; later parts are left out where what they stand on is missing.
pub(crate) fn all(workspace: &Workspace) -> Missing {
    let mut missing = Missing::default();
    let python = step("Python environment", &mut missing, || python(workspace));
    let models = step("models", &mut missing, || models(workspace, python.as_deref()));
    if let Some(python) = python {
        if models.is_some() {
            step("references", &mut missing, || references(workspace, &python));
        }
        suites_and_cases(workspace, &python, &mut missing);
    }
    missing
}

fn suites_and_cases(workspace: &Workspace, python: &Path, missing: &mut Missing) {
    step("ONNX operator cases", missing, || {
        recipe(workspace, python, "onnx-cases", "tools/reference/onnx_cases.py")
    });
    step("ONNX Runtime operator cases", missing, || {
        recipe(workspace, python, "onnxruntime-cases", "tools/reference/onnxruntime_cases.py")
    });
    step("ONNX model suites", missing, || {
        recipe(workspace, python, "onnx-suites", "tools/reference/onnx_suites.py")
    });
}

/// Prepares the cases of operators alone.
pub(crate) fn cases(workspace: &Workspace) -> Missing {
    let mut missing = Missing::default();
    if let Some(python) = step("Python environment", &mut missing, || python(workspace)) {
        suites_and_cases(workspace, &python, &mut missing);
    }
    missing
}

/// The environment's Python, where it was prepared.
pub(crate) fn python_path(workspace: &Workspace) -> PathBuf {
    workspace.target("python/bin/python")
}

fn step<T>(what: &str, missing: &mut Missing, make: impl FnOnce() -> Result<T>) -> Option<T> {
    complain(&format!("preparing: {what}"));
    match make() {
        Ok(made) => Some(made),
        Err(error) => {
            missing.0.push(format!("{what}: {error:#}"));
            None
        }
    }
}

fn python(workspace: &Workspace) -> Result<PathBuf> {
    let (python, wanted) = (python_path(workspace), workspace.read("tools/requirements.txt")?);
    let stamp = workspace.target("python/requirements.txt");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    system_packages(workspace)?;
    let log = workspace.target("prepare-python.log");
    let mut create = workspace.command("python3");
    create.args(["-m", "venv", "--clear"]).arg(workspace.target("python"));
    require(create, &log)?;
    let mut install = workspace.command(&python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "-r",
        "tools/requirements.txt",
    ]);
    require(install, &log)?;
    fs::write(stamp, wanted)?;
    Ok(python)
}

/// Installs Debian's Python and npm where they are missing and this user may.
fn system_packages(workspace: &Workspace) -> Result<()> {
    let works = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let mut packages = Vec::new();
    if !works("python3", &["-c", "import ensurepip, venv"]) {
        packages.extend(["python3", "python3-venv", "python3-pip"]);
    }
    if !works("npm", &["--version"]) {
        packages.push("npm");
    }
    if packages.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if !works("sh", &["-c", "test \"$(id -u)\" = 0 && command -v apt-get"]) {
        bail!("install what is missing: {by_hand}");
    }
    complain(&format!("installing: {by_hand}"));
    let log = workspace.target("prepare-packages.log");
    let mut update = workspace.command("apt-get");
    update.arg("update");
    require(update, &log)?;
    let mut install = workspace.command("apt-get");
    install
        .args(["install", "--yes", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive");
    require(install, &log)
}

fn models(workspace: &Workspace, python: Option<&Path>) -> Result<()> {
    let mut fetch = workspace.command("cargo");
    fetch
        .args(["run", "--quiet", "--package", "armet-cli", "--", "models", "fetch", "onnx", "media", "--dir"])
        .arg(workspace.target("models"));
    if let Some(python) = python {
        fetch.arg("--python").arg(python);
    }
    require(fetch, &workspace.target("prepare-models.log"))
}

fn references(workspace: &Workspace, python: &Path) -> Result<()> {
    let mut make = workspace.command(python);
    make.arg("tools/reference/make.py").args([workspace.target("models"), workspace.target("references")]);
    require(make, &workspace.target("prepare-references.log"))
}

/// What a script makes of the Python packages, made again when the script or its packages changed.
fn recipe(workspace: &Workspace, python: &Path, folder: &str, script: &str) -> Result<()> {
    let recipe = workspace.read("tools/requirements.txt")? + &workspace.read(script)?;
    let stamp = workspace.target(folder).join("recipe");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == recipe) {
        return Ok(());
    }
    let mut make = workspace.command(python);
    make.arg(script).arg(workspace.target(folder));
    require(make, &workspace.target(&format!("prepare-{folder}.log")))?;
    fs::write(&stamp, recipe).with_context(|| stamp.display().to_string())
}

fn require(command: Command, log: &Path) -> Result<()> {
    if logged(command, log)? {
        return Ok(());
    }
    let words = tail(log, 3).replace('\n', "; ");
    bail!("{words} (all of it: {})", log.display())
}
