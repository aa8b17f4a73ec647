//! Recurrent layers.

use armet_graph::ValueId;
use armet_graph::ops::{
    Binary, BinaryKind, Cast, Direction, Recurrent, RecurrentActivation, RecurrentKind, Transpose, Unsqueeze,
};
use armet_tensor::ElementType;

use super::{Entry, microsoft, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("LSTM", 1, |n| recurrent(n, RecurrentKind::Lstm)),
    onnx("GRU", 1, |n| recurrent(n, RecurrentKind::Gru)),
    onnx("RNN", 1, |n| recurrent(n, RecurrentKind::Rnn)),
    microsoft("DynamicQuantizeLSTM", |n| {
        let op = attributes(n, RecurrentKind::Lstm)?;
        let x = n.input(0)?;
        let weights = [real(n, 1, [8, 9])?, real(n, 2, [10, 11])?];
        let mut inputs = vec![Some(x), Some(weights[0]), Some(weights[1])];
        for index in 3..8 {
            inputs.push(n.optional(index)?);
        }
        n.emit(op, inputs)
    }),
];

/// Weights `[directions, from, to]` of integers as those real numbers that LSTM takes, `[directions, to, from]`; scale and
/// zero point are one for a direction or one for each row. Data and states are computed with as they are, which is nearer
/// to the model that was quantized than to round them to eight bits in every step.
fn real(n: &mut NodeReader<'_, '_>, weights: usize, parameters: [usize; 2]) -> Read<ValueId> {
    let name = ["", "input", "state"].get(weights).copied().unwrap_or_default();
    let to = || Cast { to: ElementType::F32, saturate: true };
    let mut wide = Vec::new();
    for index in parameters {
        let value = n.input(index)?;
        let unknown = Reason::Input { index, what: "must have a known rank" };
        let axes: &[i64] = if n.rank(value).ok_or(unknown)? == 1 { &[1, 2] } else { &[1] };
        let axes = n.vector(&format!("{name}_axes_{index}"), axes);
        wide.push(n.step(&format!("{name}_wide_{index}"), Unsqueeze, vec![Some(value), Some(axes)]));
    }
    let weights = n.input(weights)?;
    let [weights, zero] = [(weights, "weights"), (wide[1], "zero")]
        .map(|(value, what)| n.step(&format!("{name}_{what}"), to(), vec![Some(value)]));
    let binary = |n: &mut NodeReader<'_, '_>, what: &str, kind, a, b| {
        n.step(&format!("{name}_{what}"), Binary { kind }, vec![Some(a), Some(b)])
    };
    let shifted = binary(n, "shifted", BinaryKind::Sub, weights, zero);
    let scaled = binary(n, "real", BinaryKind::Mul, shifted, wide[0]);
    Ok(n.step(&format!("{name}_turned"), Transpose { perm: vec![0, 2, 1] }, vec![Some(scaled)]))
}

fn recurrent(n: &mut NodeReader<'_, '_>, kind: RecurrentKind) -> Read {
    let op = attributes(n, kind)?;
    let inputs = n.inputs(3)?;
    n.emit(op, inputs)
}

fn attributes(n: &mut NodeReader<'_, '_>, kind: RecurrentKind) -> Read<Recurrent> {
    // Whether the whole sequence is wanted is told by the outputs since version 7.
    n.ignore(&["output_sequence"]);
    let directions = [
        ("forward", Direction::Forward),
        ("reverse", Direction::Reverse),
        ("bidirectional", Direction::Bidirectional),
    ];
    let direction = n.choice("direction", Direction::Forward, &directions)?;
    let mut hidden_size = n.size_or("hidden_size", 0)?;
    if hidden_size == 0 {
        // R is [directions, gates * hidden, hidden].
        let r = n.input(2)?;
        let shape = n.type_of(r).and_then(|t| t.shape());
        hidden_size = shape.and_then(|s| s.get(2).copied()).unwrap_or(0);
    }
    if hidden_size == 0 {
        return Err(Invalid::MissingAttribute("hidden_size").into());
    }
    Ok(Recurrent {
        kind,
        hidden_size,
        direction,
        activations: activations(n, kind, direction)?,
        clip: n.float("clip")?,
        batch_first: n.flag("layout", false)?,
        input_forget: kind == RecurrentKind::Lstm && n.flag("input_forget", false)?,
        linear_before_reset: kind == RecurrentKind::Gru && n.flag("linear_before_reset", false)?,
    })
}

/// The activations of all directions. Parameters are listed apart, for those activations only that have some.
fn activations(
    n: &NodeReader<'_, '_>,
    kind: RecurrentKind,
    direction: Direction,
) -> Read<Vec<RecurrentActivation>> {
    let defaults: &[&str] = match kind {
        RecurrentKind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        RecurrentKind::Gru => &["Sigmoid", "Tanh"],
        RecurrentKind::Rnn => &["Tanh"],
    };
    let wanted = defaults.len() * direction.count();
    let names = match n.words("activations")? {
        Some(names) => names,
        None => defaults.iter().cycle().take(wanted).map(|&s| s.to_owned()).collect(),
    };
    if names.len() != wanted {
        return Err(n.refuse("activations", "has another number of functions").into());
    }
    let mut alphas = n.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = n.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut alpha = |default: f32| alphas.next().unwrap_or(default);
    let mut beta = |default: f32| betas.next().unwrap_or(default);
    let mut found = Vec::with_capacity(wanted);
    for name in &names {
        use RecurrentActivation as A;
        found.push(match name.to_ascii_lowercase().as_str() {
            "sigmoid" => A::Sigmoid,
            "tanh" => A::Tanh,
            "relu" => A::Relu,
            "softsign" => A::Softsign,
            "softplus" => A::Softplus,
            "affine" => A::Affine { alpha: alpha(1.0), beta: beta(0.0) },
            "leakyrelu" => A::LeakyRelu { alpha: alpha(0.01) },
            "thresholdedrelu" => A::ThresholdedRelu { alpha: alpha(1.0) },
            "scaledtanh" => A::ScaledTanh { alpha: alpha(1.0), beta: beta(1.0) },
            "hardsigmoid" => A::HardSigmoid { alpha: alpha(0.2), beta: beta(0.5) },
            "elu" => A::Elu { alpha: alpha(1.0) },
            _ => return Err(n.unsupported("activations")),
        });
    }
    Ok(found)
}
