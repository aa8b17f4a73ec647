//! Recurrent layers: one product over the whole sequence for the inputs, one per step for the state.
//!
//! The rows of a step are the items of the batch. Where items have lengths of their own, every item is stepped as long as
//! the longest, and what a step did to one that had ended is taken back.

use armet_graph::ops::{Direction, Recurrent, RecurrentActivation, RecurrentKind};
use armet_kernels::elementwise::Unary;
use armet_kernels::epilogue::Epilogue;
use armet_kernels::gemm::{self, PackedMatrix};
use armet_kernels::recurrent::{Activation, Gru, Lstm, rnn_step};
use armet_kernels::threads::Team;
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, RunError, Unsupported};
use armet_tensor::{ElementType, Tensor};
use std::sync::Arc;

use super::support::{plain, shapes, unquantized};
use crate::{Cpu, packed_fallible};

fn activation(kind: RecurrentActivation) -> Activation {
    match kind {
        RecurrentActivation::Sigmoid => Activation::SIGMOID,
        RecurrentActivation::Tanh => Activation::TANH,
        RecurrentActivation::Relu => Activation::new(Unary::Relu),
        RecurrentActivation::Softsign => Activation::new(Unary::Softsign),
        RecurrentActivation::Softplus => Activation::new(Unary::Softplus),
        RecurrentActivation::Affine { alpha, beta } => Activation::affine(alpha, beta),
        RecurrentActivation::LeakyRelu { alpha } => Activation::new(Unary::LeakyRelu { alpha }),
        RecurrentActivation::ThresholdedRelu { alpha } => Activation::new(Unary::ThresholdedRelu { alpha }),
        RecurrentActivation::ScaledTanh { alpha, beta } => Activation::scaled_tanh(alpha, beta),
        RecurrentActivation::HardSigmoid { alpha, beta } => {
            Activation::new(Unary::HardSigmoid { alpha, beta })
        }
        RecurrentActivation::Elu { alpha } => Activation::new(Unary::Elu { alpha }),
    }
}

/// Sizes and weights of one direction.
struct Layer {
    input: Arc<PackedMatrix>,
    state: Arc<PackedMatrix>,
    /// GRU that resets before the product: weights of the hidden gate alone.
    hidden_gate: Option<Arc<PackedMatrix>>,
    input_bias: Vec<f32>,
    state_bias: Vec<f32>,
    /// Weights from an LSTM's cell to its gates.
    peepholes: Option<Vec<f32>>,
    activations: [Activation; 3],
    reverse: bool,
}

/// The whole node.
struct Plan {
    cpu: Cpu,
    kind: RecurrentKind,
    clip: Option<f32>,
    batch_first: bool,
    input_forget: bool,
    name: String,
    steps: usize,
    batch: usize,
    width: usize,
    hidden: usize,
    layers: Vec<Layer>,
}

