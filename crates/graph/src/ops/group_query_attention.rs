//! Attention over a cache of keys and values that is written here: inputs are queries, keys, values, past keys, past
//! values, last positions, the number of positions, and, each optional, cosines, sines, positions, a bias of the scores
//! and a score for each head that has no value (a sink). Results are the weighted values and the caches.

use armet_tensor::{ElementType, Shape};

use super::attention::{Attention, Mask, check_groups, check_mask, core};
use super::movement::{self, show};
use super::numbers;
use super::rotary_embedding::turn;
use super::support::heads::Heads;
use super::support::typing;
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, TensorType, Value,
    ValueType,
};

mod cases;

const NAME: &str = "GroupQueryAttention";

/// Attention over a cache of keys and values that is written here: inputs are queries, keys, values, past keys, past values, last positions, the number of positions, and, each optional, cosines, sines, positions, a bias of the scores and a score for each head that has no value (a sink). Without keys and values the queries hold all three. Results are the weighted values and the caches.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute that stands for itself")]
pub struct GroupQueryAttention {
    /// Number of heads of the queries.
    pub query_heads: usize,
    /// Number of heads of keys and values.
    pub key_heads: usize,
    /// Factor of the scores; one over the root of the head size when not given.
    pub scale: Option<f32>,
    /// Each query sees only keys up to its own position.
    pub causal: bool,
    /// How many keys a query sees, itself the last one; all when not given.
    pub left_window: Option<usize>,
    /// Soft limit of scores; none when 0.
    pub softcap: f32,
    /// Every head has a sink of score 0 when none are given.
    pub smooth: bool,
    /// Queries and keys are turned by their positions.
    pub rotary: bool,
    /// Pairs that are turned are neighbours.
    pub interleaved: bool,
}

/// Queries, and keys and values, of the data.
struct Parts<D> {
    batch: D,
    length: D,
    head_size: D,
    value_size: D,
}

impl GroupQueryAttention {
    fn parts(&self, inputs: &InferInputs<'_>) -> Result<Parts<Dim>, InferError> {
        let fault = |what: &str| InferError::Mismatch(format!("{NAME}: {what}"));
        let dims = inputs.dims(0)?;
        let [batch, length, width] = dims else {
            return Err(fault(&format!("queries of {} need three axes", show(dims))));
        };
        let size = |width: &Dim, heads: usize| match width.fixed() {
            Some(width) if heads == 0 || !width.is_multiple_of(heads) => {
                Err(fault(&format!("a width of {width} is no multiple of {heads} heads")))
            }
            _ => Ok(width.floor_div(&Dim::Fixed(heads))),
        };
        if inputs.has(1) != inputs.has(2) {
            return Err(fault("keys and values come together"));
        }
        if !inputs.has(1) {
            let heads = self.key_heads.saturating_mul(2).saturating_add(self.query_heads);
            let head_size = size(width, heads)?;
            return Ok(Parts {
                batch: batch.clone(),
                length: length.clone(),
                value_size: head_size.clone(),
                head_size,
            });
        }
        let head_size = size(width, self.query_heads)?;
        let mut value_size = Dim::Unknown;
        for index in [1, 2] {
            let k = Heads::of(NAME, inputs.dims(index)?, Some(self.key_heads))?;
            let pairs = [(batch, &k.batch), (length, &k.length), (&head_size, &k.size)];
            let unequal = |(a, b): &(&Dim, &Dim)| movement::unify(a, b).is_none();
            if let Some((a, b)) = pairs.iter().take(4 - index).find(|pair| unequal(pair)) {
                return Err(fault(&format!("axes of {a} and {b} should be equal")));
            }
            value_size = k.size;
        }
        Ok(Parts { batch: batch.clone(), length: length.clone(), head_size, value_size })
    }

