//! Loops, conditionals and lists inside each other, as plans of the CPU backend against their meaning.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

use std::sync::Arc;
use std::time::Duration;

use armet_backend_cpu::Cpu;
use armet_graph::ops::{
    Binary, BinaryKind, Cast, Concat, Gather, Identity, If, Loop, Reduce, ReduceKind, Sequence, SequenceKind,
    ShapeOf, Size, Slice, Squeeze, Unary, UnaryKind, Unsqueeze,
};
use armet_graph::{Graph, Numbers, Op, TensorType, Tolerance, Value, ValueId, ValueType, evaluate_graph};
use armet_kernels::isa::Isas;
use armet_kernels::threads::Team;
use armet_runtime::{
    Backend, CompileOptions, PackCache, Probe, REFERENCE, RunError, StageState, StepReport, StepResult,
    ValueRef, compile,
};
use armet_tensor::{Bool, ElementType, Tensor};

/// What one test runs on.
struct Bench {
    backends: [Arc<dyn Backend>; 1],
    packs: PackCache,
    team: Team,
}

/// Counts steps by operator and asks to stop after some.
#[derive(Default)]
struct Steps {
    seen: Vec<(&'static str, bool)>,
    most: Option<usize>,
}

impl Probe for Steps {
    fn wants_results(&self) -> bool {
        false
    }

    fn wants_stop(&self) -> bool {
        self.most.is_some_and(|most| self.seen.len() >= most)
    }

    fn step(&mut self, report: &StepReport, _: Duration, _: &[StepResult<'_>]) {
        self.seen.push((report.operator, report.backend == REFERENCE));
    }
}

impl Bench {
    fn new() -> Self {
        let cpu: Arc<dyn Backend> = Arc::new(Cpu::new(Isas::detect()));
        Self { backends: [cpu], packs: PackCache::default(), team: Team::new(1) }
    }

    fn options(&self) -> CompileOptions<'_> {
        CompileOptions {
            backends: &self.backends,
            disabled_passes: &[],
            after_pass: None,
            packs: &self.packs,
            threads: 1,
            allow_reference: true,
            memory_limit: None,
        }
    }

    fn plan(&self, graph: &Graph, inputs: &[Value]) -> StageState {
        let mut graph = graph.clone();
        for (&id, value) in graph.inputs().to_vec().iter().zip(inputs) {
            if let Some(ty) = value.value_type() {
                graph.value_mut(id).ty = if value.tensor().is_some() { ty } else { ty.without_shapes() };
            }
        }
        StageState::new(Arc::new(compile(graph, &self.options()).unwrap())).unwrap()
    }

    fn run(
        &self,
        state: &mut StageState,
        inputs: &[Value],
        probe: &mut Steps,
    ) -> Result<Vec<Value>, RunError> {
        let refs: Vec<ValueRef<'_>> = inputs.iter().map(ValueRef::from).collect();
        state.run(&refs, &self.options(), &self.team, 0, probe)?;
        let count = state.stage().outputs.len();
        Ok((0..count).map(|index| state.output(index, &refs).unwrap().to_value()).collect())
    }

    /// Runs a graph twice and checks both results; gives the steps of a run.
    fn check(&self, graph: &Graph, inputs: &[Value]) -> Steps {
        let wanted = evaluate_graph(graph, inputs, 0).unwrap();
        let mut state = self.plan(graph, inputs);
        let mut steps = Steps::default();
        for _ in 0..2 {
            steps = Steps::default();
            for (wanted, found) in wanted.iter().zip(self.run(&mut state, inputs, &mut steps).unwrap()) {
                match (wanted, &found) {
                    (Value::Sequence(wanted), Value::Sequence(found)) => {
                        assert_eq!(wanted.len(), found.len());
                        for (wanted, found) in wanted.iter().zip(found) {
                            armet_conformance::compare(wanted, found, Tolerance::Relative(1e-6)).unwrap();
                        }
                    }
                    _ => armet_conformance::compare(wanted, &found, Tolerance::Relative(1e-6)).unwrap(),
                }
            }
        }
        steps
    }
}

impl Steps {
    fn count(&self, operator: &str) -> usize {
        self.seen.iter().filter(|(name, _)| *name == operator).count()
    }

    fn by_meaning(&self) -> Vec<&'static str> {
        self.seen.iter().filter(|(_, by_meaning)| *by_meaning).map(|(name, _)| *name).collect()
    }
}

fn floats() -> ValueType {
    TensorType::unranked(ElementType::F32).into()
}

fn list() -> ValueType {
    ValueType::Sequence(Box::new(floats()))
}

fn binary(kind: BinaryKind) -> Op {
    Binary { kind }.into()
}

