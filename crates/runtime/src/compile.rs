//! From a graph with concrete inputs to a stage.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use armet_graph::infer::infer;
use armet_graph::passes::{self, LayoutChoice, LayoutPreference, PassOptions, PassReport};
use armet_graph::{Graph, NodeId, Op, Output, ValueId, ValueType};
use armet_tensor::{ElementType, Layout, Tensor};
use smallvec::SmallVec;

use crate::cut::{Cut, find_cut, split_rest};
use crate::memory::{Interval, lower_bound, plan_memory};
use crate::placement::{CUSTOM, Placement, REFERENCE, RUNTIME, Refusal, StepReport};
use crate::plan::{
    Continuation, Handover, Location, MemoryReport, OutputSource, Stage, Step, StepKind, ValueNote,
};
use crate::views::Views;
use crate::{
    Backend, CompileContext, CompileError, CompiledNode, LoopPlan, Lowered, NodeView, PackCache, Unsupported,
};

/// What compilation is asked for.
#[derive(Clone, Copy)]
pub struct CompileOptions<'a> {
    /// Backends in order of preference. What none of them takes is evaluated by meaning.
    pub backends: &'a [Arc<dyn Backend>],
    /// Passes that are not to run.
    pub disabled_passes: &'a [String],
    /// Called after each pass with the graph as it then is.
    pub after_pass: Option<&'a dyn Fn(&'static str, &Graph)>,
    /// Packed weights of this model.
    pub packs: &'a PackCache,
    /// Size of the team that will run the plan.
    pub threads: usize,
    /// Whether nodes that no backend takes may be evaluated by meaning.
    pub allow_reference: bool,
    /// The most bytes that one value, or all values alive at once, may take.
    pub memory_limit: Option<usize>,
}

impl std::fmt::Debug for CompileOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompileOptions")
            .field("backends", &self.backends)
            .field("disabled_passes", &self.disabled_passes)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Compiles a graph whose inputs have concrete types.
///
/// # Errors
/// See [`CompileError`].
pub fn compile(graph: Graph, options: &CompileOptions<'_>) -> Result<Stage, CompileError> {
    compile_for(graph, options, false)
}

/// As [`compile`]; `repeats` says whether it is for the body of a loop.
pub(crate) fn compile_for(
    mut graph: Graph,
    options: &CompileOptions<'_>,
    repeats: bool,
) -> Result<Stage, CompileError> {
    let mut reports = run_passes(&mut graph, options, None)?;
    let inference = infer(&mut graph)?;
    let cut = find_cut(&graph, &inference.cuts, repeats)?;
    let rest = (!cut.rest.is_empty()).then(|| split_rest(&mut graph, &cut));
    // Handed-over values count as results while this stage is laid out: the rest reads them in plain layout.
    let count = graph.outputs().len();
    let handed: &[ValueId] = rest.as_ref().map_or(&[], |(_, handed)| handed);
    let mut results = graph.outputs().to_vec();
    results.extend(handed.iter().map(|&value| Output { name: String::new(), value }));
    graph.set_outputs(results);
    let (mut graph, planner) = lay_out(graph, &cut, options, &mut reports)?;
    let mut plan = planner.plan(&graph, options.packs)?;
    if let Some(limit) = options.memory_limit.filter(|&limit| plan.memory.arena > limit) {
        let what = "what is alive at once in a run".to_owned();
        return Err(CompileError::OverLimit { what, bytes: plan.memory.arena, limit });
    }
    let results = graph.outputs().to_vec();
    plan.outputs = results[..count]
        .iter()
        .map(|o| OutputSource {
            name: o.name.clone(),
            location: plan.locations.get(&o.value).copied(),
            value: o.value,
        })
        .collect();
    let rest = rest.map(|(mut rest, handed)| {
        let handovers: Vec<Handover> = handed
            .iter()
            .zip(&results[count..])
            .filter_map(|(&value, now)| {
                let location = plan.locations.get(&now.value).copied()?;
                Some(Handover { value, source: now.value, location, decides: cut.deciders.contains(&value) })
            })
            .collect();
        rest.set_inputs(handovers.iter().map(|h| h.value).collect());
        Continuation { graph: rest, handovers }
    });
    graph.set_outputs(results[..count].to_vec());
    plan.placement.deferred = cut.rest.len();
    for step in &mut plan.steps {
        if let StepKind::Loop(body) = &mut step.kind {
            body.prepare(options);
        }
    }
    Ok(Stage {
        notes: notes(&graph),
        graph,
        constants: plan.constants,
        steps: plan.steps,
        arena_bytes: plan.memory.arena,
        slots: plan.slots,
        outputs: plan.outputs,
        placement: plan.placement,
        passes: reports,
        memory: plan.memory,
        rest,
        repeats,
    })
}

