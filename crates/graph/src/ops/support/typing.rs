//! Element types of inputs checked, types of results made: what operators share besides shapes.

use armet_tensor::ElementType;

use crate::{Dim, InferError, InferInputs, TensorType, ValueType};

/// The types of the only result.
pub(crate) fn one(element: ElementType, dims: impl IntoIterator<Item = Dim>) -> Vec<ValueType> {
    vec![TensorType::new(element, dims).into()]
}

/// The element type of an input, which must be one of those that `accepts` lists.
///
/// # Errors
/// When it is not.
pub(crate) fn element(
    inputs: &InferInputs<'_>,
    input: usize,
    operator: &'static str,
    accepts: impl Fn(ElementType) -> bool,
) -> Result<ElementType, InferError> {
    let element = inputs.element(input)?;
    if accepts(element) { Ok(element) } else { Err(InferError::ElementType { input, element, operator }) }
}

/// Checks that the inputs that are there hold the element type of the first of them.
///
/// # Errors
/// When they do not.
pub(crate) fn same_elements(
    inputs: &InferInputs<'_>,
    operator: &'static str,
    which: &[usize],
) -> Result<(), InferError> {
    let mut first = None;
    for &i in which.iter().filter(|&&i| inputs.has(i)) {
        let element = inputs.element(i)?;
        let first = *first.get_or_insert(element);
        if element != first {
            return Err(InferError::Mismatch(format!(
                "{operator} takes inputs of one element type, not {first} and {element}"
            )));
        }
    }
    Ok(())
}

/// Checks that the inputs that are there and whose shapes are known hold one element.
///
/// # Errors
/// When they do not.
pub(crate) fn one_number(
    inputs: &InferInputs<'_>,
    operator: &'static str,
    which: &[usize],
) -> Result<(), InferError> {
    for &i in which.iter().filter(|&&i| inputs.has(i)) {
        let shape = inputs.value_type(i)?.shape();
        if shape.as_ref().is_some_and(|shape| shape.checked_len() != Some(1)) {
            let shape = shape.unwrap_or_default();
            return Err(InferError::Mismatch(format!("input {i} of {operator} is one number, not {shape}")));
        }
    }
    Ok(())
}

/// Whether a type is a number: float or integer, not bool.
pub(crate) fn is_number(element: ElementType) -> bool {
    element.is_float() || element.is_integer()
}

/// Number of elements of a concrete type; 0 when it is not.
pub(crate) fn count(types: &[Option<&ValueType>], index: usize) -> u64 {
    let shape = types.get(index).copied().flatten().and_then(ValueType::shape);
    shape.and_then(|s| s.checked_len()).map_or(0, |n| n as u64)
}