/// A body with these carried and outer values; `fill` gives its results.
fn body(
    carried: &[ValueType],
    outer: &[ValueType],
    fill: impl FnOnce(&mut Graph, &[ValueId]) -> Vec<ValueId>,
) -> Box<Graph> {
    let mut graph = Graph::new("body");
    let mut ids = vec![
        graph.add_input("turn", TensorType::fixed(ElementType::I64, &[])),
        graph.add_input("condition", TensorType::fixed(ElementType::Bool, &[])),
    ];
    for (index, ty) in carried.iter().chain(outer).enumerate() {
        ids.push(graph.add_input(format!("v{index}"), ty.clone()));
    }
    for value in fill(&mut graph, &ids) {
        let name = graph.value(value).name.clone();
        graph.add_output(name, value);
    }
    Box::new(graph)
}

/// A graph with these inputs and one node, all of whose results are those of the graph.
fn around(op: impl Into<Op>, inputs: &[(&str, ValueType)], left_out: usize, results: &[ValueType]) -> Graph {
    let mut graph = Graph::new("graph");
    let ids: Vec<Option<ValueId>> = std::iter::repeat_n(None, left_out)
        .chain(inputs.iter().map(|(name, ty)| Some(graph.add_input(*name, ty.clone()))).collect::<Vec<_>>())
        .collect();
    let results: Vec<ValueId> =
        results.iter().enumerate().map(|(i, ty)| graph.add_value(format!("r{i}"), ty.clone())).collect();
    graph.add_node("node", op, ids, results.iter().map(|v| Some(*v)));
    for (index, value) in results.into_iter().enumerate() {
        graph.add_output(format!("r{index}"), value);
    }
    graph
}

fn integer() -> ValueType {
    TensorType::fixed(ElementType::I64, &[]).into()
}

fn truth() -> ValueType {
    TensorType::fixed(ElementType::Bool, &[]).into()
}

fn numbers(seed: u64, shape: &[usize]) -> Value {
    Numbers::new(seed).floats(shape, -1.0, 1.0).into()
}

fn turns(count: i64) -> Value {
    Tensor::scalar(count).into()
}

fn yes() -> Value {
    Tensor::scalar(Bool(1)).into()
}

#[test]
fn values_that_change_places_are_not_mixed_up() {
    // (a, b) becomes (b, a + b), and a is stacked: both results of a turn are read before either is overwritten.
    let body = body(&[floats(), floats()], &[], |g, ids| {
        let sum = g.add("sum", binary(BinaryKind::Add), [Some(ids[2]), Some(ids[3])]);
        vec![ids[1], ids[3], sum, ids[2]]
    });
    let op = Loop { body, carried: 2 };
    let inputs = [("n", integer()), ("c", truth()), ("a", floats()), ("b", floats())];
    let graph = around(op, &inputs, 0, &[floats(), floats(), floats()]);
    let bench = Bench::new();
    for count in [0, 1, 2, 7] {
        let inputs = [turns(count), yes(), numbers(1, &[3]), numbers(2, &[3])];
        let steps = bench.check(&graph, &inputs);
        assert_eq!((steps.count("Add"), steps.by_meaning()), (count as usize, vec![]));
    }
}

#[test]
fn growing_values_get_a_plan_for_each_length() {
    let body = body(&[floats()], &[floats()], |g, ids| {
        let longer = g.add("longer", Concat { axis: 0 }, [Some(ids[2]), Some(ids[3])]);
        let size = g.add("size", Size, [Some(longer)]);
        let limit = g.add_constant("limit", Tensor::scalar(30i64));
        let more = g.add("more", binary(BinaryKind::Less), [Some(size), Some(limit)]);
        let reduce = Reduce { kind: ReduceKind::Sum, keep_dims: false, noop_with_empty_axes: false };
        let sum = g.add("sum", reduce, [Some(longer)]);
        vec![more, longer, sum]
    });
    let op = Loop { body, carried: 1 };
    let graph = around(op, &[("state", floats()), ("more", floats())], 2, &[floats(), floats()]);
    let bench = Bench::new();
    let inputs = [numbers(1, &[2, 2]), numbers(2, &[1, 2])];
    let steps = bench.check(&graph, &inputs);
    assert_eq!((steps.count("Concat"), steps.by_meaning()), (13, vec![]));
    // What was planned is kept: a second run adds no plan.
    let mut state = bench.plan(&graph, &inputs);
    bench.run(&mut state, &inputs, &mut Steps::default()).unwrap();
    let arenas = state.arena_bytes();
    bench.run(&mut state, &inputs, &mut Steps::default()).unwrap();
    assert_eq!(state.arena_bytes(), arenas);
}

