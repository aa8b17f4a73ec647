//! Attention with or without an axis of heads, and with a past that new keys and values are put behind.

use armet_graph::ops::Attention;
use armet_kernels::attention::{self as kernel, Distances, Extras, Mask, MaskValues, Prepared, Rows, Sizes};
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Shape};

use super::support::{plain, shapes, unquantized};
use crate::{Cpu, packed};

/// Sizes of queries, keys or values, and where their rows are.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "an axis of heads has no other name")]
struct Heads {
    batch: usize,
    heads: usize,
    length: usize,
    size: usize,
    distances: Distances,
}

impl Heads {
    /// With the heads as an axis.
    fn apart(batch: usize, heads: usize, length: usize, size: usize) -> Self {
        let distances = Distances { batch: heads * length * size, head: length * size, row: size };
        Self { batch, heads, length, size, distances }
    }

    fn of(shape: &Shape, heads: Option<usize>) -> Result<Self, Unsupported> {
        match (shape.dims(), heads) {
            (&[batch, heads, length, size], _) => Ok(Self::apart(batch, heads, length, size)),
            (&[batch, length, width], Some(heads)) if heads > 0 => {
                let size = width / heads;
                let distances = Distances { batch: length * width, head: size, row: width };
                Ok(Self { batch, heads, length, size, distances })
            }
            _ => Err(Unsupported::Rank(shape.len())),
        }
    }

    fn elements(&self) -> usize {
        self.batch * self.heads * self.length * self.size
    }
}

/// Where a mask's numbers are, for the batch items, heads and queries that it tells apart.
fn mask_places(shape: &Shape) -> Result<(Distances, usize), Unsupported> {
    let Some(&keys) = shape.last() else { return Err(Unsupported::Rank(0)) };
    let lead = 4usize.checked_sub(shape.len()).ok_or(Unsupported::Rank(shape.len()))?;
    let own = armet_tensor::strides(shape);
    let distance = |axis: usize| match axis.checked_sub(lead) {
        Some(axis) if shape[axis] != 1 => own[axis],
        _ => 0,
    };
    Ok((Distances { batch: distance(0), head: distance(1), row: distance(2) }, keys))
}

/// Everything but the buffers.
struct Plan {
    prepared: Prepared,
    q: Heads,
    new: [Heads; 2],
    /// Keys and values with the past, where there is one or they are wanted so.
    whole: Option<[Heads; 2]>,
    past: usize,
    y: Heads,
    mask: Option<(Distances, usize)>,
    mask_shows: bool,
    counts: Option<ElementType>,
}

