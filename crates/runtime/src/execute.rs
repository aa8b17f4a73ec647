//! Running a stage: a walk over its steps.

use std::sync::Arc;
use std::time::Instant;

use armet_graph::{Value, ValueId, evaluate_node};
use armet_kernels::threads::Team;
use armet_tensor::{Arena, Tensor, TensorView};
use smallvec::SmallVec;

use crate::compile::{CompileOptions, compile};
use crate::plan::{Location, Stage, Step, StepKind};
use crate::probe::StepResult;
use crate::{Bindings, Probe, RunError};

/// A borrowed value.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'a> {
    /// A tensor's bytes.
    Tensor(TensorView<'a>),
    /// Any value.
    Value(&'a Value),
}

impl<'a> ValueRef<'a> {
    /// The bytes of a tensor; none for anything else.
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Tensor(view) => Some(view.bytes()),
            Self::Value(Value::Tensor(tensor)) => Some(tensor.bytes()),
            Self::Value(_) => None,
        }
    }

    /// An owned copy; tensors that own their bytes are shared, not copied.
    pub fn to_value(self) -> Value {
        match self {
            Self::Tensor(view) => view.to_tensor().into(),
            Self::Value(value) => value.clone(),
        }
    }

    /// The tensor's view, when it is one.
    pub fn view(self) -> Option<TensorView<'a>> {
        match self {
            Self::Tensor(view) => Some(view),
            Self::Value(Value::Tensor(tensor)) => Some(tensor.view()),
            Self::Value(_) => None,
        }
    }
}

impl<'a> From<&'a Tensor> for ValueRef<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor.view())
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

impl<'a> From<TensorView<'a>> for ValueRef<'a> {
    fn from(view: TensorView<'a>) -> Self {
        Self::Tensor(view)
    }
}

/// How many continuations and plans for other shapes a session keeps at each point.
pub(crate) const KEPT_PLANS: usize = 4;

/// Memory of one stage.
#[derive(Debug)]
struct Core {
    stage: Arc<Stage>,
    arena: Arena,
    slots: Vec<Option<Value>>,
}

/// What a continuation was compiled for.
#[derive(Debug)]
struct Key(Vec<Value>);

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

impl Core {
    fn view<'a>(&'a self, value: ValueId, bytes: &'a [u8]) -> Option<ValueRef<'a>> {
        let ty = self.stage.notes[value.index()].ty.tensor()?;
        let shape = self.stage.shape(value)?;
        TensorView::new(ty.element, shape, bytes).ok().map(ValueRef::Tensor)
    }

    fn at<'a>(&'a self, value: ValueId, location: Location, inputs: &Inputs<'a>) -> Option<ValueRef<'a>> {
        match location {
            Location::Arena { offset, len } => self.view(value, self.arena.read(offset, len)),
            // Constants and inputs may be shown under another shape than their own: an alias of a reshape.
            Location::Constant(index) => {
                self.reshaped(value, ValueRef::Tensor(self.stage.constants[index].view()))
            }
            Location::Input(index) => {
                let given = inputs.get(index)?;
                self.reshaped(value, given)
            }
            Location::Slot(index) => self.reshaped(value, ValueRef::Value(self.slots[index].as_ref()?)),
        }
    }

    fn reshaped<'a>(&'a self, value: ValueId, found: ValueRef<'a>) -> Option<ValueRef<'a>> {
        let (Some(view), Some(shape)) = (found.view(), self.stage.shape(value)) else { return Some(found) };
        if view.shape() == shape.dims() || found.to_text() {
            return Some(found);
        }
        TensorView::new(view.element(), shape, view.bytes()).ok().map(ValueRef::Tensor)
    }