#[test]
fn a_conditional_in_a_loop_takes_its_branch_anew_in_each_turn() {
    let branch = |kind| {
        let mut graph = Graph::new("branch");
        let x = graph.add_input("x", floats());
        let y = graph.add("y", Unary { kind }, [Some(x)]);
        graph.add_output("y", y);
        Box::new(graph)
    };
    let body = body(&[floats()], &[floats()], |g, ids| {
        let reduce = Reduce { kind: ReduceKind::Sum, keep_dims: false, noop_with_empty_axes: false };
        let sum = g.add("sum", reduce, [Some(ids[2])]);
        let zero = g.add_constant("zero", Tensor::scalar(0f32));
        let positive = g.add("positive", binary(BinaryKind::Greater), [Some(sum), Some(zero)]);
        let choose = If { then_branch: branch(UnaryKind::Neg), else_branch: branch(UnaryKind::Exp) };
        let chosen = g.add("chosen", choose, [Some(positive), Some(ids[2])]);
        let next = g.add("next", binary(BinaryKind::Mul), [Some(chosen), Some(ids[3])]);
        vec![ids[1], next, positive]
    });
    let op = Loop { body, carried: 1 };
    let inputs = [("n", integer()), ("c", truth()), ("x", floats()), ("k", floats())];
    let graph = around(op, &inputs, 0, &[floats(), truth()]);
    let inputs = [turns(6), yes(), numbers(3, &[5]), numbers(4, &[5])];
    let steps = Bench::new().check(&graph, &inputs);
    assert_eq!(steps.by_meaning(), Vec::<&str>::new());
    assert!(steps.count("Neg") > 0 && steps.count("Exp") > 0, "{:?}", steps.seen);
    assert_eq!(steps.count("Neg") + steps.count("Exp"), 6);
}

#[test]
fn loops_in_loops_use_values_of_all_graphs_around_them() {
    // For each row of a matrix: as many products with it as its number says.
    let inner = body(&[floats()], &[floats()], |g, ids| {
        let next = g.add("next", binary(BinaryKind::Mul), [Some(ids[2]), Some(ids[3])]);
        vec![ids[1], next]
    });
    let outer = body(&[], &[floats(), floats()], |g, ids| {
        let row = g.add("row", Gather { axis: 0 }, [Some(ids[2]), Some(ids[0])]);
        let op = Loop { body: inner, carried: 1 };
        let power = g.add("power", op, [Some(ids[0]), None, Some(ids[3]), Some(row)]);
        vec![ids[1], power]
    });
    let op = Loop { body: outer, carried: 0 };
    let inputs = [("n", integer()), ("c", truth()), ("m", floats()), ("one", floats())];
    let graph = around(op, &inputs, 0, &[floats()]);
    let inputs = [turns(4), yes(), numbers(5, &[4, 3]), numbers(6, &[3])];
    let steps = Bench::new().check(&graph, &inputs);
    assert_eq!((steps.count("Mul"), steps.count("Loop"), steps.by_meaning()), (6, 5, vec![]));
}

#[test]
fn lists_pass_through_loops_and_their_items_have_any_shape() {
    let insert = Sequence { kind: SequenceKind::Insert };
    let body = body(&[list()], &[list(), floats()], |g, ids| {
        let item = g.add("item", Sequence { kind: SequenceKind::At }, [Some(ids[3]), Some(ids[0])]);
        let scaled = g.add("scaled", binary(BinaryKind::Mul), [Some(item), Some(ids[4])]);
        let longer = g.add_value("longer", list());
        g.add_node("longer", insert, [Some(ids[2]), Some(scaled)], [Some(longer)]);
        vec![ids[1], longer]
    });
    let op = Loop { body, carried: 1 };
    let inputs = [("n", integer()), ("c", truth()), ("none", list()), ("all", list()), ("k", floats())];
    let graph = around(op, &inputs, 0, &[list()]);
    let all =
        Value::Sequence(vec![numbers(1, &[2, 3]), numbers(2, &[]), numbers(3, &[4]), numbers(4, &[2, 3])]);
    let inputs = [turns(4), yes(), Value::Sequence(Vec::new()), all, numbers(5, &[])];
    let steps = Bench::new().check(&graph, &inputs);
    assert_eq!((steps.count("Mul"), steps.by_meaning()), (4, vec![]));
}