    /// Each part by head, keys and queries turned when that is asked for.
    fn projected(
        &self,
        inputs: &[Option<&Value>],
        parts: &Parts<usize>,
        starts: &[usize],
    ) -> Result<[Vec<f64>; 3], EvaluateError> {
        let x = numbers::to_f64(tensor(inputs, 0)?)?;
        let Parts { batch, length, head_size, value_size } = *parts;
        let (q, k) = (self.query_heads * head_size, self.key_heads * head_size);
        let v = self.key_heads * value_size;
        let cut = |from: usize, width: usize| -> Vec<f64> {
            x.chunks_exact(q + k + v).flat_map(|row| row[from..from + width].to_vec()).collect()
        };
        let flat = if optional(inputs, 1).is_some() {
            [x, numbers::to_f64(tensor(inputs, 1)?)?, numbers::to_f64(tensor(inputs, 2)?)?]
        } else if x.is_empty() {
            [vec![], vec![], vec![]]
        } else {
            [cut(0, q), cut(q, k), cut(q + k, v)]
        };
        let heads = |heads, size| Heads { batch, heads, length, size };
        let mut result = [
            heads(self.query_heads, head_size).by_head(&flat[0]),
            heads(self.key_heads, head_size).by_head(&flat[1]),
            heads(self.key_heads, value_size).by_head(&flat[2]),
        ];
        if self.rotary {
            let (cos, sin) = (numbers::to_f64(tensor(inputs, 7)?)?, numbers::to_f64(tensor(inputs, 8)?)?);
            let half = tensor(inputs, 7)?.shape()[1];
            let rows = tensor(inputs, 7)?.shape()[0];
            let given = optional(inputs, 9).map(|_| movement::indices(inputs, 9)).transpose()?;
            for (part, heads) in [(0, self.query_heads), (1, self.key_heads)] {
                for (index, head) in result[part].chunks_exact_mut(head_size.max(1)).enumerate() {
                    let (item, at) = (index / length / heads, index % length);
                    let position = match &given {
                        Some(given) if given.len() == batch * length => given[item * length + at],
                        Some(given) => given.first().copied().unwrap_or(0).saturating_add(at as i64),
                        None => (starts[item] + at) as i64,
                    };
                    // Padding of a prompt may reach beyond the last angle.
                    let row = movement::resolve_index(position.min(rows as i64 - 1), rows)?;
                    turn(head, &cos[row * half..][..half], &sin[row * half..][..half], self.interleaved);
                }
            }
        }
        Ok(result)
    }
}

/// Past rows up to a position, and new ones from there on, in a cache of a length.
fn cached(
    past: &[f64],
    past_length: usize,
    new: &[f64],
    parts: (usize, usize),
    shape: &Shape,
    starts: &[usize],
) -> Result<Vec<f64>, EvaluateError> {
    let (length, size) = parts;
    let (heads, total) = (shape[1], shape[2]);
    let mut cache = vec![0.0; shape.elements()];
    for (batch, &start) in starts.iter().enumerate() {
        for head in 0..heads {
            let pair = batch * heads + head;
            let kept = start.min(past_length).min(total);
            let rows = &mut cache[pair * total * size..][..total * size];
            rows[..kept * size].copy_from_slice(&past[pair * past_length * size..][..kept * size]);
            let room = total.saturating_sub(start).min(length);
            if room > 0 {
                rows[start * size..][..room * size]
                    .copy_from_slice(&new[pair * length * size..][..room * size]);
            }
        }
    }
    Ok(cache)
}

