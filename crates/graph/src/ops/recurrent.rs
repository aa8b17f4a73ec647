//! LSTM, GRU or plain recurrent layer, inputs and results as ONNX has them.

use armet_tensor::{ElementType, Shape};
use smallvec::SmallVec;

use super::movement::{self, show};
use super::numbers;
use super::support::product::{accumulate, transposed};
use super::support::{broadcast, typing};
use crate::evaluate::{optional, tensor};
use crate::{
    Attributes, Case, Context, Dim, EvaluateError, InferError, InferInputs, Operator, Value, ValueType,
};

mod cell;

use cell::Cell;

/// LSTM, GRU or plain recurrent layer, inputs and results as ONNX has them: `X`, `W`, `R`, `B`, `sequence_lens`,
/// `initial_h`, and for LSTM `initial_c` and `P`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrent {
    /// Which cell.
    pub kind: RecurrentKind,
    /// Number of hidden units.
    pub hidden_size: usize,
    /// Order of time steps.
    pub direction: Direction,
    /// Activations of each direction in ONNX's order (f, g, h for LSTM; f, g for GRU; f for RNN).
    pub activations: Vec<RecurrentActivation>,
    /// Arguments of the activations of gates are limited to this magnitude.
    pub clip: Option<f32>,
    /// Batch is the first axis rather than time.
    pub batch_first: bool,
    /// LSTM: input and forget gates are coupled.
    pub input_forget: bool,
    /// GRU: the reset gate is applied after the recurrent product.
    pub linear_before_reset: bool,
}

/// Which recurrent cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecurrentKind {
    /// Long short-term memory; gates in order i, o, f, c.
    Lstm,
    /// Gated recurrent unit; gates in order z, r, h.
    Gru,
    /// One activation.
    Rnn,
}

impl RecurrentKind {
    /// Gates of the cell: rows of the weights are this many times the hidden size.
    pub const fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Rnn => 1,
        }
    }
}

/// Order of time steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// First to last.
    Forward,
    /// Last to first.
    Reverse,
    /// Both, on two sets of weights.
    Bidirectional,
}

impl Direction {
    /// Number of directions.
    pub const fn count(self) -> usize {
        if matches!(self, Self::Bidirectional) { 2 } else { 1 }
    }
}

/// Activations of recurrent cells, with ONNX's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "ONNX's words")]
pub enum RecurrentActivation {
    Sigmoid,
    Tanh,
    Relu,
    Softsign,
    Softplus,
    Affine { alpha: f32, beta: f32 },
    LeakyRelu { alpha: f32 },
    ThresholdedRelu { alpha: f32 },
    ScaledTanh { alpha: f32, beta: f32 },
    HardSigmoid { alpha: f32, beta: f32 },
    Elu { alpha: f32 },
}

impl RecurrentActivation {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sigmoid => "Sigmoid",
            Self::Tanh => "Tanh",
            Self::Relu => "Relu",
            Self::Softsign => "Softsign",
            Self::Softplus => "Softplus",
            Self::Affine { .. } => "Affine",
            Self::LeakyRelu { .. } => "LeakyRelu",
            Self::ThresholdedRelu { .. } => "ThresholdedRelu",
            Self::ScaledTanh { .. } => "ScaledTanh",
            Self::HardSigmoid { .. } => "HardSigmoid",
            Self::Elu { .. } => "Elu",
        }
    }

    /// The function itself.
    pub fn apply(self, x: f64) -> f64 {
        use super::UnaryKind;
        match self {
            Self::Sigmoid => UnaryKind::Sigmoid.apply(x),
            Self::Tanh => x.tanh(),
            Self::Relu => UnaryKind::Relu.apply(x),
            Self::Softsign => UnaryKind::Softsign.apply(x),
            Self::Softplus => UnaryKind::Softplus.apply(x),
            Self::Affine { alpha, beta } => f64::from(alpha) * x + f64::from(beta),
            Self::LeakyRelu { alpha } => UnaryKind::LeakyRelu { alpha }.apply(x),
            Self::ThresholdedRelu { alpha } => UnaryKind::ThresholdedRelu { alpha }.apply(x),
            Self::ScaledTanh { alpha, beta } => f64::from(alpha) * (f64::from(beta) * x).tanh(),
            Self::HardSigmoid { alpha, beta } => UnaryKind::HardSigmoid { alpha, beta }.apply(x),
            Self::Elu { alpha } => UnaryKind::Elu { alpha }.apply(x),
        }
    }
}

