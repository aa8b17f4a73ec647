//! Random graphs: by meaning, without passes, with passes by meaning, and as users run them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use armet::{CompileSettings, Engine, Model, PASSES, ValueRef, graph_text};
use armet_graph::{Graph, Value, evaluate_graph};

use super::gap;
use super::generate::{Sample, generate};

/// Floats may differ by this share of the largest number: sums are taken in other orders.
const TOLERANCE: f64 = 1e-3;

/// A graph whose results differ.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The seed that it came from.
    pub seed: u64,
    /// Which way of running it is wrong, and how.
    pub what: String,
    /// The smallest part that shows it, as text.
    pub graph: String,
}

/// The ways to run a graph besides by its meaning.
struct Ways {
    cpu: Engine,
    reference: Engine,
    all_passes: Vec<String>,
}

impl Ways {
    fn new() -> Result<Self, String> {
        let engine =
            |backend: &str| Engine::builder().threads(1).backend(backend).build().map_err(|e| e.to_string());
        Ok(Self {
            cpu: engine("cpu")?,
            reference: engine("reference")?,
            all_passes: PASSES.iter().map(|pass| pass.name.to_owned()).collect(),
        })
    }

    /// What is wrong with a sample, if anything.
    fn fault(&self, sample: &Sample) -> Option<String> {
        let guarded = |f: &dyn Fn() -> Result<Vec<Value>, String>| {
            catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
                let words = panic.downcast_ref::<String>().cloned();
                Err(format!("panic: {}", words.unwrap_or_else(|| "no words".to_owned())))
            })
        };
        let wanted = guarded(&|| evaluate_graph(&sample.graph, &sample.inputs, 0).map_err(|e| e.to_string()));
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(error) => return Some(format!("by meaning: {error}")),
        };
        let ways: [(&str, &Engine, &[String]); 3] = [
            ("cpu without passes", &self.cpu, &self.all_passes),
            ("reference with passes", &self.reference, &[]),
            ("cpu with passes", &self.cpu, &[]),
        ];
        for (name, engine, disabled) in ways {
            match guarded(&|| run(engine, sample, disabled)) {
                Err(error) => return Some(format!("{name}: {error}")),
                Ok(found) => {
                    for (index, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
                        let gap = gap(wanted, found);
                        if gap.is_nan() || gap > TOLERANCE {
                            return Some(format!(
                                "{name}: output {index} is off by {gap:.1e} of its largest"
                            ));
                        }
                    }
                }
            }
        }
        None
    }

    /// The pass without which a fault is gone.
    fn culprit(&self, sample: &Sample) -> Option<&'static str> {
        let wanted = evaluate_graph(&sample.graph, &sample.inputs, 0).ok()?;
        PASSES.iter().map(|pass| pass.name).find(|name| {
            let disabled = [(*name).to_owned()];
            let run = AssertUnwindSafe(|| run(&self.cpu, sample, &disabled));
            catch_unwind(run).is_ok_and(|found| {
                found.is_ok_and(|found| wanted.iter().zip(&found).all(|(a, b)| gap(a, b) <= TOLERANCE))
            })
        })
    }
}

fn run(engine: &Engine, sample: &Sample, disabled: &[String]) -> Result<Vec<Value>, String> {
    let model = Model::from_graph(sample.graph.clone());
    let settings = CompileSettings { disabled_passes: disabled.to_vec(), ..CompileSettings::default() };
    let compiled = engine.compile(&model, &settings).map_err(|e| format!("does not compile: {e}"))?;
    let names = model.inputs();
    let feed: Vec<(&str, ValueRef<'_>)> =
        names.iter().zip(&sample.inputs).map(|(spec, value)| (spec.name.as_str(), value.into())).collect();
    let mut session = compiled.session();
    let outputs = session.run(&feed).map_err(|e| format!("does not run: {e}"))?;
    (0..outputs.len())
        .map(|i| outputs.at(i).map(ValueRef::to_value).ok_or_else(|| format!("output {i} is missing")))
        .collect()
}

/// Checks `count` graphs from seed `first` on; `heard` is told how far it is.
///
/// # Errors
/// When no engine can be made.
pub fn check(first: u64, count: u64, heard: &mut dyn FnMut(u64)) -> Result<Vec<Fault>, String> {
    let ways = Ways::new()?;
    let mut faults = Vec::new();
    for seed in first..first + count {
        let sample = generate(seed);
        if let Some(what) = ways.fault(&sample) {
            let (small, what) = shrink(&ways, &sample, what);
            let pass = ways.culprit(&small).map(|pass| format!(" (not without {pass})")).unwrap_or_default();
            faults.push(Fault { seed, what: format!("{what}{pass}"), graph: graph_text(&small.graph) });
        }
        heard(seed - first + 1);
    }
    Ok(faults)
}

/// The first value in order whose own part of the graph shows a fault.
fn shrink(ways: &Ways, sample: &Sample, what: String) -> (Sample, String) {
    let Ok(order) = sample.graph.order() else { return (sample.clone(), what) };
    for id in order {
        for &output in sample.graph.node(id).outputs.iter().flatten() {
            let mut graph = sample.graph.clone();
            graph.set_outputs(Vec::new());
            graph.add_output("output", output);
            let small = Sample { graph: without_idle_nodes(graph), inputs: sample.inputs.clone() };
            if let Some(what) = ways.fault(&small) {
                return (small, what);
            }
        }
    }
    (sample.clone(), what)
}

fn without_idle_nodes(mut graph: Graph) -> Graph {
    let Ok(order) = graph.order() else { return graph };
    for id in order.into_iter().rev() {
        let idle = graph
            .node(id)
            .outputs
            .iter()
            .flatten()
            .all(|&v| graph.consumers(v).is_empty() && !graph.is_output(v));
        if idle {
            graph.remove_node(id);
        }
    }
    graph
}
