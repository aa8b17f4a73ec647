//! Shared pieces of operators.

pub(crate) mod broadcast;
pub(crate) mod heads;
pub(crate) mod product;
pub(crate) mod quantization;
pub(crate) mod sliding;
pub(crate) mod typing;

use crate::InferError;

/// Resolves an axis that may count from the end.
///
/// # Errors
/// When it is out of range.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, InferError> {
    let n = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if axis < 0 { axis.saturating_add(n) } else { axis };
    usize::try_from(at)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| InferError::Mismatch(format!("axis {axis} is outside a tensor of {rank} dimensions")))
}

/// The longest float tolerance of a chain of `terms` products: rounding grows with their number.
pub(crate) fn sum_tolerance(terms: usize) -> crate::Tolerance {
    crate::Tolerance::Relative(1e-6 * (8.0 + (terms as f32).sqrt()))
}

/// Resolves axes that may count from the end.
///
/// # Errors
/// When one is out of range or named twice.
pub(crate) fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, InferError> {
    let mut resolved = Vec::with_capacity(axes.len());
    for &given in axes {
        let at = axis(given, rank)?;
        if resolved.contains(&at) {
            return Err(InferError::Mismatch(format!("axis {at} is named twice in {axes:?}")));
        }
        resolved.push(at);
    }
    Ok(resolved)
}
