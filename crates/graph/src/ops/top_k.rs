//! The k largest or smallest along an axis, and their indices.

use std::cmp::Ordering;

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, Elements, around};
use super::{numbers, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// The k largest or smallest along an axis, and their indices: inputs are data and k.
///
/// Of equal elements the one with the lower index comes first. NaN counts as larger than all numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct TopK {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// The largest rather than the smallest.
    pub largest: bool,
    /// In order.
    pub sorted: bool,
}

/// A whole number that orders as the value does: zeros are equal, NaN is largest.
fn rank(value: f64) -> i128 {
    if value.is_nan() {
        return i128::MAX;
    }
    let magnitude = i128::from((value.abs()).to_bits());
    if value < 0.0 { -magnitude } else { magnitude }
}

impl Operator for TopK {
    fn name(&self) -> &'static str {
        "TopK"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("largest", self.largest).with("sorted", self.sorted)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        if !element.is_integer() && !element.is_float() {
            return Err(InferError::ElementType { input: 0, element, operator: self.name() });
        }
        let mut dims = inputs.dims(0)?.to_vec();
        let axis = support::axis(self.axis, dims.len())?;
        let k = match &inputs.entries(1)?[..] {
            [k] => k.dim(),
            _ => None,
        };
        let k = k.ok_or_else(|| InferError::Mismatch("k must be one number, 0 or more".into()))?;
        if let (Some(k), Some(len)) = (k.fixed(), dims[axis].fixed())
            && k > len
        {
            return Err(InferError::Mismatch(format!("an axis of length {len} has no {k} elements to take")));
        }
        dims[axis] = k;
        let indices = TensorType::new(ElementType::I64, dims.iter().cloned());
        Ok(vec![TensorType::new(element, dims).into(), indices.into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let axis = support::axis(self.axis, shape.len())?;
        let (outer, len, inner) = around(data.shape(), axis);
        let k = shape[axis];
        // Comparing in place of the numbers themselves serves integers wider than a double's fraction.
        let ranks: Vec<i128> = if element.is_float() {
            numbers::to_f64(data)?.into_iter().map(rank).collect()
        } else {
            numbers::to_i128(data)?
        };
        let mut values = Elements::zeros(element, shape.clone())?;
        let mut indices = vec![0i64; shape.elements()];
        for i in 0..outer {
            for j in 0..inner {
                let at = |index: usize| (i * len + index) * inner + j;
                let order = |a: &usize, b: &usize| -> Ordering {
                    let order = ranks[at(*a)].cmp(&ranks[at(*b)]);
                    (if self.largest { order.reverse() } else { order }).then(a.cmp(b))
                };
                let mut line: Vec<usize> = (0..len).collect();
                line.sort_unstable_by(order);
                for (place, &index) in line[..k].iter().enumerate() {
                    let to = (i * k + place) * inner + j;
                    values.set(to, data, at(index));
                    indices[to] = index as i64;
                }
            }
        }
        Ok(vec![values.finish()?.into(), Tensor::new(shape, &indices)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        // One comparison per element at least.
        movement::element_count(&inputs[..inputs.len().min(1)])
    }

    fn cases() -> Vec<Case> {
        use ElementType::{F32, I64, U8};
        let mut numbers = Numbers::new(23);
        let mut case = |name: &str, axis, largest, element, shape: &[usize], k: i64| {
            Case::new(
                name,
                Self { axis, largest, sorted: true },
                [numbers.tensor(element, shape), Tensor::vector(&[k])],
            )
            .with_constants(&[1])
            .with_outputs(2)
            .with_tolerance(Tolerance::Exact)
        };
        vec![
            case("largest", -1, true, F32, &[3, 11], 4),
            case("smallest", 1, false, F32, &[2, 9, 3], 3),
            case("equal integers", 0, true, I64, &[13], 7),
            case("all", 0, false, U8, &[5, 2], 5),
            case("none", -1, true, F32, &[2, 3], 0),
            case("one of each row", 1, true, F32, &[7, 5], 1),
            case("of nothing", 0, true, F32, &[0, 3], 0),
            Case { constants: vec![], ..case("k given at run time", -1, true, F32, &[2, 6], 2) },
        ]
    }
}
