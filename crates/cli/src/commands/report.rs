//! Placement, memory and passes of a session, as JSON and as text.

use std::sync::Arc;

use armet::{REFERENCE, Stage, StepReport};
use serde_json::{Value, json};

use crate::output;

/// A stage, and those of the bodies of its loops that are planned beforehand.
pub(crate) fn with_bodies(stage: &Arc<Stage>) -> Vec<&Arc<Stage>> {
    let bodies = stage.bodies().flat_map(with_bodies);
    std::iter::once(stage).chain(bodies).collect()
}

/// Every step: where it runs, what runs, and why not elsewhere.
pub(crate) fn placement(stages: &[&Arc<Stage>]) -> Value {
    stages.iter().flat_map(|stage| &stage.placement.steps).map(step).collect()
}

pub(crate) fn step(step: &StepReport) -> Value {
    let refused: Vec<Value> = step
        .refused
        .iter()
        .map(|r| json!({"backend": r.backend.0, "code": r.reason.code(), "reason": r.reason.to_string()}))
        .collect();
    json!({
        "node": step.node,
        "operator": step.operator,
        "absorbed": step.absorbed,
        "backend": step.backend.0,
        "kernel": step.kernel,
        "refused": refused,
        "outputs": step.outputs,
        "operations": step.cost.operations,
        "bytes": step.cost.bytes,
    })
}

/// One line that says what runs where; always shown.
pub(crate) fn summary(stages: &[&Arc<Stage>]) -> String {
    let steps = || stages.iter().flat_map(|s| &s.placement.steps);
    let total = steps().count();
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for step in steps() {
        match counts.iter_mut().find(|(name, _)| *name == step.backend.0) {
            Some((_, count)) => *count += 1,
            None => counts.push((step.backend.0, 1)),
        }
    }
    let text: Vec<String> = counts.iter().map(|(name, count)| format!("{count} on {name}")).collect();
    let mut line = format!("placement: {}", output::count(total, "step"));
    if total > 0 {
        line.push_str(&format!(": {}", text.join(", ")));
    }
    let mut reasons: Vec<String> = steps()
        .filter(|s| s.backend == REFERENCE && !s.refused.is_empty())
        .map(|s| {
            let reason = s.refused.first().map(|r| r.reason.to_string()).unwrap_or_default();
            format!("{}: {reason}", s.operator)
        })
        .collect();
    reasons.sort();
    reasons.dedup();
    if !reasons.is_empty() {
        let shown = reasons.iter().take(4).cloned().collect::<Vec<_>>().join("; ");
        let more =
            if reasons.len() > 4 { format!("; and {} more", reasons.len() - 4) } else { String::new() };
        line.push_str(&format!(" ({shown}{more})"));
    }
    line
}

/// Memory of all stages.
pub(crate) fn memory(stages: &[&Arc<Stage>]) -> Value {
    let sum = |f: fn(&armet::MemoryReport) -> usize| stages.iter().map(|s| f(&s.memory)).sum::<usize>();
    json!({
        "arena": sum(|m| m.arena),
        "scratch": sum(|m| m.scratch),
        "without_reuse": sum(|m| m.without_reuse),
        "lower_bound": sum(|m| m.lower_bound),
        "constants_read_in_place": sum(|m| m.constants),
        "stages": stages.len(),
    })
}

/// The steps as a table that fits a terminal.
pub(crate) fn step_table(stages: &[&Arc<Stage>]) -> String {
    let rows: Vec<Vec<String>> = stages
        .iter()
        .flat_map(|s| &s.placement.steps)
        .map(|s| {
            vec![
                output::shorten(&output::clean(&s.node), 34),
                s.operator.to_owned(),
                s.backend.0.to_owned(),
                output::shorten(&output::clean(&s.kernel), 34),
                output::metric(s.cost.operations as f64),
                output::shorten(&output::clean(s.outputs.first().map_or("", String::as_str)), 26),
            ]
        })
        .collect();
    output::table(&["node", "operator", "on", "kernel", "ops", "output"], &rows)
}
