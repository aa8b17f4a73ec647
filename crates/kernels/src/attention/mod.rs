//! Attention by scaled products of 32-bit floats: scores of queries and keys, their softmax, and values weighted by it.
//!
//! The heads are cut into tasks: each packs the keys and values of its head once and goes through its queries in blocks
//! whose scores stay in the second level of cache, so that scores never go through memory. Keys that no query of a block
//! sees are left out. Few queries, as when a text is continued word by word, meet keys and values as they lie.
//!
//! Contract: nothing allocates when it runs. Queries, keys and values may lie at any distances as long as the elements of
//! one head's row are side by side; rows of results must not meet. A query that sees no key gives zeros. Panics where
//! slices are shorter than sizes and distances say.

#![expect(unsafe_code, reason = "rows of the output are handed to tasks")]

mod few;
mod rows;
#[cfg(test)]
mod tests;

use crate::dispatch::dispatch;
use crate::gemm::Alone;
use crate::isa::Isas;
use crate::threads::{DisjointMut, Team};
use rows::{Hidden, Probabilities};

/// Floats of a block of scores, more or less.
const BLOCK: usize = 1 << 16;
/// Queries of a head and those that share its keys, from which on packing keys and values pays.
const MANY: usize = 4;
/// Queries of a task, when heads are cut to give every thread one.
const LEAST: usize = 64;

/// Sizes of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Problems that have nothing in common.
    pub batch: usize,
    /// Heads of the queries, a multiple of those of the keys.
    pub query_heads: usize,
    /// Heads of keys and values, each of which serves several of the queries.
    pub key_heads: usize,
    /// Queries.
    pub queries: usize,
    /// Keys and values.
    pub keys: usize,
    /// Elements of a query and of a key.
    pub head_size: usize,
    /// Elements of a value.
    pub value_size: usize,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Sizes.
    pub sizes: Sizes,
    /// Factor of the products.
    pub scale: f32,
    /// Soft limit of the scaled products; none when 0.
    pub softcap: f32,
    /// A query sees keys up to its own position only.
    pub causal: bool,
    /// How many keys before its position it sees.
    pub left: Option<usize>,
    /// How many keys behind its position it sees.
    pub right: Option<usize>,
}

/// Distances between elements: from one batch item, head and row to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distances {
    /// From one batch item to the next.
    pub batch: usize,
    /// From one head to the next.
    pub head: usize,
    /// From one row to the next.
    pub row: usize,
}

impl Distances {
    fn at(&self, batch: usize, head: usize, row: usize) -> usize {
        batch * self.batch + head * self.head + row * self.row
    }
}

/// Rows of heads in a slice.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// All elements.
    pub data: &'a [f32],
    /// Where they are.
    pub distances: Distances,
}

/// What a mask holds.
#[derive(Clone, Copy, Debug)]
pub enum MaskValues<'a> {
    /// Numbers that are added to the scores.
    Added(&'a [f32]),
    /// 0 where a key is hidden.
    Shown(&'a [u8]),
}

/// Which keys are hidden from which queries.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    /// For each query the keys side by side.
    pub values: MaskValues<'a>,
    /// Distances; 0 where all share one mask.
    pub distances: Distances,
    /// Keys that it tells of; those behind are hidden.
    pub keys: usize,
}

/// What a run may have besides queries, keys and values.
#[derive(Clone, Copy)]
pub struct Extras<'a> {
    /// What is added to the scores.
    pub mask: Option<Mask<'a>>,
    /// For a batch item: the position of its first query among the keys, and how many keys there are.
    pub places: &'a (dyn Fn(usize) -> (i64, usize) + Sync),
    /// For each head the score of a key without a value.
    pub sinks: Option<&'a [f32]>,
}

impl std::fmt::Debug for Extras<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extras").field("mask", &self.mask).field("sinks", &self.sinks).finish_non_exhaustive()
    }
}

/// Attention of these sizes on these instruction sets.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    isas: Isas,
    attention: Attention,
    keys: Alone,
    values: Alone,
    /// Rows of a block.
    rows: usize,
}

