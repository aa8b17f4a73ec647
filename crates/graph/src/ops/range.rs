//! Numbers from start (first input) to limit (second, excluded) by delta (third).

use armet_tensor::{ElementType, Shape};

use super::{movement, numbers};
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Tolerance,
    Value, ValueType,
};

/// Numbers from start (first input) to limit (second, excluded) by delta (third).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Range;

fn bad(what: &str) -> InferError {
    InferError::Mismatch(format!("{what} of a range must be one number"))
}

/// Start, limit and delta of a range of integers.
fn entries(inputs: &InferInputs<'_>) -> Result<[Entry; 3], InferError> {
    let one = |index: usize, what: &str| match &inputs.entries(index)?[..] {
        [entry] => Ok(entry.clone()),
        _ => Err(bad(what)),
    };
    Ok([one(0, "the start")?, one(1, "the limit")?, one(2, "the delta")?])
}

fn zero_delta() -> InferError {
    InferError::Mismatch("the delta of a range must not be zero".into())
}

fn count_integers(entries: &[Entry; 3]) -> Result<Dim, InferError> {
    let delta = entries[2].int();
    if delta == Some(0) {
        return Err(zero_delta());
    }
    if let (Some(start), Some(limit), Some(delta)) = (entries[0].int(), entries[1].int(), delta) {
        let (start, limit, delta) = (i128::from(start), i128::from(limit), i128::from(delta));
        let room = if delta > 0 { limit - start } else { start - limit };
        let steps = (room + delta.abs() - 1) / delta.abs();
        return Ok(usize::try_from(steps.max(0)).map_or(Dim::Unknown, Dim::Fixed));
    }
    let (Some(start), Some(limit)) = (entries[0].dim(), entries[1].dim()) else { return Ok(Dim::Unknown) };
    let Some(delta) = delta else { return Ok(Dim::Unknown) };
    let room = if delta > 0 { limit.sub(&start) } else { start.sub(&limit) };
    Ok(room.ceil_div(&usize::try_from(delta.unsigned_abs()).unwrap_or(usize::MAX).into()))
}

fn floats(inputs: &InferInputs<'_>) -> Result<[f64; 3], InferError> {
    let one = |index: usize, what: &str| match inputs.floats(index)?[..] {
        [value] => Ok(value),
        _ => Err(bad(what)),
    };
    Ok([one(0, "the start")?, one(1, "the limit")?, one(2, "the delta")?])
}

fn count_floats([start, limit, delta]: [f64; 3]) -> Result<Dim, InferError> {
    if delta == 0.0 {
        return Err(zero_delta());
    }
    let count = ((limit - start) / delta).ceil();
    if !count.is_finite() {
        return Err(InferError::Mismatch(format!("a range from {start} to {limit} by {delta} has no end")));
    }
    Ok(Dim::Fixed(count.max(0.0) as usize))
}

impl Operator for Range {
    fn name(&self) -> &'static str {
        "Range"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        for index in 1..3 {
            movement::same_element(self.name(), element, index, inputs.element(index)?)?;
        }
        let count = if element.is_integer() {
            count_integers(&entries(inputs)?)?
        } else if element.is_float() {
            count_floats(floats(inputs)?)?
        } else {
            return Err(InferError::ElementType { input: 0, element, operator: self.name() });
        };
        Ok(vec![TensorType::new(element, [count]).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let first = |index: usize| crate::evaluate::tensor(inputs, index);
        let count = shape.elements();
        let out = if element.is_float() {
            let [start, delta] = [numbers::to_f64(first(0)?)?[0], numbers::to_f64(first(2)?)?[0]];
            let mut values: Vec<f64> = movement::reserve(count)?;
            values.extend((0..count).map(|i| start + i as f64 * delta));
            numbers::from_f64(element, shape, &values)?
        } else {
            let [start, delta] = [numbers::to_i128(first(0)?)?[0], numbers::to_i128(first(2)?)?[0]];
            let mut values: Vec<i128> = movement::reserve(count)?;
            values.extend((0..count).map(|i| start + i as i128 * delta));
            numbers::from_i128(element, shape, &values)?
        };
        Ok(vec![out.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        movement::element_count(outputs)
    }

    fn cases() -> Vec<Case> {
        let case = |name: &str, element, [start, limit, delta]: [f64; 3]| {
            let scalar = |value: f64| {
                numbers::from_f64(element, Shape::scalar(), &[value]).expect("one number for one element")
            };
            let tolerance =
                if element == ElementType::F32 { Tolerance::Relative(1e-6) } else { Tolerance::Exact };
            Case::new(name, Self, [scalar(start), scalar(limit), scalar(delta)])
                .with_constants(&[0, 1, 2])
                .with_tolerance(tolerance)
        };
        vec![
            case("positions", ElementType::I64, [0.0, 7.0, 1.0]),
            case("by steps", ElementType::I32, [3.0, 14.0, 4.0]),
            case("downwards", ElementType::I64, [10.0, 4.0, -2.0]),
            case("real numbers", ElementType::F32, [0.0, 1.0, 0.25]),
            case("real numbers downwards", ElementType::F32, [1.0, -2.3, -0.5]),
            case("nothing", ElementType::I64, [5.0, 5.0, 1.0]),
            case("the wrong way", ElementType::F32, [5.0, 1.0, 1.0]),
            Case { constants: vec![], ..case("limits given at run time", ElementType::I64, [1.0, 9.0, 3.0]) },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    #[test]
    fn lengths_follow_from_names() {
        let n = Entry::Dim(Dim::symbol("n"));
        let count = |a: Entry, b: Entry, c: i64| count_integers(&[a, b, Entry::Int(c)]).unwrap().to_string();
        assert_eq!(count(Entry::Int(0), n.clone(), 1), "n");
        assert_eq!(count(Entry::Int(2), n.clone(), 3), "ceil((n-2)/3)");
        assert_eq!(count(n.clone(), Entry::Int(0), -1), "n");
        assert_eq!(count(n, Entry::Int(-1), -1), "?");
    }

    #[test]
    fn endless_ranges_are_refused() {
        let scalar = |value: f32| Value::from(Tensor::scalar(value));
        for parts in [[0.0, 1.0, 0.0], [0.0, f32::INFINITY, 1.0], [0.0, f32::NAN, 1.0], [0.0, 1e30, 1e-30]] {
            let values = parts.map(scalar);
            let inputs: Vec<Option<&Value>> = values.iter().map(Some).collect();
            assert!(Range.evaluate(&inputs, &Context::default()).is_err(), "{parts:?}");
        }
    }
}
