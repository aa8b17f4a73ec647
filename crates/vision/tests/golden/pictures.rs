//! Resizing and presets against OpenCV and Pillow.

use crate::common::{Generator, cases, fnv, numbers, sizes};
use armet_vision::presets::{PRESET_NAMES, Preparation};
use armet_vision::resize::{self, Size};
use armet_vision::{Layout, Picture};

#[test]
fn resizing_gives_the_same_bytes() {
    for case in cases(include_str!("../answers/resize.json")) {
        let [width, height, channels] = sizes(&case["size"])[..] else { panic!("size") };
        let [to_width, to_height] = sizes(&case["to"])[..] else { panic!("to") };
        let size = Size { width, height, channels };
        let pixels = Generator::new(case["seed"].as_u64().unwrap()).bytes(size.values());
        assert_eq!(
            fnv(&resize::linear(&pixels, size, to_width, to_height)),
            case["linear"],
            "linear, {case}"
        );
        assert_eq!(fnv(&resize::area(&pixels, size, to_width, to_height)), case["area"], "area, {case}");
        let antialiased = resize::antialiased(&pixels, size, to_width, to_height);
        assert_eq!(fnv(&antialiased), case["antialiased"], "antialiased, {case}");
        let doubles: Vec<f64> = pixels.iter().copied().map(f64::from).collect();
        let area = resize::area_f64(&doubles, size, to_width, to_height);
        for (found, expected) in area.iter().zip(numbers(&case["area_f64"])) {
            assert!((found - expected).abs() < 1e-9, "area_f64 {found} is not {expected}, {case}");
        }
    }
}

#[test]
fn presets_give_the_same_numbers() {
    for case in cases(include_str!("../answers/presets.json")) {
        let [width, height] = sizes(&case["picture"])[..] else { panic!("picture") };
        let rgb = Generator::new(case["seed"].as_u64().unwrap()).bytes(3 * width * height);
        let picture = Picture::new(width, height, rgb).unwrap();
        let name = case["preset"].as_str().unwrap();
        let size = match name {
            "yolo" => Some((96, 64)),
            "mtcnn" | "raw" => Some((17, 15)),
            _ => None,
        };
        let preparation = Preparation::named(name).unwrap();
        let planes = preparation.apply(&picture, size.map(|s| s.0), size.map(|s| s.1)).unwrap().planes;
        assert_eq!(planes.shape().to_vec(), sizes(&case["shape"]), "{name}");
        let sum: f64 = planes.data.iter().copied().map(f64::from).sum();
        let expected = case["sum"].as_f64().unwrap();
        assert!((sum - expected).abs() < 1e-7 * planes.data.len() as f64, "{name}: {sum} is not {expected}");
        let (first, last) = (numbers(&case["first"]), numbers(&case["last"]));
        let ends =
            planes.data.iter().zip(&first).chain(planes.data[planes.data.len() - 4..].iter().zip(&last));
        for (&found, expected) in ends {
            assert!((f64::from(found) - expected).abs() < 1e-6, "{name}: {found} is not {expected}");
        }
    }
}

#[test]
fn every_stated_preset_exists_and_can_be_overridden() {
    let picture = Picture::filled(20, 10, [255, 0, 51]).unwrap();
    for name in PRESET_NAMES {
        let preparation =
            Preparation { width: Some(8), height: Some(4), ..Preparation::named(name).unwrap() };
        let text = serde_json::to_string(&preparation).unwrap();
        assert_eq!(serde_json::from_str::<Preparation>(&text).unwrap(), preparation);
        assert!(preparation.apply(&picture, None, None).is_ok(), "{name}");
        assert!(Preparation { divisor: 0.0, ..preparation.clone() }.apply(&picture, None, None).is_err());
        assert!(
            Preparation { std: [1.0, f64::NAN, 1.0], ..preparation }.apply(&picture, None, None).is_err()
        );
    }
    assert!(Preparation::named("nonesuch").unwrap_err().to_string().contains("ppocr-det"));
    let unit = Preparation::unit();
    assert!(unit.apply(&picture, None, Some(4)).is_err(), "no width is stated");
    assert!(unit.apply(&picture, Some(0), Some(4)).is_err());
    assert!(unit.apply(&picture, Some(usize::MAX), Some(4)).is_err());
    let prepared = unit.apply(&picture, Some(1), Some(1)).unwrap();
    assert_eq!(prepared.planes.data, [1.0, 0.0, 0.2]);
}

#[test]
fn guesses_rest_on_the_shape_and_say_so() {
    let first = Preparation::guess(&[Some(1), Some(3), Some(224), Some(200)]).unwrap();
    assert_eq!((first.name, first.preparation.layout), ("unit", Layout::ChannelsFirst));
    assert_eq!(first.preparation.size_in(&[Some(1), Some(3), Some(224), Some(200)]), (Some(200), Some(224)));
    assert!(first.reason.contains("assumed preset \"unit\""), "{}", first.reason);
    let last = Preparation::guess(&[None, None, None, Some(1)]).unwrap();
    assert_eq!((last.preparation.layout, last.preparation.order.count()), (Layout::ChannelsLast, 1));
    let imagenet = Preparation::named("imagenet").unwrap();
    let shape = [Some(1), Some(224), Some(224), Some(3)];
    assert_eq!(imagenet.clone().laid_out_for(&shape).layout, Layout::ChannelsLast);
    assert_eq!(imagenet.clone().laid_out_for(&[None; 4]), imagenet);
    for shape in [&[Some(1), Some(1000)][..], &[Some(1), Some(64), Some(8), Some(8)], &[]] {
        assert!(Preparation::guess(shape).is_err());
    }
}

#[test]
fn points_of_the_input_map_back_onto_the_picture() {
    let picture = Picture::filled(200, 100, [0; 3]).unwrap();
    let yolo = Preparation::named("yolo").unwrap().apply(&picture, Some(640), Some(640)).unwrap();
    assert_eq!((yolo.placement.left, yolo.placement.top), (0, 160));
    assert_eq!(yolo.placement.to_picture(640.0, 480.0), (200.0, 100.0));
    let stretched = Preparation::unit().apply(&picture, Some(50), Some(50)).unwrap();
    assert_eq!(stretched.placement.to_picture(25.0, 25.0), (100.0, 50.0));
}
