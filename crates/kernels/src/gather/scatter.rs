//! Writing or combining elements at places that indices choose. Tuples may name one place several times, so this runs on
//! the calling thread, in the order of the indices.

use super::{BlockTuples, ElementPairs, Index, IndexError};
use crate::elementwise::Number;

/// What becomes of an element and its update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScatterReduction {
    /// The update.
    None,
    /// Their sum.
    Add,
    /// Their product.
    Mul,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
}

impl ScatterReduction {
    #[inline(always)]
    fn combine<T: Number>(self, element: T, update: T) -> T {
        match self {
            Self::None => update,
            Self::Add => element.add(update),
            Self::Mul => element.multiply(update),
            Self::Max => element.maximum(update),
            Self::Min => element.minimum(update),
        }
    }
}

/// ONNX `ScatterElements`: `y`, which holds the data, is updated.
///
/// # Panics
/// When a slice does not have the length that the shapes imply.
pub fn scatter_elements<T: Number, I: Index>(
    pairs: &ElementPairs,
    reduction: ScatterReduction,
    indices: &[I],
    updates: &[T],
    y: &mut [T],
) -> Result<(), IndexError> {
    pairs.check(indices, y.len(), updates.len())?;
    pairs.for_each(indices, 0, indices.len(), |place, to| y[to] = reduction.combine(y[to], updates[place]));
    Ok(())
}

/// ONNX `ScatterND`: `y`, which holds the data, is updated.
///
/// # Panics
/// When a slice does not have the length that the shapes imply.
pub fn scatter_nd<T: Number, I: Index>(
    tuples: &BlockTuples,
    reduction: ScatterReduction,
    indices: &[I],
    updates: &[T],
    y: &mut [T],
) -> Result<(), IndexError> {
    tuples.check(indices, y.len(), updates.len())?;
    let block = tuples.block;
    for tuple in 0..tuples.batches * tuples.tuples {
        let to = tuples.block_of(indices, tuple) * block;
        let updates = &updates[tuple * block..(tuple + 1) * block];
        y[to..to + block].iter_mut().zip(updates).for_each(|(y, &update)| *y = reduction.combine(*y, update));
    }
    Ok(())
}