/// Assigns layouts and lowers every node. A node that no backend takes is evaluated by meaning, which needs plain values:
/// then layouts are assigned anew with that node kept plain.
fn lay_out(
    graph: Graph,
    cut: &Cut,
    options: &CompileOptions<'_>,
    reports: &mut Vec<PassReport>,
) -> Result<(Graph, Planner), CompileError> {
    let Some(layouts) = options.backends.iter().find_map(|b| b.layouts()) else {
        let planner = Planner::new(&graph, cut, options).map_err(Unlowered::into_error)?;
        return Ok((graph, planner));
    };
    let mut kept = KeptPlain { layouts, plain: HashSet::new() };
    loop {
        let mut laid_out = graph.clone();
        let report = run_passes(&mut laid_out, options, Some(&kept))?;
        match Planner::new(&laid_out, cut, options) {
            Ok(planner) => {
                reports.extend(report);
                return Ok((laid_out, planner));
            }
            Err(Unlowered::NeedsPlain(id, error)) => {
                if graph.get_node(id).is_none() || !kept.plain.insert(id) {
                    return Err(error);
                }
            }
            Err(Unlowered::Failed(error)) => return Err(error),
        }
    }
}

/// A backend's preferences, but for nodes that must be plain.
struct KeptPlain<'a> {
    layouts: &'a dyn LayoutPreference,
    plain: HashSet<NodeId>,
}

impl LayoutPreference for KeptPlain<'_> {
    fn preference(&self, graph: &Graph, node: NodeId) -> LayoutChoice {
        if self.plain.contains(&node) {
            LayoutChoice::PlainOnly
        } else {
            self.layouts.preference(graph, node)
        }
    }
}

/// Why lowering stopped.
enum Unlowered {
    /// This node would be evaluated by meaning if its values were plain.
    NeedsPlain(NodeId, CompileError),
    Failed(CompileError),
}

impl Unlowered {
    fn into_error(self) -> CompileError {
        match self {
            Self::NeedsPlain(_, error) | Self::Failed(error) => error,
        }
    }
}

