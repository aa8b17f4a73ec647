//! Interpolation to other sizes.

use armet_graph::ValueId;
use armet_graph::ops::{AspectPolicy, CoordinateMode, NearestMode, Resize, ResizeMode};

use super::{Entry, onnx};
use crate::onnx::error::Invalid;
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("Upsample", 1, |n| {
        let scale = |name| n.float(name)?.ok_or_else(|| Invalid::MissingAttribute(name).into());
        let scales: [Read<f32>; 2] = [scale("height_scale"), scale("width_scale")];
        let [height, width] = scales;
        let scales = [1.0, 1.0, height?, width?];
        let mode = mode(n)?;
        let (x, scales) = (n.input(0)?, n.vector("scales", &scales));
        n.emit(quotient(mode), vec![Some(x), None, Some(scales)])
    }),
    onnx("Upsample", 7, |n| {
        let scales = n.floats("scales")?.ok_or(Invalid::MissingAttribute("scales"))?;
        let mode = mode(n)?;
        let (x, scales) = (n.input(0)?, n.vector("scales", &scales));
        n.emit(quotient(mode), vec![Some(x), None, Some(scales)])
    }),
    onnx("Upsample", 9, scales_only),
    onnx("Resize", 10, scales_only),
    onnx("Resize", 11, resize),
];

fn mode(n: &NodeReader<'_, '_>) -> Read<ResizeMode> {
    let modes = [
        ("nearest", ResizeMode::Nearest),
        ("linear", ResizeMode::Linear),
        ("bilinear", ResizeMode::Linear),
        ("cubic", ResizeMode::Cubic),
    ];
    n.choice("mode", ResizeMode::Nearest, &modes)
}

/// What versions below 11 did: a coordinate is divided by the scale; nearest rounds it down, and up where an axis shrinks, as
/// onnxruntime does and the standard's cases of version 10 expect.
fn quotient(mode: ResizeMode) -> Resize {
    Resize {
        mode,
        coordinate: CoordinateMode::Asymmetric,
        nearest: NearestMode::CeilWhenShrinking,
        cubic_coeff_a: -0.75,
        exclude_outside: false,
        extrapolation_value: 0.0,
        antialias: false,
        axes: None,
        aspect: AspectPolicy::Stretch,
    }
}

fn scales_only(n: &mut NodeReader<'_, '_>) -> Read {
    let mode = mode(n)?;
    let inputs = n.inputs(2)?;
    n.emit(quotient(mode), vec![inputs[0], None, inputs[1]])
}

fn resize(n: &mut NodeReader<'_, '_>) -> Read {
    let coordinates = [
        ("half_pixel", CoordinateMode::HalfPixel),
        ("half_pixel_symmetric", CoordinateMode::HalfPixelSymmetric),
        ("pytorch_half_pixel", CoordinateMode::PytorchHalfPixel),
        ("align_corners", CoordinateMode::AlignCorners),
        ("asymmetric", CoordinateMode::Asymmetric),
        ("tf_crop_and_resize", CoordinateMode::TfCropAndResize),
        ("tf_half_pixel_for_nn", CoordinateMode::TfHalfPixelForNn),
    ];
    let roundings = [
        ("round_prefer_floor", NearestMode::RoundPreferFloor),
        ("round_prefer_ceil", NearestMode::RoundPreferCeil),
        ("floor", NearestMode::Floor),
        ("ceil", NearestMode::Ceil),
    ];
    let policies = [
        ("stretch", AspectPolicy::Stretch),
        ("not_larger", AspectPolicy::NotLarger),
        ("not_smaller", AspectPolicy::NotSmaller),
    ];
    let op = Resize {
        mode: mode(n)?,
        coordinate: n.choice("coordinate_transformation_mode", CoordinateMode::HalfPixel, &coordinates)?,
        nearest: n.choice("nearest_mode", NearestMode::RoundPreferFloor, &roundings)?,
        cubic_coeff_a: n.float_or("cubic_coeff_a", -0.75)?,
        exclude_outside: n.flag("exclude_outside", false)?,
        extrapolation_value: n.float_or("extrapolation_value", 0.0)?,
        antialias: n.flag("antialias", false)?,
        axes: n.ints("axes")?,
        aspect: n.choice("keep_aspect_ratio_policy", AspectPolicy::Stretch, &policies)?,
    };
    let x = n.input(0)?;
    let region = if op.coordinate == CoordinateMode::TfCropAndResize { filled(n, 1)? } else { None };
    // Exporters leave an empty vector of scales where sizes are given.
    let sizes = filled(n, 3)?;
    let scales = if sizes.is_some() { None } else { filled(n, 2)? };
    match (scales, sizes) {
        (None, None) => Err(Invalid::MissingInput(2).into()),
        (scales, None) => n.emit(op, vec![Some(x), region, scales]),
        (_, sizes) => n.emit(op, vec![Some(x), region, None, sizes]),
    }
}

/// An input, unless it is a constant without elements.
fn filled(n: &mut NodeReader<'_, '_>, index: usize) -> Read<Option<ValueId>> {
    if n.constant(index)?.is_some_and(|t| t.is_empty()) { Ok(None) } else { n.optional(index) }
}
