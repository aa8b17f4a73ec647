//! Tables, scalers, linear models, trees and support vectors, by hand.

use super::super::proto::OperatorSetIdProto;
use super::super::{Invalid, Reason, Warning};
use super::*;

fn words(name: &str, words: &[&str]) -> AttributeProto {
    let strings = words.iter().map(|w| (*w).to_owned().into()).collect();
    AttributeProto { strings, ..attribute(name, kind::STRINGS) }
}

fn learned(op: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto { domain: "ai.onnx.ml".into(), ..node(op, inputs, outputs, attributes) }
}

fn of_nodes(inputs: &[(&str, &Tensor)], nodes: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    let inputs = inputs.iter().map(|(name, tensor)| info_like(name, tensor)).collect();
    let mut model = model(13, graph(inputs, nodes, outputs));
    model.opset_import.push(OperatorSetIdProto { domain: "ai.onnx.ml".into(), version: 3 });
    model
}

/// The results of one node on one input.
fn run(op: &str, attributes: Vec<AttributeProto>, x: &Tensor, results: usize) -> Vec<Tensor> {
    let outputs = &["y", "z"][..results];
    let model = of_nodes(&[("x", x)], vec![learned(op, &["x"], outputs, attributes)], outputs);
    evaluate(&imported(&model).graph, &[x.clone()])
}

fn texts(texts: &[&str]) -> Tensor {
    Tensor::from_strings([texts.len()], texts.iter().map(|t| (*t).to_owned()).collect()).unwrap()
}

#[test]
fn rows_are_scaled_and_gaps_filled() {
    let x = f32s(&[2, 2], &[1., 2., -4., 0.]);
    let scaled = run("Scaler", vec![floats("offset", &[1., 2.]), floats("scale", &[2., 3.])], &x, 1);
    assert_close("scaled", &scaled[0], &f32s(&[2, 2], &[0., 0., -10., -6.]));
    // The norm by the maximum keeps signs, as the standard's formula has it; rows without a norm stay.
    let maximum = run("Normalizer", vec![word("norm", "MAX")], &x, 1);
    assert_close("maximum", &maximum[0], &f32s(&[2, 2], &[0.5, 1., -4., 0.]));
    let l1 = run("Normalizer", vec![word("norm", "L1")], &x, 1);
    assert_close("l1", &l1[0], &f32s(&[2, 2], &[1. / 3., 2. / 3., -1., 0.]));
    let gaps = f32s(&[2, 2], &[f32::NAN, 2., 3., f32::NAN]);
    let filled = vec![floats("imputed_value_floats", &[7., 8.]), float("replaced_value_float", f32::NAN)];
    assert_close("filled", &run("Imputer", filled, &gaps, 1)[0], &f32s(&[2, 2], &[7., 2., 3., 8.]));
    let above = run("Binarizer", vec![float("threshold", 0.5)], &x, 1);
    assert_close("above", &above[0], &f32s(&[2, 2], &[1., 1., 0., 0.]));
}

#[test]
fn texts_become_numbers_and_numbers_texts() {
    let table = || vec![words("cats_strings", &["a", "b"]), ints("cats_int64s", &[10, 20])];
    let numbers = run("CategoryMapper", table(), &texts(&["b", "?"]), 1);
    assert_eq!(numbers[0], i64s(&[20, -1]));
    let names = run("CategoryMapper", table(), &i64s(&[10, 11]), 1);
    assert_eq!(names[0], texts(&["a", "_Unused"]));
    let hot = run("OneHotEncoder", vec![words("cats_strings", &["a", "b"])], &texts(&["b", "x"]), 1);
    assert_close("one hot", &hot[0], &f32s(&[2, 2], &[0., 1., 0., 0.]));
    let places = run(
        "LabelEncoder",
        vec![words("keys_strings", &["a"]), ints("values_int64s", &[5])],
        &texts(&["a", "b"]),
        1,
    );
    assert_eq!(places[0], i64s(&[5, -1]));
}

#[test]
fn linear_models_give_labels_and_scores() {
    let x = f32s(&[2, 2], &[1., 2., -1., 0.]);
    let coefficients = || floats("coefficients", &[1., 0., 0., 1., -1., -1.]);
    let attributes = vec![
        coefficients(),
        floats("intercepts", &[0., 0.5, 0.]),
        words("classlabels_strings", &["a", "b", "c"]),
    ];
    let found = run("LinearClassifier", attributes, &x, 2);
    assert_eq!(found[0], texts(&["b", "c"]));
    assert_close("scores", &found[1], &f32s(&[2, 3], &[1., 2.5, -3., -1., 0.5, 1.]));
    // One score is for the second class.
    let attributes = vec![
        floats("coefficients", &[1., 0.]),
        ints("classlabels_ints", &[0, 1]),
        word("post_transform", "LOGISTIC"),
    ];
    let found = run("LinearClassifier", attributes, &x, 2);
    assert_eq!(found[0], i64s(&[1, 0]));
    let p = 1.0 / (1.0 + (-1f32).exp());
    assert_close("probabilities", &found[1], &f32s(&[2, 2], &[1. - p, p, p, 1. - p]));
    let regressor = vec![coefficients(), int("targets", 3)];
    let found = run("LinearRegressor", regressor, &x, 1);
    assert_close("regression", &found[0], &f32s(&[2, 3], &[1., 2., -3., -1., 0., 1.]));
}

