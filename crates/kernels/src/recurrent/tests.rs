use super::{Activation, Gru, Lstm, rnn_step};
use crate::dispatch::variants;
use crate::elementwise::Unary;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919 + seed * 31) % 401) as f32 / 100.0 - 2.0).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(found) - expected).abs() < 2e-6, "element {index}: {found} and {expected}");
    }
}

#[test]
fn lstm_equals_its_equations() {
    for (batch, hidden) in [(1, 1), (3, 7), (2, 300)] {
        let count = batch * hidden;
        let (x, h) = (numbers(4 * count, 1), numbers(4 * count, 2));
        let peepholes = numbers(3 * hidden, 3);
        for (clip, input_forget, peep) in
            [(None, false, false), (Some(1.5), false, true), (None, true, false)]
        {
            let before = numbers(count, 4);
            let (mut cells, mut states) = (Vec::new(), Vec::new());
            for (place, &before) in before.iter().enumerate() {
                let (row, column) = (place / hidden, place % hidden);
                let limit = clip.unwrap_or(f32::INFINITY);
                let limit = f64::from(limit);
                let gate = |which: usize, cell: f64| {
                    let at = row * 4 * hidden + which * hidden + column;
                    let weight = if peep && which < 3 { peepholes[which * hidden + column] } else { 0.0 };
                    (f64::from(x[at] + h[at]) + f64::from(weight) * cell).clamp(-limit, limit)
                };
                let c = f64::from(before);
                let i = sigmoid(gate(0, c));
                let f = if input_forget { 1.0 - i } else { sigmoid(gate(2, c)) };
                let c = f * c + i * gate(3, 0.0).tanh();
                cells.push(c);
                states.push(sigmoid(gate(1, c)) * c.tanh());
            }
            let lstm = Lstm {
                hidden,
                activations: [Activation::SIGMOID, Activation::TANH, Activation::TANH],
                clip,
                input_forget,
                peepholes: peep.then_some(&peepholes),
            };
            for isas in variants() {
                let (mut cell, mut state) = (before.clone(), vec![0.0; count]);
                lstm.step(isas, &x, &h, &mut cell, &mut state);
                assert_close(&cell, &cells);
                assert_close(&state, &states);
            }
        }
    }
}

#[test]
fn gru_equals_its_equations() {
    for (batch, hidden) in [(1, 1), (3, 7), (2, 300)] {
        let count = batch * hidden;
        let (x, h, before) = (numbers(3 * count, 1), numbers(3 * count, 2), numbers(count, 4));
        let gru = Gru { hidden, activations: [Activation::SIGMOID, Activation::TANH], clip: Some(3.0) };
        let at = |place: usize, gate: usize| place / hidden * 3 * hidden + gate * hidden + place % hidden;
        let gate = |place: usize, gate: usize| {
            sigmoid(f64::from(x[at(place, gate)] + h[at(place, gate)]).clamp(-3.0, 3.0))
        };
        let new_state = |place: usize, hidden_part: f64| {
            let z = gate(place, 0);
            let candidate = (f64::from(x[at(place, 2)]) + hidden_part).clamp(-3.0, 3.0).tanh();
            (1.0 - z) * candidate + z * f64::from(before[place])
        };
        for isas in variants() {
            let mut state = before.clone();
            gru.step(isas, &x, &h, &mut state);
            let expected: Vec<f64> =
                (0..count).map(|p| new_state(p, gate(p, 1) * f64::from(h[at(p, 2)]))).collect();
            assert_close(&state, &expected);

            let mut state = before.clone();
            let two: Vec<f32> = h.chunks(3 * hidden).flat_map(|row| row[..2 * hidden].to_vec()).collect();
            let (mut update, mut reset_state) = (vec![0.0; count], vec![0.0; count]);
            gru.gates(isas, &x, &two, &state, &mut update, &mut reset_state);
            let expected: Vec<f64> = (0..count).map(|p| gate(p, 1) * f64::from(before[p])).collect();
            assert_close(&reset_state, &expected);
            // A product with twice the identity.
            let product: Vec<f32> = reset_state.iter().map(|x| 2.0 * x).collect();
            gru.finish(isas, &x, &product, &update, &mut state);
            let expected: Vec<f64> = (0..count).map(|p| new_state(p, f64::from(product[p]))).collect();
            assert_close(&state, &expected);
        }
    }
}

type Meaning = fn(f64) -> f64;

#[test]
fn rnn_and_its_activations() {
    let (x, h) = (numbers(500, 1), numbers(500, 2));
    let cases: [(Activation, Meaning); 4] = [
        (Activation::TANH, f64::tanh),
        (Activation::affine(2.0, -1.0), |x| 2.0 * x - 1.0),
        (Activation::scaled_tanh(1.5, 0.5), |x| 1.5 * (0.5 * x).tanh()),
        (Activation::new(Unary::Relu), |x| x.max(0.0)),
    ];
    for (activation, meaning) in cases {
        for isas in variants() {
            let mut state = vec![0.0; 500];
            rnn_step(isas, activation, None, &x, &h, &mut state);
            let expected: Vec<f64> = x.iter().zip(&h).map(|(x, h)| meaning(f64::from(x + h))).collect();
            assert_close(&state, &expected);
        }
    }
}
