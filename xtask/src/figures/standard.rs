//! The set `standard`: ONNX's own cases, sizes that change, random graphs, sessions at once.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Bench, Measured, Row};
use crate::conformance;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "node",
        what: "node tests",
        promised: "at least 1,800 of 1,884 pass, 0 wrong, 0 panics, on cpu and on reference alike; each refusal known before running",
        on_request: false,
        measure: node,
    },
    Row {
        id: "microsoft",
        what: "ONNX Runtime's operators",
        promised: "all cases pass, on cpu and on reference alike",
        on_request: false,
        measure: microsoft,
    },
    Row {
        id: "suites",
        what: "the other suites",
        promised: "all pass (training operators may be refused)",
        on_request: false,
        measure: suites,
    },
    Row {
        id: "sizes",
        what: "500 random legal sizes in turn on each dynamic model",
        promised: "equal to a session compiled fresh at that size; 10 small sizes also equal reference; resident memory flat after the largest",
        on_request: false,
        measure: sizes,
    },
    Row {
        id: "graphs",
        what: "2,000 random valid graphs",
        promised: "optimised equals unoptimised equals reference",
        on_request: false,
        measure: graphs,
    },
    Row {
        id: "sessions",
        what: "4 sessions of one model in 4 threads, 1,000 runs each",
        promised: "equal results; weights once in memory",
        on_request: false,
        measure: sessions,
    },
];

/// Growth that memory may show after the largest size: pages that the allocator had not given back.
const FLAT: f64 = 0.02;

/// Runs a program of the conformance crate; its answer, also where something did not hold.
fn answer(bench: &Bench<'_>, program: &str, arguments: &[String]) -> Result<Value> {
    let path = conformance::program(bench.workspace, program)?;
    let mut command = bench.workspace.command(&path);
    let output = command.args(arguments).stderr(Stdio::inherit()).output().context("it does not start")?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!("{program} {}: {}", arguments.join(" "), output.status);
    }
    serde_json::from_slice(&output.stdout).context("its answer is not JSON")
}

/// Which folder of cases.
#[derive(Clone, Copy)]
enum Folder {
    Suites,
    Microsoft,
    Node,
}

fn cases(bench: &Bench<'_>, backend: &str, which: Folder) -> Result<(Vec<[u64; 3]>, Value)> {
    let [suites, microsoft, node] = conformance::suites(bench.workspace)?;
    let folder = match which {
        Folder::Suites => suites,
        Folder::Microsoft => microsoft,
        Folder::Node => node,
    };
    let arguments = [folder.display().to_string(), "--backend".into(), backend.into(), "--json".into()];
    let found = answer(bench, "standard", &arguments)?;
    let count = |suite: &Value, name: &str| suite["counts"][name].as_u64().unwrap_or(0);
    let suites = found["suites"].as_array().context("there are no suites")?;
    let counts = suites.iter().map(|s| ["passed", "failed", "refused"].map(|name| count(s, name))).collect();
    Ok((counts, found))
}

fn node(bench: &Bench<'_>) -> Result<Measured> {
    let (mut text, mut holds, mut raw) = (Vec::new(), true, Vec::new());
    for backend in ["cpu", "reference"] {
        let (counts, found) = cases(bench, backend, Folder::Node)?;
        let [passed, failed, refused] = counts.first().copied().context("there is no node suite")?;
        let ended = found["suites"][0]["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
        let rounded = ended.iter().filter(|case| case["outcome"] == "rounded").count();
        holds &= passed >= 1800 && failed == 0;
        text.push(format!(
            "{backend}: {passed} pass ({rounded} of them only within the rounding of the expected numbers), {failed} \
             wrong, {refused} refused of {}",
            passed + failed + refused
        ));
        raw.push(found);
    }
    Ok(Measured { text: text.join("; "), holds, raw: raw.into() })
}

fn microsoft(bench: &Bench<'_>) -> Result<Measured> {
    let (mut text, mut holds, mut raw) = (Vec::new(), true, Vec::new());
    for backend in ["cpu", "reference"] {
        let (counts, found) = cases(bench, backend, Folder::Microsoft)?;
        let [passed, failed, refused] = counts.first().copied().context("there is no suite")?;
        holds &= passed > 0 && failed == 0 && refused == 0;
        text.push(format!("{backend}: {passed} pass, {failed} wrong, {refused} refused"));
        raw.push(found);
    }
    Ok(Measured { text: text.join("; "), holds, raw: raw.into() })
}

fn suites(bench: &Bench<'_>) -> Result<Measured> {
    let (counts, raw) = cases(bench, "cpu", Folder::Suites)?;
    let [passed, failed, refused] =
        counts.iter().fold([0; 3], |sum, one| [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]]);
    let (mut reasons, mut only_training) = (Vec::new(), true);
    for suite in raw["suites"].as_array().into_iter().flatten() {
        for case in suite["cases"].as_array().into_iter().flatten().filter(|c| c["outcome"] == "refused") {
            only_training &= case["reasons"].as_array().is_some_and(|reasons| {
                reasons.iter().all(|r| r["reason"].as_str().is_some_and(|r| r.contains("training operator")))
            });
            reasons.push(format!(
                "{} ({})",
                case["case"].as_str().unwrap_or_default(),
                case["reasons"][0]["reason"].as_str().unwrap_or_default()
            ));
        }
    }
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    Ok(Measured {
        text: format!("{passed} pass, {failed} wrong, {refused} refused{reasons}"),
        holds: failed == 0 && passed > 0 && only_training,
        raw,
    })
}

