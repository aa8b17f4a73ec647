use super::{Coordinates, Interpolation, NearestMode, Resize, ResizeAxis, ResizeOptions};
use crate::dispatch::variants;
use crate::isa::Isas;
use crate::threads::Team;
use crate::transpose::LayoutError;

/// What onnxruntime 1.23 makes of `picture(4, 5)`, one case a line: mode, coordinates, nearest mode, cubic coefficient,
/// exclude outside, antialias, output height and width, both scales, region (top, left, bottom, right), values. Made with
/// opset 19, and 9 as extrapolation value.
const GOLDEN: &str = include_str!("golden.txt");

fn picture(height: usize, width: usize) -> Vec<f32> {
    (0..height * width).map(|index| (index * 7919 % 41) as f32 / 10.0 - 2.0).collect()
}

fn options(interpolation: Interpolation, coordinates: Coordinates) -> ResizeOptions {
    ResizeOptions { interpolation, coordinates, exclude_outside: false, antialias: false, extrapolation: 9.0 }
}

fn run(resize: &Resize, isas: Isas, team: &Team, x: &[f32]) -> Vec<f32> {
    let mut y = vec![f32::NAN; resize.output_length()];
    let mut scratch = vec![f32::NAN; resize.scratch_length(team.threads())];
    resize.run(isas, team, x, &mut y, &mut scratch);
    y
}

/// The case, its axes and the expected values.
fn golden() -> Vec<(ResizeOptions, [ResizeAxis; 2], Vec<f32>)> {
    GOLDEN
        .lines()
        .map(|line| {
            let (case, values) = line.split_once(" : ").unwrap();
            let case: Vec<&str> = case.split(' ').collect();
            let number = |index: usize| case[index].parse::<f32>().unwrap();
            let nearest = match case[2] {
                "round_prefer_floor" => NearestMode::RoundPreferFloor,
                "round_prefer_ceil" => NearestMode::RoundPreferCeil,
                "ceil" => NearestMode::Ceil,
                _ => NearestMode::Floor,
            };
            let options = ResizeOptions {
                interpolation: match case[0] {
                    "nearest" => Interpolation::Nearest(nearest),
                    "linear" => Interpolation::Linear,
                    _ => Interpolation::Cubic(number(3)),
                },
                coordinates: match case[1] {
                    "half_pixel" => Coordinates::HalfPixel,
                    "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
                    "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
                    "align_corners" => Coordinates::AlignCorners,
                    "asymmetric" => Coordinates::Asymmetric,
                    _ => Coordinates::TfCropAndResize,
                },
                exclude_outside: case[4] == "1",
                antialias: case[5] == "1",
                extrapolation: 9.0,
            };
            let axis = |input, index: usize| ResizeAxis {
                input,
                output: case[6 + index].parse().unwrap(),
                scale: number(8 + index),
                region: (number(10 + index), number(12 + index)),
            };
            let values = values.split(' ').map(|value| value.parse().unwrap()).collect();
            (options, [axis(4, 0), axis(5, 1)], values)
        })
        .collect()
}

#[test]
fn agrees_with_onnxruntime() {
    let x = picture(4, 5);
    let cases = golden();
    assert!(cases.len() > 100);
    for (options, axes, expected) in cases {
        let resize = Resize::new(&options, 1, &axes, 1).unwrap();
        for isas in variants() {
            let y = run(&resize, isas, &Team::single(), &x);
            for (index, (y, expected)) in y.iter().zip(&expected).enumerate() {
                assert!(
                    (y - expected).abs() < 2e-5,
                    "{options:?} {axes:?} {isas}, element {index}: {y} and {expected}"
                );
            }
        }
    }
}

