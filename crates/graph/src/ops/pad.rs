//! Margins.

use armet_tensor::{ElementType, Tensor, strides};

use super::movement::{self, Elements};
use super::support;
use crate::evaluate::{optional, tensor};
use crate::infer::Entry;
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, TensorType,
    Tolerance, Value, ValueType,
};

/// Margins: inputs are data, pads (all begins, then all ends; negative removes), constant (optional), axes (optional).
///
/// Where a side is negative, elements are removed first and the margins are made of what is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Pad {
    /// What fills the margins.
    pub mode: PadMode,
}

/// What fills margins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PadMode {
    /// One value.
    Constant,
    /// Mirror without repeating the edge.
    Reflect,
    /// The edge repeated.
    Edge,
    /// The other side.
    Wrap,
}

impl PadMode {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Reflect => "reflect",
            Self::Edge => "edge",
            Self::Wrap => "wrap",
        }
    }

    /// Which element of an axis of `len` elements stands at `at`, which may lie before or behind it; `None` for the
    /// constant. The axis is not empty unless the mode is constant.
    fn source(self, at: i64, len: i64) -> Option<i64> {
        if (0..len).contains(&at) {
            return Some(at);
        }
        match self {
            Self::Constant => None,
            Self::Edge => Some(at.clamp(0, len - 1)),
            Self::Wrap => Some(at.rem_euclid(len)),
            Self::Reflect if len == 1 => Some(0),
            Self::Reflect => {
                let at = at.rem_euclid(2 * (len - 1));
                Some(at.min(2 * (len - 1) - at))
            }
        }
    }
}

/// A dimension with margins; `None` when more is removed than there is.
fn padded(dim: &Dim, begin: &Entry, end: &Entry) -> Option<Dim> {
    let (Some(begin), Some(end)) = (begin.int(), end.int()) else {
        let (begin, end) = (begin.dim(), end.dim());
        return Some(match (begin, end) {
            (Some(begin), Some(end)) => dim.add(&begin).add(&end),
            _ => Dim::Unknown,
        });
    };
    if let Some(len) = dim.fixed() {
        let len = i128::try_from(len).ok()?;
        let (begin, end) = (i128::from(begin), i128::from(end));
        if len + begin.min(0) + end.min(0) < 0 {
            return None;
        }
        return Some(usize::try_from(len + begin + end).map_or(Dim::Unknown, Dim::Fixed));
    }
    let total = begin.saturating_add(end);
    let size = Dim::Fixed(usize::try_from(total.unsigned_abs()).unwrap_or(usize::MAX));
    Some(if total < 0 { dim.sub(&size) } else { dim.add(&size) })
}

