//! The face cascade against the reference pipeline, with made-up networks.

use armet_vision::faces::{Candidate, FaceError, Network, Settings, crops, find, pyramid};
use armet_vision::{Picture, Planes, Tensor};

use crate::common::{Generator, cases, numbers, sizes};

/// Stands in for the three networks: what they answer does not depend on what they see.
struct Networks {
    generator: Generator,
    sums: Vec<f64>,
}

impl Networks {
    fn shifts(&mut self, count: usize) -> Vec<f32> {
        (0..4 * count).map(|_| (self.generator.below(200) as f32 - 100.0) / 512.0).collect()
    }

    fn run(&mut self, network: Network, input: &Planes) -> Vec<Tensor> {
        self.sums.push(input.data.iter().copied().map(f64::from).sum());
        let tensor = |shape: &[usize], data: Vec<f32>| Tensor { shape: shape.to_vec(), data };
        if network == Network::Proposer {
            let [_, columns, rows, _] = input.shape();
            let (columns, rows) = ((columns - 10) / 2, (rows - 10) / 2);
            let shifts = self.shifts(columns * rows);
            let scores = (0..columns * rows)
                .flat_map(|_| {
                    let value = self.generator.below(128);
                    let likely = if value < 8 { (90 + value % 38) as f32 / 128.0 } else { 0.0 };
                    [1.0 - likely, likely]
                })
                .collect();
            return vec![tensor(&[1, columns, rows, 4], shifts), tensor(&[1, columns, rows, 2], scores)];
        }
        let count = input.count;
        let shifts = tensor(&[count, 4], self.shifts(count));
        let scores = (0..count)
            .flat_map(|_| {
                let likely = self.generator.below(128) as f32 / 128.0;
                [1.0 - likely, likely]
            })
            .collect();
        let scores = tensor(&[count, 2], scores);
        if network == Network::Refiner {
            return vec![shifts, scores];
        }
        let points = (0..10 * count).map(|_| self.generator.below(256) as f32 / 256.0).collect();
        vec![shifts, tensor(&[count, 10], points), scores]
    }
}

#[test]
fn the_cascade_finds_the_same_faces() {
    let mut found_in_all = 0;
    for case in cases(include_str!("../answers/faces.json")) {
        let [width, height] = sizes(&case["picture"])[..] else { panic!("picture") };
        let seed = case["seed"].as_u64().unwrap();
        let picture = Picture::new(width, height, Generator::new(seed).bytes(3 * width * height)).unwrap();
        let mut networks = Networks { generator: Generator::new(seed + 50), sums: Vec::new() };
        let run = |network: Network, input: &Planes| Ok::<_, FaceError>(networks.run(network, input));
        let faces = find(&picture, &Settings::default(), run).unwrap();
        let inputs = numbers(&case["inputs"]);
        assert_eq!(networks.sums.len(), inputs.len());
        for (found, expected) in networks.sums.iter().zip(inputs) {
            assert!((found - expected).abs() < 1e-3, "an input sums up to {found}, not {expected}");
        }
        let expected = case["faces"].as_array().unwrap();
        assert_eq!(faces.len(), expected.len());
        found_in_all += faces.len();
        for (face, expected) in faces.iter().zip(expected) {
            let found = [face.left, face.top, face.right, face.bottom, face.score];
            for (found, expected) in
                found.iter().chain(face.landmarks.iter().flatten()).zip(numbers(expected))
            {
                assert!((found - expected).abs() < 2e-4, "{found} is not {expected}");
            }
        }
    }
    assert!(found_in_all >= 5);
}

#[test]
fn networks_that_answer_otherwise_are_refused() {
    let picture = Picture::filled(40, 40, [0; 3]).unwrap();
    let settings = Settings::default();
    for answer in [vec![], vec![Tensor { shape: vec![1, 2, 2, 4], data: vec![0.0; 16] }; 2]] {
        let found = find(&picture, &settings, |_, _| Ok(answer.clone()));
        assert!(matches!(found, Err(FaceError::WrongOutputs { network: Network::Proposer, .. })));
    }
    let tensor = |shape: &[usize], value: f32| Tensor {
        shape: shape.to_vec(),
        data: vec![value; shape.iter().product()],
    };
    for value in [f32::NAN, f32::INFINITY, -1e30, 1e30] {
        let found = find(&picture, &settings, |network, input: &Planes| {
            Ok::<_, FaceError>(match network {
                Network::Proposer => vec![tensor(&[1, 2, 2, 4], value), tensor(&[1, 2, 2, 2], 1.0)],
                Network::Refiner => vec![tensor(&[input.count, 4], 0.0), tensor(&[input.count, 2], value)],
                Network::Finisher => vec![tensor(&[input.count, 4], 0.0)],
            })
        });
        assert!(found.is_ok_and(|faces| faces.is_empty()));
    }
}

#[test]
fn scales_end_where_a_face_no_longer_fits() {
    let picture = Picture::filled(100, 40, [0; 3]).unwrap();
    let scales = pyramid(&picture, &Settings::default()).unwrap();
    assert_eq!((scales.len(), scales[0]), (3, 0.6));
    assert!(pyramid(&Picture::filled(5, 5, [0; 3]).unwrap(), &Settings::default()).unwrap().is_empty());
    for (least_face, shrink) in [(0.0, 0.7), (20.0, 1.0), (20.0, 0.0), (f64::NAN, 0.7), (20.0, f64::NAN)] {
        let settings = Settings { least_face, shrink, ..Settings::default() };
        assert_eq!(pyramid(&picture, &settings), Err(FaceError::BadSettings));
    }
}

#[test]
fn squares_outside_the_picture_are_black() {
    let picture = Picture::filled(4, 4, [255; 3]).unwrap();
    let square = |corners: [f64; 4]| Candidate { corners, score: 1.0, shifts: [0.0; 4] };
    let planes = crops(&picture, &[square([-20.0, -20.0, -17.0, -17.0]), square([3.0, 1.0, 6.0, 4.0])], 4);
    assert_eq!(planes.shape(), [2, 4, 4, 3]);
    let black = -127.5 / 128.0;
    assert!(planes.data[..48].iter().all(|&value| value == black));
    // Columns come first: two inside the picture, two beyond its right edge.
    assert!(planes.data[48..72].iter().all(|&value| value == -black));
    assert!(planes.data[72..].iter().all(|&value| value == black));
}
