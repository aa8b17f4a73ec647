//! Running a loop: its body is a plan of its own, compiled for the types of what it is given and kept for the next turns.
//!
//! Values that a turn hands to the next are copied out of the body's arena, into one of two buffers each, since the next
//! turn writes that arena anew. Stacked results go straight to their place in the arena of the stage around the loop where
//! its size is known. From the second run with equal types on a loop allocates only what has no place in an arena.

use std::sync::Arc;
use std::time::{Duration, Instant};

use armet_graph::ops::{Loop, MOST_TURNS, stack};
use armet_graph::{Graph, Node, TensorType, Value, ValueType};
use armet_kernels::threads::Team;
use armet_tensor::storage::AlignedBytes;
use armet_tensor::{Bool, ElementType, Shape, Tensor, TensorView};
use smallvec::SmallVec;

use crate::compile::{CompileOptions, compile_for};
use crate::execute::StageState;
use crate::plan::Stage;
use crate::value_ref::Kind;
use crate::{Probe, RunError, ValueRef};

/// Plans of one body that are kept in any case.
const FEWEST_BODIES: usize = 4;
/// Plans of one body that are kept at most: a value that grows with each turn needs one for each length.
const MOST_BODIES: usize = 512;
/// Bytes of arenas up to which more than the fewest plans are kept.
const BODY_BYTES: usize = 64 << 20;

/// How a loop runs.
#[derive(Debug)]
pub struct LoopPlan {
    /// The loop's name.
    node: String,
    /// The body. Its inputs: the number of the turn, the carried values, values of the stage around it.
    graph: Graph,
    carried: usize,
    /// Which inputs of the loop are the body's inputs behind the carried values.
    outer: Vec<usize>,
    /// The body compiled for the types that were known beforehand.
    first: Option<(Vec<Kind>, Arc<Stage>)>,
    /// Which of the stage's loops it is.
    pub(crate) index: usize,
}

impl LoopPlan {
    pub(crate) fn new(graph: &Graph, node: &Node, op: &Loop, index: usize) -> Self {
        let mut body = (*op.body).clone();
        let ids = body.inputs().to_vec();
        let ty = |input: usize| node.input(input).map(|v| graph.value(v).ty.clone());
        // The body runs only while the condition holds.
        let condition = match ty(1).and_then(|ty| ty.shape()) {
            Some(shape) if shape.elements() == 1 => Tensor::new(shape, &[Bool(1)]).ok(),
            _ => None,
        };
        body.set_constant(ids[1], condition.unwrap_or_else(|| Tensor::scalar(Bool(1))));
        body.value_mut(ids[0]).ty = TensorType::fixed(ElementType::I64, &[]).into();
        let mut inputs = vec![ids[0]];
        let mut outer = Vec::new();
        for (index, &id) in ids.iter().enumerate().skip(2) {
            if let Some(ty) = ty(index) {
                body.value_mut(id).ty = ty;
            }
            let constant = node.input(index).and_then(|v| graph.constant(v));
            match constant.filter(|_| index >= 2 + op.carried) {
                Some(tensor) => body.set_constant(id, tensor.clone()),
                None => {
                    inputs.push(id);
                    if index >= 2 + op.carried {
                        outer.push(index);
                    }
                }
            }
        }
        body.set_inputs(inputs);
        Self { node: node.name.clone(), graph: body, carried: op.carried, outer, first: None, index }
    }

    /// The body's plan for the types that were known beforehand.
    pub(crate) fn first(&self) -> Option<&Arc<Stage>> {
        self.first.as_ref().map(|(_, stage)| stage)
    }

    /// Compiles the body for the types that are known. Faults are left to the run: it may be that no turn is run.
    pub(crate) fn prepare(&mut self, options: &CompileOptions<'_>) {
        let kinds: Option<Vec<Kind>> =
            self.graph.inputs().iter().map(|&id| Kind::of_type(&self.graph.value(id).ty)).collect();
        if let Some(kinds) = kinds
            && let Ok(stage) = self.compile(&kinds, options)
        {
            self.first = Some((kinds, Arc::new(stage)));
        }
    }

    fn compile(&self, kinds: &[Kind], options: &CompileOptions<'_>) -> Result<Stage, RunError> {
        let mut graph = self.graph.clone();
        for (&id, kind) in self.graph.inputs().iter().zip(kinds) {
            kind.set(&mut graph.value_mut(id).ty);
        }
        Ok(compile_for(graph, options, true)?)
    }
}

/// A value between turns.
#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Bytes(ElementType, Shape, AlignedBytes),
    Value(Value),
}

