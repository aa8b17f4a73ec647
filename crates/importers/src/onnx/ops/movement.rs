//! Operators that give elements another place or shape.

use armet_graph::ValueId;
use armet_graph::ops::{
    Concat, DepthToSpace, Expand, Flatten, Identity, Pad, PadMode, Reshape, ReverseSequence, Slice,
    SpaceToDepth, Split, Squeeze, Tile, Transpose, Trilu, Unsqueeze,
};
use armet_tensor::Tensor;

use super::{Entry, onnx};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("Concat", 1, |n| {
        let axis = n.int_or("axis", 1)?;
        concat(n, axis)
    })
    .moves(usize::MAX),
    onnx("Concat", 4, |n| {
        let axis = n.required_int("axis")?;
        concat(n, axis)
    })
    .moves(usize::MAX),
    onnx("Split", 1, split).deals(),
    onnx("Slice", 1, slice_attributes).moves(1),
    onnx("Slice", 10, |n| {
        let inputs = n.inputs(3)?;
        n.emit(Slice, inputs)
    })
    .moves(1),
    onnx("Transpose", 1, |n| {
        let op = Transpose { perm: n.sizes("perm")? };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    })
    .moves(1),
    onnx("Reshape", 1, |n| {
        n.ignore(&["consumed_inputs"]);
        let shape = n.ints("shape")?.ok_or(Invalid::MissingAttribute("shape"))?;
        let (x, shape) = (n.input(0)?, n.vector("shape", &shape));
        n.emit(Reshape { allow_zero: false }, vec![Some(x), Some(shape)])
    })
    .moves(1),
    onnx("Reshape", 5, |n| {
        let op = Reshape { allow_zero: n.flag("allowzero", false)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    })
    .moves(1),
    onnx("Flatten", 1, |n| {
        let op = Flatten { axis: n.int_or("axis", 1)? };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    })
    .moves(1),
    onnx("Squeeze", 1, |n| {
        let inputs = axes(n)?;
        n.emit(Squeeze, inputs)
    })
    .moves(1),
    onnx("Unsqueeze", 1, |n| {
        let inputs = axes(n)?;
        if inputs.len() < 2 {
            return Err(Invalid::MissingAttribute("axes").into());
        }
        n.emit(Unsqueeze, inputs)
    })
    .moves(1),
    onnx("Expand", 8, |n| {
        let inputs = n.inputs(2)?;
        n.emit(Expand, inputs)
    })
    .moves(1),
    onnx("Tile", 1, tile_one_axis).moves(1),
    onnx("Tile", 6, |n| {
        let inputs = n.inputs(2)?;
        n.emit(Tile, inputs)
    })
    .moves(1),
    onnx("Pad", 1, |n| pad_attributes(n, "paddings")),
    onnx("Pad", 2, |n| pad_attributes(n, "pads")),
    onnx("Pad", 11, |n| {
        let op = Pad { mode: pad_mode(n)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    onnx("DepthToSpace", 1, |n| {
        let column_row_depth = n.choice("mode", false, &[("DCR", false), ("CRD", true)])?;
        let op = DepthToSpace { block_size: block(n)?, column_row_depth };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    })
    .moves(1),
    onnx("SpaceToDepth", 1, |n| {
        let column_row_depth = n.choice("mode", false, &[("DCR", false), ("CRD", true)])?;
        let op = SpaceToDepth { block_size: block(n)?, column_row_depth };
        let x = n.input(0)?;
        n.emit(op, vec![Some(x)])
    })
    .moves(1),
    onnx("Trilu", 14, |n| {
        let op = Trilu { upper: n.flag("upper", true)? };
        let inputs = n.inputs(1)?;
        n.emit(op, inputs)
    }),
    onnx("ReverseSequence", 10, |n| {
        let op =
            ReverseSequence { batch_axis: n.int_or("batch_axis", 1)?, time_axis: n.int_or("time_axis", 0)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    onnx("Identity", 1, |n| {
        let x = n.input(0)?;
        n.emit(Identity, vec![Some(x)])
    })
    .moves(1),
];

fn concat(n: &mut NodeReader<'_, '_>, axis: i64) -> Read {
    let count = n.input_count();
    let inputs = n.inputs(count.max(1))?;
    n.emit(Concat { axis }, inputs)
}

/// Lengths were an attribute before they became an input (in the first version they could be either). Without
/// lengths the parts are equal, from version 18 on with a shorter last one.
fn split(n: &mut NodeReader<'_, '_>) -> Read {
    let axis = n.int_or("axis", 0)?;
    let parts = n.size_or("num_outputs", n.output_count())?;
    if parts != n.output_count() {
        return Err(n.refuse("num_outputs", "is not the number of outputs").into());
    }
    let x = n.input(0)?;
    let mut inputs = vec![Some(x)];
    if let Some(lengths) = n.ints("split")? {
        inputs.push(Some(n.vector("lengths", &lengths)));
    } else if n.has_input(1) {
        inputs.push(n.optional(1)?);
    }
    n.emit(Split { axis, parts }, inputs)
}

fn slice_attributes(n: &mut NodeReader<'_, '_>) -> Read {
    let starts = n.ints("starts")?.ok_or(Invalid::MissingAttribute("starts"))?;
    let ends = n.ints("ends")?.ok_or(Invalid::MissingAttribute("ends"))?;
    let axes = n.ints("axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    if ends.len() != starts.len() || axes.len() != starts.len() {
        return Err(n.refuse("ends", "is not as long as starts or axes").into());
    }
    let x = n.input(0)?;
    let starts = n.vector("starts", &starts);
    let ends = n.vector("ends", &ends);
    let axes = n.vector("axes", &axes);
    n.emit(Slice, vec![Some(x), Some(starts), Some(ends), Some(axes)])
}

/// Data, and axes from the attribute of old versions or from the input.
fn axes(n: &mut NodeReader<'_, '_>) -> Read<Vec<Option<ValueId>>> {
    let x = n.input(0)?;
    if let Some(axes) = n.ints("axes")? {
        let axes = n.vector("axes", &axes);
        return Ok(vec![Some(x), Some(axes)]);
    }
    match n.optional(1)? {
        Some(axes) => Ok(vec![Some(x), Some(axes)]),
        None => Ok(vec![Some(x)]),
    }
}

/// The first version repeats along one axis; count and axis are inputs.
fn tile_one_axis(n: &mut NodeReader<'_, '_>) -> Read {
    let number = |t: Option<Tensor>| t.and_then(|t| super::elementwise::scalar(&t)).map(|v| v as i64);
    let (Some(count), Some(axis)) = (number(n.constant(1)?), number(n.constant(2)?)) else {
        return Err(Reason::Input { index: 1, what: "and the next must be constants" }.into());
    };
    let x = n.input(0)?;
    let Some(rank) = n.rank(x) else {
        return Err(Reason::Input { index: 0, what: "must have a known rank" }.into());
    };
    let mut repeats = vec![1i64; rank];
    let slot = usize::try_from(axis).ok().and_then(|axis| repeats.get_mut(axis));
    *slot.ok_or_else(|| Invalid::Other(format!("axis {axis} is outside of the data")))? = count;
    let repeats = n.vector("repeats", &repeats);
    n.emit(Tile, vec![Some(x), Some(repeats)])
}

/// What fills margins.
pub(super) fn pad_mode(n: &NodeReader<'_, '_>) -> Read<PadMode> {
    let modes = [
        ("constant", PadMode::Constant),
        ("reflect", PadMode::Reflect),
        ("edge", PadMode::Edge),
        ("wrap", PadMode::Wrap),
    ];
    n.choice("mode", PadMode::Constant, &modes)
}

fn pad_attributes(n: &mut NodeReader<'_, '_>, name: &'static str) -> Read {
    let op = Pad { mode: pad_mode(n)? };
    let pads = n.ints(name)?.ok_or(Invalid::MissingAttribute(name))?;
    let value = n.float_or("value", 0.0)?;
    let x = n.input(0)?;
    let mut inputs = vec![Some(x), Some(n.vector("pads", &pads))];
    if value != 0.0 {
        inputs.push(Some(n.number_like("value", x, f64::from(value))));
    }
    n.emit(op, inputs)
}

fn block(n: &NodeReader<'_, '_>) -> Read<usize> {
    match n.size_or("blocksize", 0)? {
        0 => Err(Invalid::MissingAttribute("blocksize").into()),
        size => Ok(size),
    }
}
