//! A strided part.

use armet_tensor::Tensor;

use super::window::slice_range;
use super::{movement, support};
use crate::evaluate::tensor;
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// A strided part: inputs are data, starts, ends, axes (optional), steps (optional).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slice;

/// Ends from here on mean "to the end" whatever the length; exporters write the largest int32 or int64.
const TO_THE_END: i64 = i32::MAX as i64;

/// Where a start or an end lies on an axis that is walked forwards; `None` when it cannot be told.
fn bound(entry: &Entry, len: &Dim) -> Option<Dim> {
    match entry {
        Entry::Int(n) if *n >= TO_THE_END => Some(len.clone()),
        Entry::Int(n) if *n >= 0 => Some(len.min(&entry.dim()?)),
        Entry::Int(n) => Some(len.sub(&usize::try_from(n.unsigned_abs()).ok()?.into())),
        Entry::Dim(dim) => Some(len.min(dim)),
    }
}

/// Length of what a slice leaves of an axis.
fn sliced(len: &Dim, start: &Entry, end: &Entry, step: &Entry) -> Result<Dim, InferError> {
    let zero = || InferError::Mismatch("the step of a slice must not be zero".into());
    let Some(step) = step.int() else { return Ok(Dim::Unknown) };
    if step == 0 {
        return Err(zero());
    }
    if let (Some(len), Some(start), Some(end)) = (len.fixed(), start.int(), end.int()) {
        return slice_range(len, start, end, step).map(|range| range.len().into()).ok_or_else(zero);
    }
    let stride = Dim::Fixed(usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX));
    if step < 0 {
        // From the last element to the first is the only backward walk whose length follows from a name.
        let from_last = start.int().is_some_and(|s| s == -1 || s >= TO_THE_END);
        let to_first = end.int().is_some_and(|e| e <= -TO_THE_END);
        return Ok(if from_last && to_first { len.ceil_div(&stride) } else { Dim::Unknown });
    }
    let from = match start {
        // Not limited by the length: the difference below saturates.
        Entry::Int(n) if *n >= 0 => start.dim(),
        Entry::Dim(dim) => Some(dim.clone()),
        Entry::Int(_) => bound(start, len),
    };
    Ok(match (from, bound(end, len)) {
        (Some(from), Some(to)) => to.sub(&from).ceil_div(&stride),
        _ => Dim::Unknown,
    })
}

/// Starts, ends, axes and steps, the optional ones filled in.
struct Parts {
    starts: Vec<Entry>,
    ends: Vec<Entry>,
    axes: Vec<usize>,
    steps: Vec<Entry>,
}

impl Parts {
    fn new(inputs: &InferInputs<'_>, rank: usize) -> Result<Self, InferError> {
        let (starts, ends) = (inputs.entries(1)?, inputs.entries(2)?);
        let axes =
            if inputs.has(3) { support::axes(&inputs.ints(3)?, rank)? } else { (0..starts.len()).collect() };
        let steps = if inputs.has(4) { inputs.entries(4)? } else { vec![Entry::Int(1); starts.len()] };
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || starts.len() > rank {
            return Err(InferError::Mismatch(format!(
                "{} starts, {} ends, {} axes and {} steps do not go together on {rank} dimensions",
                starts.len(),
                ends.len(),
                axes.len(),
                steps.len()
            )));
        }
        Ok(Self { starts, ends, axes, steps })
    }
}

