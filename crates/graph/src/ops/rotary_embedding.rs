//! Positions turned into rotations: inputs are data, cosines, sines and positions (optional).

use armet_tensor::ElementType;

use super::movement::{self, show};
use super::numbers;
use super::support::heads::Heads;
use super::support::typing;
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Numbers, Operator, Value,
    ValueType,
};

/// Positions turned into rotations of pairs of elements: inputs are data, cosines, sines and positions (optional). Without positions, cosines and sines belong to each batch item and position; a single position is that of the first element.
#[derive(Debug, Clone, PartialEq)]
pub struct RotaryEmbedding {
    /// Number of heads, where they are no axis of their own.
    pub heads: Option<usize>,
    /// How many elements of a head are turned, from the first on; all when 0.
    pub width: usize,
    /// Pairs are neighbours; else they are half a width apart.
    pub interleaved: bool,
}

/// Turns the pairs of one head by the angles of one position.
pub(super) fn turn(head: &mut [f64], cosines: &[f64], sines: &[f64], interleaved: bool) {
    let half = cosines.len();
    for (i, (cos, sin)) in cosines.iter().zip(sines).enumerate() {
        let (first, second) = if interleaved { (2 * i, 2 * i + 1) } else { (i, i + half) };
        let (a, b) = (head[first], head[second]);
        head[first] = cos * a - sin * b;
        head[second] = sin * a + cos * b;
    }
}

impl RotaryEmbedding {
    /// Dimensions of data, and half of the turned width, all checked.
    fn heads(&self, inputs: &InferInputs<'_>) -> Result<Heads<Dim>, InferError> {
        const NAME: &str = "RotaryEmbedding";
        let x = Heads::of(NAME, inputs.dims(0)?, self.heads)?;
        let (cos, sin) = (inputs.dims(1)?, inputs.dims(2)?);
        let fault = |what: &str| {
            InferError::Mismatch(format!(
                "{NAME} of {} by cosines of {} and sines of {}: {what}",
                show(inputs.dims(0).unwrap_or_default()),
                show(cos),
                show(sin)
            ))
        };
        let (Some(cos_half), Some(sin_half)) = (cos.last(), sin.last()) else { return Err(fault("no axes")) };
        if cos.len() != sin.len() || cos.iter().zip(sin).any(|(a, b)| movement::unify(a, b).is_none()) {
            return Err(fault("they should be alike"));
        }
        if let Some(half) = movement::unify(cos_half, sin_half).and_then(|half| half.fixed()) {
            let size = x.size.fixed();
            let whole = if self.width == 0 { size } else { Some(self.width) };
            if whole.is_some_and(|whole| half.checked_mul(2) != Some(whole)) {
                return Err(fault("they should have half of the turned elements"));
            }
            if size.is_some_and(|size| self.width > size) {
                return Err(fault("more elements are turned than there are"));
            }
        }
        if inputs.has(3) {
            movement::index_element(NAME, 3, inputs.element(3)?)?;
            let positions = inputs.dims(3)?;
            let fits = match positions {
                [one] => one.fixed().is_none_or(|one| one == 1),
                [batch, length] => {
                    movement::unify(batch, &x.batch).is_some() && movement::unify(length, &x.length).is_some()
                }
                _ => false,
            };
            if cos.len() != 2 || !fits {
                return Err(fault(&format!("positions are of {}", show(positions))));
            }
        } else {
            let [batch, length, _] = cos else {
                return Err(fault("without positions three axes are needed"));
            };
            let fits = |own: &Dim, x: &Dim| movement::unify(own, x).is_some();
            if !fits(batch, &x.batch) || !fits(length, &x.length) {
                return Err(fault("they should be of each position"));
            }
        }
        Ok(x)
    }
}

