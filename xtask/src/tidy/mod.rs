//! The workspace's rules that no compiler checks.

mod levels;
mod text;
mod unsafe_budget;

use anyhow::Result;

use crate::{
    generate,
    workspace::{Workspace, complain, say},
};

/// Collects what breaks a rule.
#[derive(Debug, Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, place: impl std::fmt::Display, what: &str) {
        self.0.push(format!("{place}: {what}"));
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let mut findings = Findings::default();
    levels::check(workspace, &mut findings)?;
    text::check(workspace, &mut findings)?;
    unsafe_budget::check(workspace, &mut findings)?;
    for page in generate::stale(workspace)? {
        findings.add(page, "not current; `cargo xtask generate` rewrites it");
    }
    for finding in &findings.0 {
        complain(finding);
    }
    say(&format!("tidy: {} findings", findings.0.len()));
    Ok(findings.0.is_empty())
}
