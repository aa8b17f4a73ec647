//! Joins and cuts that need no step since their values lie in each other: when that is so, when not, and that results stay.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

use std::sync::Arc;
use std::time::Duration;

use armet_backend_cpu::Cpu;
use armet_graph::ops::{Binary, BinaryKind, Concat, Reshape, Slice, Split, Unary, UnaryKind};
use armet_graph::{Graph, Numbers, Op, TensorType, Tolerance, Value, ValueId, evaluate_graph};
use armet_kernels::isa::Isas;
use armet_kernels::threads::Team;
use armet_runtime::{
    Backend, CompileOptions, PackCache, Probe, StageState, StepReport, StepResult, ValueRef, compile,
};
use armet_tensor::{ElementType, Tensor};

/// The operators that ran, and every value that was seen, by name.
#[derive(Default)]
struct Seen {
    operators: Vec<&'static str>,
    values: Vec<(String, Value)>,
}

impl Probe for Seen {
    fn wants_results(&self) -> bool {
        true
    }

    fn wants_stop(&self) -> bool {
        false
    }

    fn step(&mut self, report: &StepReport, _: Duration, results: &[StepResult<'_>]) {
        self.operators.push(report.operator);
        self.values.extend(results.iter().map(|r| (r.name.to_owned(), r.value.to_value())));
    }
}

impl Seen {
    fn count(&self, operator: &str) -> usize {
        self.operators.iter().filter(|name| **name == operator).count()
    }
}

struct Built {
    graph: Graph,
    nodes: usize,
}

impl Built {
    fn new() -> Self {
        Self { graph: Graph::new("views"), nodes: 0 }
    }

    fn input(&mut self, name: &str, shape: &[usize]) -> ValueId {
        self.graph.add_input(name, TensorType::fixed(ElementType::F32, shape))
    }

    fn ints(&mut self, values: &[i64]) -> ValueId {
        self.nodes += 1;
        self.graph.add_constant(format!("ints{}", self.nodes), Tensor::vector(values))
    }

    fn several(&mut self, op: impl Into<Op>, inputs: &[ValueId], outputs: usize) -> Vec<ValueId> {
        self.nodes += 1;
        let (op, name) = (op.into(), format!("n{}", self.nodes));
        let results: Vec<ValueId> = (0..outputs)
            .map(|i| self.graph.add_value(format!("{name}_{i}"), TensorType::unranked(ElementType::F32)))
            .collect();
        let inputs: Vec<_> = inputs.iter().map(|v| Some(*v)).collect();
        self.graph.add_node(name, op, inputs, results.iter().map(|v| Some(*v)));
        results
    }

    fn node(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> ValueId {
        self.several(op, inputs, 1)[0]
    }

    fn unary(&mut self, kind: UnaryKind, input: ValueId) -> ValueId {
        self.node(Unary { kind }, &[input])
    }

    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.node(Binary { kind: BinaryKind::Add }, &[a, b])
    }

    fn concat(&mut self, parts: &[ValueId]) -> ValueId {
        self.node(Concat { axis: 0 }, parts)
    }

    fn slice(&mut self, x: ValueId, from: i64, to: i64) -> ValueId {
        let (from, to) = (self.ints(&[from]), self.ints(&[to]));
        self.node(Slice, &[x, from, to])
    }

    /// Runs the graph, checks every result and every value on the way, and says what ran.
    fn check(mut self, outputs: &[ValueId]) -> Seen {
        for (index, &value) in outputs.iter().enumerate() {
            self.graph.add_output(format!("out{index}"), value);
        }
        let mut random = Numbers::new(3);
        let inputs: Vec<Value> = self
            .graph
            .inputs()
            .iter()
            .map(|&id| random.floats(self.graph.value(id).ty.shape().unwrap(), -2.0, 2.0).into())
            .collect();
        let wanted = evaluate_graph(&self.graph, &inputs, 0).unwrap();
        let backends: [Arc<dyn Backend>; 1] = [Arc::new(Cpu::new(Isas::detect()))];
        let (packs, team) = (PackCache::default(), Team::new(2));
        let options = CompileOptions {
            backends: &backends,
            disabled_passes: &[],
            after_pass: None,
            packs: &packs,
            threads: 2,
            allow_reference: false,
            memory_limit: None,
        };
        let mut state = StageState::new(Arc::new(compile(self.graph.clone(), &options).unwrap())).unwrap();
        let refs: Vec<ValueRef<'_>> = inputs.iter().map(ValueRef::from).collect();
        let mut seen = Seen::default();
        for _ in 0..2 {
            seen = Seen::default();
            state.run(&refs, &options, &team, 0, &mut seen).unwrap();
            for (index, wanted) in wanted.iter().enumerate() {
                let found = state.output(index, &refs).unwrap().to_value();
                armet_conformance::compare(wanted, &found, Tolerance::Relative(1e-6)).unwrap();
            }
        }
        self.check_values(&seen, &inputs);
        seen
    }

