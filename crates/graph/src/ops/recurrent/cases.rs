//! Test cases of recurrent layers.

use armet_tensor::Tensor;

use super::{Direction, Recurrent, RecurrentActivation, RecurrentKind};
use crate::ops::support::sum_tolerance;
use crate::{Case, Numbers};

const SEQUENCE: usize = 5;
const BATCH: usize = 3;
const WIDTH: usize = 7;
const HIDDEN: usize = 6;

/// A layer with inputs of all kinds, of which `optional` (from B on) are there.
fn case(name: &str, op: Recurrent, optional: [bool; 5]) -> Case {
    let mut numbers = Numbers::new(27 + name.len() as u64);
    let directions = op.direction.count();
    let rows = op.kind.gates() * HIDDEN;
    let (x, state) = if op.batch_first {
        ([BATCH, SEQUENCE, WIDTH], [BATCH, directions, HIDDEN])
    } else {
        ([SEQUENCE, BATCH, WIDTH], [directions, BATCH, HIDDEN])
    };
    let lengths = Tensor::vector(&[5i32, 3, 1]);
    let mut inputs = vec![
        Some(numbers.floats(x, -2.0, 2.0)),
        Some(numbers.floats([directions, rows, WIDTH], -0.5, 0.5)),
        Some(numbers.floats([directions, rows, HIDDEN], -0.5, 0.5)),
    ];
    let more = [
        numbers.floats([directions, 2 * rows], -0.5, 0.5),
        lengths,
        numbers.floats(state, -1.0, 1.0),
        numbers.floats(state, -1.0, 1.0),
        numbers.floats([directions, 3 * HIDDEN], -0.5, 0.5),
    ];
    inputs.extend(more.into_iter().zip(optional).map(|(tensor, there)| there.then_some(tensor)));
    while inputs.last().is_some_and(Option::is_none) {
        inputs.pop();
    }
    let constants: Vec<usize> =
        [1, 2, 3, 7].into_iter().filter(|&i| inputs.get(i).is_some_and(Option::is_some)).collect();
    let outputs = if op.kind == RecurrentKind::Lstm { 3 } else { 2 };
    let mut case = Case::new(name, op, []).with_constants(&constants).with_outputs(outputs);
    case.inputs = inputs;
    case.with_tolerance(sum_tolerance(SEQUENCE * (WIDTH + HIDDEN)))
}

pub(super) fn all() -> Vec<Case> {
    let plain = |kind| Recurrent {
        kind,
        hidden_size: HIDDEN,
        direction: Direction::Forward,
        activations: Vec::new(),
        clip: None,
        batch_first: false,
        input_forget: false,
        linear_before_reset: false,
    };
    let (lstm, gru, rnn) = (plain(RecurrentKind::Lstm), plain(RecurrentKind::Gru), plain(RecurrentKind::Rnn));
    let none = [false; 5];
    let bias = [true, false, false, false, false];
    let all_but_peephole = [true, true, true, true, false];
    let state = [true, true, true, false, false];
    let (forward, reverse, both) = (Direction::Forward, Direction::Reverse, Direction::Bidirectional);
    let hard = RecurrentActivation::HardSigmoid { alpha: 0.2, beta: 0.5 };
    let other = vec![hard, RecurrentActivation::Relu, RecurrentActivation::Softsign];
    vec![
        case("LSTM without bias", lstm.clone(), none),
        case("LSTM both directions", Recurrent { direction: both, ..lstm.clone() }, all_but_peephole),
        case("LSTM peepholes, reverse", Recurrent { direction: reverse, ..lstm.clone() }, [true; 5]),
        case(
            "LSTM batch first",
            Recurrent { batch_first: true, direction: both, ..lstm.clone() },
            all_but_peephole,
        ),
        case("LSTM other activations", Recurrent { activations: other, ..lstm.clone() }, bias),
        case("LSTM coupled, clipped", Recurrent { input_forget: true, clip: Some(0.75), ..lstm }, bias),
        case("GRU", gru.clone(), state),
        case(
            "GRU linear before reset",
            Recurrent { linear_before_reset: true, direction: both, ..gru.clone() },
            state,
        ),
        case("GRU reverse, batch first", Recurrent { direction: reverse, batch_first: true, ..gru }, bias),
        case("RNN", Recurrent { direction: forward, ..rnn.clone() }, bias),
        case("RNN both directions", Recurrent { direction: both, ..rnn }, state),
    ]
}
