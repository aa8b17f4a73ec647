//! Where things are in the workspace, its tracked files, and words to the person who runs a task.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// Prints a line of a task's answer.
pub(crate) fn say(line: &str) {
    // A closed pipe (`| head`) is no failure of the task.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Prints a line about the task.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The workspace that this program belongs to.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?.to_owned();
        if !root.join("Cargo.toml").exists() {
            bail!("{} is no longer there; build xtask again", root.display());
        }
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// A path below `target/`.
    pub(crate) fn target(&self, path: &str) -> PathBuf {
        self.root.join("target").join(path)
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.path(path);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    /// A command that runs in the workspace's root.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.root);
        command
    }

    /// Files that git knows or would add, relative to the root, in order.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let output = self
            .command("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output();
        let output = output.context("git is needed to list the files")?;
        if !output.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let text = String::from_utf8(output.stdout).context("file names are UTF-8")?;
        let mut files: Vec<String> =
            text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        files.retain(|name| self.path(name).is_file());
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }
}