    /// Every value that a step or a view gave is what evaluation of the graph up to it gives.
    fn check_values(&self, seen: &Seen, inputs: &[Value]) {
        for (name, found) in &seen.values {
            let Some(value) = self.graph.value_ids().find(|&v| self.graph.value(v).name == *name) else {
                continue;
            };
            let mut graph = self.graph.clone();
            graph.set_outputs(Vec::new());
            graph.add_output(name.clone(), value);
            let wanted = evaluate_graph(&graph, inputs, 0).unwrap();
            armet_conformance::compare(&wanted[0], found, Tolerance::Relative(1e-6))
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

#[test]
fn parts_are_cut_and_joined_without_a_step() {
    let mut b = Built::new();
    let x = b.input("x", &[1, 8, 4]);
    let y = b.unary(UnaryKind::Sqrt, x);
    let y = b.unary(UnaryKind::Abs, y);
    let parts = b.several(Split { axis: 1, parts: 2 }, &[y], 2);
    let left = b.unary(UnaryKind::Exp, parts[0]);
    let right = b.unary(UnaryKind::Neg, parts[1]);
    let joined = b.node(Concat { axis: 1 }, &[right, left]);
    let end = b.unary(UnaryKind::Floor, joined);
    let seen = b.check(&[end]);
    assert_eq!((seen.count("Split"), seen.count("Concat")), (0, 0), "{:?}", seen.operators);
}

#[test]
fn wholes_are_parts_of_wholes() {
    let mut b = Built::new();
    let x = b.input("x", &[4, 4]);
    let (p, q, r) = (b.unary(UnaryKind::Exp, x), b.unary(UnaryKind::Neg, x), b.unary(UnaryKind::Floor, x));
    let inner = b.concat(&[p, q]);
    // A name for the same bytes between the part and the whole.
    let shape = b.ints(&[8, 2, 2]);
    let seen_flat = b.node(Reshape { allow_zero: false }, &[inner, shape]);
    let shape = b.ints(&[8, 4]);
    let back = b.node(Reshape { allow_zero: false }, &[seen_flat, shape]);
    let outer = b.concat(&[back, r]);
    let (first, end) = (b.unary(UnaryKind::Ceil, inner), b.unary(UnaryKind::Ceil, outer));
    let seen = b.check(&[first, end, q]);
    assert_eq!(seen.count("Concat"), 0, "{:?}", seen.operators);
}

#[test]
fn a_part_that_is_read_after_the_join_keeps_its_numbers() {
    let mut b = Built::new();
    let x = b.input("x", &[64]);
    let early = b.unary(UnaryKind::Exp, x);
    let mut chain = b.unary(UnaryKind::Neg, x);
    for _ in 0..5 {
        chain = b.unary(UnaryKind::Floor, chain);
        chain = b.add(chain, x);
    }
    let joined = b.concat(&[early, chain]);
    let mut late = b.unary(UnaryKind::Abs, joined);
    late = b.slice(late, 32, 96);
    let again = b.add(late, early);
    let end = b.add(again, chain);
    let seen = b.check(&[end, joined]);
    assert_eq!((seen.count("Concat"), seen.count("Slice")), (0, 0), "{:?}", seen.operators);
}

#[test]
fn inputs_of_the_model_are_copied() {
    let mut b = Built::new();
    let (x, y) = (b.input("x", &[16]), b.input("y", &[16]));
    let e = b.unary(UnaryKind::Exp, y);
    let joined = b.concat(&[x, e]);
    let end = b.unary(UnaryKind::Floor, joined);
    assert_eq!(b.check(&[end]).count("Concat"), 1);
}

#[test]
fn a_value_that_is_in_twice_is_copied() {
    let mut b = Built::new();
    let x = b.input("x", &[16]);
    let e = b.unary(UnaryKind::Exp, x);
    let f = b.unary(UnaryKind::Neg, x);
    let twice = b.concat(&[e, e]);
    let (first, second) = (b.concat(&[e, f]), b.concat(&[f, e]));
    let sum = b.add(first, second);
    let end = b.add(sum, twice);
    // One of the two wholes of different values can have its parts.
    let seen = b.check(&[end]);
    assert_eq!(seen.count("Concat"), 2, "{:?}", seen.operators);
}

#[test]
fn parts_off_the_grid_are_copied() {
    let mut b = Built::new();
    let x = b.input("x", &[15]);
    let e = b.unary(UnaryKind::Exp, x);
    let lengths = b.ints(&[5, 10]);
    let parts = b.several(Split { axis: 0, parts: 2 }, &[e, lengths], 2);
    let joined = b.concat(&[parts[1], parts[0]]);
    let end = b.unary(UnaryKind::Floor, joined);
    let seen = b.check(&[end]);
    assert_eq!((seen.count("Split"), seen.count("Concat")), (1, 1), "{:?}", seen.operators);
}

#[test]
fn axes_behind_longer_ones_and_small_slices_are_copied() {
    let mut b = Built::new();
    let x = b.input("x", &[2, 64]);
    let (e, f) = (b.unary(UnaryKind::Exp, x), b.unary(UnaryKind::Neg, x));
    let joined = b.node(Concat { axis: 1 }, &[e, f]);
    let kept = b.unary(UnaryKind::Floor, joined);
    let y = b.input("y", &[64]);
    let long = b.unary(UnaryKind::Exp, y);
    let small = b.slice(long, 0, 4);
    let end = b.unary(UnaryKind::Floor, small);
    let seen = b.check(&[kept, end]);
    assert_eq!((seen.count("Concat"), seen.count("Slice")), (1, 1), "{:?}", seen.operators);
}
