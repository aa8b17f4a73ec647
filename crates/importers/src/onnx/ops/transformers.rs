//! Attention as ONNX Runtime's transformer optimizer writes it into models, and what stands around it.

use armet_graph::ValueId;
use armet_graph::ops::{
    Attention, Binary, BinaryKind, Cast, Concat, ConstantOfShape, DequantizeLinear, Gather,
    GroupQueryAttention, LayerNormalization, Range, Reduce, ReduceKind, Reshape, RotaryEmbedding, ShapeOf,
    Slice, Split, Squeeze, Unsqueeze, Where,
};
use armet_tensor::{ElementType, Tensor};

use super::attention::{heads, limit};
use super::microsoft::integer_product;
use super::products::PLAIN;
use super::{Entry, microsoft};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    microsoft("Attention", |n| {
        let (x, weights) = (n.input(0)?, n.input(1)?);
        let bias = n.optional(2)?;
        let lengths = match n.ints("qkv_hidden_sizes")? {
            Some(sizes) if !sizes.is_empty() => Some(sizes),
            _ => None,
        };
        let all = n.step("projected", PLAIN, vec![Some(x), Some(weights), bias]);
        let extra = n.optional(5)?;
        refuse_inputs(n, &[6])?;
        joined(n, all, lengths, Masks { padding: Some(3), extra }, 4)
    }),
    microsoft("QAttention", |n| {
        let (x, weights) = (n.input(0)?, n.input(1)?);
        let bias = n.input(2)?;
        let scales = [n.input(3)?, n.input(4)?];
        let zeros = [n.optional(6)?, n.optional(7)?];
        let (op, inputs) = integer_product(n, [x, weights], scales, zeros, Some(bias));
        let all = n.step("projected", op, inputs);
        joined(n, all, None, Masks { padding: Some(5), extra: None }, 8)
    }),
    microsoft("MultiHeadAttention", multi_head),
    microsoft("GroupQueryAttention", group_query),
    microsoft("RotaryEmbedding", rotary),
    microsoft("EmbedLayerNormalization", |n| {
        let tables = [n.input(2)?, n.input(3)?];
        let segments = n.optional(4)?;
        let parameters = [n.input(5)?, n.input(6)?];
        embed(n, tables, segments, parameters, 8)
    }),
    microsoft("QEmbedLayerNormalization", |n| {
        let mut real = |index: usize| -> Read<Option<ValueId>> {
            if !n.has_input(index) {
                return Ok(None);
            }
            // Scales stand behind the mask, zero points behind the scales, in the order of the tables.
            let (scale, zero) = (n.input(index + 6)?, n.optional(index + 11)?);
            let inputs = vec![Some(n.input(index)?), Some(scale), zero];
            Ok(Some(n.step(&format!("real_{index}"), DequantizeLinear { axis: 0, block_size: 0 }, inputs)))
        };
        let mut needed = |index: usize| {
            Ok::<_, crate::onnx::node::Problem>(real(index)?.ok_or(Invalid::MissingInput(index))?)
        };
        let tables = [needed(2)?, needed(3)?];
        let parameters = [needed(5)?, needed(6)?];
        let segments = real(4)?;
        embed(n, tables, segments, parameters, usize::MAX)
    }),
];

/// Refuses inputs that are given.
fn refuse_inputs(n: &NodeReader<'_, '_>, which: &[usize]) -> Read {
    match which.iter().find(|&&index| n.has_input(index)) {
        Some(&index) => Err(Reason::Input { index, what: "is not taken" }.into()),
        None => Ok(()),
    }
}

/// The length of a value's last axis, when it is known.
fn width(n: &mut NodeReader<'_, '_>, value: ValueId) -> Option<usize> {
    n.type_of(value)?.dims?.last()?.fixed()
}

/// Attributes that several operators share.
fn attributes(n: &NodeReader<'_, '_>) -> Read<(Attention, f32)> {
    let heads = heads(n, "num_heads")?;
    if heads.is_none() {
        return Err(Invalid::MissingAttribute("num_heads").into());
    }
    let op = Attention {
        query_heads: heads,
        key_heads: heads,
        scale: n.float("scale")?.filter(|scale| *scale != 0.0),
        causal: n.flag("unidirectional", false)?,
        ..Attention::PLAIN
    };
    Ok((op, n.float_or("mask_filter_value", -10000.0)?))
}

/// Where masks are: an input that tells which keys are padding, and a value that is added to the scores.
struct Masks {
    padding: Option<usize>,
    extra: Option<ValueId>,
}

