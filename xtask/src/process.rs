//! Running other programs: quietly with a log, or with every line passed on and looked at.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
};

use anyhow::{Context, Result};

use crate::workspace::complain;

/// Runs a command with its output in a file; whether it succeeded.
pub(crate) fn logged(mut command: Command, log: &Path) -> Result<bool> {
    fs::create_dir_all(log.parent().context("a log has a folder")?)?;
    let file = File::create(log).with_context(|| log.display().to_string())?;
    let status = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status();
    Ok(status.with_context(|| name(&command))?.success())
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Runs a command, passes its output on to the error stream line by line, and shows each line to `look`; whether it
/// succeeded.
pub(crate) fn watched(mut command: Command, mut look: impl FnMut(&str)) -> Result<bool> {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.with_context(|| name(&command))?;
    let (sender, lines) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as _),
        child.stderr.take().map(|stream| Box::new(stream) as _),
    ];
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                // The receiver lives until all senders are gone.
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
    }
    drop(sender);
    for line in lines {
        complain(&line);
        look(&line);
    }
    Ok(child.wait()?.success())
}

/// Runs a command and gives its standard output; its error output is part of the error where it fails.
pub(crate) fn output(command: Command) -> Result<String> {
    finished(command, &[0])
}

/// The same for a command whose exit code 1 says that the answer is no.
pub(crate) fn answer(command: Command) -> Result<String> {
    finished(command, &[0, 1])
}

fn finished(mut command: Command, fine: &[i32]) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| name(&command))?;
    if !output.status.code().is_some_and(|code| fine.contains(&code)) {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).rev().take(3).collect();
        anyhow::bail!(
            "{} ended with {}: {}",
            name(&command),
            output.status,
            last.into_iter().rev().collect::<Vec<_>>().join("; ")
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn watched_lines_of_both_streams_are_seen() {
        let mut seen = Vec::new();
        assert!(watched(shell("echo out; echo err >&2"), |line| seen.push(line.to_owned())).unwrap());
        seen.sort();
        assert_eq!(seen, ["err", "out"]);
        assert!(!watched(shell("exit 3"), |_| {}).unwrap());
    }

    #[test]
    fn a_failure_carries_the_programs_words() {
        assert_eq!(output(shell("printf '[1]'")).unwrap(), "[1]");
        assert_eq!(answer(shell("printf no; exit 1")).unwrap(), "no");
        let error = output(shell("echo no such model >&2; exit 2")).unwrap_err().to_string();
        assert!(error.contains("no such model") && error.contains("exit status: 2"), "{error}");
    }
}
