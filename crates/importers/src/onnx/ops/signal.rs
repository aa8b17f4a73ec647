//! Spectra and windows.

use std::f64::consts::TAU;

use armet_graph::ValueId;
use armet_graph::ops::{Binary, BinaryKind, Cast, Dft, Gather, MelWeightMatrix, Range, UnaryKind, Unsqueeze};
use armet_tensor::{ElementType, Tensor};

use super::compose::{binary, cast, dim, unary, whole_scalar, with_number};
use super::{Entry, onnx};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    // The axis was an attribute with another default.
    onnx("DFT", 17, |n| {
        let op = transform(n)?;
        let axis = n.int_or("axis", 1)?;
        let (x, length) = (n.input(0)?, n.optional(1)?);
        let axis = n.add_constant("axis", Tensor::scalar(axis));
        n.emit(op, vec![Some(x), length, Some(axis)])
    }),
    onnx("DFT", 20, |n| {
        let op = transform(n)?;
        let inputs = n.inputs(1)?;
        n.emit(op, inputs)
    }),
    onnx("STFT", 17, short_time),
    onnx("HannWindow", 17, |n| window(n, &[0.5, -0.5])),
    onnx("HammingWindow", 17, |n| window(n, &[25.0 / 46.0, -21.0 / 46.0])),
    onnx("BlackmanWindow", 17, |n| window(n, &[0.42, -0.5, 0.08])),
    onnx("MelWeightMatrix", 17, |n| {
        let op = MelWeightMatrix { element: n.element("output_datatype")?.unwrap_or(ElementType::F32) };
        let inputs = n.inputs(5)?;
        n.emit(op, inputs)
    }),
];

fn transform(n: &NodeReader<'_, '_>) -> Read<Dft> {
    Ok(Dft { inverse: n.flag("inverse", false)?, onesided: n.flag("onesided", false)? })
}

/// Whole numbers from one scalar on, up to another, as a vector of so many axes that it stands in the first.
fn numbers(n: &mut NodeReader<'_, '_>, suffix: &str, end: ValueId, step: ValueId) -> ValueId {
    let zero = n.add_constant(&format!("{suffix}/zero"), Tensor::scalar(0i64));
    n.step(suffix, Range, vec![Some(zero), Some(end), Some(step)])
}

/// Frames that overlap are gathered, weighed, and transformed one by one.
fn short_time(n: &mut NodeReader<'_, '_>) -> Read {
    let op = Dft { inverse: false, onesided: n.flag("onesided", true)? };
    let (signal, step) = (n.input(0)?, n.input(1)?);
    let (window, length) = (n.optional(2)?, n.optional(3)?);
    let step = whole_scalar(n, "frame_step", step);
    let whole = dim(n, "signal_length", signal, 1);
    let length = match (length, window) {
        (Some(length), _) => whole_scalar(n, "frame_length", length),
        (None, Some(window)) => dim(n, "frame_length", window, 0),
        (None, None) => whole,
    };
    let one = n.add_constant("one", Tensor::scalar(1i64));
    let last = binary(n, "last", BinaryKind::Sub, whole, length);
    let end = binary(n, "end", BinaryKind::Add, last, one);
    let starts = numbers(n, "starts", end, step);
    let within = numbers(n, "within", length, one);
    let axes = n.vector("upright", &[1i64]);
    let starts = n.step("rows", Unsqueeze, vec![Some(starts), Some(axes)]);
    let places = binary(n, "places", BinaryKind::Add, starts, within);
    let mut frames = n.step("frames", Gather { axis: 1 }, vec![Some(signal), Some(places)]);
    if let Some(window) = window {
        let window = n.step("window", Unsqueeze, vec![Some(window), Some(axes)]);
        frames = binary(n, "weighed", BinaryKind::Mul, frames, window);
    }
    n.emit(op, vec![Some(frames)])
}

/// A sum of cosines: the factors of those that turn 0, 1, 2 times in the window.
fn window(n: &mut NodeReader<'_, '_>, factors: &[f64]) -> Read {
    let to = n.element("output_datatype")?.unwrap_or(ElementType::F32);
    let periodic = n.flag("periodic", true)?;
    let size = n.input(0)?;
    let size = whole_scalar(n, "size", size);
    let one = n.add_constant("one", Tensor::scalar(1i64));
    let at = numbers(n, "numbers", size, one);
    let period = if periodic { size } else { binary(n, "period", BinaryKind::Sub, size, one) };
    let (at, period) =
        (cast(n, "at", ElementType::F64, at), cast(n, "real_period", ElementType::F64, period));
    let mut sum: Option<ValueId> = None;
    for (turns, &factor) in factors.iter().enumerate().skip(1) {
        let angle = with_number(n, &format!("{turns}/angle"), BinaryKind::Mul, at, TAU * turns as f64);
        let angle = binary(n, &format!("{turns}/part"), BinaryKind::Div, angle, period);
        let cosine = unary(n, &format!("{turns}/cosine"), UnaryKind::Cos, angle);
        let term = with_number(n, &format!("{turns}/term"), BinaryKind::Mul, cosine, factor);
        sum = Some(match sum {
            Some(sum) => binary(n, &format!("{turns}/sum"), BinaryKind::Add, sum, term),
            None => term,
        });
    }
    let sum = sum.ok_or(Invalid::MissingInput(0))?;
    let level = n.number_like("level", sum, factors[0]);
    let result = n.step("window", Binary { kind: BinaryKind::Add }, vec![Some(sum), Some(level)]);
    n.emit(Cast { to, saturate: true }, vec![Some(result)])
}