#[test]
fn layouts_agree_with_each_other() {
    let (height, width, channels, batch) = (9, 11, 19, 2);
    let team = Team::new(2);
    for (options, ..) in golden() {
        for (out_h, out_w) in [(5, 23), (9, 4), (18, 11)] {
            let axes = [ResizeAxis::with_sizes(height, out_h), ResizeAxis::with_sizes(width, out_w)];
            let single = Resize::new(&options, 1, &axes, 1).unwrap();
            let first = Resize::new(&options, batch * channels, &axes, 1).unwrap();
            let last = Resize::new(&options, batch, &axes, channels).unwrap();
            // A third axis that is resized brings in the general loop.
            let depth = ResizeAxis { input: 1, output: 1, scale: 2.0, region: (0.0, 1.0) };
            let general = Resize::new(&options, batch * channels, &[depth, axes[0], axes[1]], 1).unwrap();
            let x = picture(height * batch * channels, width);
            let plane = height * width;
            let interleaved: Vec<f32> = (0..x.len())
                .map(|index| {
                    let (place, channel) = (index / channels, index % channels);
                    x[(place / plane * channels + channel) * plane + place % plane]
                })
                .collect();
            let by_plane: Vec<f32> =
                x.chunks(plane).flat_map(|x| run(&single, Isas::scalar(), &team, x)).collect();
            let at_once = run(&first, Isas::detect(), &team, &x);
            let by_channel = run(&last, Isas::detect(), &team, &interleaved);
            let generally = run(&general, Isas::detect(), &team, &x);
            let out = out_h * out_w;
            for index in 0..by_plane.len() {
                let (image, channel, place) = (index / out / channels, index / out % channels, index % out);
                let expected = by_plane[index];
                let depth_is_inside = options.coordinates != Coordinates::TfCropAndResize;
                for (what, found) in [
                    ("first", at_once[index]),
                    ("last", by_channel[(image * out + place) * channels + channel]),
                    ("general", if depth_is_inside { generally[index] } else { expected }),
                ] {
                    assert!(
                        (found - expected).abs() < 1e-4,
                        "{what} {options:?} {out_h} {out_w}: {found} {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn nearest_neighbours_are_copied() {
    let x = picture(4, 5);
    let team = Team::new(2);
    for (options, axes, _) in golden() {
        if !matches!(options.interpolation, Interpolation::Nearest(_)) {
            continue;
        }
        let resize = Resize::new(&options, 1, &axes, 1).unwrap();
        let expected = run(&resize, Isas::detect(), &team, &x);
        let mut y = vec![0.0_f32; expected.len()];
        let bytes = bytemuck::cast_slice_mut(&mut y);
        resize.run_nearest(&team, 4, &9.0_f32.to_ne_bytes(), bytemuck::cast_slice(&x), bytes);
        assert_eq!(y, expected, "{options:?}");
        let wide = Resize::new(&options, 1, &axes, 7).unwrap();
        let small: Vec<u8> = x.iter().flat_map(|&x| [(x * 10.0) as i8 as u8; 7]).collect();
        let mut y = vec![0_u8; expected.len() * 7];
        wide.run_nearest(&team, 1, &[90], &small, &mut y);
        let expected: Vec<u8> = expected.iter().flat_map(|&x| [(x * 10.0) as i8 as u8; 7]).collect();
        assert_eq!(y, expected, "{options:?}");
    }
}

#[test]
fn sizes_of_nothing() {
    let nearest = options(Interpolation::Nearest(NearestMode::Floor), Coordinates::Asymmetric);
    let axis = |input, output| ResizeAxis { input, output, scale: 1.0, region: (0.0, 1.0) };
    let none = Resize::new(&nearest, 1, &[axis(3, 0)], 1).unwrap();
    assert!(run(&none, Isas::detect(), &Team::single(), &[1.0, 2.0, 3.0]).is_empty());
    assert!(matches!(Resize::new(&nearest, 1, &[axis(0, 2)], 1), Err(LayoutError::OutOfBounds { .. })));
    let same = Resize::new(&nearest, 2, &[axis(3, 3)], 1).unwrap();
    assert_eq!(run(&same, Isas::detect(), &Team::single(), &picture(2, 3)), picture(2, 3));
}
