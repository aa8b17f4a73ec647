//! All tests, after preparing what they need.
//!
//! Tests that lack a model, a reference or Python leave a note in `target/skipped/` and pass; the notes are counted in one
//! loud line. In CI, or with `--require-all`, a skip is a failure.

use std::{fs, time::Instant};

use anyhow::Result;
use clap::Args;

use crate::{
    prepare,
    process::watched,
    workspace::{Workspace, complain, say},
};

#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// A skipped test is a failure; also so where the environment has CI=true.
    #[arg(long)]
    require_all: bool,
    /// Do not bring models, references or Python; use those that are there.
    #[arg(long)]
    offline: bool,
    /// Arguments of `cargo nextest run` (or `cargo test`), for instance a part of a test's name.
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// How many tests did what.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
}

impl Counts {
    /// Adds what a closing line of `cargo test` or nextest says.
    fn add(&mut self, line: &str) {
        let line = line.trim();
        if !line.starts_with("test result:") && !line.starts_with("Summary [") {
            return;
        }
        let number = |word: &str| {
            let parts = line.split([',', ';', '.', ':', '(', ']']);
            let count =
                |part: &str| part.trim().strip_suffix(word)?.trim().rsplit(' ').next()?.parse::<u64>().ok();
            parts.filter_map(count).sum::<u64>()
        };
        self.passed += number("passed");
        self.failed += number("failed") + number("timed out");
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &TestArguments) -> Result<bool> {
    let require_all = arguments.require_all || in_ci();
    let missing = if arguments.offline { prepare::Missing::default() } else { prepare::all(workspace) };
    let notes = workspace.target("skipped");
    if notes.exists() {
        fs::remove_dir_all(&notes)?;
    }
    let (mut counts, mut well) = (Counts::default(), true);
    let nextest = workspace
        .command("cargo")
        .args(["nextest", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    let runs: &[&[&str]] = if nextest {
        &[&["nextest", "run", "--workspace"], &["test", "--workspace", "--doc"]]
    } else {
        &[&["test", "--workspace", "--no-fail-fast"]]
    };
    for run in runs {
        let started = Instant::now();
        let mut command = workspace.command("cargo");
        command.args(*run);
        if !run.contains(&"--doc") {
            command.args(&arguments.arguments);
        }
        well &= watched(command, |line| counts.add(line))?;
        complain(&format!("cargo {}: {:.0} s", run.join(" "), started.elapsed().as_secs_f64()));
    }
    for reason in &missing.0 {
        complain(&format!("MISSING: {reason}"));
    }
    let skipped = skipped(&notes);
    if !skipped.is_empty() || !missing.0.is_empty() {
        let names = if skipped.is_empty() { String::new() } else { format!(": {}", skipped.join(", ")) };
        complain(&format!("SKIPPED {} TESTS{names}", skipped.len()));
        if require_all {
            complain("a skipped test is a failure here");
            well = false;
        }
    }
    if require_all {
        counts.failed += skipped.len() as u64 + missing.0.len() as u64;
    }
    let Counts { passed, failed } = counts;
    say(&format!(
        "{passed} passed, {failed} failed{}",
        if require_all { String::new() } else { format!(", {} skipped", skipped.len()) }
    ));
    Ok(well)
}

fn skipped(notes: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(notes).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<String> = entries
        .map(|entry| {
            let reason = fs::read_to_string(entry.path()).unwrap_or_default();
            format!("{} ({})", entry.file_name().to_string_lossy(), reason.trim())
        })
        .collect();
    names.sort_unstable();
    names
}

#[expect(clippy::disallowed_methods, reason = "a development task may ask where it runs")]
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_counted() {
        let mut counts = Counts::default();
        counts.add(
            "test result: ok. 17 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.05s",
        );
        counts.add("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        counts.add(
            "     Summary [  12.034s] 120 tests run: 117 passed (2 slow), 2 failed, 1 timed out, 3 skipped",
        );
        counts.add("test passed ... ok");
        assert_eq!(counts, Counts { passed: 135, failed: 5 });
    }
}