/// One run, as tasks see it.
struct Run<'a> {
    q: Rows<'a>,
    k: Rows<'a>,
    v: Rows<'a>,
    y: DisjointMut<'a, f32>,
    y_distances: Distances,
    extras: Extras<'a>,
}

impl<'a> Run<'a> {
    /// What hides keys from a query.
    fn hidden(&self, batch: usize, head: usize, query: usize) -> Hidden<'a> {
        let Some(mask) = self.extras.mask else { return Hidden::None };
        let start = mask.distances.at(batch, head, query);
        match mask.values {
            MaskValues::Added(values) => Hidden::Added(&values[start..][..mask.keys]),
            MaskValues::Shown(values) => Hidden::Shown(&values[start..][..mask.keys]),
        }
    }
}

/// Queries in a row that are done together: of one head, or, where there is one query only, of heads side by side.
#[derive(Clone, Copy)]
struct Block {
    batch: usize,
    head: usize,
    query: usize,
    count: usize,
    /// Each row is another head.
    by_head: bool,
}

impl Block {
    /// Head and query of a row.
    fn row(&self, row: usize) -> (usize, usize) {
        if self.by_head { (self.head + row, self.query) } else { (self.head, self.query + row) }
    }
}

impl Prepared {
    /// Prepares a run.
    pub fn new(isas: Isas, attention: Attention) -> Self {
        let Sizes { keys, head_size, value_size, .. } = attention.sizes;
        let by_key = Alone::new(isas, head_size, keys);
        let by_value = Alone::new(isas, keys, value_size);
        let tiles = (BLOCK / keys.max(1) / by_key.tile_rows()).clamp(1, 4);
        Self {
            isas,
            attention,
            keys: by_key,
            values: by_value,
            rows: (tiles * by_key.tile_rows()).min(MOST_ROWS),
        }
    }

    /// The kernel that runs.
    pub fn kernel_name(&self) -> String {
        format!("attention_f32_{}", self.isas.best())
    }

    /// The floats of scratch memory that a run on so many threads wants.
    pub fn scratch_len(&self, threads: usize) -> usize {
        self.scratch_per_thread() * threads
    }

    fn is_few(&self) -> bool {
        let Sizes { query_heads, key_heads, queries, .. } = self.attention.sizes;
        query_heads / key_heads.max(1) * queries < MANY
    }

    fn scratch_per_thread(&self) -> usize {
        let Sizes { keys, value_size, .. } = self.attention.sizes;
        if self.is_few() {
            return keys;
        }
        self.keys.packed_len() + self.values.packed_len() + self.rows * (keys + value_size)
    }

