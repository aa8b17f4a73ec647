//! What follows the matrix products of a step of a recurrent network: gates, states and outputs.
//!
//! Pre-activations come in two parts that are added here: what the input contributes (a product over the whole sequence, made
//! before) and what the state contributes (a product per step). Each is rows of a batch, with the gates side by side in the
//! order of ONNX, and includes its half of the bias.
//!
//! Contract: functions panic if slices do not have the lengths that batch and hidden size imply.

#[cfg(test)]
mod tests;

use crate::elementwise::{Unary, block};
use crate::isa::Isas;

/// Hidden elements done at a time.
const BLOCK: usize = 256;

/// An activation with ONNX's `activation_alpha` and `activation_beta` resolved: `scale * function(x * inner) + shift`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activation {
    function: Unary,
    inner: f32,
    scale: f32,
    shift: f32,
}

impl Activation {
    /// The logistic function.
    pub const SIGMOID: Self = Self::new(Unary::Sigmoid);
    /// The hyperbolic tangent.
    pub const TANH: Self = Self::new(Unary::Tanh);

    /// A plain function.
    pub const fn new(function: Unary) -> Self {
        Self { function, inner: 1.0, scale: 1.0, shift: 0.0 }
    }

    /// `alpha * x + beta`.
    pub const fn affine(alpha: f32, beta: f32) -> Self {
        Self { function: Unary::Identity, inner: 1.0, scale: alpha, shift: beta }
    }

    /// `alpha * tanh(beta * x)`.
    pub const fn scaled_tanh(alpha: f32, beta: f32) -> Self {
        Self { function: Unary::Tanh, inner: beta, scale: alpha, shift: 0.0 }
    }

    /// Applies it in place; `room` is as long as `x`.
    fn apply(&self, isas: Isas, x: &mut [f32], room: &mut [f32]) {
        if self.inner == 1.0 {
            room.copy_from_slice(x);
        } else {
            room.iter_mut().zip(&*x).for_each(|(room, &x)| *room = x * self.inner);
        }
        block(isas, self.function, room, x);
        if self.scale != 1.0 || self.shift != 0.0 {
            for x in x.iter_mut() {
                *x = *x * self.scale + self.shift;
            }
        }
    }
}

/// The part `range` of gate `gate`, both contributions added, clipped.
fn load(
    y: &mut [f32],
    (input, state): (&[f32], &[f32]),
    gate: usize,
    hidden: usize,
    start: usize,
    clip: Option<f32>,
) {
    let from = gate * hidden + start;
    let length = y.len();
    for ((y, &a), &b) in y.iter_mut().zip(&input[from..from + length]).zip(&state[from..from + length]) {
        *y = a + b;
    }
    clamp(y, clip);
}

fn clamp(x: &mut [f32], clip: Option<f32>) {
    if let Some(limit) = clip {
        for x in x.iter_mut() {
            *x = x.max(-limit).min(limit);
        }
    }
}

/// Calls `body` on the blocks of one row.
fn for_blocks(hidden: usize, mut body: impl FnMut(usize, usize)) {
    for start in (0..hidden).step_by(BLOCK) {
        body(start, BLOCK.min(hidden - start));
    }
}

/// A step of a long short-term memory: ONNX `LSTM`, gates in the order input, output, forget, cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lstm<'a> {
    /// Elements of the state.
    pub hidden: usize,
    /// The activations of the gates, of the cell's input and of the output (f, g, h).
    pub activations: [Activation; 3],
    /// Pre-activations are limited to this magnitude.
    pub clip: Option<f32>,
    /// The forget gate is one less the input gate.
    pub input_forget: bool,
    /// Weights from the cell to the input, output and forget gates, `hidden` each.
    pub peepholes: Option<&'a [f32]>,
}

