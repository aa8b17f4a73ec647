//! The figures of the first answers: agreement, text, detection, speed, loading, a fresh clone.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Bench, Measured, Row, agreement, operator};
use crate::{
    process::{answer, logged, output, tail},
    workspace::complain,
};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "agreement",
        what: "every ONNX model of the table",
        promised: "loads as it is and agrees with onnxruntime without optimisations",
        on_request: false,
        measure: agreement::measure,
    },
    Row {
        id: "ocr",
        what: "`ocr` on page.png and on crops and scales",
        promised: "equals the same pipeline in Python",
        on_request: false,
        measure: ocr,
    },
    Row {
        id: "detect",
        what: "`detect` with yolov8n_doclaynet and picodet_cdla on page.png and text.png",
        promised: "boxes equal the Python pipeline within 1 pixel",
        on_request: false,
        measure: detect,
    },
    Row {
        id: "speed",
        what: "speed, 1 thread, geometric mean over the float models against ONNX Runtime",
        promised: "at most 2.5 times its time",
        on_request: false,
        measure: speed,
    },
    Row {
        id: "load",
        what: "load and compile of resnet50",
        promised: "faster than ONNX Runtime's session creation",
        on_request: false,
        measure: load,
    },
    Row {
        id: "operator",
        what: "adding an operator",
        promised: "the files that docs/adding-an-operator.md lists; half-done work does not compile",
        on_request: false,
        measure: operator::measure,
    },
    Row {
        id: "fresh-clone",
        what: "from a fresh clone",
        promised: "both README commands work as written; the tests take under 15 minutes after the build",
        on_request: true,
        measure: fresh_clone,
    },
];

/// Whether two polygons of the same length are nowhere further apart than a pixel.
fn within_a_pixel(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| within_a_pixel(a, b))
        }
        _ => matches!((ours.as_f64(), theirs.as_f64()), (Some(a), Some(b)) if (a - b).abs() <= 1.0),
    }
}

/// Rows of `{picture: [[..], ..]}` of a reference pipeline.
fn expected(text: &str) -> Result<Vec<(String, Vec<Value>)>> {
    let pictures: serde_json::Map<String, Value> = serde_json::from_str(text)?;
    Ok(pictures
        .into_iter()
        .map(|(name, rows)| (name, rows.as_array().cloned().unwrap_or_default()))
        .collect())
}

fn armet_json(bench: &Bench<'_>, arguments: &[&Path], flags: &[&str]) -> Result<Value> {
    let mut command = bench.workspace.command(&bench.armet);
    command.args(flags).args(arguments).arg("--json");
    serde_json::from_str(&answer(command)?).context("armet's answer is no JSON")
}

/// The number of pictures whose rows are all the same, and the differences of the others.
struct Comparison {
    same: usize,
    all: usize,
    rows: usize,
    differences: Vec<String>,
}

impl Comparison {
    fn new() -> Self {
        Self { same: 0, all: 0, rows: 0, differences: Vec::new() }
    }

    /// `rows` are (words, box) pairs in the same order on both sides.
    fn add(&mut self, picture: &str, ours: &[(String, Value)], theirs: &[(String, Value)]) {
        self.all += 1;
        self.rows += theirs.len();
        let wrong = ours.iter().zip(theirs).find(|(a, b)| a.0 != b.0 || !within_a_pixel(&a.1, &b.1));
        match wrong {
            Some((a, b)) => self.differences.push(format!("{picture}: {a:?}, not {b:?}")),
            None if ours.len() != theirs.len() => {
                self.differences.push(format!("{picture}: {} rows, not {}", ours.len(), theirs.len()));
            }
            None => self.same += 1,
        }
    }

    fn measured(self, what: &str) -> Measured {
        self.differences.iter().for_each(|difference| complain(difference));
        let text = format!("{} of {} pictures equal ({} {what})", self.same, self.all, self.rows);
        Measured {
            text,
            holds: self.same == self.all && self.all > 0,
            raw: json!({ "differences": self.differences }),
        }
    }
}

