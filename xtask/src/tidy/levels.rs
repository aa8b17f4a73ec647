//! Crates stand on levels; a dependency points to a lower one. ARCHITECTURE.md's code map lists the same crates.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Deserialize;

use super::Findings;
use crate::{process::output, workspace::Workspace};

/// Level of crates that only developers build: they may use any other.
const DEVELOPMENT: u32 = 9;

/// Package, level, folder.
const LEVELS: &[(&str, u32, &str)] = &[
    ("armet-tensor", 0, "crates/tensor"),
    ("armet-hardware", 0, "crates/hardware"),
    ("armet-graph", 1, "crates/graph"),
    ("armet-kernels", 1, "crates/kernels"),
    ("armet-vision", 1, "crates/vision"),
    ("armet-importers", 2, "crates/importers"),
    ("armet-operators", 2, "crates/operators"),
    ("armet-runtime", 2, "crates/runtime"),
    ("armet-backend-cpu", 3, "crates/backend-cpu"),
    ("armet", 4, "crates/engine"),
    ("armet-cli", 6, "crates/cli"),
    ("armet-conformance", DEVELOPMENT, "conformance"),
    ("xtask", DEVELOPMENT, "xtask"),
];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

pub(super) fn check(workspace: &Workspace, findings: &mut Findings) -> Result<()> {
    let mut command = workspace.command("cargo");
    command.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let metadata: Metadata = serde_json::from_str(&output(command)?)?;
    directions(&metadata, findings);
    for (name, _, folder) in LEVELS {
        let manifest: toml::Table = workspace.read(format!("{folder}/Cargo.toml"))?.parse()?;
        let inherits =
            manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
        if inherits != Some(true) {
            findings
                .add(format!("{folder}/Cargo.toml"), &format!("{name} must inherit the workspace's lints"));
        }
    }
    code_map(&workspace.read("ARCHITECTURE.md").unwrap_or_default(), findings);
    Ok(())
}

fn directions(metadata: &Metadata, findings: &mut Findings) {
    let levels: BTreeMap<&str, u32> = LEVELS.iter().map(|(name, level, _)| (*name, *level)).collect();
    for (name, ..) in LEVELS {
        if !metadata.packages.iter().any(|package| package.name == *name) {
            findings.add("xtask/src/tidy/levels.rs", &format!("{name} is no crate of the workspace"));
        }
    }
    for package in &metadata.packages {
        let Some(level) = levels.get(package.name.as_str()) else {
            findings.add("xtask/src/tidy/levels.rs", &format!("{} has no level", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(below) = levels.get(dependency.name.as_str()) else { continue };
            let for_tests = dependency.kind.as_deref() == Some("dev");
            if !(below < level || for_tests) {
                findings.add(
                    &package.name,
                    &format!("level {level} may not use {} of level {below}", dependency.name),
                );
            }
        }
    }
}

/// Rows of the code map: | L2 | `crates/runtime` | ...
fn code_map(page: &str, findings: &mut Findings) {
    let cells = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (level, folder) = (cells.next()?.to_owned(), cells.next()?);
        Some((folder.strip_prefix('`')?.strip_suffix('`')?.to_owned(), level))
    };
    let listed: BTreeMap<String, String> = page.lines().filter_map(cells).collect();
    let mut folders = BTreeSet::new();
    for (_, level, folder) in LEVELS {
        folders.insert(*folder);
        let expected = if *level == DEVELOPMENT { "dev".to_owned() } else { format!("L{level}") };
        match listed.get(*folder) {
            None => findings.add("ARCHITECTURE.md", &format!("the code map lacks {folder}")),
            Some(stated) if *stated != expected => {
                findings.add("ARCHITECTURE.md", &format!("{folder} is {expected}, not {stated}"));
            }
            Some(_) => {}
        }
    }
    for folder in
        listed.keys().filter(|folder| folder.starts_with("crates/") && !folders.contains(folder.as_str()))
    {
        findings.add("ARCHITECTURE.md", &format!("{folder} of the code map is no crate"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
        };
        Package { name: name.to_owned(), dependencies: dependencies.iter().map(dependency).collect() }
    }

    #[test]
    fn a_dependency_upwards_or_sideways_is_found() {
        let mut packages: Vec<Package> = LEVELS.iter().map(|(name, ..)| package(name, &[])).collect();
        packages[2] = package(
            "armet-graph",
            &[("armet-tensor", None), ("armet-kernels", None), ("armet", Some("dev"))],
        );
        packages[0] = package("armet-tensor", &[("armet", Some("build"))]);
        let mut findings = Findings::default();
        directions(&Metadata { packages }, &mut findings);
        assert_eq!(
            findings.0,
            [
                "armet-tensor: level 0 may not use armet of level 4",
                "armet-graph: level 1 may not use armet-kernels of level 1"
            ]
        );
    }

    #[test]
    fn the_code_map_must_list_exactly_the_crates() {
        let row = |(_, level, folder): &(&str, u32, &str)| {
            let level = if *level == DEVELOPMENT { "dev".to_owned() } else { format!("L{level}") };
            format!("| {level} | `{folder}` | text |\n")
        };
        let page: String = LEVELS.iter().map(row).collect();
        let mut findings = Findings::default();
        code_map(&page, &mut findings);
        assert_eq!(findings.0, [""; 0]);
        code_map(&page.replace("| L3 | `crates/backend-cpu`", "| L2 | `crates/backend-gpu`"), &mut findings);
        assert_eq!(
            findings.0,
            [
                "ARCHITECTURE.md: the code map lacks crates/backend-cpu",
                "ARCHITECTURE.md: crates/backend-gpu of the code map is no crate"
            ]
        );
    }
}
