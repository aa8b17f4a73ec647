//! Random graphs: by meaning, without passes, with passes by meaning, and as users run them.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use armet::{CompileSettings, Engine, Model, PASSES, ValueRef, graph_text};
use armet_graph::{Graph, Value, evaluate_graph};
use armet_tensor::{ElementType, Tensor};

use super::gap;
use super::generate::{Sample, generate};

/// Floats may differ by this share of the largest number: sums are taken in other orders, and a difference grows on its way.
fn tolerance(sample: &Sample) -> f64 {
    let constants = sample.graph.values().iter().filter_map(|value| value.constant.as_ref());
    let elements = constants.chain(sample.inputs.iter().filter_map(Value::tensor)).map(Tensor::element);
    let of = |element| match element {
        ElementType::F16 => 1e-2,
        ElementType::F32 | ElementType::F64 => 1e-3,
        // Brain floats, and floats of 8 bits and less.
        element if element.is_float() => 1e-1,
        _ => 1e-3,
    };
    elements.map(of).fold(1e-3, f64::max)
}

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
            catch_unwind(AssertUnwindSafe(f))
                .unwrap_or_else(|panic| Err(format!("panic: {}", crate::panic_words(panic.as_ref()))))
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
                        if gap.is_nan() || gap > tolerance(sample) {
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
                found
                    .is_ok_and(|found| wanted.iter().zip(&found).all(|(a, b)| gap(a, b) <= tolerance(sample)))
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

/// What was made and seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Graphs.
    pub graphs: u64,
    /// Their nodes.
    pub nodes: usize,
    /// How many graphs have an operator.
    pub operators: BTreeMap<&'static str, usize>,
    /// How often each pass rewrote something.
    pub passes: BTreeMap<&'static str, usize>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

impl Seen {
    fn count(&mut self, ways: &Ways, sample: &Sample) {
        self.graphs += 1;
        self.nodes += sample.graph.node_count();
        let operators: BTreeSet<_> = sample.graph.nodes().map(|(_, node)| node.op.kind().name()).collect();
        operators.into_iter().for_each(|name| *self.operators.entry(name).or_default() += 1);
        let model = Model::from_graph(sample.graph.clone());
        if let Ok(compiled) = ways.cpu.compile(&model, &CompileSettings::default()) {
            for pass in compiled.passes() {
                *self.passes.entry(pass.name).or_default() += pass.rewrites;
            }
        }
    }
}

/// Checks `count` graphs from seed `first` on; `heard` is told how far it is.
///
/// # Errors
/// When no engine can be made.
pub fn check(first: u64, count: u64, heard: &mut dyn FnMut(u64)) -> Result<Seen, String> {
    let ways = Ways::new()?;
    let mut seen = Seen::default();
    for seed in first..first + count {
        heard(seed - first + 1);
        let sample = match catch_unwind(|| generate(seed)) {
            Ok(sample) => sample,
            Err(panic) => {
                let what = format!("an operator panics by meaning: {}", crate::panic_words(panic.as_ref()));
                seen.faults.push(Fault { seed, what, graph: String::new() });
                continue;
            }
        };
        seen.count(&ways, &sample);
        if let Some(what) = ways.fault(&sample) {
            let (small, what) = shrink(&ways, &sample, what);
            let pass = ways.culprit(&small).map(|pass| format!(" (not without {pass})")).unwrap_or_default();
            seen.faults.push(Fault { seed, what: format!("{what}{pass}"), graph: graph_text(&small.graph) });
        }
    }
    Ok(seen)
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