fn ocr(bench: &Bench<'_>) -> Result<Measured> {
    let model = |id: &str| bench.models.join(id).with_extension("onnx");
    let crops = bench.scratch.join("crops");
    let mut python = bench.workspace.command(&bench.python);
    python.arg("tools/reference/ocr.py").args([
        model("ppocr4_det"),
        model("ppocr2_cls"),
        model("ppocr4_rec"),
    ]);
    let media = bench.models.join("media");
    python.args([media.join("page.png"), media.join("text.png")]);
    let whole = output(python)?;
    let mut python = bench.workspace.command(&bench.python);
    python.arg("tools/reference/ocr.py").args([
        model("ppocr4_det"),
        model("ppocr2_cls"),
        model("ppocr4_rec"),
    ]);
    python.args([media.join("page.png"), media.join("text.png")]).arg("--crops").arg(&crops);
    let parts = output(python)?;
    let mut comparison = Comparison::new();
    for (folder, text) in [(&media, whole), (&crops, parts)] {
        for (picture, rows) in expected(&text)? {
            let name = Path::new(&picture).file_name().context("a picture has a name")?;
            let theirs: Vec<_> = rows
                .iter()
                .map(|row| (row[1].as_str().unwrap_or_default().to_owned(), row[0].clone()))
                .collect();
            let answer =
                armet_json(bench, &[&folder.join(name), Path::new("--models"), &bench.models], &["ocr"])?;
            let lines = answer["lines"].as_array().context("armet ocr's answer has no lines")?;
            let ours: Vec<_> = lines
                .iter()
                .map(|line| (line["text"].as_str().unwrap_or_default().to_owned(), line["box"].clone()))
                .collect();
            comparison.add(&picture, &ours, &theirs);
        }
    }
    Ok(comparison.measured("lines"))
}

fn detect(bench: &Bench<'_>) -> Result<Measured> {
    let mut comparison = Comparison::new();
    for id in ["yolov8n_doclaynet", "picodet_cdla"] {
        let model = bench.models.join(id).with_extension("onnx");
        let pictures = ["page.png", "text.png"].map(|name| bench.models.join("media").join(name));
        let mut python = bench.workspace.command(&bench.python);
        python.arg("tools/reference/detect.py").arg(&model).args(&pictures);
        for (picture, rows) in expected(&output(python)?)? {
            let theirs: Vec<_> = rows
                .iter()
                .map(|row| (row[0].as_str().unwrap_or_default().to_owned(), row[2].clone()))
                .collect();
            let name = Path::new(&picture).file_name().context("a picture has a name")?;
            let answer = armet_json(bench, &[&bench.models.join("media").join(name), &model], &["detect"])?;
            let found = answer["detections"].as_array().context("armet detect's answer has no detections")?;
            let ours: Vec<_> = found
                .iter()
                .map(|row| (row["label"].as_str().unwrap_or_default().to_owned(), row["box"].clone()))
                .collect();
            comparison.add(&format!("{id} {picture}"), &ours, &theirs);
        }
    }
    Ok(comparison.measured("boxes"))
}

/// Times a model side by side in both engines.
fn peers(bench: &Bench<'_>, id: &str, meta: &agreement::Meta) -> Result<Value> {
    let report = bench.scratch.join("peers.json");
    fs::create_dir_all(&bench.scratch)?;
    let mut python = bench.workspace.command(&bench.python);
    python.arg("tools/bench/peers.py").arg(bench.models.join(&meta.model)).args([
        "--engines",
        "armet,ort",
        "--threads",
        "1",
    ]);
    python.arg("--rounds").arg(bench.rounds.to_string()).arg("--seconds").arg(bench.seconds.to_string());
    python.arg("--armet").arg(&bench.armet).arg("--json").arg(&report);
    for (name, path) in agreement::some_inputs(bench, id, meta)? {
        python.arg("--input").arg(format!("{name}={}", path.display()));
    }
    complain(output(python)?.trim_end());
    let report: Value = serde_json::from_str(&fs::read_to_string(&report)?)?;
    ensure!(report["failed"].as_object().is_none_or(serde_json::Map::is_empty), "{id}: {}", report["failed"]);
    Ok(report)
}

