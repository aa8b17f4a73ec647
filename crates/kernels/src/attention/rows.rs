//! Scores of one query become weights.

use crate::dispatch::Loop;
use crate::elementwise::math;
use crate::lanes::{self, Largest, Sum};

/// What hides keys from one query.
#[derive(Clone, Copy)]
pub(super) enum Hidden<'a> {
    /// Nothing.
    None,
    /// What is added to each score.
    Added(&'a [f32]),
    /// 0 where a key is hidden.
    Shown(&'a [u8]),
}

/// Turns scores into their exponentials, 0 where a key is not seen; gives one over their sum, 0 when none is seen.
pub(super) struct Probabilities<'a> {
    pub(super) scores: &'a mut [f32],
    /// Keys from the first number on and before the second one are seen.
    pub(super) seen: (usize, usize),
    pub(super) hidden: Hidden<'a>,
    pub(super) softcap: f32,
    pub(super) sink: Option<f32>,
}

impl Loop for Probabilities<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f32 {
        let (first, end) = self.seen;
        let end = end.min(self.scores.len());
        let first = first.min(end);
        self.scores[..first].fill(0.0);
        self.scores[end..].fill(0.0);
        let scores = &mut self.scores[first..end];
        if self.softcap > 0.0 {
            let (cap, inverse) = (self.softcap, 1.0 / self.softcap);
            for score in scores.iter_mut() {
                *score = cap * math::tanh::<FMA>(*score * inverse);
            }
        }
        match self.hidden {
            Hidden::None => {}
            Hidden::Added(values) => {
                for (score, value) in scores.iter_mut().zip(&values[first..end]) {
                    *score += value;
                }
            }
            Hidden::Shown(values) => {
                for (score, &shown) in scores.iter_mut().zip(&values[first..end]) {
                    *score = if shown == 0 { f32::NEG_INFINITY } else { *score };
                }
            }
        }
        let largest = lanes::fold::<_, FMA>(Largest, scores) as f32;
        if largest == f32::NEG_INFINITY {
            scores.fill(0.0);
            return 0.0;
        }
        let largest = self.sink.map_or(largest, |sink| largest.max(sink));
        for score in scores.iter_mut() {
            *score = math::exp::<FMA>(*score - largest);
        }
        let mut sum = lanes::fold::<_, FMA>(Sum, scores);
        if let Some(sink) = self.sink {
            sum += f64::from(sink - largest).exp();
        }
        (1.0 / sum) as f32
    }
}
