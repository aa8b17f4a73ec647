//! A model made ready for an engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use armet_graph::passes::{self, PassOptions, PassReport};
use armet_graph::{Dim, Graph, ValueType};
use armet_kernels::threads::Team;
use armet_runtime::{Backend, CompileError, CompileOptions, PackCache, Stage, compile};
use armet_tensor::{ElementType, Shape};

use crate::{Engine, Model, Session, ValueSpec};

/// What to do besides the defaults when compiling.
#[derive(Clone, Default)]
pub struct CompileSettings {
    /// Shapes of inputs by name.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Numbers for named dimensions.
    pub dims: Vec<(String, usize)>,
    /// Passes that are not to run.
    pub disabled_passes: Vec<String>,
    /// Called after each pass with the graph as it then is.
    pub after_pass: Option<Arc<dyn Fn(&'static str, &Graph) + Send + Sync>>,
    /// Refuse models with nodes that no backend takes, rather than evaluate those by meaning.
    pub forbid_reference: bool,
}

impl std::fmt::Debug for CompileSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompileSettings")
            .field("shapes", &self.shapes)
            .field("dims", &self.dims)
            .field("disabled_passes", &self.disabled_passes)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    engine: Engine,
    graph: Graph,
    packs: PackCache,
    settings: CompileSettings,
    passes: Vec<PassReport>,
    outputs: Vec<ValueSpec>,
    duration: Duration,
}

/// A model made ready: simplified, its weights packed as plans need them. Cheap to clone; all clones and sessions share
/// the weights.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub(crate) shared: Arc<Shared>,
}

impl Compiled {
    pub(crate) fn new(
        engine: &Engine,
        model: &Model,
        settings: &CompileSettings,
    ) -> Result<Self, CompileError> {
        let started = Instant::now();
        let mut graph = Graph::clone(&model.graph);
        bind(&mut graph, settings)?;
        let after = settings.after_pass.as_deref();
        let after = after.map(|f| move |name: &'static str, graph: &Graph| f(name, graph));
        let options = PassOptions {
            disabled: &settings.disabled_passes,
            after: after.as_ref().map(|f| f as &dyn Fn(&'static str, &Graph)),
            layout: None,
        };
        let passes = passes::run_all(&mut graph, &options)?;
        let outputs = graph
            .outputs()
            .iter()
            .map(|o| ValueSpec { name: o.name.clone(), ty: graph.value(o.value).ty.clone() })
            .collect();
        let shared = Shared {
            engine: engine.clone(),
            graph,
            packs: PackCache::default(),
            settings: settings.clone(),
            passes,
            outputs,
            duration: started.elapsed(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The engine it was compiled for.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The graph after the passes that hold for every shape.
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// What those passes did.
    pub fn passes(&self) -> &[PassReport] {
        &self.shared.passes
    }

    /// How long they took.
    pub fn duration(&self) -> Duration {
        self.shared.duration
    }

    /// The inputs in order, with the shapes that were set.
    pub fn inputs(&self) -> Vec<ValueSpec> {
        let graph = &self.shared.graph;
        let spec = |&id| ValueSpec { name: graph.value(id).name.clone(), ty: graph.value(id).ty.clone() };
        graph.inputs().iter().map(spec).collect()
    }

    /// The outputs in order.
    pub fn outputs(&self) -> &[ValueSpec] {
        &self.shared.outputs
    }

    /// Number of weight tensors that have been packed so far.
    pub fn packed_weights(&self) -> usize {
        self.shared.packs.len()
    }

    /// Memory of its own for running this model.
    pub fn session(&self) -> Session {
        Session::new(self.clone(), Arc::clone(&self.shared.engine.team))
    }

    /// As [`Compiled::session`], on threads of its own rather than on those that the engine's sessions share: at least one,
    /// and at most as many as the engine has.
    pub fn session_with_threads(&self, threads: usize) -> Session {
        Session::new(self.clone(), Arc::new(Team::new(threads.clamp(1, self.shared.engine.threads().max(1)))))
    }

    /// The plan for these types of the inputs, in order.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub fn plan(&self, types: &[(ElementType, Shape)]) -> Result<Stage, CompileError> {
        let mut graph = self.shared.graph.clone();
        for (&id, (element, shape)) in self.shared.graph.inputs().iter().zip(types) {
            if let ValueType::Tensor(ty) = &mut graph.value_mut(id).ty {
                ty.element = *element;
                ty.dims = Some(shape.iter().map(|&d| Dim::Fixed(d)).collect());
            }
        }
        self.with_options(|options| compile(graph, options))
    }

    pub(crate) fn with_options<T>(&self, f: impl FnOnce(&CompileOptions<'_>) -> T) -> T {
        let shared = &*self.shared;
        let after = shared.settings.after_pass.as_deref();
        let after = after.map(|f| move |name: &'static str, graph: &Graph| f(name, graph));
        let backends: &[Arc<dyn Backend>] = &shared.engine.backends;
        f(&CompileOptions {
            backends,
            disabled_passes: &shared.settings.disabled_passes,
            after_pass: after.as_ref().map(|f| f as &dyn Fn(&'static str, &Graph)),
            packs: &shared.packs,
            threads: shared.engine.threads(),
            allow_reference: !shared.settings.forbid_reference,
            memory_limit: shared.engine.memory_limit,
        })
    }

    /// The concrete shapes of the inputs when every dimension was declared or set; free dimensions count as `free`.
    ///
    /// # Errors
    /// The name of an input that has no known rank.
    pub fn concrete_inputs(&self, free: usize) -> Result<Vec<(ElementType, Shape)>, String> {
        self.inputs()
            .into_iter()
            .map(|input| {
                // What a list or an optional value holds is not known before it is given.
                let Some(ty) = input.ty.tensor() else { return Ok((ElementType::F32, Shape::scalar())) };
                let dims = ty.dims.as_ref().ok_or_else(|| input.name.clone())?;
                Ok((ty.element, dims.iter().map(|d| d.fixed().unwrap_or(free)).collect()))
            })
            .collect()
    }
}

/// Sets the shapes and dimensions that were asked for.
fn bind(graph: &mut Graph, settings: &CompileSettings) -> Result<(), CompileError> {
    let names: Vec<String> = graph.inputs().iter().map(|&id| graph.value(id).name.clone()).collect();
    for (name, shape) in &settings.shapes {
        let Some(at) = names.iter().position(|n| n == name) else {
            return Err(CompileError::UnknownInput { given: name.clone(), expected: names.join(", ") });
        };
        let id = graph.inputs()[at];
        if let ValueType::Tensor(ty) = &mut graph.value_mut(id).ty {
            ty.dims = Some(shape.iter().map(|&d| Dim::Fixed(d)).collect());
        }
    }
    let mut symbols: Vec<String> = Vec::new();
    for &id in &graph.inputs().to_vec() {
        if let ValueType::Tensor(ty) = &mut graph.value_mut(id).ty {
            for dim in ty.dims.iter_mut().flatten() {
                if let Dim::Symbol(name) = dim {
                    symbols.push(name.to_string());
                }
                *dim = dim.substitute(&|name| {
                    settings.dims.iter().find(|(given, _)| given == name).map(|(_, value)| *value)
                });
            }
        }
    }
    if let Some((given, _)) = settings.dims.iter().find(|(given, _)| !symbols.contains(given)) {
        symbols.sort();
        symbols.dedup();
        return Err(CompileError::UnknownDim { given: given.clone(), expected: symbols.join(", ") });
    }
    Ok(())
}
