//! Lists of tensors: made, read, changed. Values are shared, never copied.

use armet_tensor::{ElementType, Tensor};

use super::movement;
use crate::evaluate::{sequence, tensor, value};
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Lists of tensors: made, read, changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    /// What is done.
    pub kind: SequenceKind,
}

/// What is done with lists of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceKind {
    /// A list of nothing.
    Empty {
        /// What its tensors would hold.
        element: ElementType,
    },
    /// A list of the inputs.
    Construct,
    /// One tensor of a list, by position.
    At,
    /// A list with one tensor more, at a position or at the end.
    Insert,
    /// A list with one tensor less, at a position or at the end.
    Erase,
    /// The number of tensors in a list.
    Length,
}

/// The one number of a position.
fn position(inputs: &[Option<&Value>], index: usize) -> Result<i64, EvaluateError> {
    let given = tensor(inputs, index)?;
    match given.to_i64().as_deref() {
        Some(&[position]) => Ok(position),
        _ => Err(EvaluateError::Invalid(format!(
            "a position must be one integer, not {} {}",
            given.element(),
            given.shape()
        ))),
    }
}

/// Resolves a position that may count from the end of a list.
fn resolve(position: i64, len: usize, last: usize) -> Result<usize, EvaluateError> {
    let n = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if position < 0 { position.saturating_add(n) } else { position };
    usize::try_from(at).ok().filter(|&at| at <= last).ok_or_else(|| {
        EvaluateError::Invalid(format!("position {position} is outside a sequence of {len} tensors"))
    })
}

/// The place that an optional position names among `len` tensors; the last one without it.
fn existing(inputs: &[Option<&Value>], index: usize, len: usize) -> Result<usize, EvaluateError> {
    let given = inputs.get(index).copied().flatten().map(|_| position(inputs, index)).transpose()?;
    match len.checked_sub(1) {
        Some(last) => resolve(given.unwrap_or(-1), len, last),
        None => Err(EvaluateError::Invalid("the sequence is empty".into())),
    }
}

impl Sequence {
    fn check_position(&self, inputs: &InferInputs<'_>, index: usize) -> Result<(), InferError> {
        if inputs.has(index) {
            movement::index_element(self.name(), index, inputs.element(index)?)?;
        }
        Ok(())
    }

    fn joined(&self, index: usize, a: &ValueType, b: &ValueType) -> Result<ValueType, InferError> {
        a.join(b).ok_or_else(|| {
            InferError::Mismatch(format!("{} puts {b} of input {index} in a list of {a}", self.name()))
        })
    }
}

