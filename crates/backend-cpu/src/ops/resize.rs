//! Interpolation to other sizes.

use armet_graph::ops::{CoordinateMode, NearestMode, Resize, ResizeMode};
use armet_kernels::resize as kernel;
use armet_runtime::{Bindings, CompileContext, Lowered, NodeView, Unsupported};
use armet_tensor::ElementType;

use super::support::{axis, element_size, memory_axis, same_layout, same_storage, shapes};
use crate::{Cpu, direct, packed};

fn coordinates(mode: CoordinateMode) -> kernel::Coordinates {
    use kernel::Coordinates as K;
    match mode {
        CoordinateMode::HalfPixel => K::HalfPixel,
        CoordinateMode::HalfPixelSymmetric => K::HalfPixelSymmetric,
        CoordinateMode::PytorchHalfPixel => K::PytorchHalfPixel,
        CoordinateMode::AlignCorners => K::AlignCorners,
        CoordinateMode::Asymmetric => K::Asymmetric,
        CoordinateMode::TfCropAndResize => K::TfCropAndResize,
        CoordinateMode::TfHalfPixelForNn => K::TfHalfPixelForNn,
    }
}

fn nearest(mode: NearestMode) -> kernel::NearestMode {
    use kernel::NearestMode as K;
    match mode {
        NearestMode::RoundPreferFloor => K::RoundPreferFloor,
        NearestMode::RoundPreferCeil => K::RoundPreferCeil,
        NearestMode::Floor => K::Floor,
        NearestMode::Ceil => K::Ceil,
        NearestMode::CeilWhenShrinking => K::CeilWhenShrinking,
    }
}

fn floats(node: NodeView<'_>, index: usize, what: &'static str) -> Result<Option<Vec<f32>>, Unsupported> {
    if !node.has_input(index) {
        return Ok(None);
    }
    let tensor = node.constant(index).ok_or(Unsupported::NotConstant(what))?;
    let values = tensor.values::<f32>().map_err(|_| Unsupported::ElementType(tensor.element()))?;
    Ok((!values.is_empty()).then(|| values.into_owned()))
}

pub(crate) fn lower(cpu: Cpu, op: &Resize, node: NodeView<'_>) -> Result<Lowered, Unsupported> {
    same_storage(node)?;
    let layout = same_layout(node)?;
    let (shape, output) = (node.shape(0)?, node.output_shape(0)?);
    let rank = shape.len();
    let crop = op.coordinate == CoordinateMode::TfCropAndResize;
    let scales = floats(node, 2, "scales")?;
    let roi = if crop { floats(node, 1, "roi")? } else { None };
    let axes: Vec<usize> = match &op.axes {
        Some(axes) => axes.iter().map(|&a| axis(a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    // Stretching keeps the given scale; sizes, and policies on the aspect ratio, decide it by the lengths.
    let mut resized: Vec<(usize, kernel::ResizeAxis)> = Vec::new();
    for (index, &at) in axes.iter().enumerate() {
        let mut one = kernel::ResizeAxis::with_sizes(shape[at], output[at]);
        if let Some(scale) = scales.as_ref().and_then(|s| s.get(index)) {
            one.scale = *scale;
        }
        if let Some(roi) = &roi {
            let ends = roi.get(index).copied().zip(roi.get(index + axes.len()).copied());
            one.region =
                ends.ok_or_else(|| Unsupported::Shapes("roi must have two entries for each axis".into()))?;
        }
        if one.input != one.output || one.scale != 1.0 || crop {
            resized.push((memory_axis(at, rank, layout), one));
        }
    }
    if op.aspect != armet_graph::ops::AspectPolicy::Stretch {
        return Err(Unsupported::Attribute {
            name: "keep_aspect_ratio_policy",
            value: format!("{:?}", op.aspect),
        });
    }
    resized.sort_by_key(|(at, _)| *at);
    let memory = layout.physical(&shape);
    let (Some((first, _)), Some((last, _))) = (resized.first(), resized.last()) else {
        return Ok(Lowered::Alias);
    };
    if resized.len() > 2 || last - first + 1 != resized.len() {
        return Err(Unsupported::Shapes("no kernel for these axes together".into()));
    }
    let (outer, inner) = (memory[..*first].iter().product(), memory[last + 1..].iter().product());
    let options = kernel::ResizeOptions {
        interpolation: match op.mode {
            ResizeMode::Nearest => kernel::Interpolation::Nearest(nearest(op.nearest)),
            ResizeMode::Linear => kernel::Interpolation::Linear,
            ResizeMode::Cubic => kernel::Interpolation::Cubic(op.cubic_coeff_a),
        },
        coordinates: coordinates(op.coordinate),
        exclude_outside: op.exclude_outside,
        antialias: op.antialias,
        extrapolation: op.extrapolation_value,
    };
    let axes: Vec<kernel::ResizeAxis> = resized.iter().map(|(_, axis)| *axis).collect();
    let resize = kernel::Resize::new(&options, outer, &axes, inner).map_err(shapes)?;
    let element = node.element(0)?;
    if element != ElementType::F32 {
        if op.mode != ResizeMode::Nearest || crop {
            return Err(Unsupported::ElementType(element));
        }
        let size = element_size(element)?;
        return Ok(direct(format!("resize_nearest_{size}"), move |b| {
            resize.run_nearest(b.team(), size, &[0; 16][..size], b.bytes(0), b.output_bytes(0));
        }));
    }
    let isas = cpu.isas;
    Ok(packed(move |context: &CompileContext<'_>| {
        let scratch = resize.scratch_length(context.threads) * size_of::<f32>();
        Ok((format!("resize_f32_{}", isas.best()), scratch, move |b: &mut Bindings<'_>| {
            let (y, scratch) = (b.output(0), b.scratch());
            resize.run(isas, b.team(), b.input(0), y, scratch);
        }))
    }))
}
