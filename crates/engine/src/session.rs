//! Memory for running a model.

use std::sync::Arc;

use armet_graph::{TensorType, Value, ValueType};
use armet_kernels::threads::Team;
use armet_runtime::{NoProbe, Probe, RunError, Stage, StageState, ValueRef};
use armet_tensor::{ElementType, Shape};
use smallvec::SmallVec;

use crate::cancel::Limited;
use crate::{Compiled, RunLimits, Tensor};

/// How many plans for different shapes a session keeps.
const KEPT_PLANS: usize = 4;

#[derive(Debug)]
struct Planned {
    types: Vec<(ElementType, Shape)>,
    state: StageState,
}

/// Memory of its own for running a compiled model. One run at a time; several sessions run at once.
#[derive(Debug)]
pub struct Session {
    compiled: Compiled,
    /// Last used first.
    plans: Vec<Planned>,
    seed: u64,
    team: Arc<Team>,
}

type Values<'a> = SmallVec<[ValueRef<'a>; 8]>;

impl Session {
    pub(crate) fn new(compiled: Compiled, team: Arc<Team>) -> Self {
        Self { compiled, plans: Vec::new(), seed: 0, team }
    }

    /// Starts random operators from this number; each run with the same seed and inputs gives the same results.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// The model it runs.
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Runs on these inputs, given by name in any order.
    ///
    /// # Errors
    /// See [`RunError`]. The session can be used again after an error.
    pub fn run<'a>(&'a mut self, inputs: &[(&str, ValueRef<'a>)]) -> Result<Outputs<'a>, RunError> {
        self.run_with(inputs, &mut NoProbe)
    }

    /// As [`Session::run`], telling `probe` about each step.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_with<'a>(
        &'a mut self,
        inputs: &[(&str, ValueRef<'a>)],
        probe: &mut dyn Probe,
    ) -> Result<Outputs<'a>, RunError> {
        let values = self.arrange(inputs)?;
        let at = match self.plans.iter().position(|p| matches(&p.types, &values)) {
            Some(0) => 0,
            // Only one plan runs at a time: the arena goes from the one that ran last to the one that runs next.
            Some(at) => {
                let arena = self.plans[0].state.give_arena();
                self.plans[at].state.adopt(arena);
                at
            }
            None => self.add_plan(&values)?,
        };
        self.plans[..=at].rotate_right(1);
        let team = Arc::clone(&self.team);
        let (plan, seed) = (&mut self.plans[0], self.seed);
        self.compiled.with_options(|options| plan.state.run(&values, options, &team, seed, probe))?;
        Ok(Outputs { compiled: &self.compiled, state: &self.plans[0].state, inputs: values })
    }

    /// As [`Session::run_with`], ending early where a limit is reached: before the first step, or before the next.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_limited<'a>(
        &'a mut self,
        inputs: &[(&str, ValueRef<'a>)],
        limits: &RunLimits,
        probe: &mut dyn Probe,
    ) -> Result<Outputs<'a>, RunError> {
        if let Some(error) = limits.reached() {
            return Err(error);
        }
        let mut limited = Limited::new(limits, probe);
        match self.run_with(inputs, &mut limited) {
            Ok(outputs) => Ok(outputs),
            Err(error) => Err(limited.name(error)),
        }
    }

    /// Plans for these types without running, so that the first run finds the plan ready. Inputs that are no tensors have a
    /// place in the list, and what stands there does not matter.
    ///
    /// # Errors
    /// When they cannot be planned.
    pub fn prepare(&mut self, types: &[(ElementType, Shape)]) -> Result<(), RunError> {
        if self.plans.iter().any(|p| p.types == types) {
            return Ok(());
        }
        let graph = self.compiled.graph();
        if types.len() != graph.inputs().len() {
            return Err(RunError::Count { given: types.len(), expected: graph.inputs().len() });
        }
        for (&id, (element, shape)) in graph.inputs().iter().zip(types) {
            if let Some(ty) = graph.value(id).ty.tensor() {
                check_type(&graph.value(id).name, ty, *element, shape)?;
            }
        }
        self.push_plan(types.to_vec())?;
        Ok(())
    }

    /// The stages that the last run went through, or that were prepared.
    pub fn stages(&self) -> Vec<&Arc<Stage>> {
        self.plans.first().map(|p| p.state.stages()).unwrap_or_default()
    }

    /// Bytes of all its arenas.
    pub fn arena_bytes(&self) -> usize {
        self.plans.iter().map(|p| p.state.arena_bytes()).sum()
    }

    fn arrange<'a>(&self, inputs: &[(&str, ValueRef<'a>)]) -> Result<Values<'a>, RunError> {
        let graph = self.compiled.graph();
        let names = || graph.inputs().iter().map(|&id| graph.value(id).name.as_str());
        if let Some((given, _)) = inputs.iter().find(|(given, _)| !names().any(|n| n == *given)) {
            let expected = names().collect::<Vec<_>>().join(", ");
            return Err(RunError::UnknownInput { given: (*given).to_owned(), expected });
        }
        let repeated = |(at, (name, _)): &(usize, &(&str, ValueRef<'_>))| {
            inputs[..*at].iter().any(|(before, _)| before == name)
        };
        if let Some((_, (name, _))) = inputs.iter().enumerate().find(repeated) {
            return Err(RunError::RepeatedInput((*name).to_owned()));
        }
        graph
            .inputs()
            .iter()
            .map(|&id| {
                let declared = graph.value(id);
                let found = inputs.iter().find(|(name, _)| *name == declared.name);
                let value = found.ok_or_else(|| RunError::MissingInput(declared.name.clone()))?.1;
                let wrong = |actual: String| RunError::InputType {
                    name: declared.name.clone(),
                    expected: declared.ty.to_string(),
                    actual,
                };
                match (&declared.ty, value.view()) {
                    (ValueType::Tensor(ty), Some(view)) => {
                        check_type(&declared.name, ty, view.element(), view.shape())?;
                    }
                    (ValueType::Tensor(_), None) => return Err(wrong("a value that is no tensor".into())),
                    (ty, Some(view)) if !holds(ty, Some(view.element()), None) => {
                        return Err(wrong(format!("a tensor of {}", view.element())));
                    }
                    (ty, None) => {
                        let ValueRef::Value(given) = value else { return Err(wrong("nothing".into())) };
                        if !holds(ty, None, Some(given)) {
                            let found =
                                given.value_type().map_or("another value".into(), |ty| ty.to_string());
                            return Err(wrong(found));
                        }
                    }
                    (_, Some(_)) => {}
                }
                Ok(value)
            })
            .collect()
    }

    fn add_plan(&mut self, values: &[ValueRef<'_>]) -> Result<usize, RunError> {
        let types = values
            .iter()
            .map(|v| {
                v.view().map_or((ElementType::F32, Shape::scalar()), |v| (v.element(), v.shape().into()))
            })
            .collect();
        self.push_plan(types)
    }

    fn push_plan(&mut self, types: Vec<(ElementType, Shape)>) -> Result<usize, RunError> {
        let stage = self.compiled.plan(&types)?;
        self.plans.truncate(KEPT_PLANS - 1);
        // The arena of the plan that ran last is large enough or must be made anew.
        let arena = self.plans.first_mut().map(|plan| plan.state.give_arena());
        let state = StageState::with_arena(Arc::new(stage), arena.unwrap_or_default())?;
        self.plans.push(Planned { types, state });
        Ok(self.plans.len() - 1)
    }
}

