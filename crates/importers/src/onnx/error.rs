//! Why a model is not imported, and what is worth saying of one that is.

use armet_graph::TensorType;
use armet_tensor::TensorError;

use super::scan::WireError;
use crate::{ExternalError, ForeignFile};

/// Why an ONNX file did not become a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The bytes are no ONNX model, or ask for more than is allowed.
    #[error("not a readable ONNX file: {0}")]
    Wire(#[from] WireError),
    /// The encoding is sound, its contents are not.
    #[error("not a readable ONNX file: {0}")]
    Decode(#[from] prost::DecodeError),
    /// The file has no graph.
    #[error("not an ONNX model: there is no graph in it")]
    NoGraph,
    /// A file of another kind.
    #[error("not an ONNX model: {0}")]
    Foreign(ForeignFile),
    /// Everything in the model that there is no operator for.
    #[error("{}", list(.0))]
    Unsupported(Vec<UnsupportedItem>),
    /// A node contradicts its operator's definition.
    #[error("node {node} ({operator}): {problem}")]
    Node {
        /// Name of the node.
        node: String,
        /// Its operator.
        operator: String,
        /// What is wrong.
        problem: Invalid,
    },
    /// A constant tensor cannot be read.
    #[error("tensor {name}: {problem}")]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// What is wrong.
        problem: Box<TensorProblem>,
    },
    /// A name is used that nothing defines.
    #[error("{user} uses the value {name}, which nothing gives")]
    UnknownValue {
        /// The node, or the graph whose result it is.
        user: String,
        /// The name.
        name: String,
    },
    /// Two things define one name.
    #[error("the value {0} is given twice")]
    DuplicateValue(String),
    /// Nodes depend on each other.
    #[error("the nodes depend on each other in a ring, through {0}")]
    Cycle(String),
    /// After the inlining of functions there are more nodes than allowed, or functions nest too deep.
    #[error(
        "with its functions written out, the model has more than {nodes} nodes or nests deeper than {nesting}"
    )]
    TooLarge {
        /// Nodes allowed.
        nodes: usize,
        /// Nesting allowed.
        nesting: usize,
    },
    /// A part of the format that is not read.
    #[error("{0}")]
    Format(&'static str),
}

fn list(items: &[UnsupportedItem]) -> String {
    let mut text = format!("{} unsupported", items.len());
    for item in items {
        text.push_str("\n  ");
        // A name may not begin a line of its own.
        text.push_str(&item.to_string().replace('\n', "\\n"));
    }
    text
}

/// One node that there is no operator for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("node {node}: {}{operator} of opset {opset}: {reason}", prefix(.domain))]
pub struct UnsupportedItem {
    /// Name of the node.
    pub node: String,
    /// Its operator.
    pub operator: String,
    /// The operator's domain; empty for ONNX's own.
    pub domain: String,
    /// Version of the domain's operator set that the model uses.
    pub opset: i64,
    /// What is not there.
    pub reason: Reason,
}

fn prefix(domain: &str) -> String {
    if domain.is_empty() { String::new() } else { format!("{domain}.") }
}

/// Why a node cannot be said in operators of the graph.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The operator is not known.
    #[error("there is no such operator")]
    Operator,
    /// The operator is known, but not at this version.
    #[error("the operator is known from opset {since} on")]
    Version {
        /// First version that is known.
        since: i64,
    },
    /// An attribute, or its value.
    #[error("attribute {name} = {value}")]
    Attribute {
        /// Name of the attribute.
        name: String,
        /// Its value, shortened.
        value: String,
    },
    /// An input that is used in a way that is not there.
    #[error("input {index} {what}")]
    Input {
        /// Its index.
        index: usize,
        /// What it would have to be.
        what: &'static str,
    },
    /// An output that is not given.
    #[error("output {0} is not given")]
    Output(usize),
    /// A training operator: models are run here, not trained.
    #[error("it is a training operator, and models are only run here")]
    Training,
    /// A decoder of picture files.
    #[error("it decodes picture files, which is left to the application")]
    ImageFile,
    /// Something else, in words.
    #[error("{0}")]
    Other(&'static str),
}

