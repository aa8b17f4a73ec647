//! Detection heads against the reference pipeline, on made-up outputs.

use armet_vision::detect::{DetectError, Head, Thresholds};
use armet_vision::presets::Preparation;
use armet_vision::{Output, Picture, Tensor};

use crate::common::{Generator, cases, numbers, sizes};

const WIDTH: u32 = 96;
const HEIGHT: u32 = 64;

fn ratio(generator: &mut Generator) -> f32 {
    generator.next() as f32 / 16_777_216.0
}

fn outputs(head: Head, generator: &mut Generator) -> Vec<Tensor> {
    if head == Head::Picodet {
        let cells = [8, 16, 32, 64].map(|stride| (WIDTH.div_ceil(stride) * HEIGHT.div_ceil(stride)) as usize);
        let scores = cells.map(|cells| Tensor {
            shape: vec![1, cells, 3],
            data: (0..3 * cells).map(|_| ratio(generator)).collect(),
        });
        let logits = cells.map(|cells| Tensor {
            shape: vec![1, cells, 32],
            data: (0..32 * cells).map(|_| generator.below(4096) as f32 / 512.0 - 4.0).collect(),
        });
        return scores.into_iter().chain(logits).collect();
    }
    let rows: Vec<Vec<f32>> = (0..150)
        .map(|_| {
            let [x, y] = [WIDTH, HEIGHT].map(|side| generator.below(16 * side) as f32 / 16.0);
            let [w, h] = [0, 1].map(|_| 4.0 + generator.below(16 * 36) as f32 / 16.0);
            let scores = [0, 1, 2, 3].map(|_| ratio(generator));
            if head == Head::EndToEnd {
                vec![x, y, x + w, y + h, scores[0], generator.below(5) as f32]
            } else {
                [&[x, y, w, h][..], &scores].concat()
            }
        })
        .collect();
    let columns = rows[0].len();
    if head == Head::Yolov8 {
        let data = (0..columns).flat_map(|column| rows.iter().map(move |row| row[column])).collect();
        vec![Tensor { shape: vec![1, columns, rows.len()], data }]
    } else {
        vec![Tensor { shape: vec![1, rows.len(), columns], data: rows.concat() }]
    }
}

fn views(tensors: &[Tensor]) -> Vec<Output<'_>> {
    tensors.iter().map(Tensor::view).collect()
}

#[test]
fn heads_give_the_same_boxes() {
    for case in cases(include_str!("../answers/detect.json")) {
        let [width, height] = sizes(&case["picture"])[..] else { panic!("picture") };
        let name = case["head"].as_str().unwrap();
        let head: Head = serde_json::from_value(case["head"].clone()).unwrap();
        let tensors = outputs(head, &mut Generator::new(case["seed"].as_u64().unwrap()));
        let shapes: Vec<&[usize]> = tensors.iter().map(|tensor| &tensor.shape[..]).collect();
        assert_eq!(Head::guess(&shapes).unwrap(), if name == "yolov5" { Head::Yolov5 } else { head });

        let picture = Picture::filled(width, height, [0; 3]).unwrap();
        let preparation = Preparation::named(head.preset()).unwrap();
        let prepared = preparation.apply(&picture, Some(WIDTH as usize), Some(HEIGHT as usize)).unwrap();
        let thresholds = Thresholds { score: 0.6, overlap: 0.4, most: 300 };
        let found = head.decode(&views(&tensors), &prepared.placement, &thresholds).unwrap();
        let expected = case["found"].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{name}");
        assert!(!found.is_empty());
        for (found, expected) in found.iter().zip(expected) {
            let expected = numbers(expected);
            let found = [found.class as f32, found.score, found.left, found.top, found.right, found.bottom];
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((f64::from(found) - expected).abs() < 2e-3, "{name}: {found} is not {expected}");
            }
        }
    }
}

#[test]
fn outputs_of_other_shapes_are_refused_with_a_reason() {
    let picture = Picture::filled(8, 8, [0; 3]).unwrap();
    let placement = Preparation::unit().apply(&picture, Some(64), Some(64)).unwrap().placement;
    let thresholds = Head::Yolov8.thresholds();
    let decode = |head: Head, shape: &[usize], values: usize| {
        head.decode(&[Output { shape, data: &vec![0.0; values] }], &placement, &thresholds)
    };
    assert!(matches!(decode(Head::Yolov8, &[1, 84, 10], 3), Err(DetectError::WrongLength { found: 3, .. })));
    assert!(matches!(decode(Head::Yolov8, &[1, 4, 10], 40), Err(DetectError::WrongShape { .. })));
    assert!(matches!(decode(Head::Yolov5, &[10, 85], 850), Err(DetectError::WrongShape { .. })));
    assert!(matches!(decode(Head::EndToEnd, &[1, 10, 7], 70), Err(DetectError::WrongShape { .. })));
    assert!(matches!(decode(Head::EndToEnd, &[0, 10, 6], 0), Err(DetectError::WrongShape { .. })));
    assert!(matches!(decode(Head::Picodet, &[1, 64, 10], 640), Err(DetectError::WrongShape { .. })));
    assert!(matches!(
        Head::Picodet.decode(&[], &placement, &thresholds),
        Err(DetectError::WrongShape { .. })
    ));
    let many = [Output { shape: &[1, 64, 8], data: &[0.0; 512] }; 300];
    assert!(Head::Picodet.decode(&many, &placement, &thresholds).is_err());
    for shapes in [&[][..], &[&[1, 1000][..]], &[&[1, 3, 4][..], &[1, 3, 4], &[1, 3, 4]], &[&[1, 4, 4][..]]] {
        assert!(matches!(Head::guess(shapes), Err(DetectError::UnknownHead { .. })), "{shapes:?}");
    }
    assert_eq!(Head::guess(&[&[1, 84, 8400]]).unwrap(), Head::Yolov8);
    assert_eq!(Head::guess(&[&[1, 25200, 85]]).unwrap(), Head::Yolov5);
    assert_eq!(Head::guess(&[&[1, 25200, 6]]).unwrap(), Head::Yolov5);
    assert_eq!(Head::guess(&[&[1, 300, 6]]).unwrap(), Head::EndToEnd);
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    let picture = Picture::filled(8, 8, [0; 3]).unwrap();
    let placement = Preparation::unit().apply(&picture, Some(64), Some(64)).unwrap().placement;
    let thresholds = Thresholds { score: -1.0, ..Head::Yolov8.thresholds() };
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38] {
        for (head, shape) in
            [(Head::Yolov8, [1, 6, 20]), (Head::Yolov5, [1, 20, 7]), (Head::EndToEnd, [1, 20, 6])]
        {
            let data = vec![value; shape.iter().product()];
            assert!(head.decode(&[Output { shape: &shape, data: &data }], &placement, &thresholds).is_ok());
        }
        let (scores, distances) = (vec![value; 64 * 2], vec![value; 64 * 8]);
        let pair =
            [Output { shape: &[1, 64, 2], data: &scores }, Output { shape: &[1, 64, 8], data: &distances }];
        assert!(Head::Picodet.decode(&pair, &placement, &thresholds).is_ok());
    }
}
