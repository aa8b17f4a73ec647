//! Types of results from values and from other types: what `infer` and `evaluate` of operators share.

use armet_tensor::{ElementType, Shape};
use smallvec::SmallVec;

use crate::{
    Dim, EvaluateError, InferError, InferInput, InferInputs, Operator, TensorType, Value, ValueType,
};

/// Element type and shape of each result, by the operator's own inference on these very values: it checks the inputs,
/// and what `evaluate` makes agrees with what `infer` promised.
///
/// # Errors
/// As [`Operator::infer`], or when a result is too large to count.
pub(crate) fn inferred(
    operator: &dyn Operator,
    inputs: &[Option<&Value>],
) -> Result<Vec<(ElementType, Shape)>, EvaluateError> {
    let types: SmallVec<[Option<ValueType>; 6]> =
        inputs.iter().map(|v| v.and_then(Value::value_type)).collect();
    let shown: SmallVec<[Option<InferInput<'_>>; 6]> = inputs
        .iter()
        .zip(&types)
        .map(|(value, ty)| Some(InferInput { ty: ty.as_ref()?, value: (*value)?.tensor(), entries: None }))
        .collect();
    let results = operator.infer(&InferInputs(&shown))?;
    results
        .iter()
        .map(|ty| {
            let ty = ty.tensor().filter(|t| t.byte_len().is_some() || t.element == ElementType::String);
            ty.and_then(|t| Some((t.element, t.shape()?))).ok_or_else(|| {
                EvaluateError::Invalid(format!("a result of {} is too large for memory", operator.name()))
            })
        })
        .collect()
}

/// The one result that most operators have.
///
/// # Errors
/// As [`inferred`].
pub(crate) fn inferred_one(
    operator: &dyn Operator,
    inputs: &[Option<&Value>],
) -> Result<(ElementType, Shape), EvaluateError> {
    let mut results = inferred(operator, inputs)?;
    results.pop().ok_or_else(|| EvaluateError::Invalid(format!("{} has no result", operator.name())))
}

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

/// Whether a type is a number: float or integer, not bool.
pub(crate) fn is_number(element: ElementType) -> bool {
    element.is_float() || element.is_integer()
}

/// Number of elements of a concrete type; 0 when it is not.
pub(crate) fn count(types: &[Option<&ValueType>], index: usize) -> u64 {
    let shape = types.get(index).copied().flatten().and_then(ValueType::shape);
    shape.and_then(|s| s.checked_len()).map_or(0, |n| n as u64)
}
