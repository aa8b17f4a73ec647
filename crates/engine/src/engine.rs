//! A choice of backends and threads.

use std::sync::Arc;

use armet_backend_cpu::Cpu;
use armet_hardware::{Memory, Root};
use armet_kernels::isa::Isas;
use armet_kernels::threads::Team;
use armet_runtime::{Backend, DeviceInfo, REFERENCE};

use crate::{CompileError, CompileSettings, Compiled, EngineError, Model};

/// Where models run: backends in order of preference and one team of threads.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) backends: Arc<[Arc<dyn Backend>]>,
    pub(crate) team: Arc<Team>,
    pub(crate) memory_limit: Option<usize>,
}

/// How an engine is to be.
#[derive(Debug, Clone, Default)]
pub struct EngineBuilder {
    threads: Option<usize>,
    backend: Option<String>,
    isas: Option<Isas>,
    memory_limit: Option<usize>,
}

impl Engine {
    /// An engine with defaults to be changed.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    /// What each backend runs on.
    pub fn devices(&self) -> Vec<(armet_runtime::BackendId, DeviceInfo)> {
        self.backends.iter().map(|b| (b.id(), b.device())).collect()
    }

    /// Compiles a model: rewrites its graph and, when all shapes are known, plans it.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub fn compile(&self, model: &Model, settings: &CompileSettings) -> Result<Compiled, CompileError> {
        Compiled::new(self, model, settings)
    }
}

impl EngineBuilder {
    /// How many threads share the work of a run; by default as many as there are processors.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The one backend to run on (`cpu`, `reference`); by default all there are.
    #[must_use]
    pub fn backend(mut self, name: impl Into<String>) -> Self {
        self.backend = Some(name.into());
        self
    }

    /// The instruction sets that kernels may use; by default all that the processor has.
    #[must_use]
    pub fn isas(mut self, isas: Isas) -> Self {
        self.isas = Some(isas);
        self
    }

    /// The most bytes that the values of a run may take; by default the memory of the board, or the control groups' limit
    /// where that is less. A plan that needs more is refused before anything runs. Weights are not counted.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// The engine.
    ///
    /// # Errors
    /// When a backend is not there or the number of threads makes no sense.
    pub fn build(self) -> Result<Engine, EngineError> {
        let isas = self.isas.unwrap_or_else(Isas::detect);
        let backends: Vec<Arc<dyn Backend>> = match self.backend.as_deref() {
            None | Some("cpu") => vec![Arc::new(Cpu::new(isas))],
            Some(name) if name == REFERENCE.0 => Vec::new(),
            Some(name) => {
                return Err(EngineError::UnknownBackend {
                    name: name.to_owned(),
                    known: "cpu, reference".into(),
                });
            }
        };
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(available);
        if !(1..=1024).contains(&threads) {
            return Err(EngineError::Threads(threads));
        }
        let memory_limit = self.memory_limit.or_else(|| {
            let memory = Memory::read(&Root::default());
            let bytes = memory.total.into_iter().chain(memory.limit).min()?;
            usize::try_from(bytes).ok()
        });
        Ok(Engine { backends: backends.into(), team: Arc::new(Team::new(threads)), memory_limit })
    }
}
