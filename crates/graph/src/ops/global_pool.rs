//! Pooling over all spatial axes, which stay with length one.

/// Pooling over all spatial axes, which stay with length one.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalPool {
    /// What is computed.
    pub kind: super::PoolKind,
}

super::support::pending!(GlobalPool);
