//! Formats every source file in the repository. `cargo fmt` follows `mod` items only, and misses modules that a macro
//! declares.

use std::path::Path;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace, check: bool) -> Result<bool> {
    let files = workspace.files()?;
    // A file that was removed and not yet committed is still listed.
    let sources = files.iter().filter(|path| {
        Path::new(path).extension().is_some_and(|end| end == "rs") && workspace.path(path).is_file()
    });
    let mut rustfmt = workspace.command("rustfmt");
    rustfmt.args(["--edition", "2024"]).args(check.then_some("--check")).args(sources);
    Ok(rustfmt.status().context("rustfmt")?.success())
}