impl Lstm<'_> {
    /// Updates `cell` and writes the new `state`, for each row of the batch.
    pub fn step(&self, isas: Isas, input: &[f32], recurrent: &[f32], cell: &mut [f32], state: &mut [f32]) {
        let hidden = self.hidden;
        assert!(hidden > 0 && cell.len().is_multiple_of(hidden), "the cell is not rows of hidden elements");
        assert_eq!(cell.len(), state.len(), "cell and state differ in length");
        assert!(
            input.len() == 4 * cell.len() && recurrent.len() == 4 * cell.len(),
            "there are not four gates"
        );
        assert!(
            self.peepholes.is_none_or(|weights| weights.len() == 3 * hidden),
            "there are not three peepholes"
        );
        let [gate, candidate, output] = self.activations;
        let mut room = [0.0; BLOCK];
        let (mut i, mut o, mut f, mut c) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        let rows = cell.chunks_exact_mut(hidden).zip(state.chunks_exact_mut(hidden));
        let gates = input.chunks_exact(4 * hidden).zip(recurrent.chunks_exact(4 * hidden));
        for ((cell, state), gates) in rows.zip(gates) {
            for_blocks(hidden, |start, length| {
                let cell = &mut cell[start..start + length];
                let (i, o, f, c) = (&mut i[..length], &mut o[..length], &mut f[..length], &mut c[..length]);
                let room = &mut room[..length];
                let peep = |x: &mut [f32], which: usize, cell: &[f32]| {
                    if let Some(weights) = self.peepholes {
                        let weights = &weights[which * hidden + start..][..x.len()];
                        x.iter_mut()
                            .zip(weights)
                            .zip(cell)
                            .for_each(|((x, weight), cell)| *x += weight * cell);
                        clamp(x, self.clip);
                    }
                };
                let clip = if self.peepholes.is_some() { None } else { self.clip };
                load(i, gates, 0, hidden, start, clip);
                peep(i, 0, cell);
                gate.apply(isas, i, room);
                if self.input_forget {
                    f.iter_mut().zip(&*i).for_each(|(f, &i)| *f = 1.0 - i);
                } else {
                    load(f, gates, 2, hidden, start, clip);
                    peep(f, 2, cell);
                    gate.apply(isas, f, room);
                }
                load(c, gates, 3, hidden, start, self.clip);
                candidate.apply(isas, c, room);
                for (((cell, &f), &i), &c) in cell.iter_mut().zip(&*f).zip(&*i).zip(&*c) {
                    *cell = f * *cell + i * c;
                }
                load(o, gates, 1, hidden, start, clip);
                peep(o, 1, cell);
                gate.apply(isas, o, room);
                c.copy_from_slice(cell);
                output.apply(isas, c, room);
                for ((state, &o), &c) in state[start..start + length].iter_mut().zip(&*o).zip(&*c) {
                    *state = o * c;
                }
            });
        }
    }
}

/// A step of a gated recurrent unit: ONNX `GRU`, gates in the order update, reset, hidden.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gru {
    /// Elements of the state.
    pub hidden: usize,
    /// The activations of the gates and of the candidate (f, g).
    pub activations: [Activation; 2],
    /// Pre-activations are limited to this magnitude.
    pub clip: Option<f32>,
}

impl Gru {
    fn check(&self, input: &[f32], state: &[f32]) {
        assert!(
            self.hidden > 0 && state.len().is_multiple_of(self.hidden),
            "the state is not rows of hidden elements"
        );
        assert_eq!(input.len(), 3 * state.len(), "there are not three gates");
    }

    /// With `linear_before_reset`: updates `state` for each row of the batch.
    pub fn step(&self, isas: Isas, input: &[f32], recurrent: &[f32], state: &mut [f32]) {
        self.check(input, state);
        assert_eq!(recurrent.len(), input.len(), "there are not three gates");
        let hidden = self.hidden;
        let [gate, candidate] = self.activations;
        let (mut room, mut z, mut r) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        let gates = input.chunks_exact(3 * hidden).zip(recurrent.chunks_exact(3 * hidden));
        for (state, gates) in state.chunks_exact_mut(hidden).zip(gates) {
            for_blocks(hidden, |start, length| {
                let (room, z, r) = (&mut room[..length], &mut z[..length], &mut r[..length]);
                load(z, gates, 0, hidden, start, self.clip);
                gate.apply(isas, z, room);
                load(r, gates, 1, hidden, start, self.clip);
                gate.apply(isas, r, room);
                let from = 2 * hidden + start;
                for ((r, &a), &b) in r.iter_mut().zip(&gates.0[from..]).zip(&gates.1[from..]) {
                    *r = a + *r * b;
                }
                clamp(r, self.clip);
                candidate.apply(isas, r, room);
                mix(&mut state[start..start + length], z, r);
            });
        }
    }

