//! Each step against OpenCV, pyclipper and the reference pipeline (answers made by `tests/make_golden.py`), and against
//! numbers that no detector should give.

use super::boxes::{boxes, reading_order};
use super::contours::{Point, contours, dilate};
use super::cut::cut;
use super::fill::Mask;
use super::geometry::{convex_hull, smallest_rectangle};
use super::offset::grow;
use super::*;
use crate::common::{Generator, cases, fnv, numbers, sizes};
use crate::picture::Picture;

fn points(value: &serde_json::Value) -> Vec<Point> {
    serde_json::from_value(value.clone()).expect("a list of points")
}

fn pair(value: &serde_json::Value) -> (usize, usize) {
    let both = sizes(value);
    (both[0], both[1])
}

fn generator(case: &serde_json::Value) -> Generator {
    Generator::new(case["seed"].as_u64().expect("a seed"))
}

#[test]
fn borders_are_found_in_the_same_order() {
    for case in cases(include_str!("../../tests/answers/contours.json")) {
        let (width, height) = pair(&case["size"]);
        let percent = case["percent"].as_u64().unwrap() as u32;
        let mut generator = generator(&case);
        let mask: Vec<u8> = (0..width * height).map(|_| u8::from(generator.below(100) < percent)).collect();
        let found = contours(&mask, width, height);
        assert_eq!(found.len() as u64, case["contours"].as_u64().unwrap());
        assert_eq!(found[0], points(&case["first"]));
        let mut bytes = (found.len() as i32).to_le_bytes().to_vec();
        for contour in &found {
            bytes.extend((contour.len() as i32).to_le_bytes());
            bytes.extend(contour.iter().flatten().flat_map(|side| side.to_le_bytes()));
        }
        assert_eq!(fnv(&bytes), case["hash"]);
        assert_eq!(fnv(&dilate(&mask, width, height)), case["dilated"]);
    }
}

#[test]
fn smallest_rectangles_have_the_same_corners() {
    for case in cases(include_str!("../../tests/answers/rectangles.json")) {
        let mut generator = generator(&case);
        let limit = case["limit"].as_u64().unwrap() as u32;
        let count = 1 + case["seed"].as_u64().unwrap() as usize % 11;
        let given: Vec<Point> = (0..count).map(|_| [0, 1].map(|_| generator.below(limit) as i32)).collect();
        assert_eq!(convex_hull(&given), points(&case["hull"]), "{case}");
        let found = smallest_rectangle(&given);
        let rectangle = [found.centre[0], found.centre[1], found.width, found.height, found.angle];
        let corners = found.corners();
        let sides = rectangle.iter().chain(corners.iter().flatten()).copied();
        // Sines differ in the last place from one mathematics library to another.
        for (found, expected) in
            sides.zip(numbers(&case["rectangle"]).into_iter().chain(numbers(&case["corners"])))
        {
            assert!((f64::from(found) - expected).abs() <= 2e-6 * expected.abs().max(1.0), "{found}, {case}");
        }
    }
    assert_eq!(smallest_rectangle(&[]).width, 0.0);
}

#[test]
fn polygons_grow_to_the_same_points() {
    for case in cases(include_str!("../../tests/answers/growing.json")) {
        let found = grow(&points(&case["polygon"]), case["distance"].as_f64().unwrap());
        assert_eq!(found, points(&case["grown"]), "{case}");
    }
    let square = [[0, 0], [9, 0], [9, 9], [0, 9]];
    for distance in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(grow(&square, distance).is_empty());
    }
    assert!(grow(&[[1, 1], [1, 1], [2, 2], [1, 1]], 3.0).is_empty());
}

#[test]
fn polygons_are_filled_to_the_same_pixels() {
    for case in cases(include_str!("../../tests/answers/filling.json")) {
        let (width, height) = pair(&case["size"]);
        let mut mask = Mask::new(width, height);
        mask.fill(&points(&case["polygon"]));
        let bytes: Vec<u8> = mask.inside.iter().copied().map(u8::from).collect();
        assert_eq!(fnv(&bytes), case["filled"], "{case}");
    }
}

#[test]
fn lines_are_cut_to_the_same_pixels() {
    let picture = Picture::new(90, 70, Generator::new(1).bytes(90 * 70 * 3)).unwrap();
    for case in cases(include_str!("../../tests/answers/cutting.json")) {
        let quad: Quad = serde_json::from_value(case["quad"].clone()).unwrap();
        let line = cut(&picture, &quad);
        assert_eq!((line.width(), line.height()), pair(&case["size"]));
        assert_eq!(fnv(line.rgb()), case["pixels"], "{case}");
    }
    // Corners on one line, and all in one place.
    let flat = cut(&picture, &[[0.0, 5.0], [20.0, 5.0], [40.0, 5.0], [60.0, 5.0]]);
    assert_eq!((flat.width(), flat.height()), (60, 20));
    assert_eq!(cut(&picture, &[[3.0, 3.0]; 4]).width(), 1);
}

