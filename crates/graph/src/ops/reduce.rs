//! Reduction over axes.

use armet_tensor::{ElementType, Shape, Tensor};
use smallvec::SmallVec;

use super::movement;
use super::numbers;
use super::support::{axis, broadcast, sum_tolerance, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance,
    Value, ValueType,
};

/// Reduction over axes: inputs are data and axes (optional).
#[derive(Debug, Clone, PartialEq)]
pub struct Reduce {
    /// What is computed.
    pub kind: ReduceKind,
    /// Reduced axes stay with length one.
    pub keep_dims: bool,
    /// Without axes none is reduced, rather than all of them; what the reduction does to each element it still does.
    pub noop_with_empty_axes: bool,
}

/// What a reduction computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is ONNX's operator Reduce... of its name")]
pub enum ReduceKind {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    SumSquare,
    LogSum,
    LogSumExp,
}

impl ReduceKind {
    /// Every reduction.
    pub const ALL: [Self; 10] = [
        Self::Sum,
        Self::Mean,
        Self::Max,
        Self::Min,
        Self::Prod,
        Self::L1,
        Self::L2,
        Self::SumSquare,
        Self::LogSum,
        Self::LogSumExp,
    ];

    /// ONNX's name of the operator.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "ReduceSum",
            Self::Mean => "ReduceMean",
            Self::Max => "ReduceMax",
            Self::Min => "ReduceMin",
            Self::Prod => "ReduceProd",
            Self::L1 => "ReduceL1",
            Self::L2 => "ReduceL2",
            Self::SumSquare => "ReduceSumSquare",
            Self::LogSum => "ReduceLogSum",
            Self::LogSumExp => "ReduceLogSumExp",
        }
    }

    /// The reduction of numbers, each with the index of the result it belongs to.
    fn reduce(self, values: &[f64], index: &[usize], results: usize) -> Vec<f64> {
        let fold = |start: f64, f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            let mut out = vec![start; results];
            for (&value, &i) in values.iter().zip(index) {
                out[i] = f(out[i], value);
            }
            out
        };
        let each = |mut out: Vec<f64>, f: &dyn Fn(f64) -> f64| {
            out.iter_mut().for_each(|v| *v = f(*v));
            out
        };
        match self {
            Self::Sum => fold(0.0, &|sum, v| sum + v),
            Self::Mean => {
                let count = values.len() as f64 / results as f64;
                each(fold(0.0, &|sum, v| sum + v), &|sum| sum / count)
            }
            // NaN wins, as in NumPy.
            Self::Max => fold(f64::NEG_INFINITY, &|most, v| if v > most || v.is_nan() { v } else { most }),
            Self::Min => fold(f64::INFINITY, &|least, v| if v < least || v.is_nan() { v } else { least }),
            Self::Prod => fold(1.0, &|product, v| product * v),
            Self::L1 => fold(0.0, &|sum, v| sum + v.abs()),
            Self::L2 => each(fold(0.0, &|sum, v| sum + v * v), &f64::sqrt),
            Self::SumSquare => fold(0.0, &|sum, v| sum + v * v),
            Self::LogSum => each(fold(0.0, &|sum, v| sum + v), &f64::ln),
            Self::LogSumExp => {
                // Shifted by the largest so that nothing overflows; an infinite one would give NaN.
                let most = Self::Max.reduce(values, index, results);
                let shift: Vec<f64> = most.iter().map(|&m| if m.is_infinite() { 0.0 } else { m }).collect();
                let mut out = vec![0.0; results];
                for (&value, &i) in values.iter().zip(index) {
                    out[i] += (value - shift[i]).exp();
                }
                out.iter().zip(shift).map(|(sum, shift)| sum.ln() + shift).collect()
            }
        }
    }

    /// The reduction of integers, wrapping; those that are not exact are rounded toward zero.
    fn reduce_integers(
        self,
        values: &[i128],
        index: &[usize],
        results: usize,
        (low, high): (i128, i128),
    ) -> Vec<i128> {
        let fold = |start: i128, f: &dyn Fn(i128, i128) -> i128| -> Vec<i128> {
            let mut out = vec![start; results];
            for (&value, &i) in values.iter().zip(index) {
                out[i] = f(out[i], value);
            }
            out
        };
        match self {
            Self::Sum => fold(0, &|sum, v| sum + v),
            Self::Mean => {
                let count = (values.len() / results.max(1)).max(1) as i128;
                fold(0, &|sum, v| sum + v).into_iter().map(|sum| sum / count).collect()
            }
            Self::Max => fold(low, &|most, v| most.max(v)),
            Self::Min => fold(high, &|least, v| least.min(v)),
            Self::Prod => fold(1, &|product, v| product.wrapping_mul(v)),
            Self::L1 => fold(0, &|sum, v| sum + v.abs()),
            Self::SumSquare => fold(0, &|sum, v| sum.wrapping_add(v.wrapping_mul(v))),
            Self::L2 | Self::LogSum | Self::LogSumExp => {
                let values: Vec<f64> = values.iter().map(|&v| v as f64).collect();
                self.reduce(&values, index, results).into_iter().map(|v| v as i128).collect()
            }
        }
    }

    fn accepts(self, element: ElementType) -> bool {
        let extreme = matches!(self, Self::Max | Self::Min);
        typing::is_number(element) || (extreme && element == ElementType::Bool)
    }
}

