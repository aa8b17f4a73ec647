//! Rules about the text of files: length, opening comments, safety comments, words that mean unfinished work, names that
//! only one machine has.

use anyhow::Result;

use super::Findings;
use crate::workspace::Workspace;

const LONGEST: usize = 600;
/// A longer file says why in a comment that starts with this.
const REASON: &str = "Long because";

/// Words that may not stand in a file; split here so that this file does not break its own rule.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("TO", "DO", "finish it, or file an issue"),
    ("FIX", "ME", "finish it, or file an issue"),
    ("XX", "X ", "finish it, or file an issue"),
    ("/wo", "rk/", "only one machine has this folder"),
    ("..", "/shared", "only one machine has this folder"),
    ("pypi", ".org", "clients know their registries; name none"),
    ("npmjs", ".org", "clients know their registries; name none"),
    ("npmjs", ".com", "clients know their registries; name none"),
    ("pythonhosted", ".org", "clients know their registries; name none"),
];

pub(super) fn check(workspace: &Workspace, findings: &mut Findings) -> Result<()> {
    for file in workspace.files()? {
        let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
        let text_file =
            ["rs", "py", "md", "toml", "sh", "tsv", "yml"].contains(&extension) || file == ".ci/run";
        if !text_file {
            continue;
        }
        let text = workspace.read(&file)?;
        words(&file, &text, findings);
        if matches!(extension, "rs" | "py") {
            length(&file, &text, findings);
        }
        if extension == "rs" {
            opening(&file, &text, findings);
            safety(&file, &text, findings);
        }
    }
    Ok(())
}

fn words(file: &str, text: &str, findings: &mut Findings) {
    for (number, line) in text.lines().enumerate() {
        for (start, end, reason) in FORBIDDEN {
            if line.match_indices(start).any(|(at, _)| line[at + start.len()..].starts_with(end)) {
                findings.add(format!("{file}:{}", number + 1), &format!("{start}{end}: {reason}"));
            }
        }
    }
}

fn length(file: &str, text: &str, findings: &mut Findings) {
    let lines = text.lines().count();
    if lines > LONGEST && !text.contains(REASON) {
        findings.add(
            file,
            &format!(
                "{lines} lines; split it by concern, or say why in a comment that starts with \"{REASON}\""
            ),
        );
    }
}

fn opening(file: &str, text: &str, findings: &mut Findings) {
    // A module's tests beside it are explained by the module.
    if file.ends_with("/tests.rs") {
        return;
    }
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    if !first.is_some_and(|line| line.starts_with("//!")) {
        findings.add(file, "starts with no `//!` that says what it is");
    }
}

fn safety(file: &str, text: &str, findings: &mut Findings) {
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let near = &lines[number.saturating_sub(4)..=number];
        let states_a_fact = [concat!("unsafe", " {"), concat!("unsafe", " impl")];
        if states_a_fact.iter().any(|words| code.contains(words))
            && !near.iter().any(|line| line.contains("SAFETY:"))
        {
            findings.add(format!("{file}:{}", number + 1), "an unsafe block without its SAFETY line");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(check: fn(&str, &str, &mut Findings), text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check("a.rs", text, &mut findings);
        findings.0
    }

    #[test]
    fn unfinished_work_and_machine_names_are_found() {
        let text = format!("fine\n// {}{}: later\nlet a = \"{}{}x\";\n", "TO", "DO", "/wo", "rk/");
        let found = found(words, &text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.rs:2: ") && found[1].starts_with("a.rs:3: "));
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        let long = "//! Text.\n".repeat(LONGEST + 1);
        assert_eq!(found(length, &long).len(), 1);
        assert_eq!(found(length, &format!("{long}//! Long because: a table.\n")), [""; 0]);
        assert_eq!(found(length, &"x\n".repeat(LONGEST)), [""; 0]);
    }

    #[test]
    fn a_module_says_what_it_is() {
        assert_eq!(found(opening, "\n//! What it is.\n"), [""; 0]);
        assert_eq!(found(opening, "use std::fs;\n//! Too late.\n").len(), 1);
        assert_eq!(found(opening, "").len(), 1);
    }

    #[test]
    fn unsafe_blocks_state_their_fact() {
        let block = ["unsafe", " { f() }"].concat();
        assert_eq!(found(safety, &format!("{block}\n")).len(), 1);
        assert_eq!(found(safety, &format!("// SAFETY: f has no rules.\nlet a =\n    {block};\n")), [""; 0]);
        assert_eq!(found(safety, &format!("// SAFETY: f has no rules.\n\n\n\n\n{block}\n")).len(), 1);
        assert_eq!(found(safety, &format!("// about {block}\n")), [""; 0]);
    }
}
