//! Attention by scaled products: inputs are queries, keys, values, and, each optional, mask, past keys, past values,
//! numbers of keys that are no padding, and a score for each head that has no value (a sink). Results are the weighted
//! values, the present keys and values, and the scores at a stage.

use armet_tensor::{ElementType, Tensor};

use super::movement::{self, show};
use super::numbers;
use super::support::heads::Heads;
use super::support::{broadcast, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Value,
    ValueType,
};

mod cases;
pub(super) mod core;

/// At which stage the scores are a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreStage {
    /// The products.
    Raw,
    /// Behind the soft limit.
    Capped,
    /// Behind mask and causality.
    Biased,
    /// Behind the softmax.
    Probabilities,
}

/// Attention by scaled products: inputs are queries, keys, values, and, each optional, mask, past keys, past values, numbers of keys that are no padding, and a score for each head that has no value (a sink).
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Number of heads of the queries, where the heads are no axis of their own.
    pub query_heads: Option<usize>,
    /// The same of keys and values.
    pub key_heads: Option<usize>,
    /// Factor of the scores; one over the root of the head size when not given.
    pub scale: Option<f32>,
    /// Each query sees only keys up to its own position.
    pub causal: bool,
    /// How many keys before its own position a query sees; all when not given.
    pub left_window: Option<usize>,
    /// How many keys behind its own position a query sees; all when not given.
    pub right_window: Option<usize>,
    /// Soft limit of scores; none when 0.
    pub softcap: f32,
    /// Element type in which the softmax is computed, when it is not that of the queries.
    pub precision: Option<ElementType>,
    /// At which stage scores are the fourth result.
    pub stage: ScoreStage,
}

impl Attention {
    /// Plain attention of `[batch, heads, length, size]` inputs.
    pub const PLAIN: Self = Self {
        query_heads: None,
        key_heads: None,
        scale: None,
        causal: false,
        left_window: None,
        right_window: None,
        softcap: 0.0,
        precision: None,
        stage: ScoreStage::Raw,
    };

    /// The factor of the scores for heads of this size.
    pub fn factor(&self, head_size: usize) -> f64 {
        self.scale.map_or_else(|| (head_size as f64).sqrt().recip(), f64::from)
    }

    /// Whether a query sees a key, by their positions.
    pub(super) fn sees(&self, query: i64, key: i64) -> bool {
        let within = |limit: Option<usize>, distance: i64| {
            limit.is_none_or(|limit| {
                i64::try_from(limit).is_ok_and(|limit| distance <= limit) || distance <= 0
            })
        };
        (!self.causal || key <= query)
            && within(self.left_window, query - key)
            && within(self.right_window, key - query)
    }
}

fn agree(operator: &str, what: &str, a: &Dim, b: &Dim) -> Result<Dim, InferError> {
    movement::unify(a, b)
        .ok_or_else(|| InferError::Mismatch(format!("{operator}: {what} {a} and {b} should be equal")))
}