impl Masks {
    /// Both as one mask to add. Hidden keys get a large negative number, as this operator set has it: where all keys of
    /// a query are hidden, they count alike.
    fn added(self, n: &mut NodeReader<'_, '_>, keys: Keys, hidden: f32) -> Read<Option<ValueId>> {
        let Some(index) = self.padding.filter(|&index| n.has_input(index)) else { return Ok(self.extra) };
        let mask = n.input(index)?;
        let unknown = || Reason::Input { index, what: "must have a known rank" };
        let shown = match n.rank(mask).ok_or_else(unknown)? {
            // The number of keys that are no padding; they come first.
            1 => {
                let number = n.vector("one", &[1i64]);
                let lengths =
                    n.step("lengths", Cast { to: ElementType::I64, saturate: true }, vec![Some(mask)]);
                let lengths = n.step("column", Unsqueeze, vec![Some(lengths), Some(number)]);
                let mut count = n.step(
                    "new",
                    ShapeOf { start: keys.axis, end: Some(keys.axis + 1) },
                    vec![Some(keys.new)],
                );
                if let Some((past, axis)) = keys.past {
                    let past = n.step("past", ShapeOf { start: axis, end: Some(axis + 1) }, vec![Some(past)]);
                    count = n.step("all", Binary { kind: BinaryKind::Add }, vec![Some(past), Some(count)]);
                }
                let count = n.step("count", Squeeze, vec![Some(count)]);
                let (zero, one) = (
                    n.add_constant("zero", Tensor::scalar(0i64)),
                    n.add_constant("step", Tensor::scalar(1i64)),
                );
                let positions = n.step("positions", Range, vec![Some(zero), Some(count), Some(one)]);
                n.step("shown", Binary { kind: BinaryKind::Less }, vec![Some(positions), Some(lengths)])
            }
            2 | 3 => {
                let zero = n.number_like("nothing", mask, 0.0);
                n.step("shown", Binary { kind: BinaryKind::Greater }, vec![Some(mask), Some(zero)])
            }
            _ => return Err(Reason::Input { index, what: "has too many axes" }.into()),
        };
        let axes: &[i64] = if n.rank(mask) == Some(3) { &[1] } else { &[1, 2] };
        let axes = n.vector("mask_axes", axes);
        let shown = n.step("whole", Unsqueeze, vec![Some(shown), Some(axes)]);
        let like = self.extra.unwrap_or(keys.new);
        let [zero, low] = [("keep", 0.0), ("hide", hidden)]
            .map(|(name, value)| n.number_like(name, like, f64::from(value)));
        let mask = n.step("mask", Where, vec![Some(shown), Some(zero), Some(low)]);
        Ok(Some(match self.extra {
            Some(extra) => n.step("bias", Binary { kind: BinaryKind::Add }, vec![Some(mask), Some(extra)]),
            None => mask,
        }))
    }
}

/// Where the number of keys can be read.
struct Keys {
    new: ValueId,
    axis: i64,
    past: Option<(ValueId, i64)>,
}

/// Attention on queries, keys and values that stand behind each other in one tensor; past and present of keys and values
/// are one tensor too.
fn joined(
    n: &mut NodeReader<'_, '_>,
    all: ValueId,
    lengths: Option<Vec<i64>>,
    masks: Masks,
    past_index: usize,
) -> Read {
    n.only("do_rotary", 0)?;
    n.only("past_present_share_buffer", 0)?;
    n.ignore(&["rotary_embedding_dim"]);
    let (op, hidden) = attributes(n)?;
    let mut inputs = vec![Some(all)];
    inputs.extend(lengths.map(|lengths| Some(n.vector("widths", &lengths))));
    let [q, k, v] = ["query", "key", "value"].map(|name| n.value_like(name, all));
    n.emit_to(Split { axis: -1, parts: 3 }, inputs, &[Some(q), Some(k), Some(v)]);
    let past = n.optional(past_index)?;
    let keys = Keys { new: k, axis: 1, past: past.map(|past| (past, 3)) };
    let mask = masks.added(n, keys, hidden)?;
    let mut inputs = vec![Some(q), Some(k), Some(v), mask];
    if let Some(past) = past {
        for (name, index) in [("past_key", 0i64), ("past_value", 1)] {
            let at = n.add_constant(&format!("{name}_index"), Tensor::scalar(index));
            inputs.push(Some(n.step(name, Gather { axis: 0 }, vec![Some(past), Some(at)])));
        }
    }
    let y = n.output(0)?;
    let Some(present) = n.output(1)? else {
        n.emit_to(op, inputs, &[y]);
        return Ok(());
    };
    let [k, v] = ["present_key", "present_value"].map(|name| n.value_like(name, all));
    n.emit_to(op, inputs, &[y, Some(k), Some(v)]);
    let axis = n.vector("present_axis", &[0i64]);
    let k = n.step("keys", Unsqueeze, vec![Some(k), Some(axis)]);
    let v = n.step("values", Unsqueeze, vec![Some(v), Some(axis)]);
    n.emit_to(Concat { axis: 0 }, vec![Some(k), Some(v)], &[Some(present)]);
    Ok(())
}

