//! A tensor cut along an axis.

use armet_tensor::Tensor;

use super::{movement, support};
use crate::evaluate::tensor;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// A tensor cut along an axis: inputs are data and the lengths (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The axis; negative counts from the end.
    pub axis: i64,
    /// Number of parts when no lengths are given.
    pub parts: usize,
}

impl Split {
    /// Lengths of the parts of an axis when none are given: equal, the last one shorter where they cannot be.
    fn equal_lengths(&self, len: &Dim) -> Result<Vec<Dim>, InferError> {
        let cannot = || {
            InferError::Mismatch(format!("an axis of length {len} cannot be cut into {} parts", self.parts))
        };
        let before_last = self.parts.checked_sub(1).ok_or_else(cannot)?;
        let each = len.ceil_div(&self.parts.into());
        let before = each.mul(&before_last.into());
        if let (Some(len), Some(before)) = (len.fixed(), before.fixed())
            && before > len
        {
            return Err(cannot());
        }
        let mut lengths = vec![each; before_last];
        lengths.push(if before_last == 0 { len.clone() } else { len.sub(&before) });
        Ok(lengths)
    }
}

impl Operator for Split {
    fn name(&self) -> &'static str {
        "Split"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("axis", self.axis).with("num_outputs", self.parts)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let dims = inputs.dims(0)?;
        let axis = support::axis(self.axis, dims.len())?;
        let lengths = if inputs.has(1) {
            let lengths: Option<Vec<Dim>> = inputs.entries(1)?.iter().map(crate::infer::Entry::dim).collect();
            let lengths =
                lengths.ok_or_else(|| InferError::Mismatch("a part cannot have a negative length".into()))?;
            let sum = lengths.iter().fold(Dim::Fixed(0), |sum, len| sum.add(len));
            if movement::unify(&sum, &dims[axis]).is_none() {
                return Err(InferError::Mismatch(format!(
                    "parts of lengths {} are not the whole of an axis of length {}",
                    movement::show(&lengths),
                    dims[axis]
                )));
            }
            lengths
        } else {
            self.equal_lengths(&dims[axis])?
        };
        let element = inputs.element(0)?;
        let part = |len: Dim| {
            let mut dims = dims.to_vec();
            dims[axis] = len;
            TensorType::new(element, dims).into()
        };
        Ok(lengths.into_iter().map(part).collect())
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let results = movement::results(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let axis = support::axis(self.axis, data.shape().len())?;
        let mut begin = 0;
        results
            .into_iter()
            .map(|(_, shape)| {
                let mut kept: Vec<Vec<usize>> = shape.iter().map(|&len| (0..len).collect()).collect();
                kept[axis] = (begin..begin + shape[axis]).collect();
                begin += shape[axis];
                Ok(movement::select(data, &kept)?.into())
            })
            .collect()
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use armet_tensor::ElementType::{F32, I64, U8};
        let mut numbers = Numbers::new(6);
        let mut case =
            |name: &str, axis: i64, parts: usize, element, shape: &[usize], lengths: Option<&[i64]>| {
                let data = numbers.tensor(element, shape);
                let inputs = std::iter::once(data).chain(lengths.map(Tensor::vector));
                let constants = if lengths.is_some() { vec![1] } else { vec![] };
                Case::new(name, Self { axis, parts }, inputs)
                    .with_constants(&constants)
                    .with_outputs(parts)
                    .with_tolerance(Tolerance::Exact)
            };
        vec![
            case("halves of the channels", 1, 2, F32, &[1, 6, 5, 4], None),
            case("given lengths", 1, 3, F32, &[2, 9, 3], Some(&[2, 1, 6])),
            case("the last part is shorter", 0, 3, F32, &[7, 2], None),
            case("an empty part", -1, 2, U8, &[3, 4], Some(&[4, 0])),
            case("one part", 0, 1, I64, &[3], None),
            case("of nothing", 0, 2, F32, &[0, 3], None),
        ]
    }
}
