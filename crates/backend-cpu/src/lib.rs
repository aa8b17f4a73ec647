//! The CPU backend: graph operators to kernels.