/// The axes that pads are for.
fn axes(given: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>, InferError> {
    match given {
        Some(given) => support::axes(&given, rank),
        None => Ok((0..rank).collect()),
    }
}

impl Operator for Pad {
    fn name(&self) -> &'static str {
        "Pad"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none().with("mode", self.mode.name())
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = inputs.element(0)?;
        if self.mode == PadMode::Constant && inputs.has(2) {
            movement::same_element(self.name(), element, 2, inputs.element(2)?)?;
            if let Some(shape) = inputs.tensor(2)?.shape()
                && shape.elements() != 1
            {
                return Err(InferError::Mismatch(format!("the constant must be one element, not {shape}")));
            }
        }
        let mut dims = inputs.dims(0)?.to_vec();
        let given = if inputs.has(3) { Some(inputs.ints(3)?) } else { None };
        let axes = axes(given, dims.len())?;
        let pads = inputs.entries(1)?;
        if pads.len() != 2 * axes.len() {
            return Err(InferError::Mismatch(format!(
                "{} axes need {} pads, not {}",
                axes.len(),
                2 * axes.len(),
                pads.len()
            )));
        }
        let (begins, ends) = pads.split_at(axes.len());
        for (&axis, (begin, end)) in axes.iter().zip(begins.iter().zip(ends)) {
            let dim = &dims[axis];
            let new = padded(dim, begin, end).ok_or_else(|| {
                InferError::Mismatch(format!("pads remove more of axis {axis} than its length {dim}"))
            })?;
            // What is left when negative pads have removed their elements.
            let cut = |pad: &Entry| pad.int().map_or(0, |pad| pad.min(0).unsigned_abs());
            let removed = usize::try_from(cut(begin).saturating_add(cut(end))).unwrap_or(usize::MAX);
            if self.mode != PadMode::Constant && dim.is(removed) && new.fixed().is_some_and(|new| new > 0) {
                return Err(InferError::Mismatch(format!(
                    "axis {axis} is empty: mode {} has nothing to fill margins with",
                    self.mode.name()
                )));
            }
            dims[axis] = new;
        }
        Ok(vec![TensorType::new(element, dims).into()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let data = tensor(inputs, 0)?;
        let pads = movement::indices(inputs, 1)?;
        let given = if optional(inputs, 3).is_some() { Some(movement::indices(inputs, 3)?) } else { None };
        let axes = axes(given, shape.len())?;
        let mut out = Elements::zeros(element, shape.clone())?;
        let mut sources: Vec<Vec<Option<usize>>> =
            data.shape().iter().map(|&len| (0..len).map(Some).collect()).collect();
        for (i, &axis) in axes.iter().enumerate() {
            let (begin, end) = (pads[i], pads[axes.len() + i]);
            let len = data.shape()[axis] as i64;
            let (first, last) = ((-begin).max(0), len - (-end).max(0));
            let mut line = movement::reserve(shape[axis])?;
            line.extend((0..shape[axis] as i64).map(|at| {
                let at = self.mode.source(at - begin.max(0), last - first)?;
                usize::try_from(at + first).ok()
            }));
            sources[axis] = line;
        }
        let steps = strides(data.shape());
        let constant = optional(inputs, 2).filter(|_| self.mode == PadMode::Constant);
        for (to, at) in movement::coordinates(&shape).enumerate() {
            let from: Option<usize> =
                at.iter().zip(&sources).zip(&steps).map(|((&i, axis), step)| Some(axis[i]? * step)).sum();
            match (from, constant) {
                (Some(from), _) => out.set(to, data, from),
                (None, Some(constant)) => out.set(to, constant, 0),
                (None, None) => {}
            }
        }
        Ok(vec![out.finish()?.into()])
    }

    fn operations(&self, _: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        0
    }

    fn cases() -> Vec<Case> {
        use ElementType::{F32, I64, U8};
        let mut numbers = Numbers::new(26);
        let mut case = |name: &str, mode, element, shape: &[usize], pads: &[i64]| {
            Case::new(name, Self { mode }, [numbers.tensor(element, shape), Tensor::vector(pads)])
                .with_constants(&[1])
                .with_tolerance(Tolerance::Exact)
        };
        let mut valued = case("a given constant", PadMode::Constant, F32, &[2, 3], &[1, 0, 0, 2]);
        valued.inputs.push(Some(Tensor::scalar(-1.5f32)));
        valued.constants.push(2);
        let mut axes = case("given axes", PadMode::Constant, F32, &[1, 3, 2, 4], &[1, 0, 2, 1]);
        axes.inputs.extend([None, Some(Tensor::vector(&[-1i64, 2]))]);
        axes.constants.push(3);
        vec![
            case("picture", PadMode::Constant, F32, &[1, 3, 5, 4], &[0, 0, 1, 2, 0, 0, 3, 1]),
            valued,
            axes,
            case("mirror", PadMode::Reflect, F32, &[1, 2, 4, 5], &[0, 0, 2, 3, 0, 0, 1, 4]),
            case("mirror beyond the other side", PadMode::Reflect, F32, &[3], &[7, 6]),
            case("edge", PadMode::Edge, U8, &[2, 3, 3], &[0, 1, 2, 0, 2, 1]),
            case("other side", PadMode::Wrap, F32, &[2, 4], &[1, 3, 0, 6]),
            case("other side of what is left", PadMode::Wrap, F32, &[7], &[2, -1]),
            case("the other side of what is left", PadMode::Wrap, F32, &[3, 7], &[0, -1, 0, 2]),
            case("mirror of what is left", PadMode::Reflect, F32, &[7], &[2, -5]),
            case("edge of what is left", PadMode::Edge, F32, &[7], &[-5, 3]),
            case("margins removed", PadMode::Constant, F32, &[4, 6], &[-1, 2, 0, -3]),
            case("around nothing", PadMode::Constant, I64, &[0, 2], &[1, 0, 1, 0]),
            case("nothing to do", PadMode::Edge, F32, &[2, 2], &[0, 0, 0, 0]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_from_names() {
        let n = Dim::symbol("n");
        let text = |begin, end| padded(&n, &begin, &end).map(|dim| dim.to_string());
        assert_eq!(text(Entry::Int(1), Entry::Int(2)).as_deref(), Some("(n+3)"));
        assert_eq!(text(Entry::Int(-1), Entry::Int(0)).as_deref(), Some("(n-1)"));
        assert_eq!(text(Entry::Int(0), Entry::Dim(n.clone())).as_deref(), Some("(n+n)"));
        assert_eq!(padded(&3.into(), &Entry::Int(-4), &Entry::Int(9)), None);
    }

    #[test]
    fn extreme_pads_are_refused() {
        let data = Value::from(Tensor::vector(&[1.0f32, 2.0]));
        for pads in [[i64::MIN, i64::MAX], [i64::MAX, i64::MAX], [i64::MIN, 0], [-1, -2]] {
            let pads = Value::from(Tensor::vector(&pads));
            let pad = Pad { mode: PadMode::Wrap };
            assert!(pad.evaluate(&[Some(&data), Some(&pads)], &Context::default()).is_err());
        }
    }
}