impl Held {
    fn get(&self) -> Option<ValueRef<'_>> {
        match self {
            Self::Nothing => None,
            Self::Bytes(element, shape, bytes) => {
                TensorView::new(*element, shape, bytes).ok().map(ValueRef::Tensor)
            }
            Self::Value(value) => Some(ValueRef::Value(value)),
        }
    }

    /// Takes a copy, in the same memory where it has the right size.
    fn set(&mut self, value: ValueRef<'_>) {
        let view = match value {
            ValueRef::Tensor(view) if view.element() != ElementType::String => view,
            other => {
                *self = Self::Value(other.to_value());
                return;
            }
        };
        match self {
            Self::Bytes(element, shape, bytes) if bytes.len() == view.bytes().len() => {
                *element = view.element();
                if shape.dims() != view.shape() {
                    *shape = Shape::new(view.shape());
                }
                bytes.copy_from_slice(view.bytes());
            }
            _ => {
                let bytes = AlignedBytes::copy_from(view.bytes());
                *self = Self::Bytes(view.element(), Shape::new(view.shape()), bytes);
            }
        }
    }

    fn is(&self, value: ValueRef<'_>) -> bool {
        match (self.get(), value) {
            (Some(ValueRef::Tensor(a)), ValueRef::Tensor(b)) => {
                std::ptr::eq(a.bytes(), b.bytes()) && a.shape() == b.shape()
            }
            _ => false,
        }
    }
}

/// Memory of a loop.
#[derive(Debug)]
pub(crate) struct LoopState {
    /// Last used first.
    bodies: Vec<(Vec<Kind>, StageState)>,
    turn: AlignedBytes,
    held: Vec<Held>,
    next: Vec<Held>,
    /// What the steps of the body took in this run.
    pub(crate) body_time: Duration,
}

impl LoopState {
    pub(crate) fn new() -> Self {
        Self {
            bodies: Vec::new(),
            turn: AlignedBytes::zeroed(size_of::<i64>()),
            held: Vec::new(),
            next: Vec::new(),
            body_time: Duration::ZERO,
        }
    }

    /// The plans of the body that the last run went through.
    pub(crate) fn stages(&self) -> Vec<&Arc<Stage>> {
        self.bodies.first().map(|(_, state)| state.stages()).unwrap_or_default()
    }

    pub(crate) fn arena_bytes(&self) -> usize {
        self.bodies.iter().map(|(_, state)| state.arena_bytes()).sum()
    }
}

/// Lets go of plans that were not used for longest, until there is room for another one with such an arena.
fn make_room(bodies: &mut Vec<(Vec<Kind>, StageState)>, arena: usize) {
    let mut bytes = arena + bodies.iter().map(|(_, state)| state.arena_bytes()).sum::<usize>();
    while bodies.len() >= MOST_BODIES || (bodies.len() >= FEWEST_BODIES && bytes > BODY_BYTES) {
        let Some((_, state)) = bodies.pop() else { return };
        bytes -= state.arena_bytes();
    }
}

/// What turns stack.
enum Stacked<'a> {
    /// In its place: what is filled so far, and the size of one turn's part.
    Place { bytes: &'a mut [u8], filled: usize },
    /// Where the number of turns is not known before: elements of whole bytes.
    Grows { bytes: Vec<u8>, first: Option<(ElementType, Shape)>, turns: usize },
    /// Texts and elements that share bytes.
    Apart(Vec<Tensor>),
    /// Nobody reads it.
    Unread,
}

