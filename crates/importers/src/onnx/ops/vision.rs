//! Sampling, regions and boxes of pictures.

use armet_graph::ValueId;
use armet_graph::ops::{
    BinaryKind, Col2Im, ConstantOfShape, DeformConv, GridMode, GridPadding, GridSample, MaxRoiPool,
    NonMaxSuppression, NonZero, Pad, PadMode, ReduceKind, Reshape, RoiAlign, ScatterElements,
    ScatterReduction, Slice, Transpose,
};
use armet_tensor::{Bool, ElementType, Tensor};

use super::compose::{binary, cast, concat, dims, element, gather, reduce_all, reshape, with_number};
use super::convolution::steps;
use super::{Entry, onnx, products};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("GridSample", 16, grid_sample),
    onnx("AffineGrid", 20, affine_grid),
    onnx("RoiAlign", 10, |n| roi_align(n, false)),
    onnx("RoiAlign", 16, |n| roi_align(n, true)),
    onnx("MaxRoiPool", 1, |n| {
        let given = n.sizes("pooled_shape")?;
        let Ok(pooled) = <[usize; 2]>::try_from(given) else {
            return Err(n.refuse("pooled_shape", "must be two numbers").into());
        };
        if pooled.contains(&0) {
            return Err(n.refuse("pooled_shape", "must be positive").into());
        }
        let op = MaxRoiPool { pooled, spatial_scale: n.float_or("spatial_scale", 1.0)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    onnx("NonMaxSuppression", 10, |n| {
        let op = NonMaxSuppression { center_point_box: n.flag("center_point_box", false)? };
        let inputs = n.inputs(2)?;
        n.emit(op, inputs)
    }),
    onnx("CenterCropPad", 18, center_crop_pad),
    onnx("Col2Im", 18, |n| {
        let op = Col2Im {
            strides: steps(n, "strides")?,
            dilations: steps(n, "dilations")?,
            pads: n.sizes("pads")?,
        };
        let inputs = n.inputs(3)?;
        n.emit(op, inputs)
    }),
    onnx("DeformConv", 19, |n| {
        n.ignore(&["kernel_shape"]);
        let op = DeformConv {
            strides: steps(n, "strides")?,
            dilations: steps(n, "dilations")?,
            pads: n.sizes("pads")?,
            group: n.size_or("group", 1)?,
            offset_group: n.size_or("offset_group", 1)?,
        };
        let inputs = n.inputs(3)?;
        n.emit(op, inputs)
    }),
    onnx("MaxUnpool", 9, max_unpool),
];

/// Before version 20 linear and cubic had a "bi" before them.
fn grid_sample(n: &mut NodeReader<'_, '_>) -> Read {
    let modes = [
        ("linear", GridMode::Linear),
        ("bilinear", GridMode::Linear),
        ("nearest", GridMode::Nearest),
        ("cubic", GridMode::Cubic),
        ("bicubic", GridMode::Cubic),
    ];
    let paddings = [
        ("zeros", GridPadding::Zeros),
        ("border", GridPadding::Border),
        ("reflection", GridPadding::Reflection),
    ];
    let op = GridSample {
        mode: n.choice("mode", GridMode::Linear, &modes)?,
        padding: n.choice("padding_mode", GridPadding::Zeros, &paddings)?,
        align_corners: n.flag("align_corners", false)?,
    };
    let inputs = n.inputs(2)?;
    n.emit(op, inputs)
}

fn roi_align(n: &mut NodeReader<'_, '_>, half_pixel: bool) -> Read {
    let words = [("half_pixel", true), ("output_half_pixel", false)];
    let op = RoiAlign {
        output_height: n.size_or("output_height", 1)?,
        output_width: n.size_or("output_width", 1)?,
        sampling_ratio: n.size_or("sampling_ratio", 0)?,
        spatial_scale: n.float_or("spatial_scale", 1.0)?,
        max: n.choice("mode", false, &[("avg", false), ("max", true)])?,
        half_pixel: n.choice("coordinate_transformation_mode", half_pixel, &words)?,
    };
    if op.output_height == 0 || op.output_width == 0 {
        return Err(n.refuse("output_height", "must be positive").into());
    }
    let inputs = n.inputs(3)?;
    n.emit(op, inputs)
}

/// The places of a regular grid, of two or three axes as the size tells, moved by an affine map for each item.
fn affine_grid(n: &mut NodeReader<'_, '_>) -> Read {
    let align_corners = n.flag("align_corners", false)?;
    let (theta, size) = (n.input(0)?, n.input(1)?);
    let to = element(n, theta);
    let work = if to == ElementType::F64 { to } else { ElementType::F32 };
    let slice = |n: &mut NodeReader<'_, '_>, suffix: &str, x: ValueId, [start, end, step]: [i64; 3]| {
        let numbers = [("start", start), ("end", end), ("axis", 0), ("step", step)];
        let bounds = numbers.map(|(name, value)| Some(n.vector(&format!("{suffix}/{name}"), &[value])));
        n.step(suffix, Slice, std::iter::once(Some(x)).chain(bounds).collect())
    };
    let spatial = slice(n, "spatial", size, [2, i64::MAX, 1]);
    // The index of each place along each axis is the coordinate of something that is there everywhere.
    let everywhere = ConstantOfShape { value: Tensor::vector(&[Bool(1)]) };
    let everywhere = n.step("everywhere", everywhere, vec![Some(spatial)]);
    let index = n.step("index", NonZero, vec![Some(everywhere)]);
    let index = cast(n, "real_index", work, index);
    let lengths = cast(n, "lengths", work, spatial);
    let lengths = reshape(n, "column_of_lengths", lengths, &[-1, 1]);
    let twice = with_number(n, "twice", BinaryKind::Mul, index, 2.0);
    let places = if align_corners {
        let steps = with_number(n, "steps", BinaryKind::Sub, lengths, 1.0);
        let steps = with_number(n, "some_steps", BinaryKind::Max, steps, 1.0);
        binary(n, "part", BinaryKind::Div, twice, steps)
    } else {
        let centre = with_number(n, "centre", BinaryKind::Add, twice, 1.0);
        binary(n, "part", BinaryKind::Div, centre, lengths)
    };
    let places = with_number(n, "places", BinaryKind::Sub, places, 1.0);
    // The last axis comes first, and a one behind the axes meets the shift.
    let turned = slice(n, "turned", places, [-1, i64::MIN + 1, -1]);
    let pads = n.vector("below", &[0i64, 0, 1, 0]);
    let one = n.number_like("one", turned, 1.0);
    let pad = vec![Some(turned), Some(pads), Some(one)];
    let places = n.step("homogeneous", Pad { mode: PadMode::Constant }, pad);
    let theta_work = if to == work { theta } else { cast(n, "theta", work, theta) };
    let moved = n.step("moved", products::PLAIN, vec![Some(theta_work), Some(places)]);
    let moved = n.step("rows", Transpose { perm: vec![0, 2, 1] }, vec![Some(moved)]);
    let moved = if to == work { moved } else { cast(n, "stored", to, moved) };
    let batch = slice(n, "batch", size, [0, 1, 1]);
    let axes = dims(n, "axes", theta, 1, Some(2));
    let shape = concat(n, "shape", 0, &[batch, spatial, axes]);
    n.emit(Reshape { allow_zero: true }, vec![Some(moved), Some(shape)])
}

/// Margins on both sides, negative where there is too much; of an odd number the larger part is behind.
fn center_crop_pad(n: &mut NodeReader<'_, '_>) -> Read {
    let axes = n.ints("axes")?;
    let (x, target) = (n.input(0)?, n.input(1)?);
    let target = cast(n, "target", ElementType::I64, target);
    let mut lengths = dims(n, "lengths", x, 0, None);
    let mut inputs = vec![Some(x)];
    let axes = axes.map(|axes| n.vector("axes", &axes));
    if let Some(axes) = axes {
        lengths = gather(n, "chosen", lengths, axes);
    }
    let missing = binary(n, "missing", BinaryKind::Sub, target, lengths);
    let begin = with_number(n, "begin", BinaryKind::Div, missing, 2.0);
    let end = binary(n, "end", BinaryKind::Sub, missing, begin);
    inputs.push(Some(concat(n, "pads", 0, &[begin, end])));
    if let Some(axes) = axes {
        inputs.extend([None, Some(axes)]);
    }
    n.emit(Pad { mode: PadMode::Constant }, inputs)
}

/// Elements put back to where they were the largest. Where a shape is given, it is the smaller one with a margin behind.
fn max_unpool(n: &mut NodeReader<'_, '_>) -> Read {
    let kernel = steps(n, "kernel_shape")?;
    if kernel.is_empty() {
        return Err(Invalid::MissingAttribute("kernel_shape").into());
    }
    let rank = kernel.len();
    let (strides, pads) = (steps(n, "strides")?, n.sizes("pads")?);
    if !(strides.is_empty() || strides.len() == rank) || !(pads.is_empty() || pads.len() == 2 * rank) {
        return Err(n.refuse("kernel_shape", "is not as long as strides or half of pads").into());
    }
    let (x, indices, given) = (n.input(0)?, n.input(1)?, n.optional(2)?);
    let number = |values: &[usize], i: usize, default: i64| values.get(i).map_or(default, |&v| v as i64);
    let factors: Vec<i64> = (0..rank).map(|i| number(&strides, i, 1)).collect();
    // (length - 1) * stride + kernel - pads
    let more: Vec<i64> = (0..rank)
        .map(|i| {
            let pads = number(&pads, i, 0).saturating_add(number(&pads, i + rank, 0));
            (kernel[i] as i64 - factors[i]).saturating_sub(pads)
        })
        .collect();
    let lengths = dims(n, "lengths", x, 2, None);
    let (factors, more) = (n.vector("strides", &factors), n.vector("more", &more));
    let lengths = binary(n, "strided", BinaryKind::Mul, lengths, factors);
    let lengths = binary(n, "unpooled", BinaryKind::Add, lengths, more);
    let front = dims(n, "front", x, 0, Some(2));
    let shape = concat(n, "shape", 0, &[front, lengths]);
    let count = reduce_all(n, "count", ReduceKind::Prod, shape);
    let count = reshape(n, "flat", count, &[1]);
    let to = element(n, x);
    let zero =
        armet_graph::ops::numbers::from_f64(to, [1], &[0.0]).map_err(|e| Invalid::Other(e.to_string()))?;
    let zeros = n.step("zeros", ConstantOfShape { value: zero }, vec![Some(count)]);
    let (at, from) = (reshape(n, "places", indices, &[-1]), reshape(n, "elements", x, &[-1]));
    let scatter = ScatterElements { axis: 0, reduction: ScatterReduction::None };
    let flat = n.step("scattered", scatter, vec![Some(zeros), Some(at), Some(from)]);
    let Some(given) = given else {
        return n.emit(Reshape { allow_zero: true }, vec![Some(flat), Some(shape)]);
    };
    let small = n.step("small", Reshape { allow_zero: true }, vec![Some(flat), Some(shape)]);
    let end = binary(n, "margin", BinaryKind::Sub, given, shape);
    let begin = n.vector("no_margin", &vec![0i64; rank + 2]);
    let pads = concat(n, "pads", 0, &[begin, end]);
    n.emit(Pad { mode: PadMode::Constant }, vec![Some(small), Some(pads)])
}
