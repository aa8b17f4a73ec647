//! Where every node runs and why, as data.

use armet_graph::Cost;

use crate::{BackendId, Unsupported};

/// The reference: every operator by its scalar meaning (`evaluate`). Built into the runtime, takes everything, fast at
/// nothing.
pub const REFERENCE: BackendId = BackendId("reference");

/// The runtime itself: loops, and handing on lists and optional values. It computes nothing.
pub const RUNTIME: BackendId = BackendId("runtime");

/// What runs custom operators: the code that whoever loaded the model gave for them.
pub const CUSTOM: BackendId = BackendId("custom");

/// A backend that did not take a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Which backend.
    pub backend: BackendId,
    /// Why.
    pub reason: Unsupported,
}

/// One step of a plan, as reports show it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// The node's name.
    pub node: String,
    /// Its operator.
    pub operator: &'static str,
    /// Model nodes fused into it.
    pub absorbed: Vec<String>,
    /// Where it runs.
    pub backend: BackendId,
    /// What runs there.
    pub kernel: String,
    /// Backends asked before and their reasons.
    pub refused: Vec<Refusal>,
    /// Types of its outputs, as text.
    pub outputs: Vec<String>,
    /// Arithmetic and bytes.
    pub cost: Cost,
}

/// Where every node of a plan runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement {
    /// The steps in order.
    pub steps: Vec<StepReport>,
    /// Nodes that need no step: their result is another value's bytes.
    pub aliases: usize,
    /// Nodes compiled only when values of the run are known.
    pub deferred: usize,
}

impl Placement {
    /// Number of steps on each backend, in order of first use.
    pub fn by_backend(&self) -> Vec<(BackendId, usize)> {
        let mut out: Vec<(BackendId, usize)> = Vec::new();
        for step in &self.steps {
            match out.iter_mut().find(|(id, _)| *id == step.backend) {
                Some((_, count)) => *count += 1,
                None => out.push((step.backend, 1)),
            }
        }
        out
    }
}