fn speed(bench: &Bench<'_>) -> Result<Measured> {
    let (mut reports, mut ratios, mut failed) = (serde_json::Map::new(), Vec::new(), Vec::new());
    for (id, meta) in agreement::references(bench)?.iter().filter(|(_, meta)| !meta.quantised) {
        let ratio = peers(bench, id, meta).and_then(|report| {
            let ratio = report["engines"]["ort"]["ratio_to_armet"].as_f64().filter(|ratio| *ratio > 0.0);
            let ratio = ratio.with_context(|| format!("{id}: no ratio in {report}"))?.recip();
            reports.insert(id.clone(), report);
            Ok(ratio)
        });
        match ratio {
            Ok(ratio) => ratios.push((ratio, id.clone())),
            Err(error) => {
                complain(&format!("{error:#}"));
                failed.push(id.clone());
            }
        }
    }
    ensure!(!ratios.is_empty(), "no model could be timed in both engines");
    let mean = (ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((best, best_id), (worst, worst_id)) = (&ratios[0], &ratios[ratios.len() - 1]);
    let mut text = format!(
        "{mean:.2} times over {} models ({best:.2} {best_id} to {worst:.2} {worst_id})",
        ratios.len()
    );
    if !failed.is_empty() {
        text = format!("{text}; not timed: {}", failed.join(", "));
    }
    Ok(Measured {
        text,
        holds: mean <= 2.5 && failed.is_empty(),
        raw: json!({ "geometric_mean": mean, "models": reports, "not_timed": failed }),
    })
}

fn load(bench: &Bench<'_>) -> Result<Measured> {
    let report = peers(bench, "resnet50", &agreement::reference(bench, "resnet50")?)?;
    let milliseconds = |engine: &str| {
        report["engines"][engine]["load_ms"].as_f64().with_context(|| format!("no load_ms of {engine}"))
    };
    let (ours, theirs) = (milliseconds("armet")?, milliseconds("ort")?);
    Ok(Measured { text: format!("{ours:.0} ms against {theirs:.0} ms"), holds: ours < theirs, raw: report })
}

/// Clones the workspace's committed state into an empty folder and runs the commands of README.md's first two `sh`
/// blocks there.
fn fresh_clone(bench: &Bench<'_>) -> Result<Measured> {
    let folder = bench.scratch.join("clone");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut clone = bench.workspace.command("git");
    clone.args(["clone", "--quiet"]).arg(bench.workspace.root()).arg(&folder);
    output(clone)?;
    let commands = commands(&fs::read_to_string(folder.join("README.md"))?);
    ensure!(commands.len() >= 2, "README.md has {} sh blocks, not two", commands.len());
    let (mut words, mut holds, mut raw) = (Vec::new(), true, Vec::new());
    for (number, script) in commands.iter().take(2).enumerate() {
        let (started, log) = (Instant::now(), bench.scratch.join(format!("clone-{number}.log")));
        let mut shell = bench.workspace.command("sh");
        shell.args(["-ec", script]).current_dir(&folder);
        let well = logged(shell, &log)?;
        let text = fs::read_to_string(&log).unwrap_or_default();
        let minutes = started.elapsed().as_secs_f64() / 60.0;
        // The tests' own time stands in lines of `cargo xtask test`: cargo nextest run ..: 12 s
        let tests: f64 = text
            .lines()
            .filter(|line| line.starts_with("cargo "))
            .filter_map(|line| line.rsplit(": ").next()?.strip_suffix(" s")?.parse::<f64>().ok())
            .sum();
        holds &= well && tests < 15.0 * 60.0;
        words.push(format!(
            "`{}` {} in {minutes:.1} min",
            script.trim().replace('\n', "; "),
            if well { "worked" } else { "failed" }
        ));
        raw.push(json!({ "command": script, "worked": well, "minutes": minutes, "seconds_of_tests": tests, "end": tail(&log, 20) }));
    }
    Ok(Measured { text: words.join("; "), holds, raw: raw.into() })
}

/// The contents of a page's `sh` blocks.
fn commands(page: &str) -> Vec<String> {
    page.split("```sh\n")
        .skip(1)
        .filter_map(|block| block.split_once("```"))
        .map(|(script, _)| script.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_compared_by_pixels() {
        assert!(within_a_pixel(&json!([[1.0, 2], [3, 4]]), &json!([[1.9, 2], [3, 3.2]])));
        assert!(!within_a_pixel(&json!([1.0, 2]), &json!([1.0, 3.1])));
        assert!(!within_a_pixel(&json!([1.0]), &json!([1.0, 2.0])));
        assert!(!within_a_pixel(&json!("1"), &json!("1")));
    }

    #[test]
    fn a_picture_is_equal_when_all_of_its_rows_are() {
        let row = |text: &str, x: f64| (text.to_owned(), json!([x]));
        let mut comparison = Comparison::new();
        comparison.add("a", &[row("x", 1.0)], &[row("x", 1.5)]);
        comparison.add("b", &[row("x", 1.0)], &[row("y", 1.0)]);
        comparison.add("c", &[row("x", 1.0)], &[row("x", 1.0), row("y", 2.0)]);
        assert_eq!((comparison.same, comparison.all, comparison.differences.len()), (1, 3, 2));
        assert!(!comparison.measured("rows").holds);
        assert!(!Comparison::new().measured("rows").holds, "nothing compared is nothing shown");
    }

    #[test]
    fn commands_are_taken_from_the_page() {
        assert_eq!(commands("a\n```sh\nx\ny\n```\nb\n```rust\nfn\n```\n```sh\nz\n```\n"), ["x\ny\n", "z\n"]);
    }
}
