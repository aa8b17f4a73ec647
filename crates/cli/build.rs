//! Tells the program its version and the commit it is built from: `ARMET_COMMIT` where that is set (packages), else what
//! git says of the source, else nothing.

use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "a build script is told by its environment")]
fn main() {
    println!("cargo::rerun-if-env-changed=ARMET_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = std::env::var("ARMET_COMMIT").ok().or_else(commit_of_source);
    let version = env!("CARGO_PKG_VERSION");
    match commit {
        Some(commit) => {
            println!("cargo::rustc-env=ARMET_COMMIT={commit}");
            println!("cargo::rustc-env=ARMET_VERSION={version} ({commit})");
        }
        None => println!("cargo::rustc-env=ARMET_VERSION={version}"),
    }
}

/// The commit, when this is a checkout of the project itself and not a copy below somebody else's repository.
fn commit_of_source() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let tracked = git(&["ls-files", "--", "build.rs"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    if tracked.is_empty() { None } else { git(&["rev-parse", "--short=12", "HEAD"]) }
}
