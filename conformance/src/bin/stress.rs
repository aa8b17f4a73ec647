//! Long checks with random work: what `cargo xtask figures standard` starts.
//!
//! Contract: one JSON object on standard output; progress on the error stream; 0 when all held, 1 when something did not,
//! 2 when it could not be run.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use armet_conformance::stress::{graphs, mutants, sessions, sizes};
use clap::{Parser, Subcommand};
use serde_json::json;

/// Check with random work.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Random graphs, with and without passes, on cpu and by meaning.
    Graphs {
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// How many.
        #[arg(long, default_value_t = 2000)]
        count: u64,
    },
    /// Models at random sizes, one after the other in one session.
    Sizes {
        /// The folder of models.
        models: PathBuf,
        /// Only models with one of these texts in their id.
        #[arg(long = "model", value_name = "TEXT")]
        only: Vec<String>,
        /// Sizes of each.
        #[arg(long, default_value_t = 500)]
        count: usize,
        /// Small sizes of each that are also run by meaning.
        #[arg(long, default_value_t = 10)]
        by_meaning: usize,
    },
    /// One model at random sizes; what `sizes` starts for each, since memory is counted by the process.
    SizesOf {
        /// Its id.
        model: String,
        /// The folder of models.
        models: PathBuf,
        /// Sizes.
        count: usize,
        /// Small sizes that are also run by meaning.
        by_meaning: usize,
    },
    /// Files with changed bytes, loaded, planned and run.
    Mutants {
        /// A folder of cases, as the standard's own.
        cases: PathBuf,
        /// The first of them.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// How many.
        #[arg(long, default_value_t = 20_000)]
        count: u64,
        /// Write the one with the first number into this file instead.
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// Several sessions of one model at once.
    Sessions {
        /// The model's file: one input, a picture.
        model: PathBuf,
        /// The input's shape.
        #[arg(long, value_delimiter = ',', default_value = "1,3,224,224")]
        shape: Vec<usize>,
        /// How many sessions.
        #[arg(long, default_value_t = 4)]
        sessions: usize,
        /// Runs of each.
        #[arg(long, default_value_t = 1000)]
        runs: usize,
    },
}

fn note(line: &str) {
    // Words about the work are no reason to stop it.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn main() -> ExitCode {
    let done = run(&Arguments::parse().what).and_then(|(well, answer)| {
        writeln!(std::io::stdout(), "{answer:#}").map(|()| well).map_err(|e| e.to_string())
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            note(&format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}

/// A panic is caught and reported with what it is of; its own words would only be in the way.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        note(&format!("panic at {}", panic.location().map(ToString::to_string).unwrap_or_default()));
    }));
}

/// Memory is counted by the process, so every model gets its own.
fn in_a_process(
    model: &str,
    models: &Path,
    count: usize,
    by_meaning: usize,
) -> Result<serde_json::Value, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg("sizes-of").arg(model).arg(models).args([count.to_string(), by_meaning.to_string()]);
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| e.to_string())?;
    match output.status.code() {
        Some(0 | 1) => serde_json::from_slice(&output.stdout).map_err(|e| e.to_string()),
        _ => Ok(json!({ "model": model, "fault": format!("the process ended with {}", output.status) })),
    }
}

fn run(what: &What) -> Result<(bool, serde_json::Value), String> {
    match what {
        What::Graphs { first, count } => {
            quiet_panics();
            let mut heard = |done: u64| {
                if done.is_multiple_of(200) {
                    note(&format!("{done} of {count} graphs"));
                }
            };
            let seen = graphs::check(*first, *count, &mut heard)?;
            for fault in &seen.faults {
                note(&format!("seed {}: {}\n{}", fault.seed, fault.what, fault.graph));
            }
            let list: Vec<_> = seen
                .faults
                .iter()
                .map(|f| json!({ "seed": f.seed, "what": f.what, "graph": f.graph }))
                .collect();
            let answer = json!({
                "graphs": seen.graphs, "nodes": seen.nodes, "operators": seen.operators, "passes": seen.passes,
                "faults": list,
            });
            Ok((seen.faults.is_empty(), answer))
        }
        What::Sizes { models, only, count, by_meaning } => {
            let wanted = |id: &str| only.is_empty() || only.iter().any(|text| id.contains(text.as_str()));
            let chosen: Vec<_> = sizes::MODELS.iter().filter(|one| wanted(one.model)).collect();
            let mut all = Vec::new();
            for one in &chosen {
                all.push(in_a_process(one.model, models, *count, *by_meaning)?);
            }
            let well = all.iter().all(|seen| seen["fault"].is_null() && seen["means_the_same"] == true);
            Ok((well, json!({ "models": all })))
        }
        What::SizesOf { model, models, count, by_meaning } => {
            let one = sizes::MODELS.iter().find(|one| one.model == model).ok_or("there is no such model")?;
            let file = models.join(one.model).with_extension("onnx");
            let seen = sizes::check(one, &file, *count, *by_meaning).unwrap_or_else(|fault| sizes::Seen {
                model: one.model.to_owned(),
                fault: Some(fault),
                ..sizes::Seen::default()
            });
            note(&format!("{seen:?}"));
            let well = seen.fault.is_none() && seen.means_the_same;
            Ok((well, serde_json::to_value(&seen).map_err(|e| e.to_string())?))
        }
        What::Mutants { cases, first, count, write: Some(file) } => {
            let bytes = mutants::one(cases, *first)?;
            std::fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
            Ok((true, json!({ "mutant": first, "of": count, "file": file })))
        }
        What::Mutants { cases, first, count, write: None } => {
            quiet_panics();
            let (mut told, mut faults) = (0, 0);
            let mut heard = |seen: &mutants::Seen| {
                for (seed, what) in seen.faults.iter().skip(faults) {
                    note(&format!("mutant {seed} of {what}"));
                }
                faults = seen.faults.len();
                if seen.mutants / 10_000 > told {
                    told = seen.mutants / 10_000;
                    note(&format!("{} of {count} mutants", seen.mutants));
                }
            };
            let seen = mutants::check(cases, *first, *count, &mut heard)?;
            heard(&seen);
            Ok((seen.faults.is_empty(), serde_json::to_value(&seen).map_err(|e| e.to_string())?))
        }
        What::Sessions { model, shape, sessions, runs } => {
            let seen = sessions::check(model, shape, *sessions, *runs)?;
            let well = seen.differ == 0 && seen.packed.0 == seen.packed.1;
            Ok((well, serde_json::to_value(&seen).map_err(|e| e.to_string())?))
        }
    }
}
