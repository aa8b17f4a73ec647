//! The graph: values, nodes, the operator list, one file per operator, passes.
