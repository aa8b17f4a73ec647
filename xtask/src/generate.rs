//! Pages that follow from the code, rewritten or compared.

use std::{fmt::Write, fs};

use anyhow::{Context, Result};

use crate::workspace::{Workspace, complain, say};

/// A page: its path, and its text.
type Page = (&'static str, fn(&Workspace) -> Result<String>);

const PAGES: &[Page] = &[("docs/models.md", models)];

pub(crate) fn run(workspace: &Workspace, check: bool) -> Result<bool> {
    let mut well = true;
    for path in stale(workspace)? {
        if check {
            complain(&format!("{path} is not current; `cargo xtask generate` rewrites it"));
            well = false;
        } else {
            let (_, make) =
                PAGES.iter().find(|page| page.0 == path).context("a stale page is in the list")?;
            fs::write(workspace.path(path), make(workspace)?)?;
            say(&format!("wrote {path}"));
        }
    }
    Ok(well)
}

/// Pages whose text is not what would be written.
pub(crate) fn stale(workspace: &Workspace) -> Result<Vec<&'static str>> {
    let mut stale = Vec::new();
    for (path, make) in PAGES {
        if fs::read_to_string(workspace.path(path)).ok() != Some(make(workspace)?) {
            stale.push(*path);
        }
    }
    Ok(stale)
}

fn models(workspace: &Workspace) -> Result<String> {
    let table = workspace.read("crates/cli/src/models/models.tsv")?;
    let mut page = String::from(
        "# Models and media\n\nWhat `armet models fetch` brings, each file checked by its SHA-256. Generated from\n\
         `crates/cli/src/models/models.tsv` by `cargo xtask generate`.\n\nA file marked \"tests only\" has a licence that keeps it out of \
         anything that is shipped; it may be fetched.\nMade models are explained in `tools/skeletons/README.md`.\n\n\
         | id | what | MB | licence | from |\n| --- | --- | ---: | --- | --- |\n",
    );
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, _, _, size, licence, ship, source, about] = fields[..] else {
            anyhow::bail!("not a row: {line}")
        };
        let only = if ship == "yes" { "" } else { ", tests only" };
        let from = match source.strip_prefix("skeleton:") {
            Some(made) => match made.split_once(" < ") {
                Some((_, input)) => format!(
                    "made from {}",
                    input.split('!').next().unwrap_or(input).trim_start_matches("model:")
                ),
                None => "made".to_owned(),
            },
            None => source.split('!').next().unwrap_or(source).to_owned(),
        };
        writeln!(
            page,
            "| `{id}` | {about} | {:.2} | {licence}{only} | {from} |",
            size.parse::<f64>()? / 1e6
        )?;
    }
    Ok(page)
}