/// What contradicts an operator's definition.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// A required attribute is missing.
    #[error("attribute {0} is missing")]
    MissingAttribute(&'static str),
    /// An attribute has another type.
    #[error("attribute {name} is no {expected}")]
    AttributeType {
        /// Name of the attribute.
        name: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// An attribute's value cannot be.
    #[error("attribute {name} = {value}: {what}")]
    AttributeValue {
        /// Name of the attribute.
        name: &'static str,
        /// Its value, shortened.
        value: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A required input is missing.
    #[error("input {0} is missing")]
    MissingInput(usize),
    /// A required output is missing.
    #[error("output {0} is missing")]
    MissingOutput(usize),
    /// Something else, in words.
    #[error("{0}")]
    Other(String),
}

/// What is wrong with a constant tensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// A number that stands for no element type.
    #[error("there is no element type {0}")]
    ElementType(i32),
    /// A negative dimension.
    #[error("its dimension {0} is negative")]
    Dimension(i64),
    /// More dimensions than any tensor has.
    #[error("it has more than {limit} dimensions")]
    Rank {
        /// What is allowed.
        limit: usize,
    },
    /// More bytes than allowed.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// What is allowed.
        limit: usize,
    },
    /// The data do not fit the shape.
    #[error(transparent)]
    Data(#[from] TensorError),
    /// Fewer or more entries than the shape has.
    #[error("its shape has {expected} elements, {actual} are there")]
    Count {
        /// Elements of the shape.
        expected: usize,
        /// Elements that are there.
        actual: usize,
    },
    /// Values and indices of a sparse tensor that do not belong together, or an index outside of it.
    #[error("it is sparse, and {0}")]
    Sparse(&'static str),
    /// Text that is no UTF-8.
    #[error("it holds text that is no UTF-8")]
    Text,
    /// A part of a tensor, a form that never came into use.
    #[error("it is a segment of a tensor")]
    Segment,
    /// Its data are in another file, and no access was given.
    #[error("its data are in another file, {location}, and files beside the model were not given")]
    NoExternalData {
        /// Name of the file.
        location: String,
    },
    /// The file beside the model cannot be read.
    #[error("its data are in {location}: {source}")]
    External {
        /// Name of the file.
        location: String,
        /// What is wrong.
        source: ExternalError,
    },
    /// The place in the file is not a number, or not inside the file.
    #[error("its data are in {location} at {offset} for {length} bytes, which is not there")]
    Range {
        /// Name of the file.
        location: String,
        /// First byte, as the model says.
        offset: String,
        /// Number of bytes, as the model says.
        length: String,
    },
}

/// Something about a model that does not keep it from running.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The model declares another type for a value than its nodes give; the declaration is not used.
    #[error("the model declares {name} as {declared}, its nodes give {found}")]
    DeclaredType {
        /// Name of the value.
        name: String,
        /// What the model says.
        declared: Box<TensorType>,
        /// What follows from the nodes.
        found: Box<TensorType>,
    },
    /// The model uses a newer operator set than is known here; operators that did not change are the same.
    #[error("operator set {version} of {} is newer than {known}, the last one known", domain_name(.domain))]
    NewerOpset {
        /// The operator set's domain.
        domain: String,
        /// The model's version.
        version: i64,
        /// The last version that is known.
        known: i64,
    },
    /// The file is of a newer version of the format than is known here; fields that are not known are passed over.
    #[error("the file's format (IR version {version}) is newer than {known}, the last one known")]
    NewerFormat {
        /// The file's version.
        version: i64,
        /// The last version that is known.
        known: i64,
    },
    /// The model names no version for an operator set that it uses.
    #[error("the model does not say which version of {} it uses; version {assumed} is assumed", domain_name(.domain))]
    MissingOpset {
        /// The operator set's domain.
        domain: String,
        /// The version that is assumed.
        assumed: i64,
    },
    /// The model holds training information, which is ignored.
    #[error("the model holds training information, which is ignored")]
    TrainingInfo,
    /// A node makes maps from class names to scores; its result is the scores themselves, in the order of the names.
    #[error("node {node} would make maps of scores; its result is the scores, in the order of the classes")]
    Map {
        /// Name of the node.
        node: String,
    },
    /// The nodes were not in an order in which they can run.
    #[error("the nodes of {0} are not in order and were sorted")]
    Unsorted(String),
}

fn domain_name(domain: &str) -> &str {
    if domain.is_empty() { "ai.onnx" } else { domain }
}
