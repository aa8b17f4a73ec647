//! Development tasks: `cargo xtask tidy|fmt|ci|test|conformance|figures|generate|models`.
//!
//! Contract: every task exits 0 when all is well and 1 otherwise, works from any folder of the workspace, and writes only
//! below `target/` (`generate` also rewrites the generated pages).

mod ci;
mod conformance;
mod figures;
mod format;
mod generate;
mod prepare;
mod process;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::{Workspace, complain};

#[derive(Debug, Parser)]
#[command(about = "Development tasks of the workspace")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Hold the workspace to its rules: levels of crates, code map, file lengths, comments, unsafe budget.
    Tidy,
    /// Format every source file, also those that `cargo fmt` does not find.
    Fmt {
        /// Only say what is not formatted.
        #[arg(long)]
        check: bool,
    },
    /// Run the checks of a submission, one line each: tidy, fmt, clippy, test, doc.
    Ci {
        /// Only these steps.
        steps: Vec<ci::Step>,
    },
    /// Install what the tests need below target/, then run all of them.
    Test(test::TestArguments),
    /// Run a standard's own cases and write docs/conformance.md.
    Conformance(conformance::ConformanceArguments),
    /// Measure what an issue promises and print it as a table.
    Figures(figures::FiguresArguments),
    /// Rewrite the generated pages.
    Generate {
        /// Only say whether they are current.
        #[arg(long)]
        check: bool,
    },
    /// Bring the models, media and references into target/.
    Models,
}

fn main() -> ExitCode {
    let done = Workspace::find().and_then(|workspace| match Arguments::parse().task {
        Task::Tidy => tidy::run(&workspace),
        Task::Fmt { check } => format::run(&workspace, check),
        Task::Ci { steps } => ci::run(&workspace, &steps),
        Task::Test(arguments) => test::run(&workspace, &arguments),
        Task::Conformance(arguments) => conformance::run(&workspace, &arguments),
        Task::Figures(arguments) => figures::run(&workspace, &arguments),
        Task::Generate { check } => generate::run(&workspace, check),
        Task::Models => Ok(prepare::run(&workspace)),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
