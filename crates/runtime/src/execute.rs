//! Running a stage: a walk over its steps.

use std::sync::Arc;
use std::time::Instant;

use armet_graph::{Value, ValueId, evaluate_node};
use armet_kernels::threads::Team;
use armet_tensor::{Arena, ElementType, Tensor, TensorView};
use smallvec::SmallVec;

use crate::compile::{CompileOptions, compile_for};
use crate::looping::{LoopRun, LoopState};
use crate::plan::{Location, Stage, Step, StepKind};
use crate::probe::StepResult;
use crate::value_ref::{Kind, ValueRef};
use crate::{Bindings, Probe, RunError};

/// How many continuations and plans for other shapes a session keeps at each point.
pub(crate) const KEPT_PLANS: usize = 4;

/// Memory of one stage.
#[derive(Debug)]
struct Core {
    stage: Arc<Stage>,
    arena: Arena,
    slots: Vec<Option<Value>>,
    loops: Vec<LoopState>,
}

/// What a continuation was compiled for: of each value that it takes over the contents, where they decide, or the kind.
#[derive(Debug)]
struct Key(Vec<Part>);

#[derive(Debug)]
enum Part {
    Contents(Value),
    Kind(Kind),
}

#[derive(Debug)]
struct Child {
    key: Key,
    state: StageState,
}

/// A stage with its memory, and the continuations compiled so far, last used first.
#[derive(Debug)]
pub struct StageState {
    core: Core,
    children: Vec<Child>,
}

/// Where a stage's inputs come from.
#[derive(Debug, Clone, Copy)]
enum Inputs<'a> {
    User(&'a [ValueRef<'a>]),
    Stage { core: &'a Core, up: &'a Inputs<'a> },
}

impl<'a> Inputs<'a> {
    fn get(&self, index: usize) -> Option<ValueRef<'a>> {
        match *self {
            Self::User(values) => values.get(index).copied(),
            Self::Stage { core, up } => {
                let handover = core.stage.input_handover(index)?;
                core.at(handover.source, handover.location, up)
            }
        }
    }
}

/// Shows bytes of an arena as the value that lies there.
fn view<'a>(stage: &'a Stage, value: ValueId, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
    let ty = stage.notes[value.index()].ty.tensor()?;
    let shape = stage.shape(value)?;
    TensorView::new(ty.element, shape, bytes).ok().map(ValueRef::Tensor)
}

/// A value under the shape that the stage knows it by: an alias of a reshape has another than the bytes it is.
fn reshaped<'a>(stage: &'a Stage, value: ValueId, found: ValueRef<'a>) -> Option<ValueRef<'a>> {
    let (Some(view), Some(shape)) = (found.view(), stage.shape(value)) else { return Some(found) };
    if view.shape() == shape.dims() {
        return Some(found);
    }
    view.with_shape(shape).ok().map(ValueRef::Tensor)
}

/// The value at a place; `read` gives bytes of the arena.
fn locate<'a>(
    stage: &'a Stage,
    slots: &'a [Option<Value>],
    inputs: &Inputs<'a>,
    value: ValueId,
    location: Location,
    read: impl Fn(usize, usize) -> Option<&'a [u8]>,
) -> Option<ValueRef<'a>> {
    match location {
        Location::Arena { offset, len } => view(stage, value, read(offset, len)?),
        Location::Constant(index) => reshaped(stage, value, ValueRef::Tensor(stage.constants[index].view())),
        Location::Input(index) => reshaped(stage, value, inputs.get(index)?),
        Location::Slot(index) => reshaped(stage, value, ValueRef::Value(slots[index].as_ref()?)),
    }
}

impl Core {
    fn at<'a>(&'a self, value: ValueId, location: Location, inputs: &Inputs<'a>) -> Option<ValueRef<'a>> {
        let read = |offset, len| Some(self.arena.read(offset, len));
        locate(&self.stage, &self.slots, inputs, value, location, read)
    }

