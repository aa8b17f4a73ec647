//! Quantization parameters given as tensors.

use armet_tensor::{Quantization, Tensor};

use super::axis;
use crate::EvaluateError;
use crate::ops::numbers;

/// Scale and zero point inputs as the quantization of data of this shape: one for all, one for each index of the
/// axis, or one for each block along it.
///
/// # Errors
/// When the parameters do not fit the shape.
pub(crate) fn parameters(
    operator: &str,
    shape: &[usize],
    (at, block): (i64, usize),
    scale: &Tensor,
    zero_point: Option<&Tensor>,
) -> Result<Quantization, EvaluateError> {
    let zeros = match zero_point {
        // Zero points of small floats are zero.
        Some(zero_point) if zero_point.element().is_float() => {
            numbers::to_f64(zero_point)?.into_iter().map(|v| v as i128).collect()
        }
        Some(zero_point) => numbers::to_i128(zero_point)?,
        None => vec![0; scale.len()],
    };
    let fault = || {
        let zero_shape = zero_point.map_or_else(|| "no".to_owned(), |z| format!("{}", z.shape()));
        EvaluateError::Invalid(format!(
            "{operator} along axis {at} of {shape:?} has scales of shape {} and {zero_shape} zero points",
            scale.shape()
        ))
    };
    if zeros.len() != scale.len() {
        return Err(fault());
    }
    let zero_point: Vec<i32> =
        zeros.into_iter().map(i32::try_from).collect::<Result<_, _>>().map_err(|_| fault())?;
    let scale_values: Vec<f32> = numbers::to_f64(scale)?.into_iter().map(|v| v as f32).collect();
    if scale.len() == 1 {
        return Ok(Quantization { scale: scale_values, zero_point, axis: None, block: None });
    }
    let at = axis(at, shape.len())?;
    let fits = if block == 0 {
        scale.shape().dims() == [shape[at]]
    } else {
        let mut blocks = shape.to_vec();
        blocks[at] = shape[at].div_ceil(block);
        scale.shape().dims() == blocks
    };
    if !fits {
        return Err(fault());
    }
    Ok(Quantization { scale: scale_values, zero_point, axis: Some(at), block: (block > 0).then_some(block) })
}