impl<E: Into<CompileError>> From<E> for Unlowered {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn run_passes(
    graph: &mut Graph,
    options: &CompileOptions<'_>,
    layout: Option<&dyn LayoutPreference>,
) -> Result<Vec<PassReport>, CompileError> {
    let pass_options = PassOptions { disabled: options.disabled_passes, after: options.after_pass, layout };
    Ok(match layout {
        None => passes::run_all(graph, &pass_options)?,
        Some(_) => passes::run_layout(graph, &pass_options)?,
    })
}

fn notes(graph: &Graph) -> Vec<ValueNote> {
    graph
        .values()
        .iter()
        .map(|v| ValueNote {
            name: v.name.clone(),
            shape: v.ty.shape(),
            quantization: v.ty.tensor().and_then(|t| t.quantization.clone()),
            ty: v.ty.clone(),
            layout: v.layout,
        })
        .collect()
}

/// Whether a node only hands on values that are no tensors, or copies tensors from and to them.
fn hands_on(graph: &Graph, node: &armet_graph::Node) -> bool {
    let is_tensor = |v: &ValueId| graph.value(*v).ty.tensor().is_some();
    match node.op {
        Op::Sequence(_) | Op::Optional(_) | Op::SplitToSequence(_) | Op::ConcatFromSequence(_) => true,
        Op::Identity(_) => !node.inputs.iter().flatten().all(is_tensor),
        _ => false,
    }
}

fn has_text(graph: &Graph, node: &armet_graph::Node) -> bool {
    let is_text = |v: &ValueId| graph.value(*v).ty.tensor().is_some_and(|t| t.element == ElementType::String);
    node.inputs.iter().chain(&node.outputs).flatten().any(is_text)
}

/// A step whose values have no places yet.
struct Draft {
    kind: StepKind,
    node: NodeId,
    scratch: usize,
}

struct Planner {
    drafts: Vec<Draft>,
    views: Views,
    placement: Placement,
    /// Number of loops so far.
    loops: usize,
}

/// The parts of a stage that planning gives.
struct Planned {
    steps: Vec<Step>,
    constants: Vec<Tensor>,
    locations: HashMap<ValueId, Location>,
    slots: usize,
    placement: Placement,
    memory: MemoryReport,
    outputs: Vec<OutputSource>,
}

impl Planner {
    fn new(graph: &Graph, cut: &Cut, options: &CompileOptions<'_>) -> Result<Self, Unlowered> {
        let context = CompileContext { packs: options.packs, threads: options.threads };
        let mut planner =
            Self { drafts: Vec::new(), views: Views::default(), placement: Placement::default(), loops: 0 };
        for id in graph.order()? {
            let node = graph.node(id);
            check_sizes(graph, node, options.memory_limit)?;
            let mut refused: Vec<Refusal> = Vec::new();
            let mut compiled: Option<(crate::BackendId, Box<dyn CompiledNode>)> = None;
            let mut view = false;
            let own = matches!(node.op, Op::Loop(_)) || hands_on(graph, node);
            for backend in options.backends.iter().filter(|_| !own) {
                if cut.dynamic.contains(&id) {
                    refused.push(Refusal { backend: backend.id(), reason: Unsupported::RunTimeShape });
                    continue;
                }
                let lowered = backend.lower(NodeView { graph, id });
                view = lowered.as_ref().is_ok_and(|lowered| planner.views.take(graph, node, lowered));
                match lowered {
                    Ok(_) if view => {}
                    Ok(Lowered::Alias) => {
                        refused.push(Refusal { backend: backend.id(), reason: Unsupported::RunTimeShape });
                        continue;
                    }
                    Ok(_) if has_text(graph, node) => {
                        let reason = Unsupported::ElementType(ElementType::String);
                        refused.push(Refusal { backend: backend.id(), reason });
                        continue;
                    }
                    Ok(
                        Lowered::Kernel(lowering) | Lowered::Parts(_, lowering) | Lowered::Whole(lowering),
                    ) => {
                        compiled = Some((backend.id(), lowering.compile(&context)?));
                    }
                    Err(reason) => {
                        refused.push(Refusal { backend: backend.id(), reason });
                        continue;
                    }
                }
                break;
            }
            if view {
                planner.placement.aliases += 1;
                continue;
            }
            planner.add(graph, id, refused, compiled, options)?;
        }
        Ok(planner)
    }

    fn add(
        &mut self,
        graph: &Graph,
        id: NodeId,
        refused: Vec<Refusal>,
        compiled: Option<(crate::BackendId, Box<dyn CompiledNode>)>,
        options: &CompileOptions<'_>,
    ) -> Result<(), Unlowered> {
        let node = graph.node(id);
        let cost = node.op.cost(&types(graph, &node.inputs), &types(graph, &node.outputs));
        let plain = node
            .inputs
            .iter()
            .chain(&node.outputs)
            .flatten()
            .all(|v| graph.value(*v).layout == Layout::Plain);
        let (backend, kernel, kind, scratch) = match (compiled, &node.op) {
            (Some((backend, compiled)), _) => {
                let (kernel, scratch) = (compiled.kernel(), compiled.scratch_bytes());
                (backend, kernel, StepKind::Kernel(compiled), scratch)
            }
            (None, Op::Loop(op)) if plain => {
                let body = LoopPlan::new(graph, node, op, self.loops);
                self.loops += 1;
                (RUNTIME, "loop".to_owned(), StepKind::Loop(Box::new(body)), 0)
            }
            (None, Op::Custom(op)) if plain => {
                let kernel = format!("{} of {}", op.full_name(), op.source_name);
                (CUSTOM, kernel, StepKind::Evaluate(id), 0)
            }
            (None, _) if plain && hands_on(graph, node) => {
                (RUNTIME, "hand_on".to_owned(), StepKind::Evaluate(id), 0)
            }
            (None, _) => {
                let reasons = if refused.is_empty() {
                    "only the reference was asked for".to_owned()
                } else {
                    let reasons: Vec<_> =
                        refused.iter().map(|r| format!("{}: {}", r.backend, r.reason)).collect();
                    reasons.join("; ")
                };
                let error =
                    CompileError::Refused { node: node.name.clone(), operator: node.op.name(), reasons };
                if !options.allow_reference {
                    return Err(Unlowered::Failed(error));
                }
                if !plain {
                    return Err(Unlowered::NeedsPlain(id, error));
                }
                (REFERENCE, format!("evaluate_{}", node.op.name()), StepKind::Evaluate(id), 0)
            }
        };
        self.placement.steps.push(StepReport {
            node: node.name.clone(),
            operator: node.op.name(),
            absorbed: node.absorbed.clone(),
            backend,
            kernel,
            refused,
            outputs: node.outputs.iter().flatten().map(|v| graph.value(*v).ty.to_string()).collect(),
            cost,
        });
        self.views.given(&node.outputs, self.drafts.len(), matches!(kind, StepKind::Kernel(_)));
        self.drafts.push(Draft { kind, node: id, scratch });
        Ok(())
    }