impl Operator for Slice {
    fn name(&self) -> &'static str {
        "Slice"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let mut dims = inputs.dims(0)?.to_vec();
        let parts = Parts::new(inputs, dims.len())?;
        for (i, &axis) in parts.axes.iter().enumerate() {
            dims[axis] = sliced(&dims[axis], &parts.starts[i], &parts.ends[i], &parts.steps[i])?;
        }
        Ok(vec![TensorType::new(inputs.element(0)?, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let numbers = |index: usize| movement::indices(inputs, index);
        let has = |index: usize| inputs.get(index).is_some_and(Option::is_some);
        let (starts, ends) = (numbers(1)?, numbers(2)?);
        let axes = if has(3) {
            support::axes(&numbers(3)?, data.shape().len())?
        } else {
            (0..starts.len()).collect()
        };
        let steps = if has(4) { numbers(4)? } else { vec![1; starts.len()] };
        let mut kept: Vec<Vec<usize>> = data.shape().iter().map(|&len| (0..len).collect()).collect();
        for (i, axis) in axes.into_iter().enumerate() {
            kept[axis] = slice_range(data.shape()[axis], starts[i], ends[i], steps[i])
                .ok_or_else(|| EvaluateError::Invalid("the step of a slice must not be zero".into()))?
                .collect();
        }
        Ok(vec![movement::select(data, &kept)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I8, I64};
        let mut numbers = Numbers::new(5);
        let mut case = |name: &str, element, shape: &[usize], parts: &[&[i64]]| {
            let data = numbers.tensor(element, shape);
            let inputs = std::iter::once(data).chain(parts.iter().map(|p| Tensor::vector(p)));
            let constants: Vec<usize> = (1..=parts.len()).collect();
            Case::new(name, Self, inputs).with_constants(&constants).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("leading axes by default", F32, &[5, 7, 3], &[&[1, 2], &[4, 6]]),
            case("channels", F32, &[1, 9, 4, 5], &[&[2], &[8], &[1]]),
            case(
                "every second pixel",
                F32,
                &[1, 3, 7, 6],
                &[&[1, 0], &[i64::MAX, i64::MAX], &[2, 3], &[2, 2]],
            ),
            case("backwards", F32, &[3, 5], &[&[-1], &[i64::MIN], &[-1], &[-1]]),
            case("backwards by two", I8, &[2, 8], &[&[6], &[0], &[1], &[-2]]),
            case("counted from the end", F32, &[4, 6], &[&[-3], &[-1], &[-1], &[1]]),
            case("nothing is left", F32, &[4, 6], &[&[3], &[3], &[0], &[1]]),
            case("of a shape", I64, &[4], &[&[2], &[4], &[0], &[1]]),
            case("limits beyond the ends", F32, &[3, 4], &[&[-100], &[100], &[1], &[3]]),
            Case {
                constants: vec![],
                ..case("limits given at run time", F32, &[6, 3], &[&[1], &[5], &[0], &[2]])
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_from_names() {
        let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
        let len = |a: i64, b: i64, c: i64| {
            sliced(&n, &Entry::Int(a), &Entry::Int(b), &Entry::Int(c)).unwrap().to_string()
        };
        assert_eq!(len(0, i64::MAX, 1), "n");
        assert_eq!(len(1, i64::MAX, 1), "(n-1)");
        assert_eq!(len(0, -1, 1), "(n-1)");
        assert_eq!(len(0, i64::MAX, 2), "ceil(n/2)");
        assert_eq!(len(0, 5, 1), "min(n,5)");
        assert_eq!(len(-1, i64::MIN, -1), "n");
        assert_eq!(len(4, 2, -1), "?");
        let by_name = sliced(&n, &Entry::Int(0), &Entry::Dim(n.clone()), &Entry::Int(1)).unwrap();
        assert_eq!(by_name, n);
        let by_other = sliced(&n, &Entry::Int(0), &Entry::Dim(m), &Entry::Int(1)).unwrap();
        assert_eq!(by_other.to_string(), "min(n,m)");
    }

    #[test]
    fn named_lengths_agree_with_numbers() {
        let n = Dim::symbol("n");
        for len in 0..6usize {
            for start in -3..5i64 {
                for end in -3..5i64 {
                    for step in 1..3i64 {
                        let ints = [Entry::Int(start), Entry::Int(end), Entry::Int(step)];
                        let named = sliced(&n, &ints[0], &ints[1], &ints[2]).unwrap();
                        let counted = slice_range(len, start, end, step).unwrap().len();
                        assert_eq!(
                            named.substitute(&|_| Some(len)),
                            counted.into(),
                            "{len} {start} {end} {step}"
                        );
                    }
                }
            }
        }
    }
}
