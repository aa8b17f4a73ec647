//! Weights in other files, and the names that must not lead to some.

use std::fs;

use super::super::proto::{SparseTensorProto, StringStringEntryProto};
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

#[test]
fn values_of_inputs_are_constants_unless_they_are_to_be_given() {
    let w = f32s(&[2], &[1.0, 2.0]);
    let mut graph = graph(
        vec![info_like("x", &w), info_like("w", &w)],
        vec![node("Add", &["x", "w"], &["y"], vec![])],
        &["y"],
    );
    graph.initializer.push(tensor_proto("w", &w));
    let bytes = model(13, graph).encode_to_vec();
    let given = f32s(&[2], &[10.0, 10.0]);
    let fixed = import(bytes.clone().into(), &ImportOptions::default()).unwrap().graph;
    assert_eq!(evaluate(&fixed, &[given.clone()]), [f32s(&[2], &[11.0, 12.0])]);
    let inputs = ["w".to_owned(), "nothing".to_owned()];
    let options = ImportOptions { inputs: &inputs, ..ImportOptions::default() };
    let open = import(bytes.into(), &options).unwrap().graph;
    assert_eq!(open.inputs().len(), 2);
    assert_eq!(evaluate(&open, &[given.clone(), given]), [f32s(&[2], &[20.0, 20.0])]);
}

fn sparse(values: &[f32], indices: &Tensor, dims: &[i64]) -> SparseTensorProto {
    SparseTensorProto {
        values: Some(tensor_proto("w", &f32s(&[values.len()], values))),
        indices: Some(tensor_proto("", indices)),
        dims: dims.to_vec(),
    }
}

#[test]
fn sparse_tensors_become_dense_ones() {
    let pairs = Tensor::new([2, 2], &[0i64, 2, 1, 0]).unwrap();
    for indices in [i64s(&[2, 3]), pairs] {
        let tensor = sparse(&[5.0, 7.0], &indices, &[2, 3]);
        let wanted = f32s(&[2, 3], &[0.0, 0.0, 5.0, 7.0, 0.0, 0.0]);
        let mut weights = graph(vec![], vec![], &["w"]);
        weights.sparse_initializer.push(tensor.clone());
        let found = imported(&model(13, weights)).graph;
        assert_eq!(found.constant(found.outputs()[0].value), Some(&wanted));
        let attribute = AttributeProto {
            name: "sparse_value".into(),
            r#type: 11,
            sparse_tensor: Some(Box::new(tensor)),
            ..AttributeProto::default()
        };
        let constant = graph(vec![], vec![node("Constant", &[], &["w"], vec![attribute])], &["w"]);
        let found = imported(&model(13, constant)).graph;
        assert_eq!(found.constant(found.outputs()[0].value), Some(&wanted));
    }
}

#[test]
fn sparse_tensors_that_cannot_be_are_refused() {
    let refused = |tensors: &[SparseTensorProto]| {
        let mut graph = graph(vec![], vec![], &["w"]);
        graph.sparse_initializer.extend(tensors.iter().cloned());
        match try_import(&model(13, graph)) {
            Err(ImportError::Tensor { problem, .. }) => *problem,
            other => panic!("{other:?}"),
        }
    };
    let outside = "it is sparse, and an index is outside of it";
    assert_eq!(refused(&[sparse(&[1.0], &i64s(&[6]), &[2, 3])]).to_string(), outside);
    assert_eq!(refused(&[sparse(&[1.0], &i64s(&[-1]), &[2, 3])]).to_string(), outside);
    let beyond = Tensor::new([1, 2], &[0i64, 3]).unwrap();
    assert_eq!(refused(&[sparse(&[1.0], &beyond, &[2, 3])]).to_string(), outside);
    assert!(matches!(refused(&[sparse(&[1.0], &i64s(&[0, 1]), &[2, 3])]), TensorProblem::Sparse(_)));
    assert!(matches!(refused(&[sparse(&[1.0], &i64s(&[0]), &[-2])]), TensorProblem::Dimension(-2)));
    // A few bytes of file that ask for more than a file may hold.
    let large = i64::try_from(Limits::default().tensor_bytes / 4).unwrap() + 1;
    assert!(matches!(refused(&[sparse(&[1.0], &i64s(&[0]), &[large])]), TensorProblem::TooLarge { .. }));
    assert!(matches!(refused(&[SparseTensorProto::default()]), TensorProblem::Sparse(_)));
}