/// Whether a value is of a declared type, shapes aside: a tensor of `element`, or another value. What is given for an
/// optional value may be the value itself.
fn holds(ty: &ValueType, element: Option<ElementType>, value: Option<&Value>) -> bool {
    match (ty, value) {
        (ValueType::Tensor(ty), None) => element == Some(ty.element),
        (ValueType::Tensor(ty), Some(Value::Tensor(tensor))) => tensor.element() == ty.element,
        (ValueType::Sequence(inner), Some(Value::Sequence(items))) => {
            items.iter().all(|item| holds(inner, None, Some(item)))
        }
        (ValueType::Optional(_), Some(Value::Optional(None))) => true,
        (ValueType::Optional(inner), Some(Value::Optional(Some(value)))) => holds(inner, None, Some(value)),
        (ValueType::Optional(inner), value) => holds(inner, element, value),
        _ => false,
    }
}

/// Refuses values of another element type or rank than the model declares; lengths are the model's own hints.
fn check_type(
    name: &str,
    declared: &TensorType,
    element: ElementType,
    shape: &[usize],
) -> Result<(), RunError> {
    if declared.element == element && declared.rank().is_none_or(|rank| rank == shape.len()) {
        return Ok(());
    }
    Err(RunError::InputType {
        name: name.to_owned(),
        expected: declared.to_string(),
        actual: format!("{element}{}", Shape::new(shape)),
    })
}

fn matches(types: &[(ElementType, Shape)], values: &[ValueRef<'_>]) -> bool {
    types.iter().zip(values).all(|((element, shape), value)| match value.view() {
        Some(view) => view.element() == *element && view.shape() == shape.dims(),
        None => true,
    })
}

/// Results of a run, borrowed from the session.
#[derive(Debug)]
pub struct Outputs<'a> {
    compiled: &'a Compiled,
    state: &'a StageState,
    inputs: Values<'a>,
}

impl<'a> Outputs<'a> {
    /// Number of results.
    pub fn len(&self) -> usize {
        self.compiled.outputs().len()
    }

    /// Whether the model has no results.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A result by position.
    pub fn at(&self, index: usize) -> Option<ValueRef<'a>> {
        self.state.output(index, &self.inputs)
    }

    /// A result by name.
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        self.at(self.compiled.outputs().iter().position(|o| o.name == name)?)
    }

    /// All results with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        let outputs = self.compiled.outputs();
        outputs.iter().enumerate().filter_map(|(i, o)| Some((o.name.as_str(), self.at(i)?)))
    }

    /// A result that is a tensor, copied.
    pub fn tensor(&self, name: &str) -> Option<Tensor> {
        match self.get(name)? {
            ValueRef::Tensor(view) => Some(view.to_tensor()),
            ValueRef::Value(value) => value.tensor().cloned(),
        }
    }
}
