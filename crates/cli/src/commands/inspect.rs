//! `armet inspect`: what a model is, needs, and how it would run.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use armet::{Compiled, ElementType, Model, Shape, Stage, ValueSpec};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::report;
use super::sizes::Sizes;
use crate::options::ModelOptions;
use crate::output::{self, Terminal, clean};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelOptions,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "json")]
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
    let mut sizes = Sizes::new(&model, &arguments.model.settings())?;
    let types = concrete_inputs(&compiled, &mut sizes)?;
    sizes.tell(terminal);
    let stage = Arc::new(compiled.plan(&types)?);
    match format {
        Format::Json => {
            let mut report = as_json(&model, &compiled, &stage);
            report["assumed"] = sizes.as_json();
            terminal.json(&report)?;
        }
        Format::Dot => terminal.line(armet::graph_dot(&stage.graph))?,
        Format::Text => text(arguments, &model, &compiled, &stage, terminal)?,
    }
    Ok(0)
}

/// The types of the inputs, with a size for every dimension.
fn concrete_inputs(compiled: &Compiled, sizes: &mut Sizes) -> anyhow::Result<Vec<(ElementType, Shape)>> {
    let inputs = compiled.inputs();
    let concrete = inputs.iter().map(|input| {
        // What a list or an optional value holds is not known before it is given.
        let Some(ty) = input.ty.tensor() else { return Ok((ElementType::F32, Shape::scalar())) };
        let name = &input.name;
        let dims = ty.dims.as_ref().with_context(|| {
            format!("input {name} has no declared rank; give its shape with --shape {name}=...")
        })?;
        Ok((ty.element, sizes.complete(dims)))
    });
    concrete.collect()
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
        terminal.line(format_args!("input   {}: {}", clean(&input.name), clean(&input.ty.to_string())))?;
    }
    for result in compiled.outputs() {
        terminal.line(format_args!("output  {}: {}", clean(&result.name), clean(&result.ty.to_string())))?;
    }
    terminal.line(format_args!(
        "model   {}: {}",
        output::count(model.graph().node_count(), "node"),
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
        "plan    {}, {} alias{}: {}",
        output::count(stage.placement.steps.len(), "step"),
        stage.placement.aliases,
        if stage.placement.aliases == 1 { "" } else { "es" },
        list(&operators(&stage.graph))
    ))?;
    if stage.placement.deferred > 0 {
        terminal.line(format_args!(
            "        {} to be planned when values of the run are known",
            output::count(stage.placement.deferred, "node")
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
        "work    {}, {} moved",
        output::quantity(operations as f64, "FLOP"),
        output::quantity(bytes as f64, "B")
    ))?;
    terminal.line(report::summary(&report::with_bodies(stage)))?;
    if arguments.steps {
        terminal.line("")?;
        terminal.line(report::step_table(&report::with_bodies(stage)).trim_end())?;
    }
    Ok(())
}