impl std::fmt::Display for RecurrentActivation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Affine { alpha, beta }
            | Self::ScaledTanh { alpha, beta }
            | Self::HardSigmoid { alpha, beta } => write!(f, "(alpha={alpha}, beta={beta})"),
            Self::LeakyRelu { alpha } | Self::ThresholdedRelu { alpha } | Self::Elu { alpha } => {
                write!(f, "(alpha={alpha})")
            }
            _ => Ok(()),
        }
    }
}

impl RecurrentKind {
    /// Activations of one direction when none are given.
    pub const fn default_activations(self) -> &'static [RecurrentActivation] {
        match self {
            Self::Lstm => {
                &[RecurrentActivation::Sigmoid, RecurrentActivation::Tanh, RecurrentActivation::Tanh]
            }
            Self::Gru => &[RecurrentActivation::Sigmoid, RecurrentActivation::Tanh],
            Self::Rnn => &[RecurrentActivation::Tanh],
        }
    }
}

impl Direction {
    /// ONNX's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
            Self::Bidirectional => "bidirectional",
        }
    }
}

/// Names of the inputs, for messages.
const INPUTS: [&str; 8] = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"];

impl Recurrent {
    /// The activations of one direction.
    ///
    /// # Errors
    /// When neither none nor enough for all directions are given.
    pub fn activations_of(&self, direction: usize) -> Result<&[RecurrentActivation], InferError> {
        let defaults = self.kind.default_activations();
        if self.activations.is_empty() {
            return Ok(defaults);
        }
        let count = defaults.len();
        if self.activations.len() != count * self.direction.count() {
            return Err(InferError::Mismatch(format!(
                "{} has {} activations, not {} for each direction",
                self.name(),
                self.activations.len(),
                count
            )));
        }
        Ok(&self.activations[direction * count..][..count])
    }

    /// What each input must be, all of them checked against X; gives sequence and batch length.
    fn check(&self, inputs: &InferInputs<'_>) -> Result<(Dim, Dim), InferError> {
        let x = inputs.dims(0)?;
        let [first, second, width] = x else {
            return Err(InferError::Mismatch(format!(
                "{} takes sequences of three dimensions, not {}",
                self.name(),
                show(x)
            )));
        };
        let (sequence, batch) = if self.batch_first { (second, first) } else { (first, second) };
        let fixed = |n: usize| Dim::Fixed(n);
        let hidden = self.hidden_size;
        if hidden == 0 || hidden.checked_mul(hidden.max(8)).is_none() {
            return Err(InferError::Mismatch(format!("{} has {hidden} hidden units", self.name())));
        }
        let directions = self.direction.count();
        let rows = |count: usize| Dim::Fixed(hidden * count);
        let gates = self.kind.gates();
        let state = if self.batch_first {
            vec![batch.clone(), fixed(directions), fixed(hidden)]
        } else {
            vec![fixed(directions), batch.clone(), fixed(hidden)]
        };
        let wanted: [Vec<Dim>; 8] = [
            x.to_vec(),
            vec![fixed(directions), rows(gates), width.clone()],
            vec![fixed(directions), rows(gates), fixed(hidden)],
            vec![fixed(directions), rows(2 * gates)],
            vec![batch.clone()],
            state.clone(),
            state,
            vec![fixed(directions), rows(3)],
        ];
        for (i, wanted) in wanted.iter().enumerate().filter(|(i, _)| inputs.has(*i)) {
            let Some(own) = inputs.tensor(i)?.dims.as_deref() else { continue };
            let contradicts = |(a, b): (&Dim, &Dim)| a.fixed().zip(b.fixed()).is_some_and(|(a, b)| a != b);
            if own.len() != wanted.len() || own.iter().zip(wanted).any(contradicts) {
                return Err(InferError::Mismatch(format!(
                    "{} with {hidden} hidden units, {} and X {}: {} is {}, not {}",
                    self.name(),
                    self.direction.name(),
                    show(x),
                    INPUTS[i],
                    show(own),
                    show(wanted)
                )));
            }
        }
        Ok((sequence.clone(), batch.clone()))
    }
}

