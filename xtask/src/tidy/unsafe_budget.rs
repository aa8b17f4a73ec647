//! How often each crate may say `unsafe`: `xtask/unsafe_budget.toml`. A crate that is not named there may not say it.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;

use super::Findings;
use crate::workspace::Workspace;

const FILE: &str = "xtask/unsafe_budget.toml";

pub(super) fn check(workspace: &Workspace, findings: &mut Findings) -> Result<()> {
    let budget: BTreeMap<String, usize> = toml::from_str(&workspace.read(FILE)?)?;
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for file in workspace.files()?.iter().filter(|file| {
        Path::new(file).extension().is_some_and(|kind| kind == "rs") && file.starts_with("crates/")
    }) {
        let name = file.split('/').nth(1).unwrap_or_default();
        *said.entry(name.to_owned()).or_default() += count(&workspace.read(file)?);
    }
    compare(&budget, &said, findings);
    Ok(())
}

/// Occurrences of the keyword in code, comments left out.
fn count(text: &str) -> usize {
    let keyword = concat!("un", "safe");
    let in_line = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| *word == keyword).count()
    };
    text.lines().map(in_line).sum()
}

fn compare(budget: &BTreeMap<String, usize>, said: &BTreeMap<String, usize>, findings: &mut Findings) {
    for (name, count) in said {
        let most = budget.get(name).copied().unwrap_or(0);
        if *count > most {
            findings.add(
                format!("crates/{name}"),
                &format!("{count} times unsafe, {most} in {FILE}; write less of it, or argue for more"),
            );
        }
    }
    for (name, most) in budget {
        let count = said.get(name).copied().unwrap_or(0);
        if count * 4 < most * 3 {
            findings.add(FILE, &format!("{name} has {count} of the {most} that it may; lower its budget"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_keyword_counts() {
        let keyword = concat!("un", "safe");
        let text = format!(
            "{keyword} fn f() {{}} // {keyword}\nlet {keyword}_count = 1;\nfn g() {{ {keyword} {{ f() }} }}\n"
        );
        assert_eq!(count(&text), 2);
    }

    #[test]
    fn a_budget_binds_both_ways() {
        let map = |pairs: &[(&str, usize)]| {
            pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let mut findings = Findings::default();
        compare(&map(&[("kernels", 10)]), &map(&[("kernels", 10), ("graph", 0)]), &mut findings);
        assert_eq!(findings.0, [""; 0]);
        compare(&map(&[("kernels", 10)]), &map(&[("kernels", 7), ("graph", 1)]), &mut findings);
        assert_eq!(findings.0.len(), 2);
    }
}
