//! One time step of one item of the batch.

use super::{Recurrent, RecurrentActivation, RecurrentKind};
use crate::ops::support::product::{accumulate, transposed};

/// A cell of one direction with what it needs of the recurrent weights.
pub(super) struct Cell<'a> {
    op: &'a Recurrent,
    activations: &'a [RecurrentActivation],
    /// For each gate, the recurrent weights from row of the state to column of the gate.
    recurrent: Vec<Vec<f64>>,
    recurrent_bias: &'a [f64],
    /// Weights from the cell state to the gates i, o and f.
    peephole: Vec<f64>,
}

impl<'a> Cell<'a> {
    pub(super) fn new(
        op: &'a Recurrent,
        activations: &'a [RecurrentActivation],
        r: &[f64],
        recurrent_bias: &'a [f64],
        peephole: Vec<f64>,
    ) -> Self {
        let hidden = op.hidden_size;
        let recurrent = (0..op.kind.gates())
            .map(|gate| {
                transposed(&r[gate * hidden * hidden..][..hidden * hidden], hidden, hidden, true).into_owned()
            })
            .collect();
        Self { op, activations, recurrent, recurrent_bias, peephole }
    }

    /// The activation of a gate, its argument limited where the layer says so.
    fn activate(&self, index: usize, x: f64) -> f64 {
        let x = match self.op.clip.map(f64::from) {
            Some(limit) if x > limit => limit,
            Some(limit) if x < -limit => -limit,
            _ => x,
        };
        self.activations[index].apply(x)
    }

    /// The recurrent product of one gate, with its bias.
    fn recurrence(&self, gate: usize, state: &[f64]) -> Vec<f64> {
        let hidden = self.op.hidden_size;
        let mut sum = self.recurrent_bias[gate * hidden..][..hidden].to_vec();
        accumulate(&mut sum, state, &self.recurrent[gate], hidden, hidden);
        sum
    }

    /// Steps the state on; `gates` hold the weighted input with its bias, and are used up.
    pub(super) fn step(&self, gates: &mut [f64], h: &mut [f64], c: &mut [f64]) {
        match self.op.kind {
            RecurrentKind::Lstm => self.lstm(gates, h, c),
            RecurrentKind::Gru => self.gru(gates, h),
            RecurrentKind::Rnn => {
                let sum = self.recurrence(0, h);
                for (i, h) in h.iter_mut().enumerate() {
                    *h = self.activate(0, gates[i] + sum[i]);
                }
            }
        }
    }

    fn lstm(&self, gates: &mut [f64], h: &mut [f64], c: &mut [f64]) {
        let hidden = self.op.hidden_size;
        for gate in 0..4 {
            let sum = self.recurrence(gate, h);
            gates[gate * hidden..][..hidden].iter_mut().zip(sum).for_each(|(gate, sum)| *gate += sum);
        }
        for i in 0..hidden {
            let gate = |index: usize| gates[index * hidden + i];
            let peephole = |index: usize| self.peephole[index * hidden + i];
            let input = self.activate(0, gate(0) + peephole(0) * c[i]);
            let forget = if self.op.input_forget {
                1.0 - input
            } else {
                self.activate(0, gate(2) + peephole(2) * c[i])
            };
            c[i] = forget * c[i] + input * self.activate(1, gate(3));
            let output = self.activate(0, gate(1) + peephole(1) * c[i]);
            // The state itself is no gate: its magnitude is not limited, as in the reference runtime.
            h[i] = output * self.activations[2].apply(c[i]);
        }
    }

    fn gru(&self, gates: &[f64], h: &mut [f64]) {
        let hidden = self.op.hidden_size;
        let (update, reset) = (self.recurrence(0, h), self.recurrence(1, h));
        let reset: Vec<f64> = (0..hidden).map(|i| self.activate(0, gates[hidden + i] + reset[i])).collect();
        let candidate: Vec<f64> = if self.op.linear_before_reset {
            self.recurrence(2, h).iter().zip(&reset).map(|(sum, reset)| sum * reset).collect()
        } else {
            let state: Vec<f64> = h.iter().zip(&reset).map(|(h, reset)| h * reset).collect();
            self.recurrence(2, &state)
        };
        for (i, h) in h.iter_mut().enumerate() {
            let update = self.activate(0, gates[i] + update[i]);
            let candidate = self.activate(1, gates[2 * hidden + i] + candidate[i]);
            *h = (1.0 - update) * candidate + update * *h;
        }
    }
}
