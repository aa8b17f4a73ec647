//! On-device AI for ARM Linux: load a model as it is, see where every layer runs and why, run it.
//!
//! A [`Model`] is a file that was read. An [`Engine`] is a choice of backends and threads. Together they give a
//! [`Compiled`] model, which is shared, and from it [`Session`]s, each with its own memory. A session plans itself for
//! the shapes it is given, keeps the plan, and allocates nothing from the second run with equal shapes on.
//!
//! ```no_run
//! use armet::{Engine, Model, Tensor};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::load("mobilenet_v2.onnx")?;
//! let engine = Engine::builder().threads(2).build()?;
//! let compiled = engine.compile(&model, &Default::default())?;
//! let mut session = compiled.session();
//! let picture = Tensor::zeros(armet::ElementType::F32, [1, 3, 224, 224])?;
//! let outputs = session.run(&[("input", (&picture).into())])?;
//! for (name, value) in outputs.iter() {
//!     println!("{name}: {:?}", value.view().map(|v| v.shape().to_vec()));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Many requests at once go through a [`Queue`], which has a session for each of its threads:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = armet::Model::load("mobilenet_v2.onnx")?;
//! # let compiled = armet::Engine::builder().build()?.compile(&model, &Default::default())?;
//! # let picture = armet::Tensor::zeros(armet::ElementType::F32, [1, 3, 224, 224])?;
//! let queue = compiled.queue(&Default::default())?;
//! let ticket = queue.submit(armet::Request::default().input("input", picture))?;
//! let results = ticket.wait()?; // or ticket.await, ticket.cancel()
//! # Ok(())
//! # }
//! ```
//!
//! The library does not print, does not end the process and does not read the environment.

#![forbid(unsafe_code)]

mod cancel;
mod compiled;
mod engine;
mod error;
mod model;
mod queue;
mod session;

pub use armet_graph::dot::to_dot as graph_dot;
pub use armet_graph::ops::{
    CustomError, CustomFailure, CustomNode, CustomOperator, CustomOperators, CustomProblem,
    CustomRegistration,
};
pub use armet_graph::passes::{ALL as PASSES, PassReport};
pub use armet_graph::text::to_text as graph_text;
pub use armet_graph::{AttributeValue, EvaluateError, InferError, InferInput, InferInputs};
pub use armet_graph::{Cost, Dim, Graph, TensorType, Value, ValueType};
pub use armet_importers::onnx::ImportError;
pub use armet_importers::read_file;
pub use armet_kernels::isa::{Isa, Isas};
pub use armet_operators::{ABI as OPERATORS_ABI, LibraryError, load as load_operators};
pub use armet_runtime::{
    BackendId, CUSTOM, DeviceInfo, MemoryReport, NoProbe, Placement, Probe, REFERENCE, RUNTIME, Refusal,
    RunError, Stage, StepReport, StepResult, Unsupported, ValueRef,
};
pub use armet_tensor::{
    Bool, Element, ElementType, Layout, Quantization, Shape, Tensor, TensorError, TensorView, npy,
};
pub use cancel::{CancelToken, RunLimits};
pub use compiled::{CompileSettings, Compiled};
pub use engine::{Engine, EngineBuilder};
pub use error::{CompileError, EngineError, LoadError};
pub use model::{LoadOptions, Model, ValueSpec};
pub use queue::{
    Ending, Queue, QueueError, QueueSettings, QueueStatistics, Request, RequestError, RequestState, Results,
    SubmitError, Ticket,
};
pub use session::{Outputs, Session};
