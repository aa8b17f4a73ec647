//! Reductions, searches for extremes, sorting, running sums.

use armet_graph::ops::{ArgKind, ArgReduce, Cumulate, CumulateKind, Reduce, ReduceKind, TopK};

use super::{Entry, onnx};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

macro_rules! reduce {
    ($name:literal, $kind:ident) => {
        onnx($name, 1, |n| reduce(n, ReduceKind::$kind))
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    reduce!("ReduceSum", Sum),
    reduce!("ReduceMean", Mean),
    reduce!("ReduceMax", Max),
    reduce!("ReduceMin", Min),
    reduce!("ReduceProd", Prod),
    reduce!("ReduceL1", L1),
    reduce!("ReduceL2", L2),
    reduce!("ReduceSumSquare", SumSquare),
    reduce!("ReduceLogSum", LogSum),
    reduce!("ReduceLogSumExp", LogSumExp),
    onnx("ArgMax", 1, |n| arg(n, ArgKind::Max)),
    onnx("ArgMin", 1, |n| arg(n, ArgKind::Min)),
    onnx("TopK", 1, |n| {
        let k = n.required_int("k")?;
        let k = n.vector("k", &[k]);
        let (axis, x) = (n.int_or("axis", -1)?, n.input(0)?);
        n.emit(TopK { axis, largest: true, sorted: true }, vec![Some(x), Some(k)])
    }),
    onnx("TopK", 10, |n| {
        let axis = n.int_or("axis", -1)?;
        let (largest, sorted) = (n.flag("largest", true)?, n.flag("sorted", true)?);
        let inputs = n.inputs(2)?;
        n.emit(TopK { axis, largest, sorted }, inputs)
    }),
    onnx("CumSum", 11, |n| cumulate(n, CumulateKind::Sum)),
    onnx("CumProd", 26, |n| cumulate(n, CumulateKind::Product)),
];

fn cumulate(n: &mut NodeReader<'_, '_>, kind: CumulateKind) -> Read {
    let (exclusive, reverse) = (n.flag("exclusive", false)?, n.flag("reverse", false)?);
    let inputs = n.inputs(2)?;
    n.emit(Cumulate { kind, exclusive, reverse }, inputs)
}

/// Axes were an attribute before they became an input, which happened to the sum five versions before the others.
/// Files made in between are not always strict, so whichever is there is taken.
fn reduce(n: &mut NodeReader<'_, '_>, kind: ReduceKind) -> Read {
    let op = Reduce {
        kind,
        keep_dims: n.flag("keepdims", true)?,
        noop_with_empty_axes: n.flag("noop_with_empty_axes", false)?,
    };
    let x = n.input(0)?;
    let mut inputs = vec![Some(x)];
    if let Some(axes) = n.ints("axes")? {
        inputs.push(Some(n.vector("axes", &axes)));
    } else if n.has_input(1) {
        inputs.push(n.optional(1)?);
    }
    n.emit(op, inputs)
}

fn arg(n: &mut NodeReader<'_, '_>, kind: ArgKind) -> Read {
    let op = ArgReduce {
        kind,
        axis: n.int_or("axis", 0)?,
        keep_dims: n.flag("keepdims", true)?,
        select_last_index: n.flag("select_last_index", false)?,
    };
    let x = n.optional(0)?.ok_or(Invalid::MissingInput(0))?;
    n.emit(op, vec![Some(x)])
}