pub(crate) fn lower(cpu: Cpu, op: &Recurrent, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    plain(node)?;
    for index in [0, 1, 2, 3, 5, 6, 7].into_iter().filter(|&index| node.has_input(index)) {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    if node.has_input(4) && node.element(4)? != ElementType::I32 {
        return Err(Unsupported::ElementType(node.element(4)?));
    }
    let [first, second, width] = *node.shape(0)?.dims() else {
        return Err(Unsupported::Rank(node.shape(0)?.len()));
    };
    let (steps, batch) = if op.batch_first { (second, first) } else { (first, second) };
    let constant = |index: usize, what| -> Result<Tensor, Unsupported> {
        Ok(node.constant(index).ok_or(Unsupported::NotConstant(what))?.clone())
    };
    let optional = |index: usize, what| -> Result<Option<Tensor>, Unsupported> {
        if node.has_input(index) { constant(index, what).map(Some) } else { Ok(None) }
    };
    let (w, r) = (constant(1, "W")?, constant(2, "R")?);
    let (bias, peepholes) = (optional(3, "B")?, optional(7, "P")?);
    let (hidden, gates, directions) = (op.hidden_size, op.kind.gates(), op.direction.count());
    let per_direction: Vec<Vec<RecurrentActivation>> = (0..directions)
        .map(|direction| op.activations_of(direction).map(<[_]>::to_vec).map_err(shapes))
        .collect::<Result<_, _>>()?;
    if w.len() != directions * gates * hidden * width
        || r.len() != directions * gates * hidden * hidden
        || bias.as_ref().is_some_and(|b| b.len() != directions * 2 * gates * hidden)
        || peepholes.as_ref().is_some_and(|p| p.len() != directions * 3 * hidden)
        || hidden == 0
    {
        return Err(Unsupported::Shapes("weights do not fit the layer's sizes".into()));
    }
    let (op, name) = (op.clone(), node.node().name.clone());
    Ok(packed_fallible(move |context: &CompileContext<'_>| {
        let weights = Weights { w: &w, r: &r, bias: bias.as_ref(), peepholes: peepholes.as_ref() };
        let layers = per_direction
            .iter()
            .enumerate()
            .map(|(direction, activations)| {
                layer(cpu, &op, context, &weights, width, (direction, activations))
            })
            .collect::<Result<Vec<_>, CompileError>>()?;
        let plan = Plan {
            cpu,
            kind: op.kind,
            clip: op.clip,
            batch_first: op.batch_first,
            input_forget: op.input_forget,
            name,
            steps,
            batch,
            width,
            hidden,
            layers,
        };
        let kind = match op.kind {
            RecurrentKind::Lstm => "lstm",
            RecurrentKind::Gru => "gru",
            RecurrentKind::Rnn => "rnn",
        };
        let scratch = plan.scratch() * size_of::<f32>();
        Ok((format!("{kind}_f32_{}", cpu.isas.best()), scratch, move |b: &mut Bindings<'_>| plan.run(b)))
    }))
}

/// The constant inputs.
struct Weights<'a> {
    w: &'a Tensor,
    r: &'a Tensor,
    bias: Option<&'a Tensor>,
    peepholes: Option<&'a Tensor>,
}

fn layer(
    cpu: Cpu,
    op: &Recurrent,
    context: &CompileContext<'_>,
    weights: &Weights<'_>,
    width: usize,
    (direction, given): (usize, &[RecurrentActivation]),
) -> Result<Layer, CompileError> {
    let Weights { w, r, bias, peepholes } = *weights;
    let (hidden, rows) = (op.hidden_size, op.kind.gates() * op.hidden_size);
    let isas = cpu.isas;
    // Weights are stored by output row; the product wants them by input row.
    let pack = |tensor: &Tensor, k: usize, first: usize, n: usize| {
        context.packs.get(tensor, &format!("recurrent {k}x{n} at {first} {isas:?}"), || {
            let values = tensor.expect::<f32>();
            Ok::<_, CompileError>(PackedMatrix::pack(isas, k, n, &values[first..first + n * k], 1, k))
        })
    };
    let resets_first = op.kind == RecurrentKind::Gru && !op.linear_before_reset;
    let own = direction * rows * hidden;
    let state_columns = if resets_first { 2 * hidden } else { rows };
    let state = pack(r, hidden, own, state_columns)?;
    let hidden_gate =
        if resets_first { Some(pack(r, hidden, own + 2 * hidden * hidden, hidden)?) } else { None };
    let bias = bias.map_or_else(Vec::new, |b| b.expect::<f32>()[direction * 2 * rows..][..2 * rows].to_vec());
    let (input_bias, state_bias) = if bias.is_empty() {
        (vec![0.0; rows], vec![0.0; rows])
    } else {
        (bias[..rows].to_vec(), bias[rows..].to_vec())
    };
    let mut activations = [Activation::TANH; 3];
    for (to, from) in activations.iter_mut().zip(given) {
        *to = activation(*from);
    }
    let peepholes = peepholes.map(|p| p.expect::<f32>()[direction * 3 * hidden..][..3 * hidden].to_vec());
    Ok(Layer {
        input: pack(w, width, direction * rows * width, rows)?,
        state,
        hidden_gate,
        input_bias,
        state_bias,
        peepholes,
        activations,
        reverse: op.direction == Direction::Reverse || direction == 1,
    })
}

impl Plan {
    fn gates(&self) -> usize {
        self.kind.gates() * self.hidden
    }

    /// Floats: the input part of all steps, the state part of one and the input part of one, state, cell, both before
    /// the step, and two rows for a GRU's halves.
    fn scratch(&self) -> usize {
        self.steps * self.batch * self.gates() + self.batch * (2 * self.gates() + 6 * self.hidden)
    }

    /// Which of the rows of a tensor of states belongs to an item.
    fn state_row(&self, direction: usize, item: usize) -> usize {
        if self.batch_first { item * self.layers.len() + direction } else { direction * self.batch + item }
    }

    /// Which of the rows of the input belongs to a step of an item.
    fn input_row(&self, step: usize, item: usize) -> usize {
        if self.batch_first { item * self.steps + step } else { step * self.batch + item }
    }

    /// Which of the rows of the result belongs to a step of an item.
    fn result_row(&self, step: usize, direction: usize, item: usize) -> usize {
        let directions = self.layers.len();
        if self.batch_first {
            (item * self.steps + step) * directions + direction
        } else {
            (step * directions + direction) * self.batch + item
        }
    }

    fn fill(&self, to: &mut [f32], from: Option<&[f32]>, direction: usize) {
        let Some(from) = from else { return to.fill(0.0) };
        for (item, to) in to.chunks_exact_mut(self.hidden).enumerate() {
            to.copy_from_slice(&from[self.state_row(direction, item) * self.hidden..][..self.hidden]);
        }
    }

    fn keep(&self, to: Option<&mut [f32]>, from: &[f32], direction: usize) {
        let Some(to) = to else { return };
        for (item, from) in from.chunks_exact(self.hidden).enumerate() {
            to[self.state_row(direction, item) * self.hidden..][..self.hidden].copy_from_slice(from);
        }
    }

    fn run(&self, b: &mut Bindings<'_>) -> Result<(), RunError> {
        let (batch, hidden, gates) = (self.batch, self.hidden, self.gates());
        let team = b.team();
        let x: &[f32] = b.input(0);
        let lengths: Option<&[i32]> = b.optional_input(4);
        let outside = |length: &&i32| !(0..=self.steps as i64).contains(&i64::from(**length));
        if let Some(length) = lengths.and_then(|lengths| lengths.iter().find(outside)) {
            let reason = format!("a length of {length} in sequences of {} steps", self.steps);
            return Err(RunError::Kernel { node: self.name.clone(), reason });
        }
        let length = |item: usize| lengths.map_or(self.steps, |lengths| lengths[item] as usize);
        let longest = (0..batch).map(length).max().unwrap_or(0);
        let initial_state: Option<&[f32]> = b.optional_input(5);
        let initial_cell: Option<&[f32]> = b.optional_input(6);
        let scratch: &mut [f32] = b.scratch();
        let (mut all, mut last, mut last_cell) =
            (b.optional_output::<f32>(0), b.optional_output::<f32>(1), b.optional_output::<f32>(2));
        if let (Some(all), Some(_)) = (all.as_deref_mut(), lengths) {
            all.fill(0.0);
        }
        let rows = batch * hidden;
        let (inputs, rest) = scratch.split_at_mut(self.steps * batch * gates);
        let (product, rest) = rest.split_at_mut(batch * gates);
        let (gathered, rest) = rest.split_at_mut(batch * gates);
        let (state, rest) = rest.split_at_mut(rows);
        let (cell, rest) = rest.split_at_mut(rows);
        let (update, rest) = rest.split_at_mut(rows);
        let (reset, rest) = rest.split_at_mut(rows);
        let (old_state, rest) = rest.split_at_mut(rows);
        let old_cell = &mut rest[..rows];
        for (direction, layer) in self.layers.iter().enumerate() {
            let bias = Epilogue { bias: Some(&layer.input_bias), ..Epilogue::default() };
            gemm::gemm(team, self.steps * batch, x, self.width, &layer.input, inputs, gates, &bias);
            self.fill(state, initial_state, direction);
            self.fill(cell, initial_cell, direction);
            for count in 0..longest {
                // The step of an item that has not ended.
                let at = |item: usize| {
                    let length = length(item);
                    let left = length.checked_sub(count + 1)?;
                    Some(if layer.reverse { left } else { count })
                };
                let input = if let (Some(step), false, None) = (at(0), self.batch_first, lengths) {
                    &inputs[step * batch * gates..][..batch * gates]
                } else {
                    for (item, to) in gathered.chunks_exact_mut(gates).enumerate() {
                        let row = self.input_row(at(item).unwrap_or(0), item);
                        to.copy_from_slice(&inputs[row * gates..][..gates]);
                    }
                    &*gathered
                };
                if lengths.is_some() {
                    old_state.copy_from_slice(state);
                    old_cell.copy_from_slice(cell);
                }
                self.step(team, layer, input, product, state, cell, (&mut *update, &mut *reset));
                for item in 0..batch {
                    let own = item * hidden..(item + 1) * hidden;
                    match (at(item), all.as_deref_mut()) {
                        (Some(step), Some(all)) => {
                            let row = self.result_row(step, direction, item);
                            all[row * hidden..][..hidden].copy_from_slice(&state[own]);
                        }
                        (Some(_), None) => {}
                        (None, _) => {
                            state[own.clone()].copy_from_slice(&old_state[own.clone()]);
                            cell[own.clone()].copy_from_slice(&old_cell[own]);
                        }
                    }
                }
            }
            self.keep(last.as_deref_mut(), state, direction);
            self.keep(last_cell.as_deref_mut(), cell, direction);
        }
        Ok(())
    }

    fn step(
        &self,
        team: &Team,
        layer: &Layer,
        input: &[f32],
        product: &mut [f32],
        state: &mut [f32],
        cell: &mut [f32],
        (update, reset): (&mut [f32], &mut [f32]),
    ) {
        let (isas, hidden, batch) = (self.cpu.isas, self.hidden, self.batch);
        let bias = Epilogue { bias: Some(&layer.state_bias), ..Epilogue::default() };
        let columns = layer.state.n();
        gemm::gemm(team, batch, state, hidden, &layer.state, product, columns, &bias);
        if self.kind == RecurrentKind::Lstm {
            let activations = layer.activations;
            let (clip, input_forget) = (self.clip, self.input_forget);
            let peepholes = layer.peepholes.as_deref();
            let lstm = Lstm { hidden, activations, clip, input_forget, peepholes };
            lstm.step(isas, input, &product[..batch * columns], cell, state);
            return;
        }
        if self.kind == RecurrentKind::Rnn {
            rnn_step(isas, layer.activations[0], self.clip, input, &product[..batch * columns], state);
            return;
        }
        let [gate, candidate, _] = layer.activations;
        let gru = Gru { hidden, activations: [gate, candidate], clip: self.clip };
        match &layer.hidden_gate {
            None => gru.step(isas, input, &product[..batch * columns], state),
            Some(weights) => {
                gru.gates(isas, input, &product[..batch * columns], state, update, reset);
                let bias = Epilogue { bias: Some(&layer.state_bias[2 * hidden..]), ..Epilogue::default() };
                let half = &mut product[..batch * hidden];
                gemm::gemm(team, batch, reset, hidden, weights, half, hidden, &bias);
                gru.finish(isas, input, half, update, state);
            }
        }
    }
}
