//! What every backend's Resize is held to.

use armet_tensor::{ElementType, Tensor};

use super::{AspectPolicy, CoordinateMode, NearestMode, Resize, ResizeMode};
use crate::{Case, Numbers, Tolerance};

fn op(mode: ResizeMode, coordinate: CoordinateMode) -> Resize {
    Resize {
        mode,
        coordinate,
        nearest: NearestMode::RoundPreferFloor,
        cubic_coeff_a: -0.75,
        exclude_outside: false,
        extrapolation_value: 0.0,
        antialias: false,
        axes: None,
        aspect: AspectPolicy::Stretch,
    }
}

fn scaled(name: &str, op: Resize, element: ElementType, shape: &[usize], scales: &[f32]) -> Case {
    let data = Numbers::new(29).tensor(element, shape);
    let exact = op.mode == ResizeMode::Nearest;
    let mut case = Case::new(name, op, [data]).with_constants(&[2]);
    case.inputs.extend([None, Some(Tensor::vector(scales))]);
    if exact { case.with_tolerance(Tolerance::Exact) } else { case }
}

fn sized(name: &str, op: Resize, element: ElementType, shape: &[usize], sizes: &[i64]) -> Case {
    let mut case = scaled(name, op, element, shape, &[]).with_constants(&[3]);
    case.inputs[2] = None;
    case.inputs.push(Some(Tensor::vector(sizes)));
    case
}

pub(super) fn cases() -> Vec<Case> {
    use CoordinateMode::{
        AlignCorners, Asymmetric, HalfPixel, HalfPixelSymmetric, PytorchHalfPixel, TfCropAndResize,
    };
    use ElementType::{F32, U8};
    use ResizeMode::{Cubic, Linear, Nearest};
    let by_direction = Resize { nearest: NearestMode::CeilWhenShrinking, ..op(Nearest, Asymmetric) };
    let floor = Resize { nearest: NearestMode::Floor, ..op(Nearest, Asymmetric) };
    let mut cropped = sized(
        "part of a picture",
        Resize { extrapolation_value: 10.0, ..op(Linear, TfCropAndResize) },
        F32,
        &[1, 1, 4, 5],
        &[1, 1, 3, 4],
    );
    cropped.inputs[1] = Some(Tensor::vector(&[0.0f32, 0.0, 0.4, 0.6, 1.0, 1.0, 1.2, 1.7]));
    cropped.constants.push(1);
    let antialias = |mode| Resize { antialias: true, ..op(mode, HalfPixel) };
    vec![
        scaled("twice by nearest", floor.clone(), F32, &[1, 3, 4, 5], &[1.0, 1.0, 2.0, 2.0]),
        scaled("nearest of bytes", floor, U8, &[1, 2, 3, 7], &[1.0, 1.0, 3.0, 0.5]),
        scaled("nearest of old", by_direction, F32, &[1, 2, 4, 5], &[1.0, 1.0, 0.6, 1.7]),
        sized("nearest half pixel", op(Nearest, HalfPixel), F32, &[1, 2, 5, 4], &[1, 2, 7, 9]),
        sized(
            "nearest upper",
            Resize { nearest: NearestMode::RoundPreferCeil, ..op(Nearest, HalfPixel) },
            F32,
            &[1, 1, 6, 6],
            &[1, 1, 3, 4],
        ),
        scaled("twice by linear", op(Linear, HalfPixel), F32, &[1, 2, 3, 4], &[1.0, 1.0, 2.0, 2.0]),
        scaled("linear as PyTorch", op(Linear, PytorchHalfPixel), F32, &[1, 2, 5, 7], &[1.0, 1.0, 0.6, 0.2]),
        sized("linear from corner to corner", op(Linear, AlignCorners), F32, &[2, 3, 4, 4], &[2, 3, 7, 9]),
        scaled(
            "from corner to corner, rounded",
            op(Linear, AlignCorners),
            F32,
            &[1, 2, 4, 5],
            &[1.0, 1.0, 0.6, 1.5],
        ),
        scaled(
            "cubic from corner to corner",
            op(Cubic, AlignCorners),
            F32,
            &[1, 1, 4, 5],
            &[1.0, 1.0, 1.6, 0.7],
        ),
        sized("linear shrinking", op(Linear, Asymmetric), F32, &[1, 1, 7, 9], &[1, 1, 3, 4]),
        scaled("linear symmetric", op(Linear, HalfPixelSymmetric), F32, &[1, 1, 5, 4], &[1.0, 1.0, 2.1, 0.7]),
        sized("linear of a line", op(Linear, HalfPixel), F32, &[3, 5], &[3, 8]),
        sized("linear of a volume", op(Linear, HalfPixel), F32, &[1, 1, 3, 2, 4], &[1, 1, 4, 5, 3]),
        scaled("linear of bytes", op(Linear, HalfPixel), U8, &[1, 1, 4, 4], &[1.0, 1.0, 1.5, 2.0])
            .with_tolerance(Tolerance::Steps(1)),
        sized("cubic", op(Cubic, HalfPixel), F32, &[1, 1, 5, 4], &[1, 1, 9, 3]),
        scaled(
            "cubic inside only",
            Resize { exclude_outside: true, cubic_coeff_a: -0.5, ..op(Cubic, HalfPixel) },
            F32,
            &[1, 1, 4, 4],
            &[1.0, 1.0, 2.0, 0.8],
        ),
        sized("linear antialiased", antialias(Linear), F32, &[1, 1, 9, 8], &[1, 1, 4, 3]),
        sized("cubic antialiased", antialias(Cubic), F32, &[1, 1, 9, 8], &[1, 1, 4, 3]),
        sized(
            "given axes",
            Resize { axes: Some(vec![-1, 2]), ..op(Linear, HalfPixel) },
            F32,
            &[1, 2, 3, 4],
            &[6, 5],
        ),
        sized(
            "not larger",
            Resize { axes: Some(vec![2, 3]), aspect: AspectPolicy::NotLarger, ..op(Linear, HalfPixel) },
            F32,
            &[1, 1, 4, 6],
            &[7, 8],
        ),
        cropped,
        sized("nothing changes", op(Linear, HalfPixel), F32, &[1, 2, 3, 3], &[1, 2, 3, 3]),
        scaled("an empty batch", op(Linear, HalfPixel), F32, &[0, 2, 3, 3], &[1.0, 1.0, 2.0, 2.0]),
        Case {
            constants: vec![],
            ..sized("sizes given at run time", op(Nearest, Asymmetric), F32, &[1, 1, 2, 3], &[1, 1, 4, 6])
        },
    ]
}
