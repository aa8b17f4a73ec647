//! Weights in other files, and the names that must not lead to some.

use std::fs;

use super::super::proto::StringStringEntryProto;
use super::super::{ImportOptions, TensorProblem};
use super::*;
use crate::{Directory, ExternalData, ExternalError, Limits};

fn beside(location: &str, offset: &str, length: &str) -> ModelProto {
    let entry = |key: &str, value: &str| StringStringEntryProto { key: key.into(), value: value.into() };
    let mut graph = graph(vec![], vec![], &["w"]);
    graph.initializer.push(TensorProto {
        name: "w".into(),
        dims: vec![2],
        data_type: 1,
        data_location: 1,
        external_data: vec![entry("location", location), entry("offset", offset), entry("length", length)],
        ..TensorProto::default()
    });
    model(13, graph)
}

fn problem(directory: &Directory, limits: Limits, model: &ModelProto) -> TensorProblem {
    let options = ImportOptions { external: Some(directory), limits, ..Default::default() };
    match import(model.encode_to_vec().into(), &options) {
        Err(ImportError::Tensor { problem, .. }) => *problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_part_of_a_file_is_shared() {
    let place = tempfile::tempdir().unwrap();
    let mut contents = vec![0u8; 4];
    contents.extend([1.5f32, 2.5].iter().flat_map(|v| v.to_le_bytes()));
    fs::create_dir(place.path().join("data")).unwrap();
    fs::write(place.path().join("data/weights.bin"), contents).unwrap();
    let directory = Directory::new(place.path());
    let options = ImportOptions { external: Some(&directory), ..ImportOptions::default() };
    let model = beside("./data/weights.bin", "4", "8");
    let graph = import(model.encode_to_vec().into(), &options).unwrap().graph;
    assert_eq!(graph.constant(graph.outputs()[0].value), Some(&f32s(&[2], &[1.5, 2.5])));
}

#[test]
fn nothing_outside_of_the_directory_is_opened() {
    let place = tempfile::tempdir().unwrap();
    let inside = place.path().join("models");
    fs::create_dir(&inside).unwrap();
    fs::write(place.path().join("secret"), [0; 8]).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path().join("secret"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink("ring", inside.join("ring")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
    }
    let directory = Directory::new(&inside);
    let absolute = place.path().join("secret").to_string_lossy().into_owned();
    for name in ["../secret", "a/../../secret", absolute.as_str(), "", "..", "nul\0byte"] {
        assert!(matches!(directory.file(name, 100), Err(ExternalError::Outside)), "{name:?}");
    }
    #[cfg(unix)]
    for name in ["link", "up/secret"] {
        assert!(matches!(directory.file(name, 100), Err(ExternalError::Outside)), "{name:?}");
    }
    for name in ["ring", "missing"] {
        assert!(matches!(directory.file(name, 100), Err(ExternalError::Io(_))), "{name:?}");
    }
    assert!(matches!(directory.file(".", 100), Err(ExternalError::NotAFile)));
}

#[test]
fn ranges_and_sizes_are_checked() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("w"), [0; 16]).unwrap();
    let directory = Directory::new(place.path());
    for (offset, length) in [("9", "8"), ("0", "17"), ("-1", "8"), ("x", "8"), ("18446744073709551615", "8")]
    {
        let problem = problem(&directory, Limits::default(), &beside("w", offset, length));
        assert!(matches!(problem, TensorProblem::Range { .. }), "{offset} {length}: {problem}");
    }
    let wrong = problem(&directory, Limits::default(), &beside("w", "0", "4"));
    assert!(matches!(wrong, TensorProblem::Data(_)), "{wrong}");
    let limits = Limits { external_bytes: 15, ..Limits::default() };
    let large = problem(&directory, limits, &beside("w", "0", "8"));
    assert!(matches!(
        large,
        TensorProblem::External { source: ExternalError::TooLarge { bytes: 16, limit: 15 }, .. }
    ));
    assert!(matches!(
        try_import(&beside("w", "0", "8")),
        Err(ImportError::Tensor { problem, .. }) if matches!(*problem, TensorProblem::NoExternalData { .. })
    ));
}

#[test]
fn the_caller_may_map_files() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("w"), [0; 8]).unwrap();
    let directory = Directory::new(place.path()).with_map(|_| Ok(vec![0, 0, 128, 63, 0, 0, 0, 64].into()));
    let options = ImportOptions { external: Some(&directory), ..ImportOptions::default() };
    let graph = import(beside("w", "0", "8").encode_to_vec().into(), &options).unwrap().graph;
    assert_eq!(graph.constant(graph.outputs()[0].value), Some(&f32s(&[2], &[1., 2.])));
}
