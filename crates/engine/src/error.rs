//! Errors of loading and configuring. Compiling and running have theirs in the runtime.

use std::path::PathBuf;

pub use armet_runtime::CompileError;

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what it should be, or has parts that are not supported.
    #[error(transparent)]
    Import(#[from] armet_importers::onnx::ImportError),
}

/// Why an engine could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A backend that is not there was named.
    #[error("there is no backend {name}; there are {known}")]
    UnknownBackend {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A number of threads that makes no sense.
    #[error("{0} threads were asked for; the number must be between 1 and 1024")]
    Threads(usize),
}
