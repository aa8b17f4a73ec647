//! The arithmetic of attention, on elements in the order `[batch, heads, length, size]`. Every step that the standard's
//! definition names is stored in the element type.

use armet_tensor::ElementType;

use super::ScoreStage;
use crate::EvaluateError;
use crate::ops::movement::reserve;
use crate::ops::numbers;

/// What attention is computed from.
pub(in crate::ops) struct Problem<'a> {
    pub(in crate::ops) batch: usize,
    pub(in crate::ops) query_heads: usize,
    pub(in crate::ops) key_heads: usize,
    pub(in crate::ops) queries: usize,
    pub(in crate::ops) keys: usize,
    pub(in crate::ops) head_size: usize,
    pub(in crate::ops) value_size: usize,
    pub(in crate::ops) q: &'a [f64],
    pub(in crate::ops) k: &'a [f64],
    pub(in crate::ops) v: &'a [f64],
    pub(in crate::ops) scale: f64,
    /// No limit where it is 0.
    pub(in crate::ops) softcap: f64,
    /// Element type of queries and keys.
    pub(in crate::ops) element: ElementType,
    /// Element type in which the softmax is computed.
    pub(in crate::ops) precision: ElementType,
    /// For a batch item, a head, a query and a key: what is added to the score, `-inf` where the key is hidden.
    pub(in crate::ops) bias: &'a dyn Fn(usize, usize, usize, usize) -> f64,
    /// A score for each head that takes its share of the softmax and has no value.
    pub(in crate::ops) sink: Option<&'a [f64]>,
}

impl Problem<'_> {
    /// The results, and the scores as they are at a stage, when one is asked for.
    ///
    /// # Errors
    /// When they do not fit in memory.
    pub(in crate::ops) fn solve(
        &self,
        stage: Option<ScoreStage>,
    ) -> Result<(Vec<f64>, Vec<f64>), EvaluateError> {
        let rows = self.batch * self.query_heads * self.queries;
        let mut results = reserve(rows * self.value_size)?;
        let mut shown = reserve(if stage.is_some() { rows * self.keys } else { 0 })?;
        if rows == 0 {
            return Ok((results, shown));
        }
        let store = numbers::stored(self.element);
        let factor = store(self.scale.sqrt());
        let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| store(v * factor)).collect() };
        let (q, k) = (scaled(self.q), scaled(self.k));
        let group = (self.query_heads / self.key_heads).max(1);
        let mut row = Row::default();
        for batch in 0..self.batch {
            for head in 0..self.query_heads {
                let key_head = batch * self.key_heads + head / group;
                let keys = &k[key_head * self.keys * self.head_size..][..self.keys * self.head_size];
                let values = &self.v[key_head * self.keys * self.value_size..][..self.keys * self.value_size];
                for query in 0..self.queries {
                    let at = (batch * self.query_heads + head) * self.queries + query;
                    row.scores(&q[at * self.head_size..][..self.head_size], keys, self.keys, store);
                    let bias = |key| (self.bias)(batch, head, query, key);
                    row.finish(self, bias, self.sink.map(|sink| sink[head]), stage);
                    if stage.is_some() {
                        shown.extend(row.shown.iter().map(|v| store(*v)));
                    }
                    self.weigh(&row.probabilities, values, &mut results);
                }
            }
        }
        Ok((results, shown))
    }

    /// The values weighted by these probabilities of all queries.
    ///
    /// # Errors
    /// When the results do not fit in memory.
    pub(in crate::ops) fn weighted(&self, probabilities: &[f64]) -> Result<Vec<f64>, EvaluateError> {
        let rows = self.batch * self.query_heads * self.queries;
        let mut results = reserve(rows * self.value_size)?;
        let group = (self.query_heads / self.key_heads.max(1)).max(1);
        for row in 0..if self.value_size == 0 { 0 } else { rows } {
            let head = row / self.queries;
            let key_head = head / self.query_heads * self.key_heads + head % self.query_heads / group;
            let values = &self.v[key_head * self.keys * self.value_size..][..self.keys * self.value_size];
            self.weigh(&probabilities[row * self.keys..][..self.keys], values, &mut results);
        }
        Ok(results)
    }

    fn weigh(&self, probabilities: &[f64], values: &[f64], results: &mut Vec<f64>) {
        let first = results.len();
        results.resize(first + self.value_size, 0.0);
        if self.value_size > 0 {
            for (p, values) in probabilities.iter().zip(values.chunks_exact(self.value_size)) {
                results[first..].iter_mut().zip(values).for_each(|(sum, v)| *sum += p * v);
            }
        }
    }
}

/// The scores of one query.
#[derive(Default)]
struct Row {
    scores: Vec<f64>,
    shown: Vec<f64>,
    probabilities: Vec<f64>,
}

impl Row {
    fn scores(&mut self, query: &[f64], keys: &[f64], count: usize, store: fn(f64) -> f64) {
        self.scores.clear();
        if query.is_empty() {
            self.scores.resize(count, 0.0);
            return;
        }
        let products = keys.chunks_exact(query.len());
        self.scores.extend(products.map(|key| store(key.iter().zip(query).map(|(k, q)| k * q).sum())));
    }

    /// Limits, biases and softmax. A query all of whose keys are hidden has no probabilities.
    fn finish(
        &mut self,
        problem: &Problem<'_>,
        bias: impl Fn(usize) -> f64,
        sink: Option<f64>,
        stage: Option<ScoreStage>,
    ) {
        let store = numbers::stored(problem.element);
        let show = |scores: &[f64], shown: &mut Vec<f64>, at: ScoreStage| {
            if stage == Some(at) {
                shown.clear();
                shown.extend_from_slice(scores);
            }
        };
        show(&self.scores, &mut self.shown, ScoreStage::Raw);
        if problem.softcap > 0.0 {
            let cap = problem.softcap;
            self.scores.iter_mut().for_each(|s| *s = store(store(store(*s / cap).tanh()) * cap));
        }
        show(&self.scores, &mut self.shown, ScoreStage::Capped);
        let mut hidden = true;
        for (key, score) in self.scores.iter_mut().enumerate() {
            let bias = bias(key);
            hidden &= bias == f64::NEG_INFINITY;
            *score = store(*score + bias);
        }
        show(&self.scores, &mut self.shown, ScoreStage::Biased);
        self.probabilities.clear();
        if hidden {
            self.probabilities.resize(self.scores.len(), 0.0);
        } else {
            let precise = numbers::stored(problem.precision);
            let scores = self.scores.iter().map(|s| precise(*s));
            let largest = scores.clone().chain(sink).fold(f64::NEG_INFINITY, f64::max);
            self.probabilities.extend(scores.map(|s| precise(precise(s - largest).exp())));
            let mut sum = numbers::stored_sum(problem.precision, &self.probabilities);
            if let Some(sink) = sink {
                sum = precise(sum + precise((sink - largest).exp()));
            }
            self.probabilities.iter_mut().for_each(|p| *p = store(precise(*p / sum)));
        }
        show(&self.probabilities, &mut self.shown, ScoreStage::Probabilities);
    }
}