impl Operator for Sequence {
    fn name(&self) -> &'static str {
        match self.kind {
            SequenceKind::Empty { .. } => "SequenceEmpty",
            SequenceKind::Construct => "SequenceConstruct",
            SequenceKind::At => "SequenceAt",
            SequenceKind::Insert => "SequenceInsert",
            SequenceKind::Erase => "SequenceErase",
            SequenceKind::Length => "SequenceLength",
        }
    }

    fn attributes(&self) -> Attributes {
        match self.kind {
            SequenceKind::Empty { element } => Attributes::none().with("dtype", element.name()),
            _ => Attributes::none(),
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let list = |items: ValueType| ValueType::Sequence(Box::new(items));
        Ok(vec![match self.kind {
            SequenceKind::Empty { element } => list(TensorType::unranked(element).into()),
            SequenceKind::Construct => {
                let mut items = inputs.value_type(0)?.clone();
                for index in 1..inputs.len() {
                    items = self.joined(index, &items, inputs.value_type(index)?)?;
                }
                list(items)
            }
            SequenceKind::At => {
                self.check_position(inputs, 1)?;
                if !inputs.has(1) {
                    return Err(InferError::MissingInput(1));
                }
                inputs.items(0)?.clone()
            }
            SequenceKind::Insert => {
                self.check_position(inputs, 2)?;
                list(self.joined(1, inputs.items(0)?, inputs.value_type(1)?)?)
            }
            SequenceKind::Erase => {
                self.check_position(inputs, 1)?;
                list(inputs.items(0)?.clone())
            }
            SequenceKind::Length => {
                inputs.items(0)?;
                TensorType::fixed(ElementType::I64, &[]).into()
            }
        }])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        Ok(vec![match self.kind {
            SequenceKind::Empty { .. } => Value::Sequence(Vec::new()),
            SequenceKind::Construct => {
                let items = (0..inputs.len()).map(|index| value(inputs, index).cloned());
                Value::Sequence(of_one_type(items.collect::<Result<_, _>>()?)?)
            }
            SequenceKind::At => {
                let items = sequence(inputs, 0)?;
                value(inputs, 1)?;
                items[existing(inputs, 1, items.len())?].clone()
            }
            SequenceKind::Insert => {
                let (items, new) = (sequence(inputs, 0)?, value(inputs, 1)?);
                let at = match inputs.get(2).copied().flatten() {
                    Some(_) => resolve(position(inputs, 2)?, items.len(), items.len())?,
                    None => items.len(),
                };
                if let Some(first) = items.first() {
                    of_one_type(vec![first.clone(), new.clone()])?;
                }
                let mut list = Vec::with_capacity(items.len() + 1);
                list.extend_from_slice(&items[..at]);
                list.push(new.clone());
                list.extend_from_slice(&items[at..]);
                Value::Sequence(list)
            }
            SequenceKind::Erase => {
                let mut list = sequence(inputs, 0)?.to_vec();
                let at = existing(inputs, 1, list.len())?;
                list.remove(at);
                Value::Sequence(list)
            }
            SequenceKind::Length => Tensor::scalar(sequence(inputs, 0)?.len() as i64).into(),
        }])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(61);
        let mut list = |shapes: &[&[usize]]| {
            Value::Sequence(shapes.iter().map(|s| numbers.tensor(ElementType::F32, *s).into()).collect())
        };
        let three = list(&[&[2, 3], &[1], &[]]);
        let alike = list(&[&[2], &[2]]);
        let new: Value = Tensor::vector(&[1f32, 2.0]).into();
        let at = |position: i64| Value::from(Tensor::scalar(position));
        let case = |name: &str, kind, inputs: Vec<Value>| {
            Case::of_values(name, Self { kind }, inputs).with_tolerance(Tolerance::Exact)
        };
        vec![
            case("nothing", SequenceKind::Empty { element: ElementType::I64 }, vec![]),
            case("of inputs", SequenceKind::Construct, vec![new.clone(), Tensor::scalar(1f32).into()]),
            case("first", SequenceKind::At, vec![three.clone(), at(0)]),
            case("from the end", SequenceKind::At, vec![three.clone(), at(-2)]),
            case("of equal shapes", SequenceKind::At, vec![alike.clone(), at(1)]),
            case("at the end", SequenceKind::Insert, vec![three.clone(), new.clone()]),
            case("in between", SequenceKind::Insert, vec![alike.clone(), new.clone(), at(1)]),
            case("behind the last", SequenceKind::Insert, vec![three.clone(), new, at(3)]),
            case("without the last", SequenceKind::Erase, vec![three.clone()]),
            case("without the first", SequenceKind::Erase, vec![three.clone(), at(-3)]),
            case("count", SequenceKind::Length, vec![three]),
        ]
    }
}

/// Refuses values of several kinds or element types in one list.
fn of_one_type(items: Vec<Value>) -> Result<Vec<Value>, EvaluateError> {
    let mut first: Option<ValueType> = None;
    for (index, ty) in items.iter().enumerate().filter_map(|(i, v)| Some((i, v.value_type()?))) {
        first = match first {
            None => Some(ty),
            Some(first) => Some(first.join(&ty).ok_or_else(|| {
                EvaluateError::Invalid(format!("value {index} is {ty} in a list of {first}"))
            })?),
        };
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: SequenceKind, inputs: &[Value]) -> Result<Value, EvaluateError> {
        let inputs: Vec<Option<&Value>> = inputs.iter().map(Some).collect();
        Ok(Sequence { kind }.evaluate(&inputs, &Context::default())?.remove(0))
    }

    #[test]
    fn positions_outside_are_errors_that_name_them() {
        let list = Value::Sequence(vec![Tensor::scalar(1f32).into()]);
        let at = |p: i64| Value::from(Tensor::scalar(p));
        for (kind, inputs) in [
            (SequenceKind::At, vec![list.clone(), at(1)]),
            (SequenceKind::At, vec![list.clone(), at(-2)]),
            (SequenceKind::Erase, vec![list.clone(), at(1)]),
            (SequenceKind::Insert, vec![list.clone(), Tensor::scalar(1f32).into(), at(2)]),
        ] {
            let error = run(kind, &inputs).unwrap_err().to_string();
            assert!(error.contains("is outside a sequence of 1 tensors"), "{error}");
        }
        let none = Value::Sequence(Vec::new());
        assert!(run(SequenceKind::Erase, &[none.clone()]).is_err());
        assert_eq!(run(SequenceKind::Length, &[none]), Ok(Tensor::scalar(0i64).into()));
    }

    #[test]
    fn lists_hold_one_element_type() {
        let list = Value::Sequence(vec![Tensor::scalar(1f32).into()]);
        assert!(run(SequenceKind::Insert, &[list, Tensor::scalar(1i64).into()]).is_err());
    }
}
