//! The discrete Fourier transform.

use std::f64::consts::TAU;

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, around};
use super::numbers;
use super::support::{self, broadcast::filled, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Tolerance,
    Value, ValueType,
};

/// The discrete Fourier transform along an axis: inputs are data whose last axis is the real part and, if there, the
/// imaginary one; the length of the transform (optional), to which the data are cut or filled up with zeros; and the
/// axis (optional, the last but one).
#[derive(Debug, Clone, PartialEq)]
pub struct Dft {
    /// From frequencies to a signal.
    pub inverse: bool,
    /// The signal is real, and only the first half of the frequencies is given or read.
    pub onesided: bool,
}

impl Dft {
    /// The length of the transform, when no input says.
    fn own_length(&self, len: &Dim) -> Dim {
        if self.inverse && self.onesided { len.sub(&1.into()).mul(&2.into()) } else { len.clone() }
    }

    fn axis(rank: usize, given: Option<&[i64]>) -> Result<usize, InferError> {
        let axis = match given {
            None => -2,
            Some([axis]) => *axis,
            Some(other) => {
                return Err(InferError::Mismatch(format!("the axis must be one number, not {other:?}")));
            }
        };
        let at = support::axis(axis, rank)?;
        if at + 1 == rank {
            return Err(InferError::Mismatch("the last axis holds real and imaginary parts".into()));
        }
        Ok(at)
    }
}

impl Operator for Dft {
    fn name(&self) -> &'static str {
        "DFT"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("inverse", self.inverse).with("onesided", self.onesided)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        let mut dims = inputs.dims(0)?.to_vec();
        let rank = dims.len();
        let parts = dims.last().and_then(Dim::fixed);
        let complex_is_wrong = self.onesided && !self.inverse && parts == Some(2);
        if rank < 2 || parts.is_some_and(|n| n != 1 && n != 2) || complex_is_wrong {
            let shape = movement::show(&dims);
            return Err(InferError::Mismatch(format!("{} of {shape}", self.name())));
        }
        let given = if inputs.has(2) { Some(inputs.ints(2)?) } else { None };
        let axis = Self::axis(rank, given.as_deref())?;
        let length = if inputs.has(1) {
            let length = match &inputs.entries(1)?[..] {
                [length] => length.dim(),
                _ => None,
            };
            length.ok_or_else(|| InferError::Mismatch("the length must be one number, 0 or more".into()))?
        } else {
            self.own_length(&dims[axis])
        };
        dims[axis] =
            if self.onesided && !self.inverse { length.floor_div(&2.into()).add(&1.into()) } else { length };
        dims[rank - 1] = Dim::Fixed(if self.onesided && self.inverse { 1 } else { 2 });
        Ok(typing::one(element, dims))
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let rank = shape.len();
        let given = if optional(inputs, 2).is_some() { Some(movement::indices(inputs, 2)?) } else { None };
        let axis = Self::axis(rank, given.as_deref())?;
        let parts = data.shape()[rank - 1];
        let (outer, len, inner) = around(&data.shape()[..rank - 1], axis);
        let n = match optional(inputs, 1) {
            Some(_) => movement::indices(inputs, 1)?.first().copied().unwrap_or(0),
            None => self.own_length(&Dim::Fixed(len)).fixed().unwrap_or(0) as i64,
        };
        let n = usize::try_from(n).unwrap_or(0);
        let count = shape[axis];
        let values = numbers::to_f64(data)?;
        let mut out = filled(&shape, 0.0)?;
        let real_signal = self.inverse && self.onesided;
        let read = if real_signal { n / 2 + 1 } else { n }.min(len);
        if out.is_empty() || read == 0 {
            return Ok(vec![numbers::from_f64(element, shape, &out)?.into()]);
        }
        let turn: Vec<(f64, f64)> = (0..n).map(|i| (TAU * i as f64 / n as f64).sin_cos()).collect();
        let scale = if self.inverse { 1.0 / n as f64 } else { 1.0 };
        for i in 0..outer {
            for j in 0..inner {
                for k in 0..count {
                    let (mut real, mut imaginary) = (0.0, 0.0);
                    for m in 0..read {
                        let from = ((i * len + m) * inner + j) * parts;
                        let (a, b) = (values[from], if parts == 2 { values[from + 1] } else { 0.0 });
                        let (sin, cos) = turn[(k * m) % n];
                        let sin = if self.inverse { sin } else { -sin };
                        // A real signal's frequencies stand for their mirror images too, but for the first and middle.
                        let twice = if real_signal && m > 0 && 2 * m != n { 2.0 } else { 1.0 };
                        let alone = real_signal && twice == 1.0;
                        let b = if alone { 0.0 } else { b };
                        real += twice * (a * cos - b * sin);
                        imaginary += twice * (a * sin + b * cos);
                    }
                    let to = (i * count + k) * inner + j;
                    if real_signal {
                        out[to] = real * scale;
                    } else {
                        out[2 * to] = real * scale;
                        out[2 * to + 1] = imaginary * scale;
                    }
                }
            }
        }
        Ok(vec![numbers::from_f64(element, shape, &out)?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        // As a fast transform does it.
        let count = movement::element_count(outputs);
        count.saturating_mul(5 * u64::from(count.max(2).ilog2())) / 2
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(76);
        let mut case = |name: &str, (inverse, onesided), shape: &[usize], more: &[Option<i64>]| {
            let mut case =
                Case::new(name, Self { inverse, onesided }, [numbers.tensor(ElementType::F32, shape)])
                    .with_tolerance(Tolerance::Relative(1e-4));
            case.inputs.extend(more.iter().map(|given| given.map(Tensor::scalar)));
            let given: Vec<usize> = (1..case.inputs.len()).filter(|&i| case.inputs[i].is_some()).collect();
            case.with_constants(&given)
        };
        vec![
            case("real", (false, false), &[2, 16, 1], &[]),
            case("complex", (false, false), &[3, 7, 2], &[]),
            case("half", (false, true), &[2, 10, 1], &[]),
            case("half of an odd length", (false, true), &[1, 400, 1], &[Some(9)]),
            case("filled up", (false, true), &[2, 5, 1], &[Some(12), Some(-2)]),
            case("another axis", (false, false), &[6, 3, 2], &[None, Some(0)]),
            case("back", (true, false), &[2, 12, 2], &[]),
            case("back to a real signal", (true, true), &[2, 9, 2], &[]),
            case("back to an odd length", (true, true), &[2, 9, 2], &[Some(15)]),
            case("longer", (false, true), &[1, 2, 400, 1], &[]),
            case("nothing", (false, true), &[0, 8, 1], &[]),
        ]
    }
}