/// One of the parts that lie beside each other in the fourth of five axes, as `[batch, length, heads * size]`.
fn packed(n: &mut NodeReader<'_, '_>, all: ValueId, names: &[&str]) -> Vec<ValueId> {
    let parts: Vec<ValueId> = names.iter().map(|name| n.value_like(&format!("packed_{name}"), all)).collect();
    let outputs: Vec<Option<ValueId>> = parts.iter().copied().map(Some).collect();
    n.emit_to(Split { axis: 3, parts: parts.len() }, vec![Some(all)], &outputs);
    let shape = n.vector("flat", &[0i64, 0, -1]);
    let flat = |(part, name): (ValueId, &&str)| {
        n.step(name, Reshape { allow_zero: false }, vec![Some(part), Some(shape)])
    };
    parts.into_iter().zip(names).map(flat).collect()
}

fn multi_head(n: &mut NodeReader<'_, '_>) -> Read {
    let (op, hidden) = attributes(n)?;
    refuse_inputs(n, &[8, 9])?;
    if n.wants(3) {
        return Err(Reason::Output(3).into());
    }
    let (first, second, third) = (n.input(0)?, n.optional(1)?, n.optional(2)?);
    let unknown = |index| Reason::Input { index, what: "must have a known rank" };
    let (mut q, mut k, mut v) = match (second, third) {
        (None, _) => match packed(n, first, &["query", "key", "value"])[..] {
            [q, k, v] => (q, k, v),
            _ => return Err(Invalid::MissingInput(1).into()),
        },
        (Some(both), None) => match packed(n, both, &["key", "value"])[..] {
            [k, v] => (first, k, v),
            _ => return Err(Invalid::MissingInput(2).into()),
        },
        (Some(k), Some(v)) => (first, k, v),
    };
    // Keys and values with an axis of heads have been projected before.
    let by_head = n.rank(k).ok_or_else(|| unknown(1))? == 4;
    if let Some(bias) = n.optional(3)? {
        let widths = [q, k, v].map(|x| width(n, x));
        let add = |n: &mut NodeReader<'_, '_>, name: &str, x: ValueId, from: usize, to: usize| {
            let bounds = [("from", from as i64), ("to", to as i64)];
            let [from, to] = bounds.map(|(end, at)| n.vector(&format!("{name}_{end}"), &[at]));
            let part = n.step(&format!("{name}_bias"), Slice, vec![Some(bias), Some(from), Some(to)]);
            n.step(&format!("biased_{name}"), Binary { kind: BinaryKind::Add }, vec![Some(x), Some(part)])
        };
        let Some(q_width) = widths[0] else {
            return Err(Reason::Input { index: 0, what: "must have a known width" }.into());
        };
        q = add(n, "query", q, 0, q_width);
        if !by_head {
            let (Some(k_width), Some(v_width)) = (widths[1], widths[2]) else {
                return Err(Reason::Input { index: 1, what: "must have a known width" }.into());
            };
            k = add(n, "key", k, q_width, q_width + k_width);
            v = add(n, "value", v, q_width + k_width, q_width + k_width + v_width);
        }
    }
    let (past_k, past_v) = (n.optional(6)?, n.optional(7)?);
    let keys = Keys { new: k, axis: if by_head { 2 } else { 1 }, past: past_k.map(|past| (past, 2)) };
    let masks = Masks { padding: Some(4), extra: n.optional(5)? };
    let mask = masks.added(n, keys, hidden)?;
    let outputs = [n.output(0)?, n.output(1)?, n.output(2)?];
    n.emit_to(op, vec![Some(q), Some(k), Some(v), mask, past_k, past_v], &outputs);
    Ok(())
}

