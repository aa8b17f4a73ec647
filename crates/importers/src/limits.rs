//! Bounds on what a model file may ask for.

/// How much a model file may ask for before it is refused. The defaults admit every model that a board could run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Nodes, those of subgraphs and inlined functions included.
    pub nodes: usize,
    /// Subgraphs inside each other, and functions that use each other.
    pub nesting: usize,
    /// Bytes of one tensor.
    pub tensor_bytes: usize,
    /// Bytes that the decoded description may take, weights that stay in the file not counted.
    pub decoded_bytes: usize,
    /// Bytes of all external files together.
    pub external_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nodes: 250_000,
            nesting: 24,
            tensor_bytes: 4 << 30,
            decoded_bytes: 1 << 30,
            external_bytes: 16 << 30,
        }
    }
}
