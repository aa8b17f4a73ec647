//! One of two subgraphs. The first input is the condition; the others are the values that the subgraphs use from outside, which are the inputs of both graphs in this order.

use crate::Graph;

/// One of two subgraphs. The first input is the condition; the others are the values that the subgraphs use from outside, which are the inputs of both graphs in this order.
#[derive(Debug, Clone)]
pub struct If {
    /// Run when the condition holds.
    pub then_branch: Box<Graph>,
    /// Run when it does not.
    pub else_branch: Box<Graph>,
}

super::support::pending!(If);