/// Everything that is read while the layer runs, as numbers in ONNX's order.
struct Data {
    x: Vec<f64>,
    w: Vec<f64>,
    r: Vec<f64>,
    bias: Vec<f64>,
    peephole: Vec<f64>,
    initial_h: Vec<f64>,
    initial_c: Vec<f64>,
    lengths: Vec<usize>,
}

impl Data {
    fn read(inputs: &[Option<&Value>], sequence: usize, batch: usize) -> Result<Self, EvaluateError> {
        let of = |i: usize| numbers::to_f64(tensor(inputs, i)?);
        let maybe = |i: usize| optional(inputs, i).map_or(Ok(Vec::new()), numbers::to_f64);
        let lengths = match optional(inputs, 4) {
            None => vec![sequence; batch],
            Some(lengths) => numbers::to_i128(lengths)?
                .into_iter()
                .map(|len| {
                    usize::try_from(len).ok().filter(|&len| len <= sequence).ok_or_else(|| {
                        EvaluateError::Invalid(format!("a length of {len} in sequences of {sequence} steps"))
                    })
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(Self {
            x: of(0)?,
            w: of(1)?,
            r: of(2)?,
            bias: maybe(3)?,
            peephole: maybe(7)?,
            initial_h: maybe(5)?,
            initial_c: maybe(6)?,
            lengths,
        })
    }
}

/// The part of an optional vector that belongs to one of equal parts; zeros when it is left out.
fn part(values: &[f64], index: usize, len: usize) -> Vec<f64> {
    values.get(index * len..(index + 1) * len).map_or_else(|| vec![0.0; len], <[f64]>::to_vec)
}

impl Operator for Recurrent {
    fn name(&self) -> &'static str {
        match self.kind {
            RecurrentKind::Lstm => "LSTM",
            RecurrentKind::Gru => "GRU",
            RecurrentKind::Rnn => "RNN",
        }
    }

    fn attributes(&self) -> Attributes {
        let activations: Vec<String> = self.activations.iter().map(ToString::to_string).collect();
        let mut attributes = Attributes::none()
            .with("hidden_size", self.hidden_size)
            .with("direction", self.direction.name())
            .with("activations", activations.join(" "))
            .with("layout", self.batch_first);
        if let Some(clip) = self.clip {
            attributes = attributes.with("clip", clip);
        }
        match self.kind {
            RecurrentKind::Lstm => attributes.with("input_forget", self.input_forget),
            RecurrentKind::Gru => attributes.with("linear_before_reset", self.linear_before_reset),
            RecurrentKind::Rnn => attributes,
        }
    }

    fn infer(&self, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        let element = typing::element(inputs, 0, self.name(), ElementType::is_float)?;
        typing::same_elements(inputs, self.name(), &[0, 1, 2, 3, 5, 6, 7])?;
        for required in [1, 2] {
            inputs.tensor(required)?;
        }
        if inputs.has(4) {
            typing::element(inputs, 4, self.name(), ElementType::is_integer)?;
        }
        self.activations_of(0)?;
        let (sequence, batch) = self.check(inputs)?;
        let (directions, hidden) = (Dim::Fixed(self.direction.count()), Dim::Fixed(self.hidden_size));
        let (all, last) = if self.batch_first {
            (
                vec![batch.clone(), sequence, directions.clone(), hidden.clone()],
                vec![batch, directions, hidden],
            )
        } else {
            (
                vec![sequence, directions.clone(), batch.clone(), hidden.clone()],
                vec![directions, batch, hidden],
            )
        };
        let mut types = typing::one(element, all);
        types.extend(typing::one(element, last.clone()));
        if self.kind == RecurrentKind::Lstm {
            types.extend(typing::one(element, last));
        }
        Ok(types)
    }

    fn evaluate(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Vec<Value>, EvaluateError> {
        let results = movement::results(self, inputs)?;
        let x_shape = tensor(inputs, 0)?.shape();
        let (sequence, batch) =
            if self.batch_first { (x_shape[1], x_shape[0]) } else { (x_shape[0], x_shape[1]) };
        let (width, hidden, directions) = (x_shape[2], self.hidden_size, self.direction.count());
        let data = Data::read(inputs, sequence, batch)?;
        let rows = self.kind.gates() * hidden;
        let mut outputs: SmallVec<[Vec<f64>; 3]> =
            results.iter().map(|(_, shape)| broadcast::filled(shape, 0.0)).collect::<Result<_, _>>()?;
        // Where the row of a time step, and of a direction, of an item of the batch begins.
        let x_row = |step: usize, item: usize| {
            if self.batch_first { item * sequence + step } else { step * batch + item }
        };
        let y_row = |step: usize, direction: usize, item: usize| {
            if self.batch_first {
                (item * sequence + step) * directions + direction
            } else {
                (step * directions + direction) * batch + item
            }
        };
        let state_row = |direction: usize, item: usize| {
            if self.batch_first { item * directions + direction } else { direction * batch + item }
        };
        for direction in 0..directions {
            let w = &data.w[direction * rows * width..][..rows * width];
            let r = &data.r[direction * rows * hidden..][..rows * hidden];
            let bias = part(&data.bias, direction, 2 * rows);
            let (w_bias, r_bias) = bias.split_at(rows);
            let cell = Cell::new(
                self,
                self.activations_of(direction)?,
                r,
                r_bias,
                part(&data.peephole, direction, 3 * hidden),
            );
            // The part of the gates that does not depend on the state, for all steps at once.
            let mut gates: Vec<f64> = w_bias.repeat(sequence * batch);
            accumulate(&mut gates, &data.x, &transposed(w, rows, width, true), width, rows);
            let reverse = match self.direction {
                Direction::Forward => false,
                Direction::Reverse => true,
                Direction::Bidirectional => direction == 1,
            };
            for item in 0..batch {
                let at = state_row(direction, item);
                let mut h = part(&data.initial_h, at, hidden);
                let mut c = part(&data.initial_c, at, hidden);
                let length = data.lengths[item];
                for count in 0..length {
                    let step = if reverse { length - 1 - count } else { count };
                    let gates = &mut gates[x_row(step, item) * rows..][..rows];
                    cell.step(gates, &mut h, &mut c);
                    outputs[0][y_row(step, direction, item) * hidden..][..hidden].copy_from_slice(&h);
                }
                outputs[1][at * hidden..][..hidden].copy_from_slice(&h);
                if let Some(last) = outputs.get_mut(2) {
                    last[at * hidden..][..hidden].copy_from_slice(&c);
                }
            }
        }
        results
            .into_iter()
            .zip(outputs)
            .take(context.outputs.max(1))
            .map(|((element, shape), values): ((ElementType, Shape), Vec<f64>)| {
                Ok(numbers::from_f64(element, shape, &values)?.into())
            })
            .collect()
    }

    fn operations(&self, inputs: &[Option<&ValueType>], _: &[Option<&ValueType>]) -> u64 {
        let Some(shape) = inputs.first().copied().flatten().and_then(ValueType::shape) else { return 0 };
        let &[first, second, width] = shape.dims() else { return 0 };
        let rows = self.hidden_size.saturating_mul(self.kind.gates()).saturating_mul(self.direction.count());
        // A multiply-add for each weight, at each step of each item.
        [first, second, rows, width.saturating_add(self.hidden_size)]
            .iter()
            .fold(2u64, |product, &n| product.saturating_mul(n as u64))
    }

    fn cases() -> Vec<Case> {
        cases::all()
    }
}

mod cases;

#[cfg(test)]
mod tests {
    use super::*;
    use armet_tensor::Tensor;

    fn plain(kind: RecurrentKind) -> Recurrent {
        Recurrent {
            kind,
            hidden_size: 1,
            direction: Direction::Forward,
            activations: Vec::new(),
            clip: None,
            batch_first: false,
            input_forget: false,
            linear_before_reset: false,
        }
    }

    fn evaluate(op: &Recurrent, inputs: &[Option<Tensor>], outputs: usize) -> Result<Vec<Vec<f32>>, String> {
        let values: Vec<Option<Value>> = inputs.iter().cloned().map(|t| t.map(Value::from)).collect();
        let inputs: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
        let results = op.evaluate(&inputs, &Context { outputs, seed: 0 }).map_err(|e| e.to_string())?;
        Ok(results.iter().map(|v| v.tensor().unwrap().expect::<f32>().to_vec()).collect())
    }

    fn ones(shape: &[usize]) -> Option<Tensor> {
        Some(Tensor::new(shape, &vec![1.0f32; shape.iter().product()]).unwrap())
    }

    #[test]
    fn steps_behind_the_length_are_zero_and_reverse_starts_at_the_length() {
        let affine = RecurrentActivation::Affine { alpha: 1.0, beta: 0.0 };
        let op = Recurrent {
            activations: vec![affine, affine],
            direction: Direction::Bidirectional,
            ..plain(RecurrentKind::Rnn)
        };
        let x = Some(Tensor::new([3, 1, 1], &[1.0f32, 10.0, 100.0]).unwrap());
        let lengths = Some(Tensor::vector(&[2i32]));
        let inputs = [x, ones(&[2, 1, 1]), ones(&[2, 1, 1]), None, lengths];
        let results = evaluate(&op, &inputs, 2).unwrap();
        assert_eq!(results, [vec![1.0, 11.0, 11.0, 10.0, 0.0, 0.0], vec![11.0, 11.0]]);
        assert_eq!(evaluate(&op, &inputs, 1).unwrap().len(), 1);
    }

    #[test]
    fn faults_are_named() {
        let op = plain(RecurrentKind::Gru);
        let error = evaluate(&op, &[ones(&[2, 1, 3]), ones(&[1, 3, 2]), ones(&[1, 3, 1])], 1).unwrap_err();
        assert_eq!(error, "GRU with 1 hidden units, forward and X [2,1,3]: W is [1,3,2], not [1,3,3]");
        let lengths = Some(Tensor::vector(&[3i32]));
        let inputs = [ones(&[2, 1, 3]), ones(&[1, 3, 3]), ones(&[1, 3, 1]), None, lengths];
        assert_eq!(evaluate(&op, &inputs, 1).unwrap_err(), "a length of 3 in sequences of 2 steps");
        let op = Recurrent { activations: vec![RecurrentActivation::Relu; 3], ..op };
        let error = evaluate(&op, &inputs, 1).unwrap_err();
        assert_eq!(error, "GRU has 3 activations, not 2 for each direction");
    }

    #[test]
    fn no_steps_keep_the_initial_state() {
        let op = plain(RecurrentKind::Lstm);
        let inputs = [
            ones(&[0, 1, 2]),
            ones(&[1, 4, 2]),
            ones(&[1, 4, 1]),
            None,
            None,
            ones(&[1, 1, 1]),
            ones(&[1, 1, 1]),
        ];
        assert_eq!(evaluate(&op, &inputs, 3).unwrap(), [vec![], vec![1.0], vec![1.0]]);
    }
}
