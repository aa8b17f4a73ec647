//! Runs ONNX's own cases: what `cargo xtask conformance onnx` starts.
//!
//! Contract: one line for each suite on standard output, the node suite's last (with `--json` one object); failures and
//! progress on the error stream; 0 when nothing failed, 1 when something did, 2 when the cases could not be run.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

use armet_conformance::standard::{Counts, Ended, Suite, Verdict, page, pool};
use clap::Parser;

/// Run ONNX's own cases.
#[derive(Debug, Parser)]
struct Arguments {
    /// Folders of cases: suites, or folders of suites. The last suite is reported last.
    #[arg(required_unless_present = "worker")]
    folders: Vec<PathBuf>,
    /// `cpu`, or `reference`: every node by its scalar meaning.
    #[arg(long, default_value = "cpu")]
    backend: String,
    /// Only cases whose name has one of these texts in it.
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write the page by operator into this file.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// How many processes run cases; by default as many as there are processors.
    #[arg(long)]
    processes: Option<usize>,
    /// Serve as one of these processes.
    #[arg(long, hide = true)]
    worker: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            note(&format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn note(line: &str) {
    // Words about the work are no reason to stop it.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    if arguments.worker {
        let engine = armet::Engine::builder().threads(1).backend(&arguments.backend).build();
        return pool::serve(&engine.map_err(|e| e.to_string())?).map(|()| true);
    }
    let folders: Vec<(String, &PathBuf)> = arguments
        .folders
        .iter()
        .map(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let name = match &*name {
                "onnx-cases" => "node",
                "onnxruntime-cases" => "com.microsoft",
                other => other,
            };
            (name.to_owned(), folder)
        })
        .collect();
    let folders: Vec<(&str, &std::path::Path)> =
        folders.iter().map(|(name, folder)| (name.as_str(), folder.as_path())).collect();
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let worker = || {
        let mut command = Command::new(&this);
        command.args(["--worker", "--backend", &arguments.backend]);
        command
    };
    let processes =
        arguments.processes.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let wanted = |name: &str| arguments.cases.is_empty() || arguments.cases.iter().any(|t| name.contains(t));
    let mut results: Vec<(Suite, Vec<Ended>)> = Vec::new();
    for suite in Suite::all(&folders)? {
        let (done, total) = (AtomicUsize::new(0), suite.index.cases.keys().filter(|n| wanted(n)).count());
        let heard = |one: &Ended| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            match &one.verdict {
                Verdict::Failed { why } => note(&format!("FAILED {}: {}", one.case, why.replace('\n', " "))),
                Verdict::Rounded => note(&format!("only within rounding: {}", one.case)),
                Verdict::Passed | Verdict::Refused { .. } => {}
            }
            if std::io::stderr().is_terminal() {
                let _ = write!(std::io::stderr(), "\r{} {done} of {total} ", suite.name);
            }
        };
        let ended = pool::all(&suite, &wanted, processes, &worker, &heard)?;
        results.push((suite, ended));
    }
    if let Some(path) = &arguments.page {
        std::fs::write(path, page::page(&results)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    report(arguments, &results).map_err(|e| e.to_string())?;
    Ok(results.iter().all(|(_, ended)| Counts::of(ended).failed == 0))
}

fn report(arguments: &Arguments, results: &[(Suite, Vec<Ended>)]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let suites: Vec<serde_json::Value> = results
            .iter()
            .map(|(suite, ended)| {
                serde_json::json!({
                    "suite": suite.name, "package": suite.index.package.to_string(), "counts": Counts::of(ended), "cases": ended,
                })
            })
            .collect();
        serde_json::to_writer_pretty(
            &mut out,
            &serde_json::json!({
                "backend": arguments.backend, "suites": suites,
            }),
        )?;
        return writeln!(out);
    }
    if let Some(((_, last), others)) = results.split_last() {
        for (suite, ended) in others {
            writeln!(out, "{:18} {}", suite.name, Counts::of(ended))?;
        }
        // The node suite's own line is bare, so that it can be read by what counts tests.
        writeln!(out, "{}", Counts::of(last))?;
    }
    Ok(())
}
