//! Reading and writing elements by index.

use armet_graph::ops::{
    Gather, GatherElements, GatherNd, NonZero, OneHot, Reshape, ScatterElements, ScatterNd, ScatterReduction,
    TensorScatter, Unique,
};

use super::{Entry, onnx};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("Gather", 1, |n| {
        let op = Gather { axis: n.int_or("axis", 0)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    })
    .moves(1),
    onnx("GatherElements", 11, |n| {
        let op = GatherElements { axis: n.int_or("axis", 0)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    })
    .moves(1),
    onnx("GatherND", 11, |n| {
        let op = GatherNd { batch_dims: n.size_or("batch_dims", 0)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    })
    .moves(1),
    onnx("Scatter", 9, scatter_elements),
    onnx("ScatterElements", 11, scatter_elements),
    onnx("ScatterND", 11, |n| {
        let op = ScatterNd { reduction: reduction(n)? };
        let inputs = n.inputs(3)?;
        n.emit(op, inputs)
    }),
    onnx("NonZero", 9, |n| {
        let x = n.input(0)?;
        n.emit(NonZero, vec![Some(x)])
    }),
    onnx("OneHot", 9, |n| {
        let op = OneHot { axis: n.int_or("axis", -1)? };
        let inputs = n.inputs(3)?;
        n.emit(op, inputs)
    }),
    onnx("Compress", 9, compress),
    onnx("Unique", 11, |n| {
        let op = Unique { axis: n.int("axis")?, sorted: n.flag("sorted", true)? };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    }),
    onnx("TensorScatter", 24, |n| {
        let circular = n.choice("mode", false, &[("linear", false), ("circular", true)])?;
        let op = TensorScatter { axis: n.int_or("axis", -2)?, circular };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
];

fn reduction(n: &NodeReader<'_, '_>) -> Read<ScatterReduction> {
    let words = [
        ("none", ScatterReduction::None),
        ("add", ScatterReduction::Add),
        ("mul", ScatterReduction::Mul),
        ("max", ScatterReduction::Max),
        ("min", ScatterReduction::Min),
    ];
    n.choice("reduction", ScatterReduction::None, &words)
}

fn scatter_elements(n: &mut NodeReader<'_, '_>) -> Read {
    let op = ScatterElements { axis: n.int_or("axis", 0)?, reduction: reduction(n)? };
    let inputs = n.inputs(3)?;
    n.emit(op, inputs)
}

/// The entries whose condition holds: gathered by the places where it is not zero.
fn compress(n: &mut NodeReader<'_, '_>) -> Read {
    let axis = n.int("axis")?;
    let (mut x, condition) = (n.input(0)?, n.input(1)?);
    let flat = n.vector("flat", &[-1i64]);
    if axis.is_none() {
        x = n.step("data", Reshape { allow_zero: false }, vec![Some(x), Some(flat)]);
    }
    let at = n.step("places", NonZero, vec![Some(condition)]);
    let at = n.step("indices", Reshape { allow_zero: false }, vec![Some(at), Some(flat)]);
    n.emit(Gather { axis: axis.unwrap_or(0) }, vec![Some(x), Some(at)])
}
