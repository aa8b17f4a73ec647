//! What can be wrong with a tensor or a tensor file.

use crate::{ElementType, Shape};

/// Why a tensor could not be made or looked at in the way asked for.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The number of bytes does not fit the shape.
    #[error("{element} {shape} needs {expected} bytes, got {actual}")]
    ByteCount {
        /// Element type asked for.
        element: ElementType,
        /// Shape asked for.
        shape: Shape,
        /// Bytes that shape takes.
        expected: usize,
        /// Bytes that were given.
        actual: usize,
    },
    /// The product of the dimensions does not fit the address space.
    #[error("shape {0} has more elements than fit in memory")]
    TooLarge(Shape),
    /// A view of another type than the tensor has was asked for.
    #[error("tensor holds {actual}, not {asked}")]
    Type {
        /// Type asked for.
        asked: ElementType,
        /// Type the tensor has.
        actual: ElementType,
    },
    /// A reshape to another number of elements.
    #[error("cannot view {from} as {to}: the element counts differ")]
    Reshape {
        /// Shape of the tensor.
        from: Shape,
        /// Shape asked for.
        to: Shape,
    },
    /// A `.npy` file that cannot be read.
    #[error("not a readable .npy file: {0}")]
    Npy(String),
}
