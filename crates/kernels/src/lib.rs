//! CPU micro-kernels behind safe functions; knows no graph.