    fn run(
        &mut self,
        inputs: &Inputs<'_>,
        team: &Team,
        seed: u64,
        probe: &mut dyn Probe,
    ) -> Result<(), RunError> {
        let stage = Arc::clone(&self.stage);
        for (index, step) in stage.steps.iter().enumerate() {
            let started = Instant::now();
            match &step.kind {
                StepKind::Kernel(node) => {
                    let (arena, slots) = (&mut self.arena, &self.slots);
                    run_kernel(&stage, step, node.as_ref(), arena, slots, inputs, team)?;
                }
                StepKind::Evaluate(_) => self.evaluate(step, inputs, seed)?,
            }
            let duration = started.elapsed();
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

impl ValueRef<'_> {
    fn to_text(self) -> bool {
        matches!(self, Self::Value(Value::Tensor(tensor)) if !tensor.strings().is_empty())
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
            let copy = Tensor::from_bytes(armet_tensor::ElementType::U8, [bytes.len()], bytes)?;
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

impl StageState {
    /// Memory for a stage.
    pub fn new(stage: Arc<Stage>) -> Self {
        let arena = Arena::new(stage.arena_bytes);
        let slots = vec![None; stage.slots];
        Self { core: Core { stage, arena, slots }, children: Vec::new() }
    }

    /// The stage.
    pub fn stage(&self) -> &Arc<Stage> {
        &self.core.stage
    }

    /// The stages that the last run went through, first to last.
    pub fn stages(&self) -> Vec<&Arc<Stage>> {
        let mut out = vec![self.stage()];
        let mut at = self;
        while let (Some(_), Some(child)) = (&at.core.stage.rest, at.children.first()) {
            at = &child.state;
            out.push(at.stage());
        }
        out
    }

    /// Bytes of all arenas, continuations included.
    pub fn arena_bytes(&self) -> usize {
        self.core.arena.len() + self.children.iter().map(|c| c.state.arena_bytes()).sum::<usize>()
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
        self.core.run(inputs, team, seed, probe)?;
        if self.core.stage.rest.is_none() {
            return Ok(());
        }
        let at = match self.children.iter().position(|c| c.key.matches(&self.core, inputs)) {
            Some(at) => at,
            None => {
                let key = Key::of(&self.core, inputs)?;
                let state = continuation(&self.core, &key, inputs, options)?;
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
                return last.reshaped(source.value, *inputs.get(input)?);
            };
            let handover = outer.stage.input_handover(input)?;
            if !matches!(handover.location, Location::Input(_)) {
                let found = outer.at(handover.source, handover.location, &Inputs::User(&[]))?;
                return last.reshaped(source.value, found);
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
                Ok(match (handover.decides, found.view()) {
                    (true, _) | (false, None) => found.to_value(),
                    (false, Some(view)) => shape_of(&view).into(),
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    fn matches(&self, core: &Core, inputs: &Inputs<'_>) -> bool {
        let Some(rest) = core.stage.rest.as_ref() else { return false };
        rest.handovers.iter().zip(&self.0).all(|(handover, key)| {
            let Some(found) = core.at(handover.source, handover.location, inputs) else { return false };
            match (handover.decides, found.view(), key) {
                (true, Some(view), Value::Tensor(tensor)) => {
                    tensor.shape().dims() == view.shape()
                        && tensor.bytes() == view.bytes()
                        && !found.to_text()
                }
                (false, Some(view), Value::Tensor(shape)) => {
                    let dims = bytemuck_dims(shape);
                    dims.len() == view.shape().len()
                        && dims.iter().zip(view.shape()).all(|(a, b)| *a == *b as u64)
                }
                _ => matches!(found, ValueRef::Value(value) if value == key),
            }
        })
    }
}

/// A shape as a tensor, so that it can stand in a key.
fn shape_of(view: &TensorView<'_>) -> Tensor {
    let dims: SmallVec<[u64; 6]> = view.shape().iter().map(|&d| d as u64).collect();
    Tensor::vector(&dims)
}

fn bytemuck_dims(shape: &Tensor) -> std::borrow::Cow<'_, [u64]> {
    shape.expect::<u64>()
}

/// Compiles what follows a stage for the values at hand.
fn continuation(
    core: &Core,
    key: &Key,
    inputs: &Inputs<'_>,
    options: &CompileOptions<'_>,
) -> Result<StageState, RunError> {
    let rest = core.stage.rest.as_ref().ok_or_else(|| RunError::MissingInput("nothing follows".into()))?;
    let mut graph = rest.graph.clone();
    let mut graph_inputs = Vec::new();
    for (handover, value) in rest.handovers.iter().zip(&key.0) {
        if handover.decides {
            if let Value::Tensor(tensor) = value {
                graph.set_constant(handover.value, tensor.clone());
            }
            continue;
        }
        graph_inputs.push(handover.value);
        let found = core.at(handover.source, handover.location, inputs);
        let slot = &mut graph.value_mut(handover.value).ty;
        match (slot, found) {
            (armet_graph::ValueType::Tensor(ty), Some(found)) if found.view().is_some() => {
                if let Some(view) = found.view() {
                    ty.element = view.element();
                    ty.dims = Some(view.shape().iter().map(|&d| d.into()).collect());
                }
            }
            (slot, Some(ValueRef::Value(value))) => {
                if let Some(ty) = value.value_type() {
                    *slot = ty;
                }
            }
            _ => {}
        }
    }
    graph.set_inputs(graph_inputs);
    let stage = compile(graph, options)?;
    Ok(StageState::new(Arc::new(stage)))
}