fn group_query(n: &mut NodeReader<'_, '_>) -> Read {
    let given = |heads: Option<usize>, name| heads.ok_or(Invalid::MissingAttribute(name));
    for name in ["qk_output", "sliding_window_cache"] {
        n.only(name, 0)?;
    }
    for name in ["k_quant_type", "v_quant_type"] {
        n.choice(name, (), &[("NONE", ())])?;
    }
    n.ignore(&["kv_cache_bit_width", "qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"]);
    let op = GroupQueryAttention {
        query_heads: given(heads(n, "num_heads")?, "num_heads")?,
        key_heads: given(heads(n, "kv_num_heads")?, "kv_num_heads")?,
        scale: n.float("scale")?.filter(|scale| *scale != 0.0),
        causal: n.flag("causal", true)?,
        left_window: limit(n, "local_window_size")?,
        softcap: n.float_or("softcap", 0.0)?,
        smooth: n.int_or("smooth_softmax", -1)? == 1,
        rotary: n.flag("do_rotary", false)?,
        interleaved: n.flag("rotary_interleaved", false)?,
    };
    refuse_inputs(n, &[12, 13, 14, 15, 16])?;
    if n.wants(3) {
        return Err(Reason::Output(3).into());
    }
    let inputs = (0..n.input_count().min(12)).map(|i| n.optional(i)).collect::<Read<Vec<_>>>()?;
    n.emit(op, inputs)
}

fn rotary(n: &mut NodeReader<'_, '_>) -> Read {
    n.only("is_packed_batching", 0)?;
    if n.float("scale")?.is_some_and(|scale| scale != 1.0) {
        return Err(n.unsupported("scale"));
    }
    let (x, positions) = (n.input(0)?, n.input(1)?);
    let (cos, sin) = (n.input(2)?, n.input(3)?);
    let turned = n.size_or("rotary_embedding_dim", 0)?;
    let mut heads = heads(n, "num_heads")?;
    if heads.is_none() && n.rank(x) != Some(4) {
        // Then heads are as wide as the angles say.
        let head = width(n, cos).map(|half| 2 * half).filter(|&head| head != 0);
        let (Some(all), Some(head)) = (width(n, x), head) else {
            return Err(Reason::Input { index: 0, what: "must have a known width" }.into());
        };
        heads = Some(all / head);
    }
    let op = RotaryEmbedding { heads, width: turned, interleaved: n.flag("interleaved", false)? };
    n.emit(op, vec![Some(x), Some(cos), Some(sin), Some(positions)])
}

/// The sum of embeddings of words, positions and segments, normalized; and how many words of each row are no padding.
fn embed(
    n: &mut NodeReader<'_, '_>,
    [words, places]: [ValueId; 2],
    segment_table: Option<ValueId>,
    [scale, shift]: [ValueId; 2],
    positions: usize,
) -> Read {
    n.only("mask_index_type", 1)?;
    let epsilon = n.float_or("epsilon", 1e-12)?;
    let ids = n.input(0)?;
    let segments = n.optional(1)?;
    let add = Binary { kind: BinaryKind::Add };
    let words = n.step("words", Gather { axis: 0 }, vec![Some(words), Some(ids)]);
    let places = match n.optional(positions)? {
        Some(positions) => n.step("places", Gather { axis: 0 }, vec![Some(places), Some(positions)]),
        None => {
            let zero = n.vector("first", &[0i64]);
            let count = n.step("count", ShapeOf { start: 1, end: Some(2) }, vec![Some(ids)]);
            n.step("places", Slice, vec![Some(places), Some(zero), Some(count), Some(zero)])
        }
    };
    let mut parts = vec![Some(words), Some(places)];
    if let (Some(segments), Some(table)) = (segments, segment_table) {
        let sum = n.step("placed", add.clone(), parts);
        let segments = n.step("segments", Gather { axis: 0 }, vec![Some(table), Some(segments)]);
        parts = vec![Some(sum), Some(segments)];
    }
    let sum = match n.output(2)? {
        Some(sum) => {
            n.emit_to(add, parts, &[Some(sum)]);
            sum
        }
        None => n.step("sum", add, parts),
    };
    if let Some(count) = n.output(1)? {
        let axis = n.vector("words_axis", &[1i64]);
        let op = Reduce { kind: ReduceKind::Sum, keep_dims: false, noop_with_empty_axes: false };
        match n.optional(7)? {
            Some(mask) => n.emit_to(op, vec![Some(mask), Some(axis)], &[Some(count)]),
            None => {
                let rows = n.step("rows", ShapeOf { start: 0, end: Some(1) }, vec![Some(ids)]);
                let op = ConstantOfShape { value: Tensor::vector(&[0i32]) };
                n.emit_to(op, vec![Some(rows)], &[Some(count)]);
            }
        }
    }
    let y = n.output(0)?;
    let op = LayerNormalization { axis: -1, epsilon, root_mean_square: false };
    n.emit_to(op, vec![Some(sum), Some(scale), Some(shift)], &[y]);
    Ok(())
}
