//! A compiled stage: flat data that the executor walks.

use std::sync::Arc;

use armet_graph::passes::PassReport;
use armet_graph::{Graph, NodeId, ValueId, ValueType};
use armet_tensor::{Layout, Quantization, Shape, Tensor};
use smallvec::SmallVec;

use crate::{CompiledNode, LoopPlan, Placement};

/// Where a value is while a stage runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// At an offset of the stage's arena.
    Arena {
        /// First byte.
        offset: usize,
        /// Bytes.
        len: usize,
    },
    /// A constant of the stage.
    Constant(usize),
    /// An input of the stage.
    Input(usize),
    /// An owned value: text, sequences, results whose shape arrives at run time, results of `evaluate`.
    Slot(usize),
}

/// What a step does.
pub enum StepKind {
    /// Runs a kernel on buffers.
    Kernel(Box<dyn CompiledNode>),
    /// Evaluates the node by its meaning and keeps the results in slots.
    Evaluate(NodeId),
    /// Runs a body, a plan of its own, again and again.
    Loop(Box<LoopPlan>),
}

impl std::fmt::Debug for StepKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kernel(node) => write!(f, "Kernel({})", node.kernel()),
            Self::Evaluate(id) => write!(f, "Evaluate({})", id.index()),
            Self::Loop(_) => f.write_str("Loop"),
        }
    }
}

/// One step of a stage.
#[derive(Debug)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// The node that it is.
    pub node: NodeId,
    /// Where its inputs are.
    pub reads: SmallVec<[Option<Location>; 4]>,
    /// Where its outputs go.
    pub writes: SmallVec<[Option<Location>; 1]>,
    /// The values it writes.
    pub outputs: SmallVec<[Option<ValueId>; 1]>,
    /// Values that no step writes, since they are the bytes of an output of this one, and where those are.
    pub aliases: SmallVec<[(ValueId, Location); 1]>,
    /// Ranges of the arena it writes, its scratch memory last when it needs any.
    pub ranges: SmallVec<[(usize, usize); 4]>,
    /// Slots that hold nothing needed after this step.
    pub frees: SmallVec<[usize; 2]>,
}

/// What is known of a value of a stage.
#[derive(Debug, Clone)]
pub struct ValueNote {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ValueType,
    /// Its concrete logical shape, when known before running.
    pub shape: Option<Shape>,
    /// How it lies in memory.
    pub layout: Layout,
    /// Set when stored integers stand for real numbers.
    pub quantization: Option<Arc<Quantization>>,
}

/// Where a result of the model comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSource {
    /// Its name.
    pub name: String,
    /// Where it is; `None` when the continuation gives it.
    pub location: Option<Location>,
    /// The value.
    pub value: ValueId,
}

/// A value handed from a stage to its continuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// The value in the continuation's graph.
    pub value: ValueId,
    /// The value in this stage's graph, in plain layout.
    pub source: ValueId,
    /// Where it is.
    pub location: Location,
    /// Its contents decide shapes behind the cut: the continuation is compiled for them.
    pub decides: bool,
}

/// What is left of the graph behind a cut.
#[derive(Debug)]
pub struct Continuation {
    /// The nodes that could not be planned yet.
    pub graph: Graph,
    /// What it takes over.
    pub handovers: Vec<Handover>,
}

/// Memory of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryReport {
    /// Bytes of the arena, scratch included.
    pub arena: usize,
    /// Bytes of scratch memory in it.
    pub scratch: usize,
    /// Bytes if no two values shared memory.
    pub without_reuse: usize,
    /// The most bytes alive at once.
    pub lower_bound: usize,
    /// Bytes of constants that steps read as they are.
    pub constants: usize,
}

/// A compiled stage.
#[derive(Debug)]
pub struct Stage {
    /// The graph that was compiled, after all passes.
    pub graph: Graph,
    /// Constants that steps read.
    pub constants: Vec<Tensor>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Bytes of the arena.
    pub arena_bytes: usize,
    /// Number of slots.
    pub slots: usize,
    /// The model's results.
    pub outputs: Vec<OutputSource>,
    /// What each value is, by index.
    pub notes: Vec<ValueNote>,
    /// Where each node runs.
    pub placement: Placement,
    /// What passes did.
    pub passes: Vec<PassReport>,
    /// Memory.
    pub memory: MemoryReport,
    /// The rest, when data decides it.
    pub rest: Option<Continuation>,
    /// Whether it is run again and again with values that differ: then values that decide shapes of cheap nodes do not
    /// decide what follows.
    pub(crate) repeats: bool,
}

impl Stage {
    /// The concrete logical shape of a value, when it is known before running.
    pub fn shape(&self, value: ValueId) -> Option<&Shape> {
        self.notes[value.index()].shape.as_ref()
    }

    /// The plans of the bodies of its loops, as far as types were known beforehand.
    pub fn bodies(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.steps.iter().filter_map(|step| match &step.kind {
            StepKind::Loop(plan) => plan.first(),
            _ => None,
        })
    }

    /// What the continuation's input with this index is here: the handovers that do not decide, in order.
    pub fn input_handover(&self, index: usize) -> Option<&Handover> {
        self.rest.as_ref()?.handovers.iter().filter(|h| !h.decides).nth(index)
    }
}