/// What one run of a loop is given.
pub(crate) struct LoopRun<'a, 'p> {
    pub(crate) plan: &'a LoopPlan,
    /// The loop's inputs.
    pub(crate) reads: SmallVec<[Option<ValueRef<'a>>; 8]>,
    /// For each of its results that has a place in the arena, that place.
    pub(crate) places: SmallVec<[Option<&'a mut [u8]>; 4]>,
    /// The types of its results, where they are read.
    pub(crate) types: SmallVec<[Option<&'a ValueType>; 4]>,
    pub(crate) options: &'a CompileOptions<'p>,
    pub(crate) team: &'a Team,
    pub(crate) seed: u64,
}

/// The one whole number or truth value that a tensor is.
fn integer(value: ValueRef<'_>) -> Option<i64> {
    let view = value.view()?;
    match (view.element(), view.bytes()) {
        (ElementType::Bool, &[flag]) => Some(i64::from(flag)),
        (ElementType::I32, bytes) => bytes.try_into().ok().map(|bytes| i64::from(i32::from_le_bytes(bytes))),
        (ElementType::I64, bytes) => bytes.try_into().ok().map(i64::from_le_bytes),
        _ => None,
    }
}

impl LoopRun<'_, '_> {
    fn fault(&self, reason: impl Into<String>) -> RunError {
        RunError::Kernel { node: self.plan.node.clone(), reason: reason.into() }
    }

    fn read(&self, index: usize) -> Option<ValueRef<'_>> {
        self.reads.get(index).copied().flatten()
    }

    /// Runs all turns; gives the results that have no place in the arena.
    pub(crate) fn run(
        mut self,
        state: &mut LoopState,
        probe: &mut dyn Probe,
    ) -> Result<SmallVec<[Option<Value>; 4]>, RunError> {
        let carried = self.plan.carried;
        let one = |run: &Self, index: usize, what: &str| match run.read(index) {
            None => Ok(None),
            Some(value) => {
                integer(value).map(Some).ok_or_else(|| run.fault(format!("{what} must be one number")))
            }
        };
        let most = one(&self, 0, "the number of turns")?.map_or(u64::MAX, |n| u64::try_from(n).unwrap_or(0));
        let mut goes_on = one(&self, 1, "the condition")?.is_none_or(|c| c != 0);
        state.body_time = Duration::ZERO;
        state.held.resize_with(carried, Held::default);
        state.next.resize_with(carried, Held::default);
        // Carried values that are still those that the loop was given.
        let mut given: SmallVec<[bool; 8]> = SmallVec::from_elem(true, carried);
        let mut places = std::mem::take(&mut self.places);
        let wanted = self.types.len().max(carried);
        let mut stacked: SmallVec<[Stacked<'_>; 4]> = (carried..wanted)
            .map(|index| {
                let Some(ty) = self.types.get(index).copied().flatten() else { return Stacked::Unread };
                match places.get_mut(index).and_then(Option::take) {
                    Some(bytes) => Stacked::Place { bytes, filled: 0 },
                    None if ty.tensor().is_some_and(|t| t.element.byte_size().is_none()) => {
                        Stacked::Apart(Vec::new())
                    }
                    None => Stacked::Grows { bytes: Vec::new(), first: None, turns: 0 },
                }
            })
            .collect();
        let mut turn = 0u64;
        while goes_on && turn < most {
            if turn >= MOST_TURNS {
                return Err(RunError::Endless { node: self.plan.node.clone(), turns: turn });
            }
            goes_on = self.turn(turn, state, &mut given, &mut stacked, probe)?;
            turn += 1;
        }
        let mut results = SmallVec::new();
        for index in 0..self.types.len() {
            let value = if index < carried {
                let held = if given[index] { self.read(2 + index) } else { state.held[index].get() };
                let value = held.ok_or_else(|| self.fault(format!("carried value {index} is not there")))?;
                match places.get_mut(index).and_then(Option::take) {
                    Some(place) => {
                        let bytes = value.view().map(|view| view.bytes());
                        let bytes = bytes.filter(|b| b.len() == place.len()).ok_or_else(|| {
                            self.fault(format!("carried value {index} is not as large as foretold"))
                        })?;
                        place.copy_from_slice(bytes);
                        None
                    }
                    None => self.types[index].map(|_| value.to_value()),
                }
            } else {
                let stacked = std::mem::replace(&mut stacked[index - carried], Stacked::Unread);
                self.finish(stacked, self.types[index])?
            };
            results.push(value);
        }
        Ok(results)
    }

    /// One turn; gives whether there is to be another.
    fn turn(
        &self,
        turn: u64,
        state: &mut LoopState,
        given: &mut [bool],
        stacked: &mut [Stacked<'_>],
        probe: &mut dyn Probe,
    ) -> Result<bool, RunError> {
        let in_body = |source: RunError| match source {
            RunError::Stopped => RunError::Stopped,
            source => RunError::Body { node: self.plan.node.clone(), turn, source: Box::new(source) },
        };
        state.turn.copy_from_slice(&turn.to_le_bytes());
        let carried = self.plan.carried;
        let mut inputs: SmallVec<[ValueRef<'_>; 8]> = SmallVec::new();
        inputs.push(ValueRef::Tensor(TensorView::new(ElementType::I64, &[], &state.turn)?));
        for (index, &is_given) in given.iter().enumerate() {
            let value = if is_given { self.read(2 + index) } else { state.held[index].get() };
            inputs.push(value.ok_or_else(|| self.fault(format!("carried value {index} is not there")))?);
        }
        for &index in &self.plan.outer {
            inputs.push(self.read(index).ok_or_else(|| self.fault(format!("input {index} is not there")))?);
        }
        let fits = |kinds: &[Kind]| kinds.iter().zip(&inputs).all(|(kind, value)| kind.fits(*value));
        let at = match state.bodies.iter().position(|(kinds, _)| fits(kinds)) {
            Some(at) => at,
            None => {
                let (kinds, stage) = match &self.plan.first {
                    Some((kinds, stage)) if fits(kinds) => (kinds.clone(), Arc::clone(stage)),
                    _ => {
                        let kinds: Vec<Kind> = inputs.iter().map(|value| Kind::of(*value)).collect();
                        let stage = self.plan.compile(&kinds, self.options).map_err(in_body)?;
                        (kinds, Arc::new(stage))
                    }
                };
                make_room(&mut state.bodies, stage.arena_bytes);
                state.bodies.push((kinds, StageState::new(stage)?));
                state.bodies.len() - 1
            }
        };
        state.bodies[..=at].rotate_right(1);
        let body = &mut state.bodies[0].1;
        let seed = self.seed.wrapping_mul(31).wrapping_add(turn);
        let started = Instant::now();
        let ran = body.run(&inputs, self.options, self.team, seed, probe).map_err(in_body);
        state.body_time += started.elapsed();
        ran?;
        let result = |index: usize| {
            body.output(index, &inputs)
                .ok_or_else(|| self.fault(format!("result {index} of the body is not there")))
        };
        let goes_on = integer(result(0)?)
            .ok_or_else(|| self.fault("the first result of the body must be one truth value"))?;
        let mut kept: SmallVec<[bool; 8]> = SmallVec::new();
        for (index, next) in state.next.iter_mut().enumerate() {
            let value = result(1 + index)?;
            let same = !given[index] && state.held[index].is(value);
            if !same {
                next.set(value);
            }
            kept.push(same);
        }
        for (index, stacked) in stacked.iter_mut().enumerate() {
            if !matches!(stacked, Stacked::Unread) {
                self.push(stacked, result(1 + carried + index)?)?;
            }
        }
        drop(inputs);
        for (index, same) in kept.into_iter().enumerate() {
            if !same {
                std::mem::swap(&mut state.held[index], &mut state.next[index]);
                given[index] = false;
            }
        }
        Ok(goes_on != 0)
    }

    fn push(&self, stacked: &mut Stacked<'_>, value: ValueRef<'_>) -> Result<(), RunError> {
        let view = value.view().ok_or_else(|| self.fault("only tensors can be stacked by a loop"))?;
        match stacked {
            Stacked::Unread => {}
            Stacked::Apart(parts) => parts.push(view.to_tensor()),
            Stacked::Place { bytes, filled } => {
                let end = *filled + view.bytes().len();
                let place = bytes.get_mut(*filled..end);
                let place = place.ok_or_else(|| self.fault("stacked results are larger than foretold"))?;
                place.copy_from_slice(view.bytes());
                *filled = end;
            }
            Stacked::Grows { bytes, first, turns } => {
                let (element, shape) =
                    first.get_or_insert_with(|| (view.element(), Shape::new(view.shape())));
                if (*element, shape.dims()) != (view.element(), view.shape()) {
                    let found = Shape::new(view.shape());
                    return Err(self.fault(format!(
                        "a turn gave {}{found} to be stacked, the first one {element}{shape}",
                        view.element()
                    )));
                }
                let full = |_| self.fault("what the loop stacks does not fit in memory");
                bytes.try_reserve(view.bytes().len()).map_err(full)?;
                bytes.extend_from_slice(view.bytes());
                *turns += 1;
            }
        }
        Ok(())
    }

    fn finish(&self, stacked: Stacked<'_>, ty: Option<&ValueType>) -> Result<Option<Value>, RunError> {
        let nothing = || -> Result<Option<Value>, RunError> {
            let Some(ty) = ty.and_then(ValueType::tensor) else { return Ok(None) };
            // Without a turn nothing tells dimensions that data would decide: they are 0.
            let inner = ty.dims.iter().flatten().skip(1).map(|d| d.fixed().unwrap_or(0));
            let shape: Shape = std::iter::once(0).chain(inner).collect();
            Ok(Some(Tensor::zeros(ty.element, shape)?.into()))
        };
        match stacked {
            Stacked::Unread => Ok(None),
            Stacked::Place { bytes, filled } if filled == bytes.len() => Ok(None),
            Stacked::Place { .. } => Err(self.fault("stacked results are smaller than foretold")),
            Stacked::Apart(parts) if parts.is_empty() => nothing(),
            Stacked::Apart(parts) => {
                stack(&parts).map(|t| Some(t.into())).map_err(|error| self.fault(error.to_string()))
            }
            Stacked::Grows { first: None, .. } => nothing(),
            Stacked::Grows { bytes, first: Some((element, shape)), turns } => {
                let shape: Shape = std::iter::once(turns).chain(shape.iter().copied()).collect();
                Ok(Some(Tensor::from_bytes(element, shape, &bytes)?.into()))
            }
        }
    }
}
