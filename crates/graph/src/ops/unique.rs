//! Elements or slices without repetition.

use std::cmp::Ordering;

use armet_tensor::{ElementType, Shape, Tensor};

use super::movement::{self, Elements, around};
use super::{numbers, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Elements, or slices along an axis, without repetition. Besides them come the index of the first of each, for each
/// element of the input the place among the results, and how often each is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Unique {
    /// The axis whose slices are compared; all elements are when there is none.
    pub axis: Option<i64>,
    /// In ascending order rather than in that of the input.
    pub sorted: bool,
}

/// Numbers whose order is that of the floats, all NaN being one and behind all others.
fn rank(value: f64) -> i128 {
    if value.is_nan() {
        return i128::MAX;
    }
    let magnitude = i128::from(value.abs().to_bits());
    if value < 0.0 { -magnitude } else { magnitude }
}

/// The slices along an axis as groups of equal ones: the indices of each in ascending order, the groups in that of
/// their contents.
fn groups<K: Ord>(
    keys: &[K],
    (outer, len, inner): (usize, usize, usize),
) -> Result<Vec<Vec<usize>>, EvaluateError> {
    let compare = |&a: &usize, &b: &usize| -> Ordering {
        let row = |i: usize, at: usize| &keys[(i * len + at) * inner..][..inner];
        (0..outer).map(|i| row(i, a).cmp(row(i, b))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let mut order = movement::reserve(len)?;
    order.extend(0..len);
    order.sort_by(compare);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in order {
        match groups.last_mut() {
            Some(group) if compare(&group[0], &at).is_eq() => group.push(at),
            _ => groups.push(vec![at]),
        }
    }
    Ok(groups)
}

impl Operator for Unique {
    fn name(&self) -> &'static str {
        "Unique"
    }

    fn attributes(&self) -> Attributes {
        let attributes = Attributes::none().with("sorted", self.sorted);
        match self.axis {
            Some(axis) => attributes.with("axis", axis),
            None => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        if matches!(element, ElementType::Complex64 | ElementType::Complex128) {
            return Err(InferError::ElementType { input: 0, element, operator: self.name() });
        }
        let mut dims = inputs.dims(0)?.to_vec();
        let len = match self.axis {
            Some(axis) => {
                let axis = support::axis(axis, dims.len())?;
                std::mem::replace(&mut dims[axis], Dim::Unknown)
            }
            None => {
                let len = Dim::product(&dims);
                dims = vec![Dim::Unknown];
                len
            }
        };
        let indices = |len: Dim| ValueType::from(TensorType::new(ElementType::I64, [len]));
        let data = TensorType::new(element, dims).into();
        Ok(vec![data, indices(Dim::Unknown), indices(len), indices(Dim::Unknown)])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        movement::types(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let (mut shape, axis) = match self.axis {
            Some(axis) => (data.shape().clone(), support::axis(axis, data.shape().len())?),
            None => (Shape::from([data.len()]), 0),
        };
        let dims = around(&shape, axis);
        let (outer, len, inner) = dims;
        let mut groups = match data.element() {
            ElementType::String => groups(data.strings(), dims)?,
            element if element.is_float() => {
                let keys: Vec<i128> = numbers::to_f64(data)?.into_iter().map(rank).collect();
                groups(&keys, dims)?
            }
            _ => groups(&numbers::to_i128(data)?, dims)?,
        };
        if !self.sorted {
            groups.sort_by_key(|group| group[0]);
        }
        shape =
            shape.iter().enumerate().map(|(i, &dim)| if i == axis { groups.len() } else { dim }).collect();
        let mut out = Elements::zeros(data.element(), shape)?;
        let mut places = movement::reserve(len)?;
        places.resize(len, 0i64);
        for (place, group) in groups.iter().enumerate() {
            for i in 0..outer {
                out.copy((i * groups.len() + place) * inner, data, (i * len + group[0]) * inner, inner);
            }
            for &at in group {
                places[at] = place as i64;
            }
        }
        let first: Vec<i64> = groups.iter().map(|group| group[0] as i64).collect();
        let counts: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
        let indices = [Tensor::vector(&first), Tensor::vector(&places), Tensor::vector(&counts)];
        Ok(std::iter::once(out.finish()?).chain(indices).map(Value::from).collect())
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use ElementType::{Bool, F32, I64};
        let mut numbers = Numbers::new(75);
        let mut case = |name: &str, axis, sorted, element, shape: &[usize]| {
            Case::new(name, Self { axis, sorted }, [numbers.tensor(element, shape)])
                .with_outputs(4)
                .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("elements", None, true, I64, &[3, 5]),
            case("as they come", None, false, I64, &[13]),
            case("rows", Some(0), true, Bool, &[7, 2]),
            case("columns as they come", Some(-1), false, Bool, &[2, 1, 6]),
            case("floats", None, true, F32, &[4]),
            case("nothing", None, true, F32, &[0, 3]),
            case("scalar", None, true, F32, &[]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(op: &Unique, data: Tensor) -> Vec<Tensor> {
        let value = Value::from(data);
        let results = op.evaluate(&[Some(&value)], &Context::default()).unwrap();
        results.iter().map(|value| value.tensor().unwrap().clone()).collect()
    }

    #[test]
    fn texts_are_ordered_as_texts() {
        let texts = Tensor::from_strings([2, 2], ["b", "a", "b", ""].map(String::from).to_vec()).unwrap();
        let [y, first, places, counts] = &run(&Unique { axis: None, sorted: true }, texts)[..] else {
            panic!("four results")
        };
        assert_eq!(y.strings(), ["", "a", "b"]);
        assert_eq!(first.to_i64().unwrap(), [3, 1, 0]);
        assert_eq!(places.to_i64().unwrap(), [2, 1, 2, 0]);
        assert_eq!(counts.to_i64().unwrap(), [1, 1, 2]);
    }

    #[test]
    fn numbers_that_are_none_are_one() {
        let data = Tensor::vector(&[f32::NAN, 1.0, -f32::NAN, -0.0, 0.0]);
        let results = run(&Unique { axis: None, sorted: true }, data);
        assert_eq!(results[2].to_i64().unwrap(), [2, 1, 2, 0, 0]);
    }
}
