//! Adding an operator, tried: in a clone, an operator is added half and whole, and the compiler and the page are asked.
//!
//! The operator tried is a copy of an existing one under another name, so that it is a real one.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{Bench, Measured};
use crate::process::{logged, output, tail};

const LIST: &str = "crates/graph/src/ops/mod.rs";
const MODEL: &str = "crates/graph/src/ops/trilu.rs";
const ADDED: &str = "crates/graph/src/ops/probe.rs";
const BACKEND: &str = "crates/backend-cpu/src/lower.rs";
const PAGE: &str = "docs/adding-an-operator.md";

/// Something half done: what, which crate cannot compile then, and the compiler's code for it.
struct Half {
    what: &'static str,
    package: &'static str,
    code: &'static str,
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Measured> {
    let folder = bench.scratch.join("operator");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut clone = bench.workspace.command("git");
    clone.args(["clone", "--quiet"]).arg(bench.workspace.root()).arg(&folder);
    output(clone)?;
    let whole = fs::read_to_string(folder.join(MODEL))?.replace("Trilu", "Probe");
    let (method, rest) = whole.split_once("    fn name(&self)").context("the copied operator has a name")?;
    let (_, rest) = rest.split_once("    }\n").context("a method ends")?;
    let nameless = format!("{method}{rest}");

    let mut wrong = Vec::new();
    let mut refuses = |half: &Half| -> Result<()> {
        let (well, words) = check(bench, &folder, half.package)?;
        if well || !words.contains(half.code) {
            wrong.push(format!("{}: {}", half.what, if well { "compiles" } else { "another error" }));
        }
        Ok(())
    };
    insert(&folder.join(LIST), "    trilu: Trilu;\n", "    probe: Probe;\n")?;
    insert(&folder.join(LIST), "    Trilu(trilu::Trilu),\n", "    /// A probe.\n    Probe(probe::Probe),\n")?;
    refuses(&Half { what: "a line without a file", package: "armet-graph", code: "E0583" })?;
    fs::write(folder.join(ADDED), nameless)?;
    refuses(&Half { what: "an operator without a method", package: "armet-graph", code: "E0046" })?;
    fs::write(folder.join(ADDED), whole)?;
    refuses(&Half { what: "a backend without an answer", package: "armet-backend-cpu", code: "E0004" })?;
    insert(&folder.join(BACKEND), "| Op::Det(_)", " | Op::Probe(_)")?;
    let (well, words) = check(bench, &folder, "armet-backend-cpu")?;
    if !well {
        wrong.push(format!("the whole operator does not compile: {words}"));
    }

    let mut status = bench.workspace.command("git");
    status.arg("-C").arg(&folder).args(["status", "--porcelain", "--untracked-files=all"]);
    let changed: Vec<String> =
        output(status)?.lines().filter_map(|line| line.get(3..).map(str::to_owned)).collect();
    let page = bench.workspace.read(PAGE)?;
    // The page speaks of all backends at once, and of a folder where the file is the new one.
    let unnamed = |path: &&String| {
        let folder = Path::new(path).parent().and_then(Path::to_str).unwrap_or_default();
        let every_backend = path.replace("/backend-cpu/", "/backend-*/");
        ![path.as_str(), folder, &every_backend].iter().any(|name| page.contains(name))
    };
    for path in changed.iter().filter(unnamed) {
        wrong.push(format!("{PAGE} does not name {path}"));
    }
    let text = format!(
        "{} files for one backend, a line more for an importer; {}",
        changed.len(),
        if wrong.is_empty() {
            "each of three halves is refused by the compiler".to_owned()
        } else {
            wrong.join("; ")
        }
    );
    Ok(Measured { text, holds: wrong.is_empty(), raw: json!({ "changed": changed, "wrong": wrong }) })
}

fn insert(path: &Path, after: &str, added: &str) -> Result<()> {
    let text = fs::read_to_string(path)?;
    ensure!(text.matches(after).count() == 1, "{} has not one place {after:?}", path.display());
    fs::write(path, text.replace(after, &format!("{after}{added}"))).context("the clone can be written")
}

/// Whether a crate of the clone compiles, and the compiler's words.
fn check(bench: &Bench<'_>, folder: &Path, package: &str) -> Result<(bool, String)> {
    let log = bench.scratch.join("operator.log");
    let mut command = bench.workspace.command("cargo");
    command.current_dir(folder).args(["check", "--quiet", "--package", package]);
    command.env("CARGO_TARGET_DIR", bench.scratch.join("operator-target"));
    let well = logged(command, &log)?;
    Ok((well, tail(&log, 200)))
}