impl Reduce {
    /// For each axis of the data, whether it is reduced.
    fn mask(&self, axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>, InferError> {
        let all = axes.is_empty() && !self.noop_with_empty_axes;
        let mut mask: SmallVec<[bool; 6]> = SmallVec::from_elem(all, rank);
        for &at in axes {
            mask[axis(at, rank)?] = true;
        }
        Ok(mask)
    }
}

/// The axes that are given; none when they are not.
fn given_axes(inputs: &InferInputs<'_>) -> Result<Vec<i64>, InferError> {
    // The contents of a list that is empty by its type are known.
    if !inputs.has(1) || inputs.tensor(1)?.shape().is_some_and(|s| s.elements() == 0) {
        return Ok(Vec::new());
    }
    inputs.ints(1)
}

impl Operator for Reduce {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("keepdims", self.keep_dims)
            .with("noop_with_empty_axes", self.noop_with_empty_axes)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), |e| self.kind.accepts(e))?;
        let axes = given_axes(inputs)?;
        if axes.is_empty() && self.noop_with_empty_axes {
            return Ok(vec![inputs.value_type(0)?.clone()]);
        }
        if axes.is_empty() && !self.keep_dims {
            return Ok(typing::one(element, []));
        }
        let x = inputs.dims(0)?;
        let mask = self.mask(&axes, x.len())?;
        let dims = x.iter().zip(mask).filter_map(|(dim, reduced)| match (reduced, self.keep_dims) {
            (false, _) => Some(dim.clone()),
            (true, true) => Some(Dim::Fixed(1)),
            (true, false) => None,
        });
        Ok(typing::one(element, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let x = tensor(inputs, 0)?;
        let (element, shape) = movement::result(self, inputs)?;
        let axes = optional(inputs, 1).and_then(Tensor::to_i64).unwrap_or_default();
        let mask = self.mask(&axes, x.shape().len())?;
        let kept: Shape =
            x.shape().iter().zip(&mask).map(|(&dim, &reduced)| if reduced { 1 } else { dim }).collect();
        let results = broadcast::elements(&kept)?;
        // Each element's result, by repeating the results' own indices along the reduced axes.
        let index = broadcast::expand((0..results).collect(), &kept, x.shape())?;
        let y = if element.is_float() {
            let values = self.kind.reduce(&numbers::to_f64(x)?, &index, results);
            numbers::from_f64(element, shape, &values)?
        } else {
            let range = numbers::integer_range(element).unwrap_or((0, 1));
            let values = self.kind.reduce_integers(&numbers::to_i128(x)?, &index, results, range);
            numbers::from_i128(element, shape, &values)?
        };
        Ok(vec![y.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(14);
        let mut cases = Vec::new();
        for (i, kind) in ReduceKind::ALL.into_iter().enumerate() {
            let op = Reduce { kind, keep_dims: i % 2 == 0, noop_with_empty_axes: false };
            let inputs = [numbers.floats([2, 3, 5, 7], 0.1, 2.0), Tensor::vector(&[1i64, -1])];
            let case = Case::new(format!("{} two axes", kind.name()), op, inputs);
            cases.push(case.with_constants(&[1]).with_tolerance(sum_tolerance(21)));
        }
        let mut case = |name: &str, kind: ReduceKind, keep_dims: bool, shape: &[usize], axes: &[i64]| {
            let op = Reduce { kind, keep_dims, noop_with_empty_axes: false };
            let x = numbers.floats(shape, -2.0, 2.0);
            let inputs: Vec<Tensor> =
                std::iter::once(x).chain((!axes.is_empty()).then(|| Tensor::vector(axes))).collect();
            let constants: &[usize] = if axes.is_empty() { &[] } else { &[1] };
            cases.push(
                Case::new(name, op, inputs).with_constants(constants).with_tolerance(sum_tolerance(64)),
            );
        };
        case("mean of the last axis", ReduceKind::Mean, true, &[2, 9, 33], &[-1]);
        case("mean of pictures", ReduceKind::Mean, true, &[1, 5, 7, 9], &[2, 3]);
        case("sum of the first axis", ReduceKind::Sum, false, &[5, 6], &[0]);
        case("sum of everything", ReduceKind::Sum, false, &[3, 4, 5], &[]);
        case("maximum of everything, kept", ReduceKind::Max, true, &[3, 4], &[]);
        case("maximum of the middle axis", ReduceKind::Max, false, &[3, 4, 5], &[1]);
        case("minimum of one", ReduceKind::Min, false, &[4, 1], &[1]);
        case("sum of nothing", ReduceKind::Sum, false, &[3, 0], &[1]);
        let axes = Tensor::vector(&[0i64]);
        for kind in [ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max] {
            let op = Reduce { kind, keep_dims: false, noop_with_empty_axes: false };
            let inputs = [numbers.ints::<i64>([4, 3], -9, 9), axes.clone()];
            let case = Case::new(format!("{} int64", kind.name()), op, inputs);
            cases.push(case.with_constants(&[1]).with_tolerance(Tolerance::Exact));
        }
        let op = Reduce { kind: ReduceKind::SumSquare, keep_dims: true, noop_with_empty_axes: true };
        let case = Case::new("no axes, squares", op, [numbers.floats([2, 3], -1.0, 1.0)]);
        cases.push(case);
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InferInput, TensorType};

    fn reduce(kind: ReduceKind, x: &Tensor) -> Tensor {
        let x = Value::from(x.clone());
        let op = Reduce { kind, keep_dims: false, noop_with_empty_axes: false };
        op.evaluate(&[Some(&x)], &Context::default()).unwrap()[0].tensor().unwrap().clone()
    }

    #[test]
    fn the_logarithm_of_a_sum_of_exponentials_does_not_overflow() {
        let x = Tensor::vector(&[1000.0f32, 1000.0]);
        assert_eq!(reduce(ReduceKind::LogSumExp, &x).expect::<f32>()[0], 1000.6932);
        let x = Tensor::vector(&[f32::NEG_INFINITY; 2]);
        assert_eq!(reduce(ReduceKind::LogSumExp, &x).expect::<f32>()[0], f32::NEG_INFINITY);
    }

    #[test]
    fn reductions_of_nothing_are_neutral() {
        let x = Tensor::zeros(ElementType::I8, [0]).unwrap();
        let of = |kind| reduce(kind, &x).expect::<i8>()[0];
        assert_eq!(
            [of(ReduceKind::Sum), of(ReduceKind::Prod), of(ReduceKind::Max), of(ReduceKind::Min)],
            [0, 1, -128, 127]
        );
    }

    #[test]
    fn unknown_axes_cut_and_known_ones_keep_symbols() {
        let data = ValueType::from(TensorType::new(ElementType::F32, [Dim::symbol("n"), 3.into()]));
        let axes = ValueType::from(TensorType::fixed(ElementType::I64, &[1]));
        let op = Reduce { kind: ReduceKind::Sum, keep_dims: false, noop_with_empty_axes: false };
        let known = Tensor::vector(&[-1i64]);
        let infer = |value| {
            let inputs = [
                Some(InferInput { ty: &data, value: None, entries: None }),
                Some(InferInput { ty: &axes, value, entries: None }),
            ];
            op.infer(&InferInputs(&inputs))
        };
        assert_eq!(infer(None), Err(InferError::NeedsValue(1)));
        assert_eq!(infer(Some(&known)), Ok(typing::one(ElementType::F32, [Dim::symbol("n")])));
    }
}