    /// Without `linear_before_reset`, first half: writes the update gate, and the state times the reset gate, of which the
    /// caller makes the product with the hidden gate's weights.
    pub fn gates(
        &self,
        isas: Isas,
        input: &[f32],
        recurrent: &[f32],
        state: &[f32],
        update: &mut [f32],
        reset_state: &mut [f32],
    ) {
        self.check(input, state);
        assert_eq!(recurrent.len(), 2 * state.len(), "there are not two gates");
        assert!(
            update.len() == state.len() && reset_state.len() == state.len(),
            "a gate differs from the state in length"
        );
        let hidden = self.hidden;
        let gate = self.activations[0];
        let mut room = [0.0; BLOCK];
        let rows = update
            .chunks_exact_mut(hidden)
            .zip(reset_state.chunks_exact_mut(hidden))
            .zip(state.chunks_exact(hidden));
        let gates = input.chunks_exact(3 * hidden).zip(recurrent.chunks_exact(2 * hidden));
        for (((z, r), state), gates) in rows.zip(gates) {
            for_blocks(hidden, |start, length| {
                let (room, z, r) =
                    (&mut room[..length], &mut z[start..start + length], &mut r[start..start + length]);
                load(z, gates, 0, hidden, start, self.clip);
                gate.apply(isas, z, room);
                load(r, gates, 1, hidden, start, self.clip);
                gate.apply(isas, r, room);
                r.iter_mut().zip(&state[start..]).for_each(|(r, &state)| *r *= state);
            });
        }
    }

    /// Without `linear_before_reset`, second half: updates `state` from the update gate and the hidden gate's product.
    pub fn finish(
        &self,
        isas: Isas,
        input: &[f32],
        hidden_product: &[f32],
        update: &[f32],
        state: &mut [f32],
    ) {
        self.check(input, state);
        assert!(
            hidden_product.len() == state.len() && update.len() == state.len(),
            "a gate differs from the state in length"
        );
        let hidden = self.hidden;
        let (mut room, mut h) = ([0.0; BLOCK], [0.0; BLOCK]);
        let gates = input.chunks_exact(3 * hidden).zip(hidden_product.chunks_exact(hidden));
        for ((state, update), (input, product)) in
            state.chunks_exact_mut(hidden).zip(update.chunks_exact(hidden)).zip(gates)
        {
            for_blocks(hidden, |start, length| {
                let (room, h) = (&mut room[..length], &mut h[..length]);
                load(h, (&input[2 * hidden..], product), 0, hidden, start, self.clip);
                self.activations[1].apply(isas, h, room);
                mix(&mut state[start..start + length], &update[start..], h);
            });
        }
    }
}

/// `state = (1 - z) * h + z * state`.
fn mix(state: &mut [f32], z: &[f32], h: &[f32]) {
    for ((state, &z), &h) in state.iter_mut().zip(z).zip(h) {
        *state = (1.0 - z) * h + z * *state;
    }
}

/// A step of ONNX `RNN`: `state = activation(input + recurrent)`.
pub fn rnn_step(
    isas: Isas,
    activation: Activation,
    clip: Option<f32>,
    input: &[f32],
    recurrent: &[f32],
    state: &mut [f32],
) {
    assert!(
        input.len() == state.len() && recurrent.len() == state.len(),
        "a part differs from the state in length"
    );
    let mut room = [0.0; BLOCK];
    for_blocks(state.len(), |start, length| {
        let state = &mut state[start..start + length];
        load(state, (input, recurrent), 0, 0, start, clip);
        activation.apply(isas, state, &mut room[..length]);
    });
}