    fn plan(mut self, graph: &Graph, packs: &PackCache) -> Result<Planned, CompileError> {
        let end = self.drafts.len();
        // The last step that reads each root value.
        let mut last: HashMap<ValueId, usize> = HashMap::new();
        for (index, draft) in self.drafts.iter().enumerate() {
            for value in graph.node(draft.node).inputs.iter().flatten() {
                last.insert(self.views.root(*value).0, index);
            }
        }
        for output in graph.outputs() {
            last.insert(self.views.root(output.value).0, end);
        }
        let mut locations: HashMap<ValueId, Location> = HashMap::new();
        for (index, &value) in graph.inputs().iter().enumerate() {
            locations.insert(value, Location::Input(index));
        }
        let (mut intervals, mut owners) = (Vec::<Interval>::new(), Vec::new());
        // The interval of each value in the arena that holds others.
        let mut wholes: HashMap<ValueId, usize> = HashMap::new();
        let mut slots = 0;
        let mut frees: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); end];
        for (index, draft) in self.drafts.iter().enumerate() {
            for &value in graph.node(draft.node).outputs.iter().flatten() {
                let root = self.views.root(value).0;
                let until = last.get(&root).copied().unwrap_or(index).max(index);
                if let Some(&whole) = wholes.get(&root) {
                    intervals[whole].last = intervals[whole].last.max(until);
                    continue;
                }
                if root != value {
                    wholes.insert(root, intervals.len());
                }
                let ty = graph.value(root).ty.tensor();
                // Texts have no size.
                let bytes = ty
                    .filter(|ty| ty.element != ElementType::String)
                    .and_then(armet_graph::TensorType::byte_len);
                let in_arena = match draft.kind {
                    StepKind::Kernel(_) => true,
                    StepKind::Loop(_) => {
                        bytes.is_some() && ty.is_some_and(|ty| ty.element.byte_size().is_some())
                    }
                    StepKind::Evaluate(_) => false,
                };
                if in_arena {
                    intervals.push(Interval { bytes: bytes.unwrap_or(0), first: index, last: until });
                    owners.push(Some(root));
                } else {
                    locations.insert(value, Location::Slot(slots));
                    if until < end {
                        frees[until].push(slots);
                    }
                    slots += 1;
                }
            }
            if draft.scratch > 0 {
                intervals.push(Interval { bytes: draft.scratch, first: index, last: index });
                owners.push(None);
            }
        }
        let plan = plan_memory(&intervals);
        let mut scratch_at: HashMap<usize, usize> = HashMap::new();
        for ((interval, owner), &offset) in intervals.iter().zip(&owners).zip(&plan.offsets) {
            match owner {
                Some(value) => {
                    locations.insert(*value, Location::Arena { offset, len: interval.bytes });
                }
                None => {
                    scratch_at.insert(interval.first, offset);
                }
            }
        }
        let mut constants: Vec<Tensor> = Vec::new();
        let mut find = |value: ValueId, locations: &mut HashMap<ValueId, Location>| {
            if let Some(location) = locations.get(&value) {
                return Ok::<_, CompileError>(Some(*location));
            }
            let Some(tensor) = graph.constant(value) else { return Ok(None) };
            constants.push(readable(tensor, graph.value(value).layout, packs)?);
            let location = Location::Constant(constants.len() - 1);
            locations.insert(value, location);
            Ok(Some(location))
        };
        let views = self.views.all();
        for &(value, _) in &views {
            let root = self.views.root(value).0;
            if let Some(location) = find(root, &mut locations)? {
                locations.insert(value, self.views.place(graph, value, location));
            }
        }
        for output in graph.outputs() {
            find(output.value, &mut locations)?;
        }
        let drafted: HashSet<ValueId> = self
            .drafts
            .iter()
            .flat_map(|draft| graph.node(draft.node).outputs.iter().flatten().copied())
            .collect();
        let mut aliases: Vec<SmallVec<[(ValueId, Location); 1]>> = vec![SmallVec::new(); end];
        for (value, complete) in views {
            if let (Some(step), Some(location)) = (complete, locations.get(&value))
                && !drafted.contains(&value)
            {
                aliases[step].push((value, *location));
            }
        }
        let mut steps = Vec::with_capacity(end);
        for (index, draft) in std::mem::take(&mut self.drafts).into_iter().enumerate() {
            let node = graph.node(draft.node);
            let mut reads = SmallVec::new();
            for value in &node.inputs {
                reads.push(value.map(|value| find(value, &mut locations)).transpose()?.flatten());
            }
            let writes: SmallVec<[Option<Location>; 1]> =
                node.outputs.iter().map(|v| v.and_then(|v| locations.get(&v).copied())).collect();
            let mut ranges: SmallVec<[(usize, usize); 4]> = writes
                .iter()
                .filter_map(|w| match w {
                    Some(Location::Arena { offset, len }) => Some((*offset, *len)),
                    _ => None,
                })
                .collect();
            if let Some(&offset) = scratch_at.get(&index) {
                ranges.push((offset, draft.scratch));
            }
            steps.push(Step {
                kind: draft.kind,
                node: draft.node,
                reads,
                writes,
                outputs: node.outputs.clone(),
                aliases: std::mem::take(&mut aliases[index]),
                ranges,
                frees: std::mem::take(&mut frees[index]),
            });
        }
        let memory = MemoryReport {
            arena: plan.total,
            scratch: intervals
                .iter()
                .zip(&owners)
                .filter(|(_, o)| o.is_none())
                .map(|(i, _)| i.bytes)
                .max()
                .unwrap_or(0),
            without_reuse: intervals.iter().map(|i| i.bytes).sum(),
            lower_bound: lower_bound(&intervals),
            constants: constants.iter().map(|t| t.bytes().len()).sum(),
        };
        let outputs = Vec::new();
        Ok(Planned { steps, constants, locations, slots, placement: self.placement, memory, outputs })
    }
}