pub(crate) fn lower(cpu: Cpu, op: &Attention, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    for index in [0, 1, 2, 4, 5, 7].into_iter().filter(|&index| node.has_input(index)) {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    if let Some(precision) = op.precision.filter(|precision| *precision != ElementType::F32) {
        return Err(Unsupported::Attribute { name: "softmax_precision", value: precision.to_string() });
    }
    if node.node().outputs.get(3).copied().flatten().is_some() {
        return Err(Unsupported::Shapes("no kernel gives the scores".into()));
    }
    let q = Heads::of(&node.shape(0)?, op.query_heads)?;
    let k = Heads::of(&node.shape(1)?, op.key_heads)?;
    let v = Heads::of(&node.shape(2)?, op.key_heads)?;
    let y = Heads::of(&node.output_shape(0)?, op.query_heads)?;
    let past = if node.has_input(4) { Heads::of(&node.shape(4)?, None)?.length } else { 0 };
    let wanted = [1, 2].map(|index| node.node().outputs.get(index).copied().flatten().is_some());
    let keys = past + k.length;
    let whole = (past > 0 || wanted.contains(&true))
        .then(|| [k, v].map(|part| Heads::apart(part.batch, part.heads, keys, part.size)));
    let (mask, mask_shows) = if node.has_input(3) {
        let shows = match node.element(3)? {
            ElementType::F32 => false,
            ElementType::Bool => true,
            other => return Err(Unsupported::ElementType(other)),
        };
        (Some(mask_places(&node.shape(3)?)?), shows)
    } else {
        (None, false)
    };
    let counts = if node.has_input(6) { Some(node.element(6)?) } else { None };
    if let Some(element) = counts.filter(|e| !matches!(e, ElementType::I64 | ElementType::I32)) {
        return Err(Unsupported::ElementType(element));
    }
    let sizes = Sizes {
        batch: q.batch,
        query_heads: q.heads,
        key_heads: k.heads,
        queries: q.length,
        keys,
        head_size: q.size,
        value_size: v.size,
    };
    if sizes.key_heads == 0 || !sizes.query_heads.is_multiple_of(sizes.key_heads) {
        return Err(shapes("heads do not share keys evenly"));
    }
    let attention = kernel::Attention {
        sizes,
        scale: op.factor(q.size) as f32,
        softcap: op.softcap,
        causal: op.causal,
        left: op.left_window,
        right: op.right_window,
    };
    let prepared = Prepared::new(cpu.isas, attention);
    let plan = Plan { prepared, q, new: [k, v], whole, past, y, mask, mask_shows, counts };
    Ok(packed(move |context: &CompileContext<'_>| {
        let kept: usize = plan.whole.iter().flatten().map(Heads::elements).sum();
        let scratch = (kept + prepared.scratch_len(context.threads)) * size_of::<f32>();
        Ok((prepared.kernel_name(), scratch, move |bind: &mut Bindings<'_>| plan.run(bind)))
    }))
}

impl Plan {
    fn run(&self, bind: &mut Bindings<'_>) {
        let y = bind.output::<f32>(0);
        let mut scratch = bind.scratch::<f32>();
        let mut operands = [1, 2].map(|index| bind.input::<f32>(index));
        let mut distances = self.new.map(|part| part.distances);
        if let Some(whole) = self.whole {
            for part in 0..2 {
                let (own, rest) = scratch.split_at_mut(whole[part].elements());
                scratch = rest;
                let to = bind.optional_output::<f32>(1 + part).unwrap_or(own);
                append(
                    bind.optional_input::<f32>(4 + part).unwrap_or_default(),
                    self.past,
                    operands[part],
                    &self.new[part],
                    to,
                );
                operands[part] = to;
                distances[part] = whole[part].distances;
            }
        }
        let [k, v] = operands;
        let rows = [
            Rows { data: bind.input(0), distances: self.q.distances },
            Rows { data: k, distances: distances[0] },
            Rows { data: v, distances: distances[1] },
        ];
        let mask = self.mask.map(|(distances, keys)| Mask {
            values: if self.mask_shows {
                MaskValues::Shown(bind.bytes(3))
            } else {
                MaskValues::Added(bind.input(3))
            },
            distances,
            keys,
        });
        let keys = self.past + self.new[0].length;
        let queries = self.q.length;
        let past = self.past;
        // Where keys are counted, the last of the queries is that of the last of the keys.
        let counted = |count: i64| {
            (count.saturating_sub_unsigned(queries as u64), usize::try_from(count).unwrap_or(0).min(keys))
        };
        let (wide, narrow): (&[i64], &[i32]) = match self.counts {
            Some(ElementType::I64) => (bind.input(6), &[]),
            Some(_) => (&[], bind.input(6)),
            None => (&[], &[]),
        };
        let places = |item: usize| match (wide.get(item), narrow.get(item)) {
            (Some(&count), _) => counted(count),
            (None, Some(&count)) => counted(i64::from(count)),
            (None, None) => (past as i64, keys),
        };
        let extras = Extras { mask, places: &places, sinks: bind.optional_input(7) };
        self.prepared.run(bind.team(), rows, y, self.y.distances, extras, scratch);
    }
}

/// The past of each head, and its new rows behind it.
fn append(past: &[f32], past_length: usize, new: &[f32], part: &Heads, to: &mut [f32]) {
    let size = part.size;
    let whole = (past_length + part.length) * size;
    if whole == 0 {
        return;
    }
    for (pair, to) in to.chunks_exact_mut(whole).enumerate() {
        let (old, rest) = to.split_at_mut(past_length * size);
        old.copy_from_slice(&past[pair * past_length * size..][..past_length * size]);
        let start = pair / part.heads * part.distances.batch + pair % part.heads * part.distances.head;
        for (row, to) in rest.chunks_exact_mut(size.max(1)).enumerate() {
            to.copy_from_slice(&new[start + row * part.distances.row..][..size]);
        }
    }
}
