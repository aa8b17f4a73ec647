//! Package archives, brought by the registries' own clients: pip and npm know where their registries are.
//!
//! Contract: nothing that a package contains is installed, built or run.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use super::table::{Package, Registry};

/// Why a package could not be brought.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageError {
    #[error("{tool} is missing; install {hint}")]
    MissingTool { tool: String, hint: &'static str },
    #[error("could not start {tool}: {error}")]
    Start { tool: String, error: io::Error },
    #[error("{tool} could not bring {package}: {reason}")]
    Refused { tool: &'static str, package: Package, reason: String },
    #[error("{path}: {error}", path = .path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// The programs to call.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub python: PathBuf,
    pub npm: PathBuf,
}

impl Default for Clients {
    fn default() -> Self {
        Self { python: "python3".into(), npm: "npm".into() }
    }
}

const PIP: &str = "pip";
const PIP_HINT: &str = "python3 with pip (on Debian: apt install python3-pip)";
const NPM_HINT: &str = "Node.js with npm (on Debian: apt install npm)";

/// `pip download` runs a source archive's build script to learn its metadata. This asks pip's finder for the archive
/// and saves it, no more.
const SOURCE_ARCHIVE: &str = r#"
import os, sys
from pip._internal.commands import create_command
from pip._vendor.packaging.specifiers import SpecifierSet
folder, spec = sys.argv[1:]
name, version = spec.split("==")
command = create_command("download")
options, _ = command.parse_args(["--no-deps", "--no-binary", ":all:", spec])
with command.main_context():
    session = command.get_default_session(options)
    finder = command._build_package_finder(options, session)
    found = finder.find_best_candidate(name, SpecifierSet("==" + version)).best_candidate
    if found is None:
        sys.exit("no source archive of " + spec)
    reply = session.get(found.link.url_without_fragment, headers={"Accept-Encoding": "identity"})
    reply.raise_for_status()
    with open(os.path.join(folder, found.link.filename), "wb") as file:
        file.write(reply.content)
"#;

/// The archive of a package below `folder`; downloaded unless it is there.
pub(crate) fn archive(package: Package, folder: &Path, clients: &Clients) -> Result<PathBuf, PackageError> {
    let name: String = package
        .to_string()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-._=@".contains(c) { c } else { '+' })
        .collect();
    let folder = folder.join(name);
    let write = |error| PackageError::Write { path: folder.clone(), error };
    if let Some(archive) = only_file(&folder) {
        return Ok(archive);
    }
    let partial = folder.with_added_extension("part");
    remove(&partial).map_err(write)?;
    fs::create_dir_all(&partial).map_err(write)?;
    match package.registry {
        Registry::Wheel => wheel(package, &partial, clients)?,
        Registry::SourceArchive => {
            let output = pip(
                clients,
                ["-c".as_ref(), SOURCE_ARCHIVE.as_ref(), partial.as_os_str(), package.spec.as_ref()],
            )?;
            require_success(&output, PIP, package)?;
        }
        Registry::Npm => {
            let mut command = Command::new(&clients.npm);
            command
                .args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
                .arg(&partial)
                .arg(package.spec);
            require_success(&output_of(command, NPM_HINT)?, "npm", package)?;
        }
    }
    remove(&folder).map_err(write)?;
    fs::rename(&partial, &folder).map_err(write)?;
    only_file(&folder).ok_or_else(|| PackageError::Refused {
        tool: PIP,
        package,
        reason: "it wrote no file".to_owned(),
    })
}

fn wheel(package: Package, folder: &Path, clients: &Clients) -> Result<(), PackageError> {
    let download = [
        "-m",
        PIP,
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
    ];
    let arguments = || download.iter().map(OsStr::new).chain([folder.as_os_str(), OsStr::new(package.spec)]);
    let first = pip(clients, arguments())?;
    if first.status.success() {
        return Ok(());
    }
    // A model is the same in the wheels of every Python; some packages have none for the newest.
    let second = pip(clients, arguments().chain([OsStr::new("--python-version"), OsStr::new("3.12")]))?;
    if second.status.success() { Ok(()) } else { require_success(&first, PIP, package) }
}

fn pip<'a>(
    clients: &Clients,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Result<Output, PackageError> {
    let mut command = Command::new(&clients.python);
    command.args(arguments);
    let output = output_of(command, PIP_HINT)?;
    if String::from_utf8_lossy(&output.stderr).contains("No module named pip") {
        let tool = format!("pip of {}", clients.python.display());
        return Err(PackageError::MissingTool { tool, hint: PIP_HINT });
    }
    Ok(output)
}

fn output_of(mut command: Command, hint: &'static str) -> Result<Output, PackageError> {
    command.stdin(Stdio::null()).output().map_err(|error| {
        let tool = command.get_program().to_string_lossy().into_owned();
        match error.kind() {
            io::ErrorKind::NotFound => PackageError::MissingTool { tool, hint },
            _ => PackageError::Start { tool, error },
        }
    })
}

fn require_success(output: &Output, tool: &'static str, package: Package) -> Result<(), PackageError> {
    if output.status.success() {
        return Ok(());
    }
    let text = [&output.stderr[..], &output.stdout[..]].map(String::from_utf8_lossy).concat();
    let mut lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).rev().take(3).collect();
    lines.reverse();
    let reason = if lines.is_empty() { output.status.to_string() } else { lines.join("; ") };
    Err(PackageError::Refused { tool, package, reason })
}