    fn run(
        &mut self,
        inputs: &Inputs<'_>,
        options: &CompileOptions<'_>,
        team: &Team,
        seed: u64,
        probe: &mut dyn Probe,
    ) -> Result<(), RunError> {
        let stage = Arc::clone(&self.stage);
        for (index, step) in stage.steps.iter().enumerate() {
            if probe.wants_stop() {
                return Err(RunError::Stopped);
            }
            let started = Instant::now();
            match &step.kind {
                StepKind::Kernel(node) => {
                    let (arena, slots) = (&mut self.arena, &self.slots);
                    run_kernel(&stage, step, node.as_ref(), arena, slots, inputs, team)?;
                }
                StepKind::Evaluate(_) => self.evaluate(step, inputs, seed)?,
                StepKind::Loop(plan) => {
                    let seed = seed.wrapping_mul(31).wrapping_add(plan.index as u64);
                    self.repeat(&stage, step, plan, inputs, options, team, seed, probe)?;
                }
            }
            let mut duration = started.elapsed();
            if let StepKind::Loop(plan) = &step.kind {
                // The steps of the body tell their own times.
                duration = duration.saturating_sub(self.loops[plan.index].body_time);
            }
            let report = &stage.placement.steps[index];
            if probe.wants_results() {
                let results = self.results(&stage, step, inputs);
                probe.step(report, duration, &results);
            } else {
                probe.step(report, duration, &[]);
            }
            for &slot in &step.frees {
                self.slots[slot] = None;
            }
        }
        Ok(())
    }

