//! What can go wrong with a graph, with inference and with evaluation.

use armet_tensor::{ElementType, TensorError};

use crate::ops::CustomError;

/// Why an operator cannot give the types of its results.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    /// The types depend on the contents of this input, which are not known yet. Not a fault of the model: the plan is
    /// cut here and goes on when the value is there.
    #[error("the shape of the result depends on the value of input {0}")]
    NeedsValue(usize),
    /// The number of dimensions of this input is not known yet.
    #[error("the rank of input {0} is not known")]
    NeedsRank(usize),
    /// An input that must be there is missing.
    #[error("input {0} is missing")]
    MissingInput(usize),
    /// An input has an element type that the operator does not take.
    #[error("input {input} holds {element}, which {operator} does not take")]
    ElementType {
        /// Index of the input.
        input: usize,
        /// Its type.
        element: ElementType,
        /// Name of the operator.
        operator: &'static str,
    },
    /// Shapes, ranks or attributes contradict each other.
    #[error("{0}")]
    Mismatch(String),
    /// A custom operator did not answer as it should.
    #[error(transparent)]
    Custom(#[from] CustomError),
}

/// Why an operator could not be evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// An input is missing, or not a tensor.
    #[error("input {0} is missing or of the wrong kind")]
    MissingInput(usize),
    /// An element type that the operator has no meaning for.
    #[error("{operator} has no meaning for {element}")]
    ElementType {
        /// Name of the operator.
        operator: &'static str,
        /// The type.
        element: ElementType,
    },
    /// Values contradict each other: an index out of range, shapes that do not fit.
    #[error("{0}")]
    Invalid(String),
    /// A custom operator failed.
    #[error(transparent)]
    Custom(#[from] CustomError),
    /// The types of the results could not be told.
    #[error(transparent)]
    Infer(#[from] InferError),
    /// A tensor could not be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// A graph that is not well formed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Nodes depend on each other in a ring.
    #[error("the nodes depend on each other in a ring, through {0}")]
    Cycle(String),
    /// A node's types do not fit.
    #[error("node {node} ({operator}): {source}")]
    Infer {
        /// Name of the node.
        node: String,
        /// Name of its operator.
        operator: &'static str,
        /// What is wrong.
        source: InferError,
    },
    /// A node could not be evaluated.
    #[error("node {node} ({operator}): {source}")]
    Evaluate {
        /// Name of the node.
        node: String,
        /// Name of its operator.
        operator: &'static str,
        /// What is wrong.
        source: EvaluateError,
    },
    /// A pass that does not exist was named.
    #[error("{name} is no pass; the passes are {known}")]
    UnknownPass {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A graph input was not given.
    #[error("input {0} was not given")]
    MissingInput(String),
}