#[test]
fn parts_cut_out_by_the_number_of_the_turn_need_no_plan_of_their_own() {
    let body = body(&[floats()], &[floats()], |g, ids| {
        let axes = g.add_constant("axes", Tensor::vector(&[0i64]));
        let one = g.add_constant("one", Tensor::scalar(1i64));
        let start = g.add("start", Unsqueeze, [Some(ids[0]), Some(axes)]);
        let behind = g.add("behind", binary(BinaryKind::Add), [Some(ids[0]), Some(one)]);
        let end = g.add("end", Unsqueeze, [Some(behind), Some(axes)]);
        let part = g.add("part", Slice, [Some(ids[3]), Some(start), Some(end)]);
        let number = g.add("number", Cast { to: ElementType::F32, saturate: true }, [Some(ids[0])]);
        let part = g.add("scaled", binary(BinaryKind::Mul), [Some(part), Some(number)]);
        let next = g.add("next", binary(BinaryKind::Add), [Some(ids[2]), Some(part)]);
        vec![ids[1], next]
    });
    let op = Loop { body, carried: 1 };
    let inputs = [("n", integer()), ("c", truth()), ("sum", floats()), ("all", floats())];
    let graph = around(op, &inputs, 0, &[floats()]);
    let inputs = [turns(20), yes(), numbers(1, &[1, 3]), numbers(2, &[20, 3])];
    let bench = Bench::new();
    bench.check(&graph, &inputs);
    let mut state = bench.plan(&graph, &inputs);
    bench.run(&mut state, &inputs, &mut Steps::default()).unwrap();
    // The stage with the loop, and the two stages of its body: before and behind the part.
    assert_eq!(state.stages().len(), 3);
}

#[test]
fn the_length_of_a_scan_follows_from_that_of_its_sequence() {
    let body = body(&[], &[floats()], |g, ids| {
        let item = g.add("item", Gather { axis: 0 }, [Some(ids[2]), Some(ids[0])]);
        let out = g.add("out", Unary { kind: UnaryKind::Tanh }, [Some(item)]);
        let go_on = g.add_constant("go_on", Tensor::scalar(Bool(1)));
        vec![go_on, out]
    });
    let mut graph = Graph::new("scan");
    let ty = TensorType::new(ElementType::F32, [armet_graph::Dim::symbol("t"), 4usize.into()]);
    let x = graph.add_input("x", ty.clone());
    let length = graph.add("length", ShapeOf { start: 0, end: Some(1) }, [Some(x)]);
    let length = graph.add("turns", Squeeze, [Some(length)]);
    let y = graph.add("y", Loop { body, carried: 0 }, [Some(length), None, Some(x)]);
    graph.add_output("y", y);
    armet_graph::infer::infer(&mut graph).unwrap();
    assert_eq!(graph.value(y).ty, ty.into());
    let steps = Bench::new().check(&graph, &[numbers(1, &[5, 4])]);
    assert_eq!((steps.count("Tanh"), steps.by_meaning()), (5, vec![]));
}

#[test]
fn faults_name_the_node_of_the_body_and_the_turn() {
    // The second turn asks for an item that is not there.
    let body = body(&[], &[floats()], |g, ids| {
        let item = g.add("item", Gather { axis: 0 }, [Some(ids[2]), Some(ids[0])]);
        vec![ids[1], item]
    });
    let op = Loop { body, carried: 0 };
    let graph = around(op, &[("n", integer()), ("c", truth()), ("x", floats())], 0, &[floats()]);
    let bench = Bench::new();
    let inputs = [turns(3), yes(), numbers(1, &[1, 2])];
    let mut state = bench.plan(&graph, &inputs);
    let error = bench.run(&mut state, &inputs, &mut Steps::default()).unwrap_err().to_string();
    assert!(error.starts_with("in turn 1 of node: node item"), "{error}");
    // The state can be used again.
    let inputs = [turns(1), yes(), numbers(1, &[1, 2])];
    bench.run(&mut state, &inputs, &mut Steps::default()).unwrap();
}

#[test]
fn endless_loops_are_refused_or_can_be_stopped() {
    let endless = |known: bool| {
        let body = body(&[floats()], &[], |g, ids| {
            let next = g.add("next", Unary { kind: UnaryKind::Tanh }, [Some(ids[2])]);
            let go_on = if known {
                g.add("go_on", Identity, [Some(ids[1])])
            } else {
                g.add("go_on", binary(BinaryKind::Equal), [Some(ids[0]), Some(ids[0])])
            };
            vec![go_on, next]
        });
        let inputs = [("x", floats())];
        around(Loop { body, carried: 1 }, &inputs, 2, &[floats()])
    };
    let bench = Bench::new();
    let error = compile(endless(true), &bench.options()).unwrap_err().to_string();
    assert!(error.contains("never ends"), "{error}");
    let inputs = [numbers(1, &[2])];
    let mut state = bench.plan(&endless(false), &inputs);
    let mut probe = Steps { most: Some(100), ..Steps::default() };
    assert_eq!(bench.run(&mut state, &inputs, &mut probe), Err(RunError::Stopped));
}