    /// Computes the weighted values `y`.
    ///
    /// # Panics
    /// When a slice is too short, sizes do not fit each other, or rows of `y` would meet.
    pub fn run(
        &self,
        team: &Team,
        [q, k, v]: [Rows<'_>; 3],
        y: &mut [f32],
        y_distances: Distances,
        extras: Extras<'_>,
        scratch: &mut [f32],
    ) {
        let Sizes { batch, query_heads, key_heads, queries, keys, head_size, value_size } =
            self.attention.sizes;
        if batch * query_heads * queries * value_size == 0 {
            return;
        }
        assert!(key_heads > 0 && query_heads.is_multiple_of(key_heads), "heads share keys evenly");
        check(&q, [batch, query_heads, queries], head_size);
        check(&k, [batch, key_heads, keys], head_size);
        check(&v, [batch, key_heads, keys], value_size);
        check_length(y.len(), y_distances, [batch, query_heads, queries], value_size);
        check_apart(y_distances, [batch, query_heads, queries], value_size);
        if let Some(mask) = &extras.mask {
            let length = match mask.values {
                MaskValues::Added(values) => values.len(),
                MaskValues::Shown(values) => values.len(),
            };
            check_length(length, mask.distances, [batch, query_heads, queries], mask.keys);
        }
        assert!(extras.sinks.is_none_or(|sinks| sinks.len() >= query_heads), "a sink for every head");
        let per_thread = self.scratch_per_thread();
        assert!(scratch.len() >= self.scratch_len(team.threads()), "scratch memory for every thread");
        let run = Run { q, k, v, y: DisjointMut::new(y), y_distances, extras };
        let scratch = DisjointMut::new(scratch);
        // Heads that are too few for the threads are cut along their queries, which packs keys more than once.
        let pairs = batch * key_heads;
        let parts = if team.threads() == 1 || pairs >= 2 * team.threads() {
            1
        } else {
            (2 * team.threads()).div_ceil(pairs).min(queries.div_ceil(LEAST))
        };
        let step = queries.div_ceil(parts);
        team.run_with_thread(pairs * parts, &|thread, task| {
            // SAFETY: no two tasks run with one thread index at a time.
            let own = unsafe { scratch.slice_mut(thread * per_thread, per_thread) };
            let (pair, part) = (task / parts, task % parts);
            let range = (part * step).min(queries)..((part + 1) * step).min(queries);
            self.head(&run, pair / key_heads, pair % key_heads, range, own);
        });
    }

    /// Some queries of the heads that share keys and values.
    fn head(
        &self,
        run: &Run<'_>,
        batch: usize,
        key_head: usize,
        queries: std::ops::Range<usize>,
        scratch: &mut [f32],
    ) {
        let sizes = self.attention.sizes;
        let (k, v) = (
            &run.k.data[run.k.distances.at(batch, key_head, 0).min(run.k.data.len())..],
            &run.v.data[run.v.distances.at(batch, key_head, 0).min(run.v.data.len())..],
        );
        let group = sizes.query_heads / sizes.key_heads;
        let heads = key_head * group..(key_head + 1) * group;
        if self.is_few() {
            for head in heads {
                for query in queries.clone() {
                    self.one(run, (k, v), Block { batch, head, query, count: 1, by_head: false }, scratch);
                }
            }
            return;
        }
        let (packed_k, rest) = scratch.split_at_mut(self.keys.packed_len());
        let (packed_v, rest) = rest.split_at_mut(self.values.packed_len());
        let (scores, results) = rest.split_at_mut(self.rows * sizes.keys);
        self.keys.pack(packed_k, k, 1, run.k.distances.row, self.attention.scale);
        self.values.pack(packed_v, v, run.v.distances.row, 1, 1.0);
        let mut block = |block: Block| self.block(run, block, packed_k, packed_v, scores, results);
        if sizes.queries == 1 {
            let mut head = heads.start;
            while head < heads.end {
                let count = self.rows.min(heads.end - head);
                block(Block { batch, head, query: 0, count, by_head: true });
                head += count;
            }
            return;
        }
        for head in heads {
            let mut query = queries.start;
            while query < queries.end {
                let count = self.rows.min(queries.end - query);
                block(Block { batch, head, query, count, by_head: false });
                query += count;
            }
        }
    }

    /// The first key that a query sees, and the first behind those that it sees.
    fn seen(&self, run: &Run<'_>, batch: usize, query: usize) -> (usize, usize) {
        let (offset, count) = (run.extras.places)(batch);
        let mut most = count.min(self.attention.sizes.keys);
        if let Some(mask) = &run.extras.mask {
            most = most.min(mask.keys);
        }
        let at = offset.saturating_add(query as i64);
        let key = |at: i64| usize::try_from(at).unwrap_or(0);
        let behind = |limit: usize| key(at.saturating_add_unsigned(limit as u64).saturating_add(1));
        if self.attention.causal {
            most = most.min(behind(0));
        } else if let Some(right) = self.attention.right {
            most = most.min(behind(right));
        }
        let least = self.attention.left.map_or(0, |left| key(at.saturating_sub_unsigned(left as u64)));
        (least.min(most), most)
    }

    /// Scores become weights of a row; gives what the weighted sum is to be multiplied by.
    fn probabilities(&self, run: &Run<'_>, block: Block, row: usize, scores: &mut [f32]) -> f32 {
        let (head, query) = block.row(row);
        let seen = self.seen(run, block.batch, query);
        let hidden = run.hidden(block.batch, head, query);
        let sink = run.extras.sinks.map(|sinks| sinks[head]);
        let softcap = self.attention.softcap;
        dispatch(self.isas, Probabilities { scores, seen, hidden, softcap, sink })
    }

    fn block(
        &self,
        run: &Run<'_>,
        block: Block,
        packed_k: &[f32],
        packed_v: &[f32],
        scores: &mut [f32],
        results: &mut [f32],
    ) {
        let Sizes { value_size, .. } = self.attention.sizes;
        // Later queries of a block see at least as far as earlier ones.
        let (_, most) = self.seen(run, block.batch, block.row(block.count - 1).1);
        let (head, query) = block.row(0);
        let stride = if block.by_head { run.q.distances.head } else { run.q.distances.row };
        let q = &run.q.data[run.q.distances.at(block.batch, head, query)..];
        let mut factors = [0.0f32; MOST_ROWS];
        if most > 0 {
            let wide = self.keys.columns_up_to(most);
            self.keys.run(packed_k, (q, stride), block.count, usize::MAX, most, scores, wide);
            for (row, scores) in scores.chunks_exact_mut(wide).take(block.count).enumerate() {
                factors[row] = self.probabilities(run, block, row, &mut scores[..most]);
            }
            self.values.run(packed_v, (scores, wide), block.count, most, value_size, results, value_size);
        }
        for (row, values) in results.chunks_exact(value_size).take(block.count).enumerate() {
            let (head, query) = block.row(row);
            let at = run.y_distances.at(block.batch, head, query);
            // SAFETY: rows of results do not meet, and each is written by the one task that has its query.
            let y = unsafe { run.y.slice_mut(at, value_size) };
            match factors[row] {
                0.0 => y.fill(0.0),
                factor => y.iter_mut().zip(values).for_each(|(y, v)| *y = v * factor),
            }
        }
    }

    /// One query with keys and values as they lie.
    fn one(&self, run: &Run<'_>, (k, v): (&[f32], &[f32]), block: Block, scores: &mut [f32]) {
        let Sizes { head_size, value_size, .. } = self.attention.sizes;
        let (head, query) = block.row(0);
        let (least, most) = self.seen(run, block.batch, query);
        let q = &run.q.data[run.q.distances.at(block.batch, head, query)..][..head_size];
        let at = run.y_distances.at(block.batch, head, query);
        // SAFETY: rows of results do not meet, and each is written by the one task that has its query.
        let y = unsafe { run.y.slice_mut(at, value_size) };
        y.fill(0.0);
        let scores = &mut scores[..most];
        if least == most {
            return;
        }
        let key_rows = few::Rows { data: k, stride: run.k.distances.row, first: least };
        let value_rows = few::Rows { data: v, stride: run.v.distances.row, first: least };
        let scale = self.attention.scale;
        dispatch(self.isas, few::Scores { q, keys: key_rows, scale, to: &mut scores[least..] });
        let factor = self.probabilities(run, block, 0, scores);
        if factor != 0.0 {
            dispatch(self.isas, few::Weighted { values: value_rows, weights: &scores[least..], factor, y });
        }
    }
}

/// Rows of a block, at most.
const MOST_ROWS: usize = 4 * 16;

fn check(rows: &Rows<'_>, counts: [usize; 3], size: usize) {
    check_length(rows.data.len(), rows.distances, counts, size);
}

fn check_length(length: usize, distances: Distances, [batch, heads, rows]: [usize; 3], size: usize) {
    if batch * heads * rows * size == 0 {
        return;
    }
    let end = [(batch, distances.batch), (heads, distances.head), (rows, distances.row)]
        .into_iter()
        .try_fold(size, |end, (count, distance)| end.checked_add((count - 1).checked_mul(distance)?));
    assert!(end.is_some_and(|end| end <= length), "rows must lie within their slice");
}

/// Checks that no two rows meet: from the innermost axis on, each begins behind all that lies within.
fn check_apart(distances: Distances, [batch, heads, rows]: [usize; 3], size: usize) {
    let mut axes = [(distances.batch, batch), (distances.head, heads), (distances.row, rows)];
    axes.sort_unstable();
    let mut extent = size;
    for (distance, count) in axes {
        if count > 1 {
            assert!(distance >= extent, "rows of the result must not overlap");
            extent += (count - 1) * distance;
        }
    }
}