impl Operator for GroupQueryAttention {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::none()
            .with("num_heads", self.query_heads)
            .with("kv_num_heads", self.key_heads)
            .with("causal", self.causal)
            .with("softcap", self.softcap)
            .with("smooth_softmax", self.smooth)
            .with("do_rotary", self.rotary)
            .with("rotary_interleaved", self.interleaved);
        if let Some(scale) = self.scale {
            attributes = attributes.with("scale", scale);
        }
        if let Some(window) = self.left_window {
            attributes = attributes.with("local_window_size", window);
        }
        attributes
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, NAME, ElementType::is_float)?;
        typing::same_elements(inputs, NAME, &[0, 1, 2, 3, 4, 7, 8])?;
        let parts = self.parts(inputs)?;
        check_groups(NAME, &Dim::Fixed(self.query_heads), &Dim::Fixed(self.key_heads))?;
        let fault = |what: String| InferError::Mismatch(format!("{NAME}: {what}"));
        for index in [5, 6] {
            movement::index_element(NAME, index, inputs.element(index)?)?;
        }
        if let Some(dims) = inputs.tensor(5)?.dims.as_deref() {
            let count = Dim::product(dims);
            if movement::unify(&count, &parts.batch).is_none() {
                return Err(fault(format!("last positions of {} for {} items", show(dims), parts.batch)));
            }
        }
        let total = match &inputs.entries(6)?[..] {
            [total] => total.dim().unwrap_or(Dim::Unknown),
            _ => return Err(fault("the number of positions must be one number".into())),
        };
        let mut cache = total.clone();
        if inputs.has(3) != inputs.has(4) {
            return Err(fault("past keys and values come together".into()));
        }
        if inputs.has(3) {
            for (index, size) in [(3, &parts.head_size), (4, &parts.value_size)] {
                let dims = inputs.dims(index)?;
                let [batch, heads, length, own] = dims else {
                    return Err(fault(format!("a past of {} needs four axes", show(dims))));
                };
                let known = Dim::Fixed(self.key_heads);
                let pairs = [(batch, &parts.batch), (heads, &known), (own, size)];
                if let Some((a, b)) = pairs.iter().find(|(a, b)| movement::unify(a, b).is_none()) {
                    return Err(fault(format!("axes of {a} and {b} should be equal")));
                }
                if index == 3 {
                    cache = length.max(&total);
                } else if movement::unify(length, &inputs.dims(3)?[2]).is_none() {
                    return Err(fault("past keys and values should be of one length".into()));
                }
            }
        }
        if self.rotary {
            for index in [7, 8] {
                let dims = inputs.dims(index)?;
                let [rows, half] = dims else {
                    return Err(fault(format!("angles of {} need two axes", show(dims))));
                };
                let fits =
                    half.fixed().zip(parts.head_size.fixed()).is_none_or(|(half, size)| half <= size / 2);
                if !fits
                    || rows.is(0)
                    || movement::unify(half, &inputs.dims(7)?[1]).is_none()
                    || movement::unify(rows, &inputs.dims(7)?[0]).is_none()
                {
                    return Err(fault(format!("angles of {} do not fit", show(dims))));
                }
            }
            if inputs.has(9) {
                movement::index_element(NAME, 9, inputs.element(9)?)?;
            }
        }
        let heads = Dim::Fixed(self.query_heads);
        if inputs.has(10) && inputs.tensor(10)?.dims.is_some() {
            typing::element(inputs, 10, NAME, ElementType::is_float)?;
            check_mask(NAME, inputs.dims(10)?, [&parts.batch, &heads, &parts.length, &cache])?;
        }
        if inputs.has(11) {
            typing::element(inputs, 11, NAME, ElementType::is_float)?;
            let dims = inputs.dims(11)?;
            if movement::unify(&Dim::product(dims), &heads).is_none() {
                return Err(fault(format!("sinks of {} for {heads} heads", show(dims))));
            }
        }
        let rows = [parts.batch.clone(), parts.length.clone(), heads.mul(&parts.value_size)];
        let present =
            |size: &Dim| [parts.batch.clone(), Dim::Fixed(self.key_heads), cache.clone(), size.clone()];
        Ok(vec![
            TensorType::new(element, rows).into(),
            TensorType::new(element, present(&parts.head_size)).into(),
            TensorType::new(element, present(&parts.value_size)).into(),
        ])
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let types = movement::results(self, inputs)?;
        let [(element, shape), (_, k_shape), (_, v_shape)] = &types[..] else {
            return Err(EvaluateError::Invalid(format!("{NAME} has three results")));
        };
        let (batch, length) = (shape[0], shape[1]);
        let parts = Parts { batch, length, head_size: k_shape[3], value_size: v_shape[3] };
        let total = movement::indices(inputs, 6)?.first().copied().unwrap_or(0);
        let last = movement::indices(inputs, 5)?;
        // A prompt fills the cache from its begin on, and may be padded behind; later positions follow the cache.
        let prompt = usize::try_from(total) == Ok(length);
        let counts: Vec<i64> = last.iter().map(|last| last.saturating_add(1)).collect();
        let mut starts = Vec::with_capacity(batch);
        for count in &counts {
            let start = if prompt { 0 } else { count.saturating_sub(length as i64) };
            let bad =
                || EvaluateError::Invalid(format!("{count} positions are fewer than the {length} new ones"));
            let start = usize::try_from(start).map_err(|_| bad())?;
            if start.saturating_add(length) > k_shape[2] {
                return Err(EvaluateError::Invalid(format!(
                    "{count} positions do not fit a cache of {}",
                    k_shape[2]
                )));
            }
            starts.push(start);
        }
        let [q, k, v] = self.projected(inputs, &parts, &starts)?;
        let past = |index: usize| -> Result<(Vec<f64>, usize), EvaluateError> {
            optional(inputs, index)
                .map_or(Ok((vec![], 0)), |past| Ok((numbers::to_f64(past)?, past.shape()[2])))
        };
        let (past_k, past_v) = (past(3)?, past(4)?);
        let k = cached(&past_k.0, past_k.1, &k, (length, k_shape[3]), k_shape, &starts)?;
        let v = cached(&past_v.0, past_v.1, &v, (length, v_shape[3]), v_shape, &starts)?;
        let mask = optional(inputs, 10).map(Mask::new).transpose()?;
        let sink = match optional(inputs, 11) {
            Some(sink) => Some(numbers::to_f64(sink)?),
            None => self.smooth.then(|| vec![0.0; self.query_heads]),
        };
        let sees = Attention {
            causal: self.causal,
            left_window: self.left_window.map(|window| window.saturating_sub(1)),
            ..Attention::PLAIN
        };
        let bias = |batch: usize, head: usize, query: usize, key: usize| {
            let at = (starts[batch] + query) as i64;
            let shown = sees.sees(at, key as i64) && (key as i64) < counts[batch];
            match &mask {
                _ if !shown => f64::NEG_INFINITY,
                Some(mask) => mask.at(batch, head, query, key),
                None => 0.0,
            }
        };
        let problem = core::Problem {
            batch,
            query_heads: self.query_heads,
            key_heads: self.key_heads,
            queries: length,
            keys: k_shape[2],
            head_size: parts.head_size,
            value_size: parts.value_size,
            q: &q,
            k: &k,
            v: &v,
            scale: Attention { scale: self.scale, ..Attention::PLAIN }.factor(parts.head_size),
            softcap: f64::from(self.softcap),
            element: *element,
            precision: ElementType::F32,
            bias: &bias,
            sink: sink.as_deref(),
        };
        let (result, _) = problem.solve(None)?;
        let heads = Heads { batch, heads: self.query_heads, length, size: parts.value_size };
        let mut outputs =
            vec![numbers::from_f64(*element, shape.clone(), &heads.by_position(&result))?.into()];
        for (shape, values) in
            [(k_shape, k), (v_shape, v)].into_iter().take(context.outputs.saturating_sub(1))
        {
            outputs.push(numbers::from_f64(*element, shape.clone(), &values)?.into());
        }
        Ok(outputs)
    }

    fn operations(&self, inputs: &[Option<&ValueType>], outputs: &[Option<&ValueType>]) -> u64 {
        let cache = outputs.get(1).copied().flatten().and_then(ValueType::shape);
        let keys = cache.and_then(|shape| shape.get(2).copied()).unwrap_or(0) as u64;
        typing::count(inputs, 0)
            .saturating_add(typing::count(outputs, 0))
            .saturating_mul(keys)
            .saturating_mul(2)
    }

    fn cases() -> Vec<Case> {
        cases::cases()
    }
}