fn text_map(generator: &mut Generator, columns: usize, rows: usize) -> Vec<f32> {
    let mut level: Vec<u32> = (0..columns * rows).map(|_| generator.below(64)).collect();
    for _ in 0..6 {
        let bar =
            [columns as u32, rows as u32, 16, 9, 300, 40, 140].map(|limit| generator.below(limit) as i32);
        let [left, top, across, down, length, thickness, value] = bar;
        for (place, level) in level.iter_mut().enumerate() {
            let (x, y) = ((place % columns) as i32 - left, (place / columns) as i32 - top);
            let along = x * (across + 4) + y * (down - 4);
            let aside = y * (across + 4) - x * (down - 4);
            if along.abs() <= length + 100 && aside.abs() <= thickness + 20 {
                *level = 110 + value as u32;
            }
        }
    }
    level.into_iter().map(|level| level as f32 / 256.0).collect()
}

#[test]
fn maps_give_the_same_boxes_in_the_same_order() {
    let mut found_in_all = 0;
    for case in cases(include_str!("../../tests/answers/text_boxes.json")) {
        let (width, height) = pair(&case["picture"]);
        let map = text_map(&mut generator(&case), 160, 128);
        let mut found = boxes(&map, 160, 128, width, height, &Settings::default());
        reading_order(&mut found);
        let found: Vec<Vec<Point>> =
            found.iter().map(|quad| quad.map(|corner| corner.map(|side| side as i32)).to_vec()).collect();
        let expected: Vec<Vec<Point>> = case["boxes"].as_array().unwrap().iter().map(points).collect();
        assert_eq!(found, expected, "{case}");
        found_in_all += found.len();
    }
    assert!(found_in_all > 8);
}

#[test]
fn lines_are_grouped_prepared_and_decoded_alike() {
    for case in cases(include_str!("../../tests/answers/lines.json")) {
        let mut generator = generator(&case);
        let limit = if case["seed"] == 0 { 1 } else { 6 };
        let steps: Vec<f32> = (0..20 * 5).map(|_| generator.below(limit) as f32 / 8.0).collect();
        let characters = Characters::new("a\nb\n文\n").unwrap();
        let text = characters.decode(&Output { shape: &[1, 20, 5], data: &steps }).unwrap().remove(0);
        assert_eq!(text.text, case["text"]);
        assert!((text.confidence - case["confidence"].as_f64().unwrap()).abs() < 1e-12);

        let sizes: Vec<[usize; 2]> =
            (0..8).map(|_| [200, 40].map(|limit| 3 + generator.below(limit) as usize)).collect();
        let lines: Vec<Picture> = sizes
            .into_iter()
            .map(|[width, height]| Picture::new(width, height, generator.bytes(3 * width * height)).unwrap())
            .collect();
        assert_eq!(serde_json::json!(batches(&lines, &Settings::default())), case["batches"]);
        // A third line, ten times as wide as high, widens the batch to 480.
        let lines = [lines[0].clone(), lines[1].clone(), Picture::filled(100, 10, [0; 3]).unwrap()];
        let narrow = lines.iter().all(|line| line.width() <= 10 * line.height());
        let planes = recogniser_input(&lines, &[0, 1, 2]);
        if narrow {
            assert_eq!(planes.shape(), [3, 3, 48, 480]);
            for (values, expected) in
                planes.data.chunks_exact(3 * 48 * 480).zip(case["lines"].as_array().unwrap())
            {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                assert_eq!(fnv(&bytes), *expected);
            }
        } else {
            assert!(planes.width > 480);
        }
    }
}

#[test]
fn upside_down_lines_are_turned_where_the_classifier_is_sure() {
    let mut lines: Vec<Picture> =
        (0..3u8).map(|first| Picture::new(2, 1, vec![first, 0, 0, 9, 9, 9]).unwrap()).collect();
    let settings = Settings::default();
    let output = Output { shape: &[3, 2], data: &[0.05, 0.95, 0.2, 0.8, 0.99, 0.01] };
    assert_eq!(turn(&mut lines, &[2, 1, 0], &output, &settings).unwrap(), [2]);
    assert_eq!((lines[2].rgb()[0], lines[1].rgb()[0]), (9, 1));
    let wrong = Output { shape: &[3, 3], data: &[0.0; 9] };
    assert!(matches!(turn(&mut lines, &[0, 1, 2], &wrong, &settings), Err(OcrError::WrongOutput { .. })));
}