/// Constants from this size on are copied once for all plans.
const LARGE: usize = 4096;

/// A constant as kernels read it in place: in memory order and aligned. Its shape stays logical.
fn readable(tensor: &Tensor, layout: Layout, packs: &PackCache) -> Result<Tensor, CompileError> {
    let permuted = layout != Layout::Plain && tensor.shape().len() >= 3;
    let is_aligned = tensor.bytes().as_ptr().addr().is_multiple_of(16);
    if tensor.element() == ElementType::String || (is_aligned && !permuted) {
        return Ok(tensor.clone());
    }
    let make = || aligned(&if permuted { laid_out(tensor, layout) } else { tensor.clone() });
    if tensor.bytes().len() < LARGE {
        return Ok(make());
    }
    // The same bytes may be another tensor's too, under another shape.
    let form = format!("{}{} in place {}", tensor.element(), tensor.shape(), layout.name());
    Ok(packs.get(tensor, &form, || Ok(make()))?.as_ref().clone())
}

fn laid_out(tensor: &Tensor, layout: Layout) -> Tensor {
    let memory = tensor.permuted(&layout.permutation(tensor.shape().len()));
    memory.and_then(|t| t.reshape(tensor.shape().clone()).ok()).unwrap_or_else(|| tensor.clone())
}

fn aligned(tensor: &Tensor) -> Tensor {
    if tensor.bytes().as_ptr().addr().is_multiple_of(16) {
        return tensor.clone();
    }
    Tensor::from_bytes(tensor.element(), tensor.shape().clone(), tensor.bytes())
        .unwrap_or_else(|_| tensor.clone())
}

fn types<'a>(graph: &'a Graph, values: &[Option<ValueId>]) -> SmallVec<[Option<&'a ValueType>; 4]> {
    values.iter().map(|v| v.map(|v| &graph.value(v).ty)).collect()
}

fn check_sizes(graph: &Graph, node: &armet_graph::Node, limit: Option<usize>) -> Result<(), CompileError> {
    for &value in node.outputs.iter().flatten() {
        let definition = graph.value(value);
        let Some(ty) = definition.ty.tensor() else { continue };
        let Some(shape) = ty.shape() else { continue };
        if ty.byte_len().is_none_or(|bytes| bytes > isize::MAX as usize / 4) {
            return Err(CompileError::TooLarge { value: definition.name.clone(), shape });
        }
        if let (Some(bytes), Some(limit)) = (ty.byte_len(), limit)
            && bytes > limit
        {
            let what = format!("value {}, {}{shape},", definition.name, ty.element);
            return Err(CompileError::OverLimit { what, bytes, limit });
        }
    }
    Ok(())
}
