//! Every model against its references: `armet run` on the inputs of each case, outputs held to onnxruntime's.
//!
//! Float models: the largest gap is at most 1e-4 of the output's range, or twice the reference's own spread where that
//! is more. Quantised models: the cosine is not below that of the reference's own optimised run, or of the reference with
//! other last bits in its weights where that is lower, and the best class of every row is the same where the reference is
//! sure of it. Stateful cases feed the program's own state back, over the whole stream.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Bench, Measured, npy::Array};
use crate::{process::output, workspace::complain};

/// A cosine below the reference's by no more than this is rounding of the sums, not of the model.
const COSINE_ROUNDING: f64 = 1e-6;

#[derive(Debug, Deserialize)]
pub(super) struct Meta {
    pub model: String,
    pub sha256: String,
    pub quantised: bool,
    pub cases: BTreeMap<String, Case>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Case {
    inputs: Vec<Value>,
    outputs: Vec<Expected>,
    stream: Option<Stream>,
}

#[derive(Debug, Deserialize)]
struct Value {
    name: String,
    file: String,
}

#[derive(Debug, Deserialize)]
struct Expected {
    name: String,
    file: String,
    spread: f64,
    cosine: f64,
    last_bit: f64,
}

#[derive(Debug, Deserialize)]
struct Stream {
    steps: usize,
    each_step: Vec<String>,
    carry: BTreeMap<String, String>,
}

/// How one output compares.
#[derive(Debug, Serialize)]
struct Verdict {
    model: String,
    case: String,
    output: String,
    gap: f64,
    limit: f64,
    cosine: f64,
    holds: bool,
    why: Option<String>,
}

/// The reference of one model.
pub(super) fn reference(bench: &Bench<'_>, id: &str) -> Result<Meta> {
    let path = bench.references.join(id).join("meta.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// The references of all models that are wanted, by id.
pub(super) fn references(bench: &Bench<'_>) -> Result<BTreeMap<String, Meta>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&bench.references)? {
        let path = entry?.path();
        let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.join("meta.json").exists() && bench.wants(&id) {
            found.insert(id.clone(), reference(bench, &id)?);
        }
    }
    ensure!(!found.is_empty(), "no references in {}", bench.references.display());
    Ok(found)
}

pub(super) fn measure(bench: &Bench<'_>) -> Result<Measured> {
    let references = references(bench)?;
    let (mut verdicts, mut failed_models, mut cases) = (Vec::new(), Vec::new(), 0);
    for (id, meta) in &references {
        let before = verdicts.len();
        let mut whole = true;
        for name in meta.cases.keys() {
            cases += 1;
            match compare_case(bench, id, meta, name) {
                Ok(found) => verdicts.extend(found),
                Err(error) => {
                    whole = false;
                    complain(&format!("{id}/{name}: {error:#}"));
                    verdicts.push(Verdict {
                        model: id.clone(),
                        case: name.clone(),
                        output: String::new(),
                        gap: f64::NAN,
                        limit: f64::NAN,
                        cosine: f64::NAN,
                        holds: false,
                        why: Some(format!("{error:#}")),
                    });
                }
            }
        }
        for verdict in
            verdicts[before..].iter().filter(|verdict| !verdict.holds && !verdict.output.is_empty())
        {
            complain(&format!(
                "{id}/{}: {} gap {:.3e} of {:.3e}, cosine {:.6} {}",
                verdict.case,
                verdict.output,
                verdict.gap,
                verdict.limit,
                verdict.cosine,
                verdict.why.as_deref().unwrap_or_default()
            ));
        }
        if !whole || verdicts[before..].iter().any(|verdict| !verdict.holds) {
            failed_models.push(id.as_str());
        }
    }
    let worst = verdicts
        .iter()
        .filter(|v| v.gap.is_finite() && v.limit > 0.0)
        .map(|v| v.gap / v.limit)
        .fold(0.0, f64::max);
    let all = references.len();
    let mut text = format!("{} of {all} models agree ({cases} cases)", all - failed_models.len());
    if failed_models.is_empty() {
        text = format!("{text}; worst gap {:.0} % of its limit", worst * 100.0);
    } else {
        text = format!("{text}; not {}", failed_models.join(", "));
    }
    Ok(Measured { text, holds: failed_models.is_empty(), raw: json!({ "outputs": verdicts }) })
}

fn compare_case(bench: &Bench<'_>, id: &str, meta: &Meta, name: &str) -> Result<Vec<Verdict>> {
    let model = bench.models.join(&meta.model);
    let sum = Sha256::digest(fs::read(&model).with_context(|| model.display().to_string())?);
    let sum: Vec<String> = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    let sum = sum.concat();
    ensure!(sum == meta.sha256, "the reference is of another file than {}", model.display());
    let (case, folder) = (&meta.cases[name], bench.references.join(id).join(name));
    let ours = match &case.stream {
        None => {
            let inputs: Vec<_> = case
                .inputs
                .iter()
                .map(|input| (input.name.as_str(), folder.join("inputs").join(&input.file)))
                .collect();
            let out = run(bench, &model, &inputs)?;
            case.outputs
                .iter()
                .map(|output| Ok(vec![Array::read(&out.join(&output.file))?]))
                .collect::<Result<Vec<_>>>()?
        }
        Some(stream) => steps(bench, &model, case, stream, &folder)?,
    };
    let mut verdicts = Vec::new();
    for (expected, steps) in case.outputs.iter().zip(ours) {
        let theirs = Array::read(&folder.join("outputs").join(&expected.file))?;
        let (shape, values) = join(&steps, case.stream.is_some())?;
        let mut verdict = judge(
            (&shape, &values),
            (&theirs.shape, &theirs.values()?),
            (expected.spread, expected.cosine.min(expected.last_bit)),
            meta.quantised,
        );
        (verdict.model, verdict.case, verdict.output) =
            (id.to_owned(), name.to_owned(), expected.name.clone());
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

/// Outputs of every step, by output; each step gets what the one before carried.
fn steps(
    bench: &Bench<'_>,
    model: &Path,
    case: &Case,
    stream: &Stream,
    folder: &Path,
) -> Result<Vec<Vec<Array>>> {
    let mut feed: BTreeMap<&str, PathBuf> = case
        .inputs
        .iter()
        .map(|input| (input.name.as_str(), folder.join("inputs").join(&input.file)))
        .collect();
    let moving = stream
        .each_step
        .iter()
        .map(|name| Ok((name.as_str(), Array::read(&feed[name.as_str()])?)))
        .collect::<Result<Vec<_>>>()?;
    let mut outputs = vec![Vec::new(); case.outputs.len()];
    let kept = bench.scratch.join("state");
    fs::create_dir_all(&kept)?;
    for step in 0..stream.steps {
        for (name, array) in &moving {
            let path = kept.join(format!("input-{}.npy", file_name(name)));
            array.entry(step)?.write(&path)?;
            feed.insert(name, path);
        }
        let inputs: Vec<_> = feed.iter().map(|(name, path)| (*name, path.clone())).collect();
        let out = run(bench, model, &inputs)?;
        for (output, arrays) in case.outputs.iter().zip(&mut outputs) {
            let array = Array::read(&out.join(&output.file))?;
            if let Some(target) = stream.carry.get(&output.name) {
                let path = kept.join(format!("state-{}.npy", file_name(target)));
                array.write(&path)?;
                feed.insert(target, path);
            }
            arrays.push(array);
        }
    }
    Ok(outputs)
}

/// One set of inputs: of the model's first case, or of the first step of it.
pub(super) fn some_inputs(bench: &Bench<'_>, id: &str, meta: &Meta) -> Result<Vec<(String, PathBuf)>> {
    let (name, case) = meta
        .cases
        .get_key_value("random")
        .or_else(|| meta.cases.first_key_value())
        .context("a reference has a case")?;
    let place = |input: &Value| bench.references.join(id).join(name).join("inputs").join(&input.file);
    let pick = |input: &Value| {
        let moves = case.stream.as_ref().is_some_and(|stream| stream.each_step.contains(&input.name));
        if !moves {
            return Ok((input.name.clone(), place(input)));
        }
        fs::create_dir_all(&bench.scratch)?;
        let path = bench.scratch.join(format!("first-{}.npy", file_name(&input.name)));
        Array::read(&place(input))?.entry(0)?.write(&path)?;
        Ok((input.name.clone(), path))
    };
    case.inputs.iter().map(pick).collect()
}

fn file_name(name: &str) -> String {
    name.replace(['/', ':'], "_")
}

fn run(bench: &Bench<'_>, model: &Path, inputs: &[(&str, PathBuf)]) -> Result<PathBuf> {
    let out = bench.scratch.join("outputs");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let mut command = bench.workspace.command(&bench.armet);
    command.arg("run").arg(model);
    for (name, path) in inputs {
        command.arg("--input").arg(format!("{name}={}", path.display()));
    }
    command.arg("--output").arg(&out).arg("--json");
    output(command)?;
    Ok(out)
}

fn join(steps: &[Array], stacked: bool) -> Result<(Vec<usize>, Vec<f64>)> {
    let first = steps.first().context("no step")?;
    let shape = if stacked { [&[steps.len()], first.shape.as_slice()].concat() } else { first.shape.clone() };
    let values = steps.iter().map(Array::values).collect::<Result<Vec<_>>>()?.concat();
    Ok((shape, values))
}

fn judge(ours: (&[usize], &[f64]), theirs: (&[usize], &[f64]), own: (f64, f64), quantised: bool) -> Verdict {
    let (spread, reference_cosine) = own;
    let mut verdict = Verdict {
        model: String::new(),
        case: String::new(),
        output: String::new(),
        gap: f64::NAN,
        limit: f64::NAN,
        cosine: f64::NAN,
        holds: false,
        why: None,
    };
    if ours.0 != theirs.0 || ours.1.len() != theirs.1.len() {
        verdict.why = Some(format!("shape {:?}, not {:?}", ours.0, theirs.0));
        return verdict;
    }
    let pairs = || ours.1.iter().zip(theirs.1);
    if pairs().any(|(a, b)| a.is_nan() != b.is_nan()) {
        verdict.why = Some("not a number where the other has one".to_owned());
        return verdict;
    }
    let gap = |(a, b): (&f64, &f64)| if a == b || a.is_nan() { 0.0 } else { (a - b).abs() };
    verdict.gap = pairs().map(gap).fold(0.0, f64::max);
    let finite = || theirs.1.iter().copied().filter(|value| value.is_finite());
    let range = finite().fold(f64::MIN, f64::max) - finite().fold(f64::MAX, f64::min);
    // One number alone, or all alike, has no range: then its size is the measure.
    let range = if range > 0.0 { range } else { finite().map(f64::abs).fold(0.0, f64::max) };
    verdict.limit = (range * 1e-4).max(2.0 * spread);
    let sum = |f: fn(f64, f64) -> f64| pairs().map(|(a, b)| f(*a, *b)).sum::<f64>();
    let length = (sum(|a, _| a * a) * sum(|_, b| b * b)).sqrt();
    verdict.cosine = if length > 0.0 { sum(|a, b| a * b) / length } else { 1.0 };
    if quantised {
        let same = same_best(theirs.0, ours.1, theirs.1, spread);
        verdict.holds = verdict.cosine >= reference_cosine - COSINE_ROUNDING && same;
        verdict.why = match (verdict.holds, same) {
            (true, _) => None,
            (_, false) => Some("and another best class".to_owned()),
            _ => Some(format!("below {reference_cosine:.6}")),
        };
    } else {
        verdict.holds = verdict.gap <= verdict.limit;
    }
    verdict
}

/// Whether the best class of each row is the same, for outputs of shape [batch, classes]. A row whose two best are nearer
/// to each other than the reference's own two runs has no best class.
fn same_best(shape: &[usize], ours: &[f64], theirs: &[f64], spread: f64) -> bool {
    let [_, classes] = shape else { return true };
    let best = |row: &[f64]| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(index, _)| index);
    ours.chunks((*classes).max(1)).zip(theirs.chunks((*classes).max(1))).all(|(a, b)| {
        let first = best(b);
        let rest = b.iter().enumerate().filter(|(index, _)| Some(*index) != first).map(|(_, value)| *value);
        let second = rest.fold(f64::MIN, f64::max);
        best(a) == first || first.is_none_or(|first| b[first] - second <= spread)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::npy::tests::floats;

    #[test]
    fn a_float_output_is_held_to_its_range_or_the_references_spread() {
        let theirs: (&[usize], &[f64]) = (&[3], &[0.0, 5.0, 10.0]);
        assert!(judge((&[3], &[0.0009, 5.0, 10.0]), theirs, (0.0, 1.0), false).holds);
        assert!(!judge((&[3], &[0.0011, 5.0, 10.0]), theirs, (0.0, 1.0), false).holds);
        assert!(judge((&[3], &[0.0011, 5.0, 10.0]), theirs, (0.001, 1.0), false).holds);
        assert!(!judge((&[3], &[f64::NAN, 5.0, 10.0]), theirs, (1.0, 1.0), false).holds);
        assert!(!judge((&[3, 1], &[0.0, 5.0, 10.0]), theirs, (1.0, 1.0), false).holds);
        assert!(
            judge((&[1], &[2.0001]), (&[1], &[2.0]), (0.0, 1.0), false).holds,
            "one number is held to its size"
        );
    }

    #[test]
    fn a_quantised_output_is_held_to_cosine_and_best_class() {
        let theirs: (&[usize], &[f64]) = (&[1, 3], &[0.0, 5.0, 4.9]);
        assert!(judge((&[1, 3], &[0.2, 5.0, 4.9]), theirs, (0.0, 0.99), true).holds);
        assert!(
            !judge((&[1, 3], &[0.2, 5.0, 4.9]), theirs, (0.0, 1.0), true).holds,
            "the cosine is below the reference's"
        );
        let other = judge((&[1, 3], &[0.0, 4.9, 5.0]), theirs, (0.0, 0.99), true);
        assert!(!other.holds && other.why.is_some(), "the best class is another");
        assert!(
            judge((&[1, 3], &[0.0, 4.9, 5.0]), theirs, (0.11, 0.99), true).holds,
            "the reference is not sure"
        );
    }

    #[test]
    fn steps_are_stacked() {
        let steps = [floats(&[1], &[1.0]), floats(&[1], &[2.0])];
        assert_eq!(join(&steps, true).unwrap(), (vec![2, 1], vec![1.0, 2.0]));
        assert_eq!(join(&steps[..1], false).unwrap(), (vec![1], vec![1.0]));
    }
}