impl Operator for RotaryEmbedding {
    fn name(&self) -> &'static str {
        "RotaryEmbedding"
    }

    fn attributes(&self) -> Attributes {
        Attributes::none()
            .with("num_heads", self.heads.unwrap_or(0))
            .with("rotary_embedding_dim", self.width)
            .with("interleaved", self.interleaved)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        typing::element(inputs, 0, "RotaryEmbedding", ElementType::is_float)?;
        typing::same_elements(inputs, "RotaryEmbedding", &[0, 1, 2])?;
        self.heads(inputs)?;
        Ok(vec![inputs.value_type(0)?.clone()])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], _: &Context) -> Result<Vec<Value>, EvaluateError> {
        let (element, shape) = movement::result(self, inputs)?;
        let heads = Heads::of_shape(self.name(), &shape, self.heads)?;
        let flat = shape.len() == 3;
        let mut values = numbers::to_f64(tensor(inputs, 0)?)?;
        let (cosines, sines) = (numbers::to_f64(tensor(inputs, 1)?)?, numbers::to_f64(tensor(inputs, 2)?)?);
        let half = tensor(inputs, 1)?.shape().last().copied().unwrap_or(0);
        let rows = tensor(inputs, 1)?.shape().iter().rev().skip(1).product::<usize>();
        let positions = optional(inputs, 3).map(|_| movement::indices(inputs, 3)).transpose()?;
        if half == 0 || values.is_empty() {
            return Ok(vec![numbers::from_f64(element, shape, &values)?.into()]);
        }
        for (index, head) in values.chunks_exact_mut(heads.size).enumerate() {
            // Which batch item and which position the head belongs to.
            let (batch, at) = if flat {
                let token = index / heads.heads;
                (token / heads.length, token % heads.length)
            } else {
                (index / heads.length / heads.heads, index % heads.length)
            };
            let row = match &positions {
                None => batch * heads.length + at,
                Some(one) if one.len() == 1 => {
                    movement::resolve_index(one[0].saturating_add(at as i64), rows)?
                }
                Some(all) => movement::resolve_index(all[batch * heads.length + at], rows)?,
            };
            turn(head, &cosines[row * half..][..half], &sines[row * half..][..half], self.interleaved);
        }
        Ok(vec![numbers::from_f64(element, shape, &values)?.into()])
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        typing::count(inputs, 0).saturating_mul(3)
    }

    fn cases() -> Vec<Case> {
        let mut numbers = Numbers::new(24);
        let mut case = |name: &str,
                        op: &RotaryEmbedding,
                        shapes: [&[usize]; 2],
                        positions: Option<armet_tensor::Tensor>| {
            let angles = |numbers: &mut Numbers| numbers.floats(shapes[1], -1.0, 1.0);
            let mut inputs =
                vec![numbers.floats(shapes[0], -2.0, 2.0), angles(&mut numbers), angles(&mut numbers)];
            inputs.extend(positions);
            Case::new(name, op.clone(), inputs)
        };
        let whole = RotaryEmbedding { heads: None, width: 0, interleaved: false };
        let pairs = RotaryEmbedding { interleaved: true, ..whole.clone() };
        let part = RotaryEmbedding { width: 4, ..whole.clone() };
        let flat = RotaryEmbedding { heads: Some(3), ..whole.clone() };
        let positions = |values: &[i64]| armet_tensor::Tensor::new([2, 3], values).ok();
        let first = armet_tensor::Tensor::vector(&[2i64]);
        vec![
            case("halves", &whole, [&[2, 3, 5, 8], &[2, 5, 4]], None),
            case("neighbours", &pairs, [&[2, 3, 5, 8], &[2, 5, 4]], None),
            case("a part", &part, [&[1, 2, 3, 10], &[1, 3, 2]], None),
            case("heads inside", &flat, [&[2, 3, 18], &[2, 3, 3]], None),
            case("positions", &whole, [&[2, 1, 3, 6], &[7, 3]], positions(&[0, 6, 1, 2, 2, 5])),
            case("positions, heads inside", &flat, [&[2, 3, 12], &[7, 2]], positions(&[0, 6, 1, 2, 2, 5])),
            case("first position", &pairs, [&[2, 2, 3, 6], &[7, 3]], Some(first)),
            case("empty", &whole, [&[0, 3, 5, 8], &[0, 5, 4]], None),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    #[test]
    fn a_quarter_turn_moves_one_half_to_the_other() {
        let op = RotaryEmbedding { heads: None, width: 0, interleaved: false };
        let x = Value::from(Tensor::new([1, 1, 1, 4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap());
        let cos = Value::from(Tensor::new([1, 1, 2], &[0.0f32, 1.0]).unwrap());
        let sin = Value::from(Tensor::new([1, 1, 2], &[1.0f32, 0.0]).unwrap());
        let y = op.evaluate(&[Some(&x), Some(&cos), Some(&sin)], &Context::default()).unwrap();
        assert_eq!(y[0].tensor().unwrap().expect::<f32>().to_vec(), [-3.0, 2.0, 1.0, 4.0]);
    }

    #[test]
    fn angles_must_fit_the_turned_width() {
        let op = RotaryEmbedding { heads: None, width: 0, interleaved: false };
        let zeros = |shape: &[usize]| Value::from(Tensor::zeros(ElementType::F32, shape).unwrap());
        let (x, angles) = (zeros(&[1, 1, 1, 4]), zeros(&[1, 1, 3]));
        let error = op.evaluate(&[Some(&x), Some(&angles), Some(&angles)], &Context::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "RotaryEmbedding of [1,1,1,4] by cosines of [1,1,3] and sines of [1,1,3]: they should have half of the turned elements"
        );
    }
}