/// One tree: column 0 at most 0.5, then column 1 at most 0; its leaves are nodes 2, 3 and 4.
fn tree() -> Vec<AttributeProto> {
    vec![
        ints("nodes_treeids", &[0; 5]),
        ints("nodes_nodeids", &[0, 1, 2, 3, 4]),
        ints("nodes_featureids", &[0, 1, 0, 0, 0]),
        floats("nodes_values", &[0.5, 0., 0., 0., 0.]),
        words("nodes_modes", &["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"]),
        ints("nodes_truenodeids", &[1, 2, 0, 0, 0]),
        ints("nodes_falsenodeids", &[4, 3, 0, 0, 0]),
    ]
}

#[test]
fn trees_lead_each_row_to_a_leaf() {
    let x = f32s(&[3, 2], &[0.5, 0., 0., 1., 2., 0.]);
    let leaves = |prefix: &str| {
        [
            ints(&format!("{prefix}_treeids"), &[0; 3]),
            ints(&format!("{prefix}_nodeids"), &[2, 3, 4]),
            floats(&format!("{prefix}_weights"), &[1., 2., 3.]),
        ]
    };
    let mut attributes = tree();
    attributes.extend(leaves("target"));
    attributes.extend([ints("target_ids", &[0; 3]), floats("base_values", &[0.25])]);
    let found = run("TreeEnsembleRegressor", attributes, &x, 1);
    assert_close("regression", &found[0], &f32s(&[3, 1], &[1.25, 2.25, 3.25]));
    let mut attributes = tree();
    attributes.extend(leaves("class"));
    attributes.extend([ints("class_ids", &[0, 1, 2]), words("classlabels_strings", &["a", "b", "c"])]);
    let found = run("TreeEnsembleClassifier", attributes, &x, 2);
    assert_eq!(found[0], texts(&["a", "b", "c"]));
    assert_close("scores", &found[1], &f32s(&[3, 3], &[1., 0., 0., 0., 2., 0., 0., 0., 3.]));
    // A node that is not there is a fault of the file.
    let mut broken = tree();
    broken[5] = ints("nodes_truenodeids", &[9, 2, 0, 0, 0]);
    broken.extend(leaves("target"));
    broken.push(ints("target_ids", &[0; 3]));
    let nodes = vec![learned("TreeEnsembleRegressor", &["x"], &["y"], broken)];
    let error = try_import(&of_nodes(&[("x", &x)], nodes, &["y"])).unwrap_err();
    assert!(
        matches!(&error, ImportError::Node { problem: Invalid::Other(text), .. } if text.contains("no node 9"))
    );
}

#[test]
fn support_vectors_vote() {
    // Two classes, one vector each: the row is nearer to the first or to the second.
    let x = f32s(&[2, 1], &[0.25, 0.75]);
    let attributes = || {
        vec![
            word("kernel_type", "RBF"),
            floats("kernel_params", &[1., 0., 0.]),
            floats("support_vectors", &[0., 1.]),
            floats("coefficients", &[1., -1.]),
            ints("vectors_per_class", &[1, 1]),
            floats("rho", &[0.]),
            ints("classlabels_ints", &[3, 7]),
        ]
    };
    let alike = |a: f32, b: f32| (-(a - b) * (a - b)).exp();
    let score = |x: f32| alike(x, 0.) - alike(x, 1.);
    let found = run("SVMClassifier", attributes(), &x, 2);
    assert_eq!(found[0], i64s(&[3, 7]));
    let scores = [-score(0.25), score(0.25), -score(0.75), score(0.75)];
    assert_close("scores", &found[1], &f32s(&[2, 2], &scores));
    let mut with_probabilities = attributes();
    with_probabilities.extend([floats("prob_a", &[-4.]), floats("prob_b", &[0.])]);
    let found = run("SVMClassifier", with_probabilities, &x, 2);
    let p = found[1].values::<f32>().unwrap().into_owned();
    assert!(p[0] > 0.6 && (p[0] + p[1] - 1.0).abs() < 1e-5 && (p[0] - p[3]).abs() < 1e-2, "{p:?}");
    let attributes = vec![floats("coefficients", &[2.]), floats("rho", &[0.5])];
    assert_close("linear", &run("SVMRegressor", attributes, &x, 1)[0], &f32s(&[2, 1], &[1., 2.]));
}

#[test]
fn maps_are_left_out_or_refused() {
    let x = f32s(&[1, 2], &[0.25, 0.75]);
    let nodes = vec![learned("ZipMap", &["x"], &["y"], vec![words("classlabels_strings", &["a", "b"])])];
    let found = imported(&of_nodes(&[("x", &x)], nodes, &["y"]));
    assert_eq!(found.warnings, [Warning::Map { node: "y".into() }]);
    assert_eq!(evaluate(&found.graph, &[x.clone()]), [x.clone()]);
    let nodes = vec![learned("DictVectorizer", &["x"], &["y"], vec![])];
    match try_import(&of_nodes(&[("x", &x)], nodes, &["y"])) {
        Err(ImportError::Unsupported(items)) => assert!(matches!(items[0].reason, Reason::Other(_))),
        other => panic!("{other:?}"),
    }
}
