//! The checks of a submission, each one line with its time.

use std::{path::Path, process::Command, time::Instant};

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    process::{logged, tail},
    workspace::{Workspace, complain, say},
};

/// One check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    Tidy,
    Fmt,
    Clippy,
    Test,
    Doc,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Tidy => "tidy",
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Test => "test",
            Self::Doc => "doc",
        }
    }

    fn command(self, workspace: &Workspace) -> Result<Command> {
        let cargo = Path::new("cargo");
        let this = std::env::current_exe()?;
        let (program, arguments): (&Path, &[&str]) = match self {
            Self::Tidy => (&this, &["tidy"]),
            Self::Fmt => (&this, &["fmt", "--check"]),
            Self::Clippy => {
                (cargo, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"])
            }
            Self::Test => (&this, &["test"]),
            Self::Doc => (cargo, &["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]),
        };
        let mut command = workspace.command(program);
        command.args(arguments);
        if self == Self::Doc {
            command.env("RUSTDOCFLAGS", "--deny warnings");
        }
        Ok(command)
    }
}

pub(crate) fn run(workspace: &Workspace, steps: &[Step]) -> Result<bool> {
    let steps = if steps.is_empty() { Step::value_variants() } else { steps };
    let mut failed = 0;
    for step in steps {
        let (started, log) = (Instant::now(), workspace.target(&format!("ci/{}.log", step.name())));
        let well = logged(step.command(workspace)?, &log)?;
        say(&format!(
            "{:8} {:6} {:7.1} s",
            step.name(),
            if well { "ok" } else { "FAILED" },
            started.elapsed().as_secs_f64()
        ));
        if !well {
            failed += 1;
            complain(&format!("{}\n(all of it: {})", tail(&log, 60), log.display()));
        }
    }
    say(&format!("{} passed, {failed} failed", steps.len() - failed));
    Ok(failed == 0)
}
