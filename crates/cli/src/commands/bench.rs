//! `armet bench`: how fast a model is here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use armet::{Probe, StepReport, StepResult, ValueRef};
use armet_hardware::{Cpu, ProcessMemory, Root, Sensors};
use clap::Args;
use serde_json::{Value, json};

use super::inputs::{self, Given};
use super::report;
use super::run::ms;
use crate::options::ModelOptions;
use crate::output::{self, Terminal};
use crate::picture::PictureOptions;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    pictures: PictureOptions,
    /// An input, as `armet run` takes it; made-up numbers where none is given.
    #[arg(long, short, value_name = "NAME=FILE", value_parser = inputs::parse)]
    input: Vec<Given>,
    /// How long to measure.
    #[arg(long, short, default_value_t = 3.0, value_parser = parse_seconds, allow_negative_numbers = true)]
    seconds: f64,
    /// Show where the time goes: the steps that take longest, timed in runs of their own.
    #[arg(long)]
    steps: bool,
}

/// Time of each step, summed over runs, and over the turns of loops.
#[derive(Default)]
struct StepTimes {
    steps: Vec<(StepReport, Duration)>,
    places: HashMap<String, usize>,
}

impl Probe for StepTimes {
    fn wants_results(&self) -> bool {
        false
    }

    fn step(&mut self, report: &StepReport, duration: Duration, _: &[StepResult<'_>]) {
        let place = match self.places.get(&report.node) {
            Some(&place) => place,
            None => {
                self.steps.push((report.clone(), Duration::ZERO));
                self.places.insert(report.node.clone(), self.steps.len() - 1);
                self.steps.len() - 1
            }
        };
        self.steps[place].1 += duration;
    }
}

/// Runs in which steps are timed.
const STEP_RUNS: u32 = 5;
/// Steps that are shown.
const SHOWN_STEPS: usize = 15;

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds, at most a day".into()),
    }
}

/// Fewest timed runs, however long one takes.
const FEWEST: usize = 3;

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> anyhow::Result<u8> {
    let root = Root::machine();
    let before = ProcessMemory::read(&root);
    let started = Instant::now();
    let model = arguments.model.load_given(&arguments.input, terminal)?;
    let compiled = arguments.model.compile(&model)?;
    let made_up = [Given::random()];
    let given = if arguments.input.is_empty() { &made_up[..] } else { &arguments.input };
    let settings = arguments.model.settings();
    let gathered = inputs::gather((&model, &compiled), &settings, given, &arguments.pictures, terminal)?;
    if gathered.sizes.assumed_inner() {
        terminal.note("note: a time at assumed sizes says little about real ones");
    }
    let values = gathered.values;
    let types = inputs::types(&values);
    let mut session = compiled.session();
    session.prepare(&types)?;
    // The packed weights are what is needed; the file's own bytes need not stay.
    drop(model);
    let load = started.elapsed();
    let feed: Vec<(&str, ValueRef<'_>)> = values.iter().map(|(name, t)| (name.as_str(), t.into())).collect();

    let started = Instant::now();
    session.run(&feed)?;
    let first = started.elapsed();
    session.run(&feed)?;
    let (limit, started) = (Duration::from_secs_f64(arguments.seconds), Instant::now());
    let mut times: Vec<Duration> = Vec::new();
    while times.len() < FEWEST || started.elapsed() < limit {
        let one = Instant::now();
        session.run(&feed)?;
        times.push(one.elapsed());
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    let after = ProcessMemory::read(&root);
    let mut step_times = StepTimes::default();
    for _ in 0..if arguments.steps { STEP_RUNS } else { 0 } {
        session.run_with(&feed, &mut step_times)?;
    }
    step_times.steps.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let cpu = Cpu::read(&root);
    let sensors = Sensors::read(&root, &cpu.affinity);
    let growth = after.peak.zip(before.resident).map(|(peak, base)| peak.saturating_sub(base) / 1024);
    let stages = session.stages();
    let isa = compiled.engine().devices().first().map_or("scalar".to_owned(), |(_, d)| d.name.clone());
    let temperature: Option<f64> = sensors.hottest().map(|t| t.celsius);
    let result: Value = json!({
        "model": arguments.model.model.to_string_lossy(),
        "median_ms": ms(at(0.5)),
        "min_ms": ms(at(0.0)),
        "p99_ms": ms(at(0.99)),
        "runs": times.len(),
        "first_ms": ms(first),
        "load_ms": ms(load),
        "peak_rss_kib": growth,
        "peak_rss_total_kib": after.peak.map(|b| b / 1024),
        "threads": compiled.engine().threads(),
        "isa": isa,
        "cpu": cpu.model,
        "cpu_features": cpu.features,
        "clock_khz": sensors.clock_khz(),
        "temperature_c": temperature,
        "assumed": gathered.sizes.as_json(),
        "arena_bytes": session.arena_bytes(),
        "shapes": types.iter().zip(&values).map(|((_, s), (n, _))| (n.clone(), json!(s.to_vec()))).collect::<serde_json::Map<_, _>>(),
        "steps": step_times.steps.iter().map(|(step, time)| {
            let mut step = report::step(step);
            step["ms"] = json!(ms(*time / STEP_RUNS));
            step
        }).collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("ARMET_COMMIT"),
    });
    if arguments.model.json {
        terminal.json(&result)?;
        return Ok(0);
    }
    terminal.line(format_args!(
        "{:.3} ms median, {:.3} min, {:.3} p99 over {} on {}, {isa}",
        ms(at(0.5)),
        ms(at(0.0)),
        ms(at(0.99)),
        output::count(times.len(), "run"),
        output::count(compiled.engine().threads(), "thread"),
    ))?;
    terminal.line(format_args!(
        "load and compile {:.1} ms, first run {:.2} ms, memory +{:.1} MiB",
        ms(load),
        ms(first),
        growth.unwrap_or(0) as f64 / 1024.0
    ))?;
    if arguments.steps {
        terminal.line("")?;
        terminal.line(step_table(&step_times.steps).trim_end())?;
    }
    terminal.note(report::summary(&stages));
    Ok(0)
}

fn step_table(steps: &[(StepReport, Duration)]) -> String {
    let total: Duration = steps.iter().map(|(_, time)| *time).sum();
    let rows: Vec<Vec<String>> = steps
        .iter()
        .take(SHOWN_STEPS)
        .map(|(step, time)| {
            let seconds = (*time / STEP_RUNS).as_secs_f64();
            vec![
                output::shorten(&output::clean(&step.node), 30),
                step.operator.to_owned(),
                output::shorten(&output::clean(&step.kernel), 34),
                format!("{:.3}", seconds * 1e3),
                format!("{:.1} %", 100.0 * time.as_secs_f64() / total.as_secs_f64().max(1e-12)),
                format!("{:.1}", step.cost.operations as f64 / seconds.max(1e-9) / 1e9),
            ]
        })
        .collect();
    output::table(&["slowest steps", "operator", "kernel", "ms", "share", "GOP/s"], &rows)
}