fn sizes(bench: &Bench<'_>) -> Result<Measured> {
    let mut arguments = vec!["sizes".to_owned(), bench.models.display().to_string()];
    arguments.extend(bench.only.iter().flat_map(|text| ["--model".to_owned(), text.clone()]));
    let raw = answer(bench, "stress", &arguments)?;
    let models = raw["models"].as_array().context("there are no models")?;
    let number = |model: &Value, name: &str| model[name].as_f64().unwrap_or(f64::NAN);
    let growth = |model: &Value| {
        let at = |i: usize| model["resident"][i].as_f64().unwrap_or(f64::NAN);
        at(1) / at(0) - 1.0
    };
    let bad = |model: &&Value| {
        !model["fault"].is_null()
            || number(model, "differ_from_fresh") != 0.0
            || model["means_the_same"] != true
            || growth(model) > FLAT
    };
    let wrong: Vec<String> = models
        .iter()
        .filter(bad)
        .map(|model| {
            format!(
                "{} ({} sizes differ from fresh, gap to reference {:.1e}, angle {:.1e}, memory {:+.1} %{})",
                model["model"].as_str().unwrap_or_default(),
                number(model, "differ_from_fresh"),
                number(model, "largest_gap"),
                number(model, "largest_angle"),
                growth(model) * 100.0,
                model["fault"].as_str().map(|fault| format!(", {fault}")).unwrap_or_default()
            )
        })
        .collect();
    let worst = |judge: Option<&str>, f: &dyn Fn(&Value) -> f64| {
        let judged = |model: &&Value| judge.is_none_or(|judge| model["judge"] == judge);
        models.iter().filter(judged).map(f).fold(0.0, f64::max)
    };
    let text = format!(
        "{} of {} models hold; largest gap to reference {:.1e} of the range, quantised models 1 - cosine {:.1e}, largest \
         growth {:+.1} %{}",
        models.len() - wrong.len(),
        models.len(),
        worst(Some("gap"), &|model| number(model, "largest_gap")),
        worst(Some("angle"), &|model| number(model, "largest_angle")),
        worst(None, &growth) * 100.0,
        if wrong.is_empty() { String::new() } else { format!("; not {}", wrong.join(", ")) }
    );
    let holds = wrong.is_empty() && !models.is_empty();
    Ok(Measured { text, holds, raw })
}

fn graphs(bench: &Bench<'_>) -> Result<Measured> {
    let raw = answer(bench, "stress", &["graphs".to_owned(), "--count".to_owned(), "2000".to_owned()])?;
    let faults = raw["faults"].as_array().context("there is no list of faults")?.len();
    let kinds = raw["operators"].as_object().map_or(0, serde_json::Map::len);
    let text = format!("{faults} of {} differ; {} nodes, {kinds} operators", raw["graphs"], raw["nodes"]);
    Ok(Measured { text, holds: faults == 0, raw })
}

fn sessions(bench: &Bench<'_>) -> Result<Measured> {
    let model = bench.models.join("mobilenet_v2.onnx").display().to_string();
    let raw = answer(bench, "stress", &["sessions".to_owned(), model])?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let growth = number(&raw["resident"][1]) - number(&raw["resident"][0]);
    let (arenas, file) = (number(&raw["arena"]) * number(&raw["sessions"]), number(&raw["file"]));
    let mib = 1024.0 * 1024.0;
    let text = format!(
        "{} of {} runs differ; four sessions more take {:.1} MiB, their arenas {:.1}, the weights {:.1}",
        raw["differ"],
        number(&raw["sessions"]) * number(&raw["runs"]),
        growth / mib,
        arenas / mib,
        file / mib
    );
    // A second copy of the weights would show.
    let holds =
        number(&raw["differ"]) == 0.0 && raw["packed"][0] == raw["packed"][1] && growth < arenas + file / 2.0;
    Ok(Measured { text, holds, raw })
}
