//! LSTM and GRU layers: one product over the whole sequence for the inputs, one per step for the state.

use armet_graph::ops::{Direction, Recurrent, RecurrentActivation, RecurrentKind};
use armet_kernels::elementwise::Unary;
use armet_kernels::epilogue::Epilogue;
use armet_kernels::gemm::{self, PackedMatrix};
use armet_kernels::recurrent::{Activation, Gru, Lstm};
use armet_kernels::threads::Team;
use armet_runtime::{Bindings, CompileContext, CompileError, Lowered, NodeView, Unsupported};
use armet_tensor::{ElementType, Tensor};
use std::sync::Arc;

use super::support::unquantized;
use crate::{Cpu, packed};

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
    activations: [Activation; 3],
    reverse: bool,
}

/// The whole node.
struct Plan {
    cpu: Cpu,
    kind: RecurrentKind,
    clip: Option<f32>,
    steps: usize,
    batch: usize,
    width: usize,
    hidden: usize,
    layers: Vec<Layer>,
}

pub(crate) fn lower(cpu: Cpu, op: &Recurrent, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    unquantized(node)?;
    for index in [0, 1, 2] {
        if node.element(index)? != ElementType::F32 {
            return Err(Unsupported::ElementType(node.element(index)?));
        }
    }
    if op.kind == RecurrentKind::Rnn {
        return Err(Unsupported::Operator("RNN"));
    }
    let refuse = |name, value: &str| Err(Unsupported::Attribute { name, value: value.to_owned() });
    if op.batch_first || op.input_forget {
        return refuse("layout or input_forget", "1");
    }
    if node.has_input(4) {
        return refuse("sequence_lens", "given");
    }
    if node.has_input(7) {
        return refuse("P", "given");
    }
    let [steps, batch, width] = *node.shape(0)?.dims() else {
        return Err(Unsupported::Rank(node.shape(0)?.len()));
    };
    let constant = |index: usize, what| -> Result<Tensor, Unsupported> {
        Ok(node.constant(index).ok_or(Unsupported::NotConstant(what))?.clone())
    };
    let (w, r) = (constant(1, "W")?, constant(2, "R")?);
    let bias = if node.has_input(3) { Some(constant(3, "B")?) } else { None };
    let (hidden, gates, directions) = (op.hidden_size, op.kind.gates(), op.direction.count());
    let per_direction = if op.kind == RecurrentKind::Lstm { 3 } else { 2 };
    if op.activations.len() != per_direction * directions
        || w.len() != directions * gates * hidden * width
        || r.len() != directions * gates * hidden * hidden
        || bias.as_ref().is_some_and(|b| b.len() != directions * 2 * gates * hidden)
        || hidden == 0
    {
        return Err(Unsupported::Shapes("weights do not fit the layer's sizes".into()));
    }
    let op = op.clone();
    Ok(packed(move |context: &CompileContext<'_>| {
        let layers = (0..directions)
            .map(|d| layer(cpu, &op, context, (&w, &r, bias.as_ref()), width, d, per_direction))
            .collect::<Result<Vec<_>, CompileError>>()?;
        let plan = Plan { cpu, kind: op.kind, clip: op.clip, steps, batch, width, hidden, layers };
        let kernel = format!(
            "{}_f32_{}",
            if op.kind == RecurrentKind::Lstm { "lstm" } else { "gru" },
            cpu.isas.best()
        );
        let scratch = plan.scratch() * size_of::<f32>();
        Ok((kernel, scratch, move |b: &mut Bindings<'_>| plan.run(b)))
    }))
}

fn layer(
    cpu: Cpu,
    op: &Recurrent,
    context: &CompileContext<'_>,
    (w, r, bias): (&Tensor, &Tensor, Option<&Tensor>),
    width: usize,
    direction: usize,
    per_direction: usize,
) -> Result<Layer, CompileError> {
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
    for (to, from) in
        activations.iter_mut().zip(&op.activations[direction * per_direction..][..per_direction])
    {
        *to = activation(*from);
    }
    Ok(Layer {
        input: pack(w, width, direction * rows * width, rows)?,
        state,
        hidden_gate,
        input_bias,
        state_bias,
        activations,
        reverse: op.direction == Direction::Reverse || direction == 1,
    })
}

impl Plan {
    fn gates(&self) -> usize {
        self.kind.gates() * self.hidden
    }

    /// Floats: the input part of all steps, the state part of one, state, cell, and two rows for a GRU's halves.
    fn scratch(&self) -> usize {
        self.steps * self.batch * self.gates() + self.batch * (self.gates() + 4 * self.hidden)
    }

    fn run(&self, b: &mut Bindings<'_>) {
        let (batch, hidden, directions) = (self.batch, self.hidden, self.layers.len());
        let team = b.team();
        let x: &[f32] = b.input(0);
        let initial_state: Option<&[f32]> = b.optional_input(5);
        let initial_cell: Option<&[f32]> = b.optional_input(6);
        let scratch: &mut [f32] = b.scratch();
        let (mut all, mut last, mut last_cell) =
            (b.optional_output::<f32>(0), b.optional_output::<f32>(1), b.optional_output::<f32>(2));
        let rows = batch * hidden;
        for (direction, layer) in self.layers.iter().enumerate() {
            let (inputs, rest) = scratch.split_at_mut(self.steps * batch * self.gates());
            let (product, rest) = rest.split_at_mut(batch * self.gates());
            let (state, rest) = rest.split_at_mut(rows);
            let (cell, rest) = rest.split_at_mut(rows);
            let (update, rest) = rest.split_at_mut(rows);
            let reset = &mut rest[..rows];
            let bias = Epilogue { bias: Some(&layer.input_bias), ..Epilogue::default() };
            gemm::gemm(team, self.steps * batch, x, self.width, &layer.input, inputs, self.gates(), &bias);
            fill(state, initial_state, direction * rows);
            fill(cell, initial_cell, direction * rows);
            for step in 0..self.steps {
                let at = if layer.reverse { self.steps - 1 - step } else { step };
                let input = &inputs[at * batch * self.gates()..][..batch * self.gates()];
                self.step(team, layer, input, product, state, cell, (&mut *update, &mut *reset));
                if let Some(all) = all.as_deref_mut() {
                    all[(at * directions + direction) * rows..][..rows].copy_from_slice(state);
                }
            }
            if let Some(last) = last.as_deref_mut() {
                last[direction * rows..][..rows].copy_from_slice(state);
            }
            if let Some(last) = last_cell.as_deref_mut() {
                last[direction * rows..][..rows].copy_from_slice(cell);
            }
        }
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
            let lstm = Lstm { hidden, activations, clip: self.clip, input_forget: false, peepholes: None };
            lstm.step(isas, input, &product[..batch * columns], cell, state);
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

fn fill(to: &mut [f32], from: Option<&[f32]>, offset: usize) {
    match from {
        Some(from) => to.copy_from_slice(&from[offset..][..to.len()]),
        None => to.fill(0.0),
    }
}
