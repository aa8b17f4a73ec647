//! What can go wrong while compiling and running, and why a backend refuses a node.

use armet_graph::{EvaluateError, GraphError};
use armet_tensor::{ElementType, Layout, Shape, TensorError};

use crate::BackendId;

/// Why a backend does not take a node: a closed list, compared by code and printed as half a sentence.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Unsupported {
    /// It has no kernel for this operator.
    Operator(&'static str),
    /// It has no kernel for this element type.
    ElementType(ElementType),
    /// It has no kernel for tensors of this rank.
    Rank(usize),
    /// It has no kernel for this value of an attribute.
    Attribute {
        /// The attribute.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// An input must be known before running and is not.
    NotConstant(&'static str),
    /// It cannot work in this layout.
    Layout(Layout),
    /// Shapes that its kernel does not take.
    Shapes(String),
    /// A quantization its kernel does not take.
    Quantization(String),
    /// The results of the node are no tensors of known shape.
    RunTimeShape,
    /// Whoever loaded the model gave the operator, and it runs as they gave it.
    Custom,
    /// The backend was not allowed.
    Disabled,
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Operator(name) => write!(f, "no kernel for {name}"),
            Self::ElementType(element) => write!(f, "no kernel for {element}"),
            Self::Rank(rank) => write!(f, "no kernel for {rank} dimensions"),
            Self::Attribute { name, value } => write!(f, "no kernel for {name}={value}"),
            Self::NotConstant(what) => write!(f, "{what} must be known before running"),
            Self::Layout(layout) => write!(f, "no kernel for {} layout", layout.name()),
            Self::Shapes(what) | Self::Quantization(what) => f.write_str(what),
            Self::RunTimeShape => f.write_str("the shape of the result arrives at run time"),
            Self::Custom => f.write_str("custom operator"),
            Self::Disabled => f.write_str("switched off by an option"),
        }
    }
}

impl Unsupported {
    /// The code of the reason in reports.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Operator(_) => "operator",
            Self::ElementType(_) => "element-type",
            Self::Rank(_) => "rank",
            Self::Attribute { .. } => "attribute",
            Self::NotConstant(_) => "not-constant",
            Self::Layout(_) => "layout",
            Self::Shapes(_) => "shapes",
            Self::Quantization(_) => "quantization",
            Self::RunTimeShape => "run-time-shape",
            Self::Custom => "custom",
            Self::Disabled => "disabled",
        }
    }
}

/// Bytes as a person reads them.
fn size(bytes: usize) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut number, mut unit) = (bytes as f64 / 1024.0, 0);
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1024.0, unit + 1);
    }
    format!("{number:.1} {}", UNITS[unit])
}

/// A list, or that there is nothing in it.
fn some(list: &str) -> &str {
    if list.is_empty() { "none" } else { list }
}

/// Why a graph could not be compiled.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The graph is not well formed, or its types contradict each other.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// No backend takes a node and the options forbid the reference.
    #[error("no backend takes node {node} ({operator}): {reasons}")]
    Refused {
        /// The node.
        node: String,
        /// Its operator.
        operator: &'static str,
        /// Each backend's reason.
        reasons: String,
    },
    /// A backend failed on a node that it had accepted.
    #[error("{backend} could not prepare node {node}: {reason}")]
    Backend {
        /// Which backend.
        backend: BackendId,
        /// The node.
        node: String,
        /// What it said.
        reason: String,
    },
    /// A shape was given for an input that is not there.
    #[error("the model has no input {given}; it has {}", some(.expected))]
    UnknownInput {
        /// What was given.
        given: String,
        /// What there is.
        expected: String,
    },
    /// A number was given for a dimension that is not there.
    #[error("the model has no open dimension {given}; it has {}", some(.expected))]
    UnknownDim {
        /// What was given.
        given: String,
        /// What there is.
        expected: String,
    },
    /// A node whose result types cannot be told from anything that runs before it.
    #[error("node {node} ({operator}) cannot be planned: {reason}")]
    Unplannable {
        /// The node.
        node: String,
        /// Its operator.
        operator: &'static str,
        /// What inference said.
        reason: String,
    },
    /// More memory than the engine may take.
    #[error("{what} needs {}, and at most {} may be taken", size(*bytes), size(*limit))]
    OverLimit {
        /// What needs it.
        what: String,
        /// How many bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The system has no block of memory of this size.
    #[error("there is no memory for {what} ({bytes} bytes)")]
    OutOfMemory {
        /// What it is for.
        what: String,
        /// How many bytes.
        bytes: usize,
    },
    /// A value larger than memory.
    #[error("value {value} with shape {shape} does not fit in memory")]
    TooLarge {
        /// Its name.
        value: String,
        /// Its shape.
        shape: Shape,
    },
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An input was not given.
    #[error("input {0} was not given")]
    MissingInput(String),
    /// An input was given more than once.
    #[error("input {0} was given more than once")]
    RepeatedInput(String),
    /// Types for another number of inputs than the model has.
    #[error("the model has {expected} inputs, and types of {given} were given")]
    Count {
        /// How many were given.
        given: usize,
        /// How many there are.
        expected: usize,
    },
    /// A name that is no input of the model.
    #[error("the model has no input {given}; it has {}", some(.expected))]
    UnknownInput {
        /// What was given.
        given: String,
        /// What there is.
        expected: String,
    },
    /// An input does not have the type that the model declares.
    #[error("input {name} must be {expected}, got {actual}")]
    InputType {
        /// The input.
        name: String,
        /// What the model declares.
        expected: String,
        /// What was given.
        actual: String,
    },
    /// The shapes of this run could not be planned.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A node could not be evaluated on these values.
    #[error("node {node} ({operator}): {source}")]
    Evaluate {
        /// The node.
        node: String,
        /// Its operator.
        operator: &'static str,
        /// What is wrong.
        source: EvaluateError,
    },
    /// A kernel refused its values.
    #[error("node {node}: {reason}")]
    Kernel {
        /// The node.
        node: String,
        /// What is wrong.
        reason: String,
    },
    /// The body of a loop failed.
    #[error("in turn {turn} of {node}: {source}")]
    Body {
        /// The loop.
        node: String,
        /// Which turn, from 0.
        turn: u64,
        /// What went wrong there; it names the node of the body.
        source: Box<RunError>,
    },
    /// A loop went on for longer than any should.
    #[error("the loop {node} has not ended after {turns} turns")]
    Endless {
        /// The loop.
        node: String,
        /// How often it ran.
        turns: u64,
    },
    /// The probe asked to stop.
    #[error("the run was stopped")]
    Stopped,
    /// It was cancelled by its token.
    #[error("the run was cancelled")]
    Cancelled,
    /// Its deadline passed before it was done.
    #[error("the deadline of the run has passed")]
    DeadlinePassed,
    /// A tensor could not be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
