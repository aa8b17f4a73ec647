//! The graph: what a model means, independent of files, devices and threads.
//!
//! A [`Graph`] has values (edges) and nodes (uses of operators). Importers build it, [`passes`] rewrite it, [`infer`]
//! gives every value its type, and backends read it. The list of operators is in [`ops`]; each operator knows the type
//! of its results ([`Operator::infer`]) and its meaning ([`Operator::evaluate`]), which is what every kernel is held to.

#![forbid(unsafe_code)]

mod attributes;
mod case;
pub mod dim;
pub mod dot;
mod error;
mod evaluate;
mod graph;
pub mod infer;
pub mod ops;
pub mod passes;
pub mod text;
mod types;
mod value;

pub use attributes::{Attribute, AttributeValue, Attributes};
pub use case::{Case, Numbers, Tolerance};
pub use dim::Dim;
pub use error::{EvaluateError, GraphError, InferError};
pub use evaluate::{Context, evaluate_all, evaluate_graph, evaluate_node, is_foldable};
pub use graph::{Graph, Node, NodeId, Output, ValueDef, ValueId};
pub use infer::{InferInput, InferInputs};
pub use ops::{Cost, Op, OpKind, Operator};
pub use types::{TensorType, ValueType};
pub use value::Value;