fn only_file(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path()).find(|path| path.is_file())
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A client that does what `script` says instead of asking a registry. Another process writes it: a program that
    /// this one holds open for writing, if only in a child of another test's thread, could not be started.
    pub(crate) fn client(folder: &Path, name: &str, script: &str) -> PathBuf {
        let path = folder.join(name);
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#;
        let status = Command::new("sh").args(["-c", write]).arg(&path).arg(script).status().unwrap();
        assert!(status.success());
        path
    }

    const WHEEL: Package = Package { registry: Registry::Wheel, spec: "models==1.0" };

    #[test]
    fn a_package_is_downloaded_once() {
        let folder = tempfile::tempdir().unwrap();
        // The eighth argument follows --dest.
        let python =
            client(folder.path(), "python", r#"echo x >> "$0.calls"; echo data > "$9/models-1.0.whl""#);
        let clients = Clients { python: python.clone(), ..Clients::default() };
        for _ in 0..2 {
            let archive = archive(WHEEL, &folder.path().join("packages"), &clients).unwrap();
            assert_eq!(fs::read(archive).unwrap(), b"data\n");
        }
        assert_eq!(fs::read_to_string(python.with_added_extension("calls")).unwrap(), "x\n");
    }

    #[test]
    fn a_missing_client_says_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = Clients { python: folder.path().join("nothing"), npm: folder.path().join("nothing") };
        let npm = Package { registry: Registry::Npm, spec: "models@1.0" };
        for package in [WHEEL, npm] {
            let error = archive(package, folder.path(), &nowhere).unwrap_err().to_string();
            let program = folder.path().join("nothing").display().to_string();
            assert!(error.starts_with(&format!("{program} is missing; install ")), "{error}");
            assert!(error.contains("apt install"), "{error}");
        }
        let python =
            client(folder.path(), "python", "echo /usr/bin/python3: No module named pip >&2; exit 1");
        let error = archive(WHEEL, folder.path(), &Clients { python, ..nowhere }).unwrap_err();
        assert!(
            error.to_string().starts_with("pip of ") && error.to_string().contains("apt install"),
            "{error}"
        );
    }

    #[test]
    fn a_refusal_carries_the_clients_words() {
        let folder = tempfile::tempdir().unwrap();
        let python = client(folder.path(), "python", "echo ERROR: No matching distribution >&2; exit 1");
        let error = archive(WHEEL, folder.path(), &Clients { python, ..Clients::default() }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pip could not bring pypi:models==1.0: ERROR: No matching distribution"
        );
    }
}
