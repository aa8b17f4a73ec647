//! The CPU backend: graph operators to kernels.
//!
//! `lower` is one function over the closed list of operators; each file of `ops` says which uses of its operator have
//! a kernel and prepares it. What is refused here is evaluated by the runtime's reference, with the reason on record.

#![forbid(unsafe_code)]

mod layouts;
mod lower;
mod ops;

use armet_kernels::isa::Isas;
use armet_runtime::{
    Backend, BackendId, Bindings, CompileContext, CompileError, CompiledNode, DeviceInfo, Lowered, NodeView,
    RunError, Unsupported,
};

/// The CPU backend with the instruction sets its kernels may use.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    isas: Isas,
}

impl Cpu {
    /// Its name.
    pub const ID: BackendId = BackendId("cpu");

    /// A backend whose kernels use these instruction sets.
    pub fn new(isas: Isas) -> Self {
        Self { isas }
    }
}

impl Backend for Cpu {
    fn id(&self) -> BackendId {
        Self::ID
    }

    fn device(&self) -> DeviceInfo {
        DeviceInfo {
            name: self.isas.best().to_string(),
            features: self.isas.iter().map(|isa| isa.to_string()).collect(),
        }
    }

    fn layouts(&self) -> Option<&dyn armet_graph::passes::LayoutPreference> {
        Some(self)
    }

    fn lower(&self, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
        lower::lower(*self, node)
    }
}

/// A kernel with everything it needs, as a function over buffers.
struct Prepared<F> {
    kernel: String,
    scratch: usize,
    run: F,
}

impl<F> CompiledNode for Prepared<F>
where
    F: Fn(&mut Bindings<'_>) -> Result<(), RunError> + Send + Sync,
{
    fn kernel(&self) -> String {
        self.kernel.clone()
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch
    }

    fn run(&self, bindings: &mut Bindings<'_>) -> Result<(), RunError> {
        (self.run)(bindings)
    }
}

/// A kernel that needs no preparation and cannot fail.
fn direct(kernel: impl Into<String>, run: impl Fn(&mut Bindings<'_>) + Send + Sync + 'static) -> Lowered {
    direct_with_scratch(kernel, 0, run)
}

/// A kernel that needs no preparation but scratch memory, in bytes.
fn direct_with_scratch(
    kernel: impl Into<String>,
    scratch: usize,
    run: impl Fn(&mut Bindings<'_>) + Send + Sync + 'static,
) -> Lowered {
    let kernel = kernel.into();
    Lowered::Kernel(Box::new(move |_: &CompileContext<'_>| {
        let run = move |bindings: &mut Bindings<'_>| {
            run(bindings);
            Ok(())
        };
        Ok(Box::new(Prepared { kernel, scratch, run }) as Box<dyn CompiledNode>)
    }))
}

/// A kernel that may refuse values while running.
fn fallible(
    kernel: impl Into<String>,
    scratch: usize,
    run: impl Fn(&mut Bindings<'_>) -> Result<(), RunError> + Send + Sync + 'static,
) -> Lowered {
    let kernel = kernel.into();
    Lowered::Kernel(Box::new(move |_: &CompileContext<'_>| {
        Ok(Box::new(Prepared { kernel, scratch, run }) as Box<dyn CompiledNode>)
    }))
}

/// A kernel whose weights are packed when the node is compiled.
fn packed<F>(
    prepare: impl FnOnce(&CompileContext<'_>) -> Result<(String, usize, F), CompileError> + 'static,
) -> Lowered
where
    F: Fn(&mut Bindings<'_>) + Send + Sync + 'static,
{
    packed_fallible(move |context: &CompileContext<'_>| {
        let (kernel, scratch, run) = prepare(context)?;
        let run = move |bindings: &mut Bindings<'_>| {
            run(bindings);
            Ok(())
        };
        Ok((kernel, scratch, run))
    })
}

/// As [`packed`], for a kernel that may refuse values while running.
fn packed_fallible<F>(
    prepare: impl FnOnce(&CompileContext<'_>) -> Result<(String, usize, F), CompileError> + 'static,
) -> Lowered
where
    F: Fn(&mut Bindings<'_>) -> Result<(), RunError> + Send + Sync + 'static,
{
    Lowered::Kernel(Box::new(move |context: &CompileContext<'_>| {
        let (kernel, scratch, run) = prepare(context)?;
        Ok(Box::new(Prepared { kernel, scratch, run }) as Box<dyn CompiledNode>)
    }))
}