#[test]
fn outputs_that_do_not_fit_are_refused() {
    let characters = Characters::new("a\nb").unwrap();
    assert_eq!(characters.columns(), 4);
    let decode =
        |shape: &[usize], count: usize| characters.decode(&Output { shape, data: &vec![0.5; count] });
    assert!(matches!(decode(&[1, 3, 5], 15), Err(OcrError::CharacterCount { columns: 5, characters: 4 })));
    assert!(matches!(decode(&[1, 3, 4], 11), Err(OcrError::WrongOutput { found: 11, .. })));
    assert!(matches!(decode(&[usize::MAX, 3, 4], 12), Err(OcrError::WrongOutput { .. })));
    assert!(matches!(decode(&[12], 12), Err(OcrError::WrongOutput { .. })));
    assert!(decode(&[0, 3, 4], 0).unwrap().is_empty());
    assert!(matches!(Characters::new(""), Err(OcrError::NoCharacters)));

    let page = Page::new(&Picture::filled(64, 64, [0; 3]).unwrap(), &Settings::default()).unwrap();
    for (shape, count) in [(&[1, 1, 8, 8][..], 63), (&[1, 2, 8, 8], 128), (&[8, 8], 64), (&[1, 1, 0, 8], 0)] {
        assert!(matches!(
            page.boxes(&Output { shape, data: &vec![1.0; count] }),
            Err(OcrError::WrongOutput { .. })
        ));
    }
}

#[test]
fn maps_of_any_numbers_are_survived() {
    let page = Page::new(&Picture::filled(64, 40, [0; 3]).unwrap(), &Settings::default()).unwrap();
    for value in [0.0, 1.0, -1.0, f32::NAN, f32::INFINITY, 1e38] {
        for (rows, columns) in [(1, 1), (1, 40), (40, 1), (24, 40)] {
            let mut map = vec![value; rows * columns];
            map[0] = 1.0;
            let boxes = page.boxes(&Output { shape: &[1, 1, rows, columns], data: &map }).unwrap();
            for quad in boxes {
                assert!(page.cut(&quad).width() > 0);
            }
        }
    }
}

#[test]
fn pictures_of_any_shape_become_pages_and_back() {
    let settings = Settings::default();
    let inputs = [
        (1, 1, 32, 32),
        (3, 400, 32, 4000),
        (2500, 100, 1984, 496),
        (100, 64, 100, 64),
        (900, 100, 900, 224),
    ];
    for (width, height, page_width, page_height) in inputs {
        let page = Page::new(&Picture::filled(width, height, [255; 3]).unwrap(), &settings);
        let page = page.unwrap();
        assert_eq!(
            (page.picture().width(), page.picture().height()),
            (page_width, page_height),
            "{width}x{height}"
        );
        match page.detector_input() {
            Ok(planes) => assert!(planes.height.min(planes.width) >= 736 && planes.data.len() <= 3 << 24),
            Err(error) => assert_eq!((width, error), (3, OcrError::TooElongated { width, height })),
        }
        let right = page_width as f32;
        let corners = page.to_picture(&[[0.0, 0.0], [right, 0.0], [right, page_height as f32], [-5.0, 1e9]]);
        assert!((corners[1][0] - width as f32).abs() < 1e-3 && corners[1][1] == 0.0, "{corners:?}");
        assert_eq!(corners[3], [0.0, height as f32]);
    }
    let long = Picture::filled(1, 20_000, [0; 3]).unwrap();
    assert!(matches!(Page::new(&long, &settings), Err(OcrError::TooElongated { .. })));
}

#[test]
fn reading_goes_through_all_three_networks() {
    let picture = Picture::filled(128, 96, [200; 3]).unwrap();
    let characters = Characters::new("a\nb").unwrap();
    let mut asked = Vec::new();
    let mut run = |network: Network, input: &Planes| {
        asked.push((network, input.shape()));
        let lines = input.count;
        Ok::<_, OcrError>(match network {
            Network::Detector => {
                let (rows, columns) = (input.height, input.width);
                let lit = |row: usize| (row / 100) % 3 == 1 && row % 100 < 60;
                let data = (0..rows * columns).map(|place| {
                    f32::from(u8::from(lit(place / columns) && (20..900).contains(&(place % columns))))
                });
                Tensor { shape: vec![1, 1, rows, columns], data: data.collect() }
            }
            Network::Classifier => Tensor { shape: vec![lines, 2], data: [0.0, 1.0].repeat(lines) },
            Network::Recogniser => {
                let steps =
                    [[0.1, 0.9, 0.0, 0.0], [0.2, 0.8, 0.0, 0.0], [0.7, 0.1, 0.1, 0.1], [0.3, 0.0, 0.7, 0.0]];
                Tensor { shape: vec![lines, 4, 4], data: steps.concat().repeat(lines) }
            }
        })
    };
    let lines = read(&picture, &characters, &Settings::default(), &mut run).unwrap();
    assert!(lines.len() >= 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.text == "ab" && (line.confidence - 0.8).abs() < 1e-6));
    assert!(lines[0].corners[0][1] < lines[1].corners[0][1]);
    let kinds: Vec<Network> = asked.iter().map(|(network, _)| *network).collect();
    assert_eq!(kinds, [Network::Detector, Network::Classifier, Network::Recogniser]);
    assert_eq!(asked[1].1, [lines.len(), 3, 48, 192]);
}
