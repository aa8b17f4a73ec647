//! `armet inspect`: what a model is, needs, and how it would run.

use std::collections::BTreeMap;
use std::sync::Arc;

use armet::{Compiled, ElementType, Model, PassReport, Shape, Stage, ValueSpec};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::report;
use super::sizes::{ASSUMED, Open, Sizes};
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
    let plan = plan(&compiled, &mut sizes)?;
    if plan.is_ok() {
        sizes.tell(terminal);
    }
    match format {
        Format::Json => {
            let mut report = as_json(&model, &compiled, &plan);
            report["assumed"] = sizes.as_json();
            terminal.json(&report)?;
        }
        Format::Dot => {
            if let Err(NeedsSizes(why)) = &plan {
                terminal
                    .note(format_args!("note: the graph before it is planned; the plan needs sizes: {why}"));
            }
            let graph = plan.as_ref().map_or(compiled.graph(), |stage| &stage.graph);
            terminal.line(armet::graph_dot(graph))?;
        }
        Format::Text => {
            describe(&model, &compiled, &plan, terminal)?;
            match &plan {
                Ok(stage) => describe_plan(arguments, stage, terminal)?,
                Err(NeedsSizes(why)) => terminal.line(format_args!("plan    needs sizes: {why}"))?,
            }
        }
    }
    Ok(0)
}

/// Why there is no plan before sizes are given, and how to give them.
struct NeedsSizes(String);

type Plan = Result<Arc<Stage>, NeedsSizes>;

/// The plan, where the sizes that are known and assumed allow one. Where nothing is open, a failure is one.
fn plan(compiled: &Compiled, sizes: &mut Sizes) -> anyhow::Result<Plan> {
    let types = match concrete_inputs(compiled, sizes) {
        Ok(types) => types,
        Err(needs) => return Ok(Err(needs)),
    };
    match (compiled.plan(&types), sizes.open()) {
        (Ok(stage), _) => Ok(Ok(Arc::new(stage))),
        (Err(error), Some(Open { names, advice })) => {
            let why = clean(&error.to_string());
            Ok(Err(NeedsSizes(format!("{advice}; with {ASSUMED} for {names} it fails at {why}"))))
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// The types of the inputs, with a size for every dimension.
fn concrete_inputs(compiled: &Compiled, sizes: &mut Sizes) -> Result<Vec<(ElementType, Shape)>, NeedsSizes> {
    let inputs = compiled.inputs();
    let concrete = inputs.iter().map(|input| {
        // What a list or an optional value holds is not known before it is given.
        let Some(ty) = input.ty.tensor() else { return Ok((ElementType::F32, Shape::scalar())) };
        let name = clean(&input.name);
        let dims = ty.dims.as_ref().ok_or_else(|| {
            NeedsSizes(format!("input {name} has no declared rank; give its shape with --shape {name}=SIZES"))
        })?;
        Ok((ty.element, sizes.complete(dims)))
    });
    concrete.collect()
}

fn as_json(model: &Model, compiled: &Compiled, plan: &Plan) -> Value {
    let pass = |p: &PassReport| {
        json!({"name": p.name, "rewrites": p.rewrites, "nodes_before": p.nodes_before,
            "nodes_after": p.nodes_after, "microseconds": p.duration.as_micros() as u64})
    };
    let mut report = json!({
        "inputs": compiled.inputs().iter().map(spec).collect::<Vec<_>>(),
        "outputs": compiled.outputs().iter().map(spec).collect::<Vec<_>>(),
        "metadata": model.metadata(),
        "warnings": model.warnings(),
        "operators": operators(model.graph()),
        "passes": passes(compiled, plan).map(pass).collect::<Vec<_>>(),
        "packed_weights": compiled.packed_weights(),
        "plan_needs_sizes": plan.as_ref().err().map(|NeedsSizes(why)| why),
    });
    if let Ok(stage) = plan {
        let stages = report::with_bodies(stage);
        let cost = total(stage);
        report["operators_after_passes"] = json!(operators(&stage.graph));
        report["steps"] = report::placement(&stages);
        report["aliases"] = json!(stage.placement.aliases);
        report["deferred"] = json!(stage.placement.deferred);
        report["memory"] = report::memory(&stages);
        report["operations"] = json!(cost.0);
        report["bytes"] = json!(cost.1);
    }
    report
}

/// What the passes did, those of the plan too where there is one.
fn passes<'a>(compiled: &'a Compiled, plan: &'a Plan) -> impl Iterator<Item = &'a PassReport> {
    compiled.passes().iter().chain(plan.iter().flat_map(|stage| &stage.passes))
}

fn total(stage: &Stage) -> (u64, u64) {
    let steps = &stage.placement.steps;
    (steps.iter().map(|s| s.cost.operations).sum(), steps.iter().map(|s| s.cost.bytes).sum())
}

/// What holds with and without a plan.
fn describe(model: &Model, compiled: &Compiled, plan: &Plan, terminal: &mut Terminal) -> anyhow::Result<()> {
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
    for pass in passes(compiled, plan).filter(|p| p.rewrites > 0) {
        *fired.entry(pass.name).or_default() += pass.rewrites;
    }
    let fired: Vec<String> = fired.iter().map(|(name, count)| format!("{name} {count}")).collect();
    terminal.line(format_args!(
        "passes  {}",
        if fired.is_empty() { "none fired".into() } else { fired.join(", ") }
    ))
}

/// The steps, the memory and the work.
fn describe_plan(arguments: &Arguments, stage: &Arc<Stage>, terminal: &mut Terminal) -> anyhow::Result<()> {
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
