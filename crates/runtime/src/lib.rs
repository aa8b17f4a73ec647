//! From a graph to a plan, and from a plan to results.
//!
//! [`compile`](compile::compile) specialises a graph for the types of its inputs, asks each backend in turn for each
//! node, gives every value a place in one arena, and returns a [`Stage`]: flat data that the executor walks without
//! looking anything up. Where data decides a shape, the stage ends; the rest is compiled from the values that are then
//! known, and kept for the next run with equal shapes. The runtime knows the traits of backends, never a backend.

#![forbid(unsafe_code)]

mod backend;
mod compile;
mod cut;
mod error;
mod execute;
mod looping;
mod memory;
mod packs;
mod placement;
mod plan;
mod probe;
mod value_ref;
mod views;

pub use backend::{
    Backend, BackendId, Bindings, CompileContext, CompiledNode, DeviceInfo, Lowered, Lowering, NodeView,
};
pub use compile::{CompileOptions, compile};
pub use error::{CompileError, RunError, Unsupported};
pub use execute::StageState;
pub use looping::LoopPlan;
pub use memory::{Interval, MemoryPlan, plan_memory};
pub use packs::PackCache;
pub use placement::{CUSTOM, Placement, REFERENCE, RUNTIME, Refusal, StepReport};
pub use plan::{Continuation, Location, MemoryReport, OutputSource, Stage, Step, StepKind};
pub use probe::{NoProbe, Probe, StepResult};
pub use value_ref::ValueRef;