/// Heads of queries that share one head of keys.
pub(super) fn check_groups(operator: &str, queries: &Dim, keys: &Dim) -> Result<(), InferError> {
    match (queries.fixed(), keys.fixed()) {
        (Some(queries), Some(keys)) if keys == 0 || !queries.is_multiple_of(keys) => {
            Err(InferError::Mismatch(format!(
                "{operator}: {queries} heads of queries cannot share {keys} of keys"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses a mask that does not broadcast to these dimensions; its last axis may be shorter.
pub(super) fn check_mask(operator: &str, mask: &[Dim], full: [&Dim; 4]) -> Result<(), InferError> {
    let fault = || {
        InferError::Mismatch(format!(
            "{operator}: a mask of {} does not fit scores of {}",
            show(mask),
            show(&full.map(Clone::clone))
        ))
    };
    let lead = 4usize.checked_sub(mask.len()).ok_or_else(fault)?;
    for (i, dim) in mask.iter().enumerate() {
        let (Some(own), Some(whole)) = (dim.fixed(), full[lead + i].fixed()) else { continue };
        let fits = if lead + i == 3 { own <= whole } else { own == whole || own == 1 };
        if !fits {
            return Err(fault());
        }
    }
    Ok(())
}

/// A mask as numbers to add, `-inf` where a key is hidden.
pub(super) struct Mask {
    values: Vec<f64>,
    strides: [usize; 4],
    keys: usize,
}

impl Mask {
    /// Of a checked mask.
    ///
    /// # Errors
    /// When it holds no numbers.
    pub(super) fn new(mask: &Tensor) -> Result<Self, EvaluateError> {
        let values = if mask.element() == ElementType::Bool {
            let shown = |v| if v == 0 { f64::NEG_INFINITY } else { 0.0 };
            numbers::to_i128(mask)?.into_iter().map(shown).collect()
        } else {
            numbers::to_f64(mask)?
        };
        let shape = mask.shape();
        let own = armet_tensor::strides(shape);
        let mut strides = [0; 4];
        let lead = 4 - shape.len();
        for (i, (&len, &stride)) in shape.iter().zip(&own).enumerate() {
            strides[lead + i] = if len == 1 { 0 } else { stride };
        }
        // A mask without axes is one number for all.
        Ok(Self { values, strides, keys: shape.last().copied().unwrap_or(usize::MAX) })
    }

    /// What is added to a score.
    pub(super) fn at(&self, batch: usize, head: usize, query: usize, key: usize) -> f64 {
        if key >= self.keys {
            return f64::NEG_INFINITY;
        }
        let at =
            [batch, head, query, key].iter().zip(self.strides).map(|(i, stride)| i * stride).sum::<usize>();
        self.values[at]
    }
}

impl Operator for Attention {
    fn name(&self) -> &'static str {
        "Attention"
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::none().with("is_causal", self.causal).with("softcap", self.softcap);
        let counts = [
            ("q_num_heads", self.query_heads),
            ("kv_num_heads", self.key_heads),
            ("left_window_size", self.left_window),
            ("right_window_size", self.right_window),
        ];
        for (name, value) in counts {
            if let Some(value) = value {
                attributes = attributes.with(name, value);
            }
        }
        if let Some(scale) = self.scale {
            attributes = attributes.with("scale", scale);
        }
        if let Some(precision) = self.precision {
            attributes = attributes.with("softmax_precision", precision.to_string());
        }
        attributes.with("qk_matmul_output_mode", self.stage as i64)
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        const NAME: &str = "Attention";
        let element = typing::element(inputs, 0, NAME, ElementType::is_float)?;
        typing::same_elements(inputs, NAME, &[0, 1, 4])?;
        let value_element = typing::element(inputs, 2, NAME, ElementType::is_float)?;
        typing::same_elements(inputs, NAME, &[2, 5])?;
        let q = Heads::of(NAME, inputs.dims(0)?, self.query_heads)?;
        let k = Heads::of(NAME, inputs.dims(1)?, self.key_heads)?;
        let v = Heads::of(NAME, inputs.dims(2)?, self.key_heads)?;
        let flat = inputs.dims(0)?.len() == 3;
        let batch = agree(NAME, "batches", &agree(NAME, "batches", &q.batch, &k.batch)?, &v.batch)?;
        let key_heads = agree(NAME, "heads of keys and values", &k.heads, &v.heads)?;
        let new_keys = agree(NAME, "lengths of keys and values", &k.length, &v.length)?;
        let size = agree(NAME, "head sizes", &q.size, &k.size)?;
        check_groups(NAME, &q.heads, &key_heads)?;
        let mut keys = new_keys;
        if inputs.has(4) != inputs.has(5) {
            return Err(InferError::Mismatch("past keys and values come together".into()));
        }
        if inputs.has(4) {
            if inputs.has(6) {
                return Err(InferError::Mismatch("a past and numbers of keys exclude each other".into()));
            }
            let (past_k, past_v) = (inputs.dims(4)?, inputs.dims(5)?);
            let ([_, _, _, _], [_, _, _, _]) = (past_k, past_v) else {
                let (k, v) = (show(past_k), show(past_v));
                return Err(InferError::Mismatch(format!(
                    "past keys and values of {k} and {v} need four axes"
                )));
            };
            let past_k = Heads::of(NAME, past_k, None)?;
            let past_v = Heads::of(NAME, past_v, None)?;
            for past in [&past_k, &past_v] {
                agree(NAME, "batches", &batch, &past.batch)?;
                agree(NAME, "heads of keys and past", &key_heads, &past.heads)?;
            }
            agree(NAME, "head sizes", &size, &past_k.size)?;
            agree(NAME, "sizes of values", &v.size, &past_v.size)?;
            keys = agree(NAME, "lengths of the past", &past_k.length, &past_v.length)?.add(&keys);
        }
        if inputs.has(3) && inputs.tensor(3)?.dims.is_some() {
            typing::element(inputs, 3, NAME, |e| typing::is_number(e) || e == ElementType::Bool)?;
            check_mask(NAME, inputs.dims(3)?, [&batch, &q.heads, &q.length, &keys])?;
        }
        if inputs.has(6) {
            movement::index_element(NAME, 6, inputs.element(6)?)?;
            if let [count] = inputs.dims(6)? {
                agree(NAME, "batches", &batch, count)?;
            } else {
                return Err(InferError::Mismatch("numbers of keys need one axis".into()));
            }
        }
        if inputs.has(7) {
            typing::element(inputs, 7, NAME, ElementType::is_float)?;
            if let [count] = inputs.dims(7)? {
                agree(NAME, "heads", &q.heads, count)?;
            } else {
                return Err(InferError::Mismatch("scores of sinks need one axis".into()));
            }
        }
        let result = if flat {
            vec![batch.clone(), q.length.clone(), q.heads.mul(&v.size)]
        } else {
            vec![batch.clone(), q.heads.clone(), q.length.clone(), v.size.clone()]
        };
        let present = |size: &Dim| [batch.clone(), key_heads.clone(), keys.clone(), size.clone()];
        Ok(vec![
            TensorType::new(element, result).into(),
            TensorType::new(element, present(&size)).into(),
            TensorType::new(value_element, present(&v.size)).into(),
            TensorType::new(element, [batch.clone(), q.heads.clone(), q.length.clone(), keys.clone()]).into(),
        ])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let types = movement::results(self, inputs)?;
        let q = tensor(inputs, 0)?;
        let flat = q.shape().len() == 3;
        let heads = Heads::of_shape("Attention", q.shape(), self.query_heads)?;
        let q = by_head(q, self.query_heads)?;
        let k = with_past(optional(inputs, 4), tensor(inputs, 1)?, self.key_heads)?;
        let v = with_past(optional(inputs, 5), tensor(inputs, 2)?, self.key_heads)?;
        let [(element, shape), (_, k_shape), (_, v_shape), (_, scores_shape)] = &types[..] else {
            return Err(EvaluateError::Invalid("attention has four results".into()));
        };
        let past =
            k_shape[2] - Heads::of_shape("Attention", tensor(inputs, 1)?.shape(), self.key_heads)?.length;
        let counts =
            if inputs.get(6).copied().flatten().is_some() { movement::indices(inputs, 6)? } else { vec![] };
        let mask = optional(inputs, 3).map(Mask::new).transpose()?;
        let sink = optional(inputs, 7).map(numbers::to_f64).transpose()?;
        let queries = i64::try_from(heads.length).unwrap_or(i64::MAX);
        let bias = |batch: usize, head: usize, query: usize, key: usize| {
            let count = counts.get(batch).copied();
            let offset = count.map_or(past as i64, |count| count.saturating_sub(queries));
            let key_at = key as i64;
            let shown = count.is_none_or(|count| key_at < count)
                && self.sees(offset.saturating_add(query as i64), key_at);
            match &mask {
                _ if !shown => f64::NEG_INFINITY,
                Some(mask) => mask.at(batch, head, query, key),
                None => 0.0,
            }
        };
        let problem = core::Problem {
            batch: heads.batch,
            query_heads: heads.heads,
            key_heads: k_shape[1],
            queries: heads.length,
            keys: k_shape[2],
            head_size: heads.size,
            value_size: v_shape[3],
            q: &q,
            k: &k,
            v: &v,
            scale: self.factor(heads.size),
            softcap: f64::from(self.softcap),
            element: *element,
            precision: self.precision.unwrap_or(*element),
            bias: &bias,
            sink: sink.as_deref(),
        };
        let (result, scores) = problem.solve((context.outputs > 3).then_some(self.stage))?;
        let result = if flat { Heads { size: v_shape[3], ..heads }.by_position(&result) } else { result };
        let mut outputs: Vec<Value> = vec![numbers::from_f64(*element, shape.clone(), &result)?.into()];
        for ((element, shape), values) in
            types.iter().skip(1).zip([&k, &v, &scores]).take(context.outputs.saturating_sub(1))
        {
            outputs.push(numbers::from_f64(*element, shape.clone(), values)?.into());
        }
        debug_assert!(scores.is_empty() || scores.len() == scores_shape.elements(), "one score for each");
        Ok(outputs)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        let shape = |at: usize| inputs.get(at).copied().flatten().and_then(ValueType::shape);
        let (Some(q), Some(k)) = (shape(0), shape(1)) else { return 0 };
        let Ok(heads) = Heads::of_shape("Attention", &k, self.key_heads) else { return 0 };
        let past = shape(4).and_then(|past| past.get(2).copied()).unwrap_or(0);
        let width = (broadcast::product(&q) as u64).saturating_add(typing::count(outputs, 0));
        width.saturating_mul(heads.length.saturating_add(past) as u64).saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        cases::cases()
    }
}

/// Elements with the heads as an axis.
pub(super) fn by_head(x: &Tensor, heads: Option<usize>) -> Result<Vec<f64>, EvaluateError> {
    let values = numbers::to_f64(x)?;
    if x.shape().len() == 4 {
        return Ok(values);
    }
    Ok(Heads::of_shape("Attention", x.shape(), heads)?.by_head(&values))
}

/// Keys or values behind those of the past.
fn with_past(past: Option<&Tensor>, new: &Tensor, heads: Option<usize>) -> Result<Vec<f64>, EvaluateError> {
    let values = by_head(new, heads)?;
    let Some(past) = past else { return Ok(values) };
    let before = numbers::to_f64(past)?;
    let pairs: usize = broadcast::product(&past.shape()[..2]);
    let (old, new) = (before.len() / pairs.max(1), values.len() / pairs.max(1));
    let mut all = movement::reserve(before.len() + values.len())?;
    for pair in 0..pairs {
        all.extend_from_slice(&before[pair * old..][..old]);
        all.extend_from_slice(&values[pair * new..][..new]);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Shape;

    #[test]
    fn a_query_that_sees_one_key_gets_its_value() {
        let op = Attention { causal: true, ..Attention::PLAIN };
        let tensor = |values: &[f32]| Value::from(Tensor::new([1, 1, 2, 1], values).unwrap());
        let (q, v) = (tensor(&[0.5, 0.0]), tensor(&[3.0, 5.0]));
        let y = op.evaluate(&[Some(&q), Some(&q), Some(&v)], &Context::default()).unwrap();
        assert_eq!(y[0].tensor().unwrap().expect::<f32>().to_vec(), [3.0, 4.0]);
    }

    #[test]
    fn a_query_without_keys_gets_zeros() {
        let tensor = |values: &[f32]| Value::from(Tensor::new([1, 1, 1, 1], values).unwrap());
        let (q, v) = (tensor(&[0.5]), tensor(&[3.0]));
        let mask = Value::from(Tensor::new([1, 1], &[f32::NEG_INFINITY]).unwrap());
        let y = Attention::PLAIN.evaluate(&[Some(&q), Some(&q), Some(&v), Some(&mask)], &Context::default());
        assert_eq!(y.unwrap()[0].tensor().unwrap().expect::<f32>().to_vec(), [0.0]);
    }

    #[test]
    fn contradictions_are_named() {
        let zeros =
            |shape: &[usize]| Value::from(Tensor::zeros(ElementType::F32, Shape::new(shape)).unwrap());
        let message = |q: &[usize], k: &[usize]| {
            let (q, k) = (zeros(q), zeros(k));
            Attention::PLAIN
                .evaluate(&[Some(&q), Some(&k), Some(&k)], &Context::default())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            message(&[1, 3, 2, 4], &[1, 2, 2, 4]),
            "Attention: 3 heads of queries cannot share 2 of keys"
        );
        assert_eq!(message(&[1, 2, 2, 4], &[1, 2, 2, 8]), "Attention: head sizes 4 and 8 should be equal");
    }
}