    fn results<'a>(
        &'a self,
        stage: &'a Stage,
        step: &Step,
        inputs: &Inputs<'a>,
    ) -> SmallVec<[StepResult<'a>; 2]> {
        let written = step.outputs.iter().zip(&step.writes).filter_map(|(v, at)| Some(((*v)?, (*at)?)));
        written
            .chain(step.aliases.iter().copied())
            .filter_map(|(value, location)| {
                let note = &stage.notes[value.index()];
                Some(StepResult {
                    name: &note.name,
                    value: self.at(value, location, inputs)?,
                    layout: note.layout,
                    quantization: note.quantization.as_deref(),
                })
            })
            .collect()
    }

    fn repeat(
        &mut self,
        stage: &Stage,
        step: &Step,
        plan: &crate::LoopPlan,
        inputs: &Inputs<'_>,
        options: &CompileOptions<'_>,
        team: &Team,
        seed: u64,
        probe: &mut dyn Probe,
    ) -> Result<(), RunError> {
        let node = stage.graph.node(step.node);
        let (state, slots) = (&mut self.loops[plan.index], &self.slots);
        let mut split = self.arena.split(&step.ranges);
        let mut next = 0;
        let places = step.writes.iter().map(|write| match write {
            Some(Location::Arena { .. }) => {
                next += 1;
                split.take_write(next - 1)
            }
            _ => None,
        });
        let places = places.collect();
        let read = |offset, len| split.read(offset, len);
        let reads = node.inputs.iter().zip(&step.reads);
        let reads = reads
            .map(|(value, location)| locate(stage, slots, inputs, (*value)?, (*location)?, read))
            .collect();
        let types = node.outputs.iter().map(|v| v.map(|v| &stage.notes[v.index()].ty)).collect();
        let run = LoopRun { plan, reads, places, types, options, team, seed };
        let results = run.run(state, probe)?;
        for (write, value) in step.writes.iter().zip(results) {
            if let Some(Location::Slot(slot)) = write {
                self.slots[*slot] = value;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, step: &Step, inputs: &Inputs<'_>, seed: u64) -> Result<(), RunError> {
        let StepKind::Evaluate(id) = step.kind else { return Ok(()) };
        let stage = Arc::clone(&self.stage);
        let node = stage.graph.node(id);
        let mut values: SmallVec<[Option<Value>; 4]> = SmallVec::new();
        for (value, location) in node.inputs.iter().zip(&step.reads) {
            values.push(match (value, location) {
                (Some(value), Some(Location::Constant(index))) => {
                    let tensor = &stage.constants[*index];
                    let shown = stage.shape(*value).map(|shape| tensor.reshape(shape.clone()));
                    Some(shown.transpose()?.unwrap_or_else(|| tensor.clone()).into())
                }
                (Some(value), Some(location)) => self.at(*value, *location, inputs).map(ValueRef::to_value),
                _ => None,
            });
        }
        let inputs: SmallVec<[Option<&Value>; 4]> = values.iter().map(Option::as_ref).collect();
        let seed = seed.wrapping_mul(31).wrapping_add(id.index() as u64);
        let outputs = evaluate_node(&stage.graph, id, &inputs, seed).map_err(|source| {
            RunError::Evaluate { node: node.name.clone(), operator: node.op.name(), source }
        })?;
        for (write, output) in step.writes.iter().zip(outputs) {
            if let Some(Location::Slot(slot)) = write {
                self.slots[*slot] = Some(output);
            }
        }
        Ok(())
    }
}

fn run_kernel(
    stage: &Stage,
    step: &Step,
    node: &dyn crate::CompiledNode,
    arena: &mut Arena,
    slots: &[Option<Value>],
    inputs: &Inputs<'_>,
    team: &Team,
) -> Result<(), RunError> {
    // Bytes of an input may be misaligned for its elements; such a copy is the one allocation of a run.
    let mut copies: SmallVec<[(usize, Tensor); 1]> = SmallVec::new();
    let mut split = arena.split(&step.ranges);
    let mut reads: SmallVec<[Option<&[u8]>; 8]> = SmallVec::new();
    for (index, location) in step.reads.iter().enumerate() {
        let missing = || RunError::Kernel {
            node: stage.placement.steps.get(index).map_or_else(String::new, |r| r.node.clone()),
            reason: "a value that it reads is not there".into(),
        };
        let bytes = match location {
            None => None,
            Some(Location::Arena { offset, len }) => Some(split.read(*offset, *len).ok_or_else(missing)?),
            Some(Location::Constant(index)) => Some(stage.constants[*index].bytes()),
            Some(Location::Input(index)) => {
                Some(inputs.get(*index).and_then(ValueRef::bytes).ok_or_else(missing)?)
            }
            Some(Location::Slot(slot)) => {
                let value = slots[*slot].as_ref().map(ValueRef::Value);
                Some(value.and_then(ValueRef::bytes).ok_or_else(missing)?)
            }
        };
        if let Some(bytes) = bytes
            && bytes.as_ptr().addr() % 16 != 0
            && !bytes.is_empty()
        {
            let copy = Tensor::from_bytes(ElementType::U8, [bytes.len()], bytes)?;
            copies.push((index, copy));
        }
        reads.push(bytes);
    }
    for (index, copy) in &copies {
        reads[*index] = Some(copy.bytes());
    }
    let mut next = 0;
    let mut outputs: SmallVec<[Option<&mut [u8]>; 4]> = SmallVec::new();
    for write in &step.writes {
        outputs.push(if matches!(write, Some(Location::Arena { .. })) {
            next += 1;
            split.take_write(next - 1)
        } else {
            None
        });
    }
    let scratch = split.take_write(next);
    node.run(&mut Bindings { inputs: reads, outputs, scratch, team })
}

/// An arena of at least so many bytes: this one, or where it is too small, a new one in its place.
fn at_least(arena: Arena, bytes: usize) -> Result<Arena, crate::CompileError> {
    if arena.len() >= bytes {
        return Ok(arena);
    }
    drop(arena);
    let what = || "the values of a run".to_owned();
    Arena::try_new(bytes).ok_or_else(|| crate::CompileError::OutOfMemory { what: what(), bytes })
}

impl StageState {
    /// Memory for a stage.
    ///
    /// # Errors
    /// [`CompileError::OutOfMemory`](crate::CompileError::OutOfMemory).
    pub fn new(stage: Arc<Stage>) -> Result<Self, crate::CompileError> {
        Self::with_arena(stage, Arena::default())
    }

    /// As [`StageState::new`], with an arena that is there already; a larger one takes its place where it is too small.
    ///
    /// # Errors
    /// As [`StageState::new`].
    pub fn with_arena(stage: Arc<Stage>, arena: Arena) -> Result<Self, crate::CompileError> {
        let arena = at_least(arena, stage.arena_bytes)?;
        let slots = vec![None; stage.slots];
        let loops = stage.steps.iter().filter(|step| matches!(step.kind, StepKind::Loop(_)));
        let loops = loops.map(|_| LoopState::new()).collect();
        Ok(Self { core: Core { stage, arena, slots, loops }, children: Vec::new() })
    }

    /// The stage.
    pub fn stage(&self) -> &Arc<Stage> {
        &self.core.stage
    }

    /// Gives the arena away, and with it the results of the last run. The next run makes a new one unless
    /// [`StageState::adopt`] brings one before.
    pub fn give_arena(&mut self) -> Arena {
        std::mem::take(&mut self.core.arena)
    }

    /// Takes an arena over, where it is larger than its own.
    pub fn adopt(&mut self, arena: Arena) {
        if arena.len() > self.core.arena.len() {
            self.core.arena = arena;
        }
    }

    /// The stages that the last run went through, first to last, each before those of the bodies of its loops.
    pub fn stages(&self) -> Vec<&Arc<Stage>> {
        let mut out = Vec::new();
        let mut at = self;
        loop {
            out.push(at.stage());
            out.extend(at.core.loops.iter().flat_map(LoopState::stages));
            match (&at.core.stage.rest, at.children.first()) {
                (Some(_), Some(child)) => at = &child.state,
                _ => return out,
            }
        }
    }

    /// Bytes of all arenas, those of continuations and bodies included.
    pub fn arena_bytes(&self) -> usize {
        let children: usize = self.children.iter().map(|c| c.state.arena_bytes()).sum();
        let bodies: usize = self.core.loops.iter().map(LoopState::arena_bytes).sum();
        self.core.arena.len() + children + bodies
    }

    /// Runs the stage and what follows on these inputs, in the order of the graph's inputs.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(
        &mut self,
        inputs: &[ValueRef<'_>],
        options: &CompileOptions<'_>,
        team: &Team,
        seed: u64,
        probe: &mut dyn Probe,
    ) -> Result<(), RunError> {
        self.run_from(&Inputs::User(inputs), options, team, seed, probe)
    }

    fn run_from(
        &mut self,
        inputs: &Inputs<'_>,
        options: &CompileOptions<'_>,
        team: &Team,
        seed: u64,
        probe: &mut dyn Probe,
    ) -> Result<(), RunError> {
        self.core.arena = at_least(std::mem::take(&mut self.core.arena), self.core.stage.arena_bytes)?;
        self.core.run(inputs, options, team, seed, probe)?;
        if self.core.stage.rest.is_none() {
            return Ok(());
        }
        let at = match self.children.iter().position(|c| c.key.matches(&self.core, inputs)) {
            Some(0) => 0,
            // Only one of them runs at a time: the arena goes from the one that ran last to the one that runs next.
            Some(at) => {
                let arena = self.children[0].state.give_arena();
                self.children[at].state.adopt(arena);
                at
            }
            None => {
                let key = Key::of(&self.core, inputs)?;
                let stage = continuation(&self.core, &key, options)?;
                let arena = self.children.first_mut().map(|child| child.state.give_arena());
                let state = StageState::with_arena(stage, arena.unwrap_or_default())?;
                self.children.truncate(KEPT_PLANS - 1);
                self.children.push(Child { key, state });
                self.children.len() - 1
            }
        };
        self.children[..=at].rotate_right(1);
        let next = Inputs::Stage { core: &self.core, up: inputs };
        self.children[0].state.run_from(&next, options, team, seed, probe)
    }

    /// A result of the last run.
    pub fn output<'a>(&'a self, index: usize, inputs: &[ValueRef<'a>]) -> Option<ValueRef<'a>> {
        let mut path: SmallVec<[&Core; 4]> = SmallVec::from_slice(&[&self.core]);
        let mut at = self;
        while at.core.stage.outputs.get(index)?.location.is_none() {
            at = &at.children.first()?.state;
            path.push(&at.core);
        }
        let last = path.pop()?;
        let source = &last.stage.outputs[index];
        let (mut core, mut location) = (last, source.location?);
        // An input of a continuation is a value of the stage before, or in turn an input of that.
        while let Location::Input(input) = location {
            let Some(outer) = path.pop() else {
                return reshaped(&last.stage, source.value, *inputs.get(input)?);
            };
            let handover = outer.stage.input_handover(input)?;
            if !matches!(handover.location, Location::Input(_)) {
                let found = outer.at(handover.source, handover.location, &Inputs::User(&[]))?;
                return reshaped(&last.stage, source.value, found);
            }
            (core, location) = (outer, handover.location);
        }
        core.at(source.value, location, &Inputs::User(&[]))
    }
}

impl Key {
    /// What decides the continuation: contents of deciding values, shapes of the others.
    fn of(core: &Core, inputs: &Inputs<'_>) -> Result<Self, RunError> {
        let rest = core.stage.rest.as_ref();
        rest.map_or(&[][..], |rest| &rest.handovers)
            .iter()
            .map(|handover| {
                let found =
                    core.at(handover.source, handover.location, inputs).ok_or_else(|| RunError::Kernel {
                        node: core.stage.notes[handover.source.index()].name.clone(),
                        reason: "the value was not computed".into(),
                    })?;
                Ok(if handover.decides {
                    Part::Contents(found.to_value())
                } else {
                    Part::Kind(Kind::of(found))
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    fn matches(&self, core: &Core, inputs: &Inputs<'_>) -> bool {
        let Some(rest) = core.stage.rest.as_ref() else { return false };
        rest.handovers.iter().zip(&self.0).all(|(handover, part)| {
            let Some(found) = core.at(handover.source, handover.location, inputs) else { return false };
            match (part, found.view()) {
                (Part::Contents(Value::Tensor(tensor)), Some(view)) => {
                    tensor.shape().dims() == view.shape()
                        && tensor.bytes() == view.bytes()
                        && tensor.strings() == view.strings()
                }
                (Part::Contents(value), _) => matches!(found, ValueRef::Value(other) if other == value),
                (Part::Kind(kind), _) => kind.fits(found),
            }
        })
    }
}

/// Compiles what follows a stage for the values at hand.
fn continuation(core: &Core, key: &Key, options: &CompileOptions<'_>) -> Result<Arc<Stage>, RunError> {
    let rest = core.stage.rest.as_ref().ok_or_else(|| RunError::MissingInput("nothing follows".into()))?;
    let mut graph = rest.graph.clone();
    let mut graph_inputs = Vec::new();
    for (handover, part) in rest.handovers.iter().zip(&key.0) {
        match part {
            Part::Contents(Value::Tensor(tensor)) => graph.set_constant(handover.value, tensor.clone()),
            Part::Contents(_) => {}
            Part::Kind(kind) => {
                graph_inputs.push(handover.value);
                kind.set(&mut graph.value_mut(handover.value).ty);
            }
        }
    }
    graph.set_inputs(graph_inputs);
    Ok(Arc::new(compile_for(graph, options, core.stage.repeats)?))
}
