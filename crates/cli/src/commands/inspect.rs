//! `armet inspect`: what a model is, needs, and how it would run.

use std::collections::BTreeMap;
use std::sync::Arc;

use armet::{Compiled, Model, Stage, ValueSpec};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::report;
use crate::options::ModelOptions;
use crate::output::{self, Terminal};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelOptions,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show every step, not only a summary.
    #[arg(long)]
    steps: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// A `GraphViz` picture of the compiled graph.
    Dot,
}

fn spec(value: &ValueSpec) -> Value {
    json!({"name": value.name, "type": value.ty.to_string()})
}

fn operators(graph: &armet::Graph) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (_, node) in graph.nodes() {
        *counts.entry(node.op.name()).or_default() += 1;
    }
    counts
}

fn list(counts: &BTreeMap<&'static str, usize>) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), **name));
    sorted.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let model = arguments.model.load(terminal)?;
    let compiled = arguments.model.compile(&model)?;
    let format = if arguments.model.json { Format::Json } else { arguments.format };
    let types = compiled.concrete_inputs(1).map_err(|name| {
        anyhow::anyhow!("input {name} has no declared rank; give its shape with --shape {name}=...")
    })?;
    let open: Vec<String> = compiled
        .inputs()
        .iter()
        .filter(|i| i.dims().is_some_and(|dims| dims.iter().any(|d| d.fixed().is_none())))
        .map(|i| i.name.clone())
        .collect();
    if !open.is_empty() {
        terminal.note(format_args!(
            "note: planned with open dimensions of {} as 1; set them with --shape or --dim",
            open.join(", ")
        ));
    }
    let stage = Arc::new(compiled.plan(&types)?);
    match format {
        Format::Json => terminal.json(&as_json(&model, &compiled, &stage))?,
        Format::Dot => terminal.line(armet::graph_dot(&stage.graph))?,
        Format::Text => text(arguments, &model, &compiled, &stage, terminal)?,
    }
    Ok(0)
}

fn as_json(model: &Model, compiled: &Compiled, stage: &Arc<Stage>) -> Value {
    let pass = |p: &armet::PassReport| {
        json!({"name": p.name, "rewrites": p.rewrites, "nodes_before": p.nodes_before,
            "nodes_after": p.nodes_after, "microseconds": p.duration.as_micros() as u64})
    };
    let cost = total(stage);
    json!({
        "inputs": compiled.inputs().iter().map(spec).collect::<Vec<_>>(),
        "outputs": compiled.outputs().iter().map(spec).collect::<Vec<_>>(),
        "metadata": model.metadata(),
        "warnings": model.warnings(),
        "operators": operators(model.graph()),
        "operators_after_passes": operators(&stage.graph),
        "passes": compiled.passes().iter().chain(&stage.passes).map(pass).collect::<Vec<_>>(),
        "steps": report::placement(&report::with_bodies(stage)),
        "aliases": stage.placement.aliases,
        "deferred": stage.placement.deferred,
        "memory": report::memory(&report::with_bodies(stage)),
        "packed_weights": compiled.packed_weights(),
        "operations": cost.0,
        "bytes": cost.1,
    })
}

fn total(stage: &Stage) -> (u64, u64) {
    let steps = &stage.placement.steps;
    (steps.iter().map(|s| s.cost.operations).sum(), steps.iter().map(|s| s.cost.bytes).sum())
}

fn text(
    arguments: &Arguments,
    model: &Model,
    compiled: &Compiled,
    stage: &Arc<Stage>,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    for input in compiled.inputs() {
        terminal.line(format_args!("input   {}: {}", input.name, input.ty))?;
    }
    for result in compiled.outputs() {
        terminal.line(format_args!("output  {}: {}", result.name, result.ty))?;
    }
    terminal.line(format_args!(
        "model   {} nodes: {}",
        model.graph().node_count(),
        list(&operators(model.graph()))
    ))?;
    let mut fired: BTreeMap<&str, usize> = BTreeMap::new();
    for pass in compiled.passes().iter().chain(&stage.passes).filter(|p| p.rewrites > 0) {
        *fired.entry(pass.name).or_default() += pass.rewrites;
    }
    let fired: Vec<String> = fired.iter().map(|(name, count)| format!("{name} {count}")).collect();
    terminal.line(format_args!(
        "passes  {}",
        if fired.is_empty() { "none fired".into() } else { fired.join(", ") }
    ))?;
    terminal.line(format_args!(
        "plan    {} steps, {} aliases: {}",
        stage.placement.steps.len(),
        stage.placement.aliases,
        list(&operators(&stage.graph))
    ))?;
    if stage.placement.deferred > 0 {
        terminal.line(format_args!(
            "        {} nodes are planned when values of the run are known",
            stage.placement.deferred
        ))?;
    }
    let memory = stage.memory;
    terminal.line(format_args!(
        "memory  arena {} ({} without reuse, at least {}), scratch {}, constants read in place {}",
        output::bytes(memory.arena),
        output::bytes(memory.without_reuse),
        output::bytes(memory.lower_bound),
        output::bytes(memory.scratch),
        output::bytes(memory.constants),
    ))?;
    let (operations, bytes) = total(stage);
    terminal.line(format_args!(
        "work    {}FLOP, {}B moved",
        output::metric(operations as f64),
        output::metric(bytes as f64)
    ))?;
    terminal.line(report::summary(&report::with_bodies(stage)))?;
    if arguments.steps {
        terminal.line("")?;
        terminal.line(report::step_table(&report::with_bodies(stage)).trim_end())?;
    }
    Ok(())
}
