//! Suites that hold every backend to the operators' meaning.
//!
//! A [`Case`] of an operator becomes a graph of one node; what a backend makes of it is compared to `evaluate`.

#![forbid(unsafe_code)]

pub mod resources;
pub mod standard;
pub mod stress;

use std::sync::Arc;

use armet_graph::ops::numbers;
use armet_graph::{Case, Graph, TensorType, Tolerance, Value, evaluate_graph};
use armet_kernels::threads::Team;
use armet_runtime::{
    Backend, CompileOptions, NoProbe, PackCache, REFERENCE, Stage, StageState, ValueRef, compile,
};
use armet_tensor::Tensor;

/// What became of a case on a backend.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ran and agreed.
    Agreed {
        /// Kernels that ran.
        kernels: Vec<String>,
    },
    /// The backend has no kernel for it, with its reason; the reference would run it.
    Refused(String),
}

/// The graph of one case: inputs in order, constants where the case says so.
pub fn case_graph(case: &Case) -> (Graph, Vec<Value>) {
    let mut graph = Graph::new(&case.name);
    let mut feed = Vec::new();
    let inputs: Vec<_> = case
        .values()
        .into_iter()
        .enumerate()
        .map(|(index, value)| {
            let value = value?;
            if let (Value::Tensor(tensor), true) = (&value, case.constants.contains(&index)) {
                return Some(graph.add_constant(format!("constant{index}"), tensor.clone()));
            }
            // What a list holds is not known when a model is compiled.
            let ty = value.value_type()?;
            let ty = if value.tensor().is_some() { ty } else { ty.without_shapes() };
            feed.push(value);
            Some(graph.add_input(format!("input{index}"), ty))
        })
        .collect();
    let outputs: Vec<_> = (0..case.outputs)
        .map(|i| graph.add_value(format!("output{i}"), TensorType::unranked(armet_tensor::ElementType::F32)))
        .collect();
    graph.add_node("node", case.op.clone(), inputs, outputs.iter().map(|&o| Some(o)));
    for (index, output) in outputs.into_iter().enumerate() {
        graph.add_output(format!("output{index}"), output);
    }
    (graph, feed)
}

/// Runs a case on a backend and compares it to the operator's meaning.
///
/// # Errors
/// A sentence that says what differs.
pub fn check_case(case: &Case, backend: &Arc<dyn Backend>, threads: usize) -> Result<Outcome, String> {
    let (graph, feed) = case_graph(case);
    let expected = evaluate_graph(&graph, &feed, 0).map_err(|e| format!("the meaning fails: {e}"))?;
    let packs = PackCache::default();
    // Folding would leave nothing to run where all inputs are constants.
    let disabled = vec!["fold_constants".to_owned()];
    let backends = [Arc::clone(backend)];
    let options = CompileOptions {
        backends: &backends,
        disabled_passes: &disabled,
        after_pass: None,
        packs: &packs,
        threads,
        allow_reference: true,
        memory_limit: None,
    };
    let stage = Arc::new(compile(graph, &options).map_err(|e| format!("does not compile: {e}"))?);
    let mut state = StageState::new(Arc::clone(&stage)).map_err(|e| e.to_string())?;
    let team = Team::new(threads);
    let refs: Vec<ValueRef<'_>> = feed.iter().map(ValueRef::from).collect();
    for round in 0..2 {
        state.run(&refs, &options, &team, 0, &mut NoProbe).map_err(|e| format!("does not run: {e}"))?;
        for (index, expected) in expected.iter().enumerate() {
            let actual = state.output(index, &refs).ok_or("gives no result")?.to_value();
            compare(expected, &actual, case.tolerance)
                .map_err(|e| format!("output {index}, run {round}: {e}"))?;
        }
    }
    Ok(outcome(&state.stages()))
}

fn outcome(stages: &[&Arc<Stage>]) -> Outcome {
    let steps = || stages.iter().flat_map(|s| &s.placement.steps);
    if let Some(step) = steps().find(|s| s.backend == REFERENCE) {
        let reason = step.refused.first().map(|r| r.reason.to_string()).unwrap_or_default();
        return Outcome::Refused(reason);
    }
    Outcome::Agreed { kernels: steps().map(|s| s.kernel.clone()).collect() }
}

/// What a panic said.
pub fn panic_words(panic: &(dyn std::any::Any + Send)) -> &str {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}

/// Compares a result to what it should be.
///
/// # Errors
/// A sentence that says what differs.
pub fn compare(expected: &Value, actual: &Value, tolerance: Tolerance) -> Result<(), String> {
    let (Value::Tensor(expected), Value::Tensor(actual)) = (expected, actual) else {
        return if expected == actual { Ok(()) } else { Err("the values differ".into()) };
    };
    if expected.element() != actual.element() || expected.shape() != actual.shape() {
        return Err(format!("{actual:?} instead of {expected:?}"));
    }
    if !expected.strings().is_empty() || tolerance == Tolerance::Exact || !expected.element().is_float() {
        let steps = if let Tolerance::Steps(steps) = tolerance { f64::from(steps) } else { 0.0 };
        if expected == actual {
            return Ok(());
        }
        return within(expected, actual, steps);
    }
    let Tolerance::Relative(share) = tolerance else { return within(expected, actual, 0.0) };
    let values = numbers::to_f64(expected).map_err(|e| e.to_string())?;
    let largest = values.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
    within(expected, actual, f64::from(share) * largest.max(1e-30))
}

fn within(expected: &Tensor, actual: &Tensor, limit: f64) -> Result<(), String> {
    let e = numbers::to_f64(expected).map_err(|e| e.to_string())?;
    let a = numbers::to_f64(actual).map_err(|e| e.to_string())?;
    for (index, (e, a)) in e.iter().zip(&a).enumerate() {
        let equal = (e.is_nan() && a.is_nan()) || e == a || (e - a).abs() <= limit;
        if !equal {
            return Err(format!("element {index} is {a}, should be {e} within {limit:.3e}"));
        }
    }
    Ok(())
}
