//! What is said of models that cannot be imported, or that contradict themselves.

use super::super::{Invalid, Reason, Warning};
use super::*;

fn x() -> ValueInfoProto {
    info("x", ElementType::F32, vec![dimension(2), dimension(2)])
}

fn unsupported(model: &ModelProto) -> Vec<super::super::UnsupportedItem> {
    match try_import(model) {
        Err(ImportError::Unsupported(items)) => items,
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_unsupported_is_listed_at_once() {
    let nodes = vec![
        NodeProto { name: "first".into(), ..node("NoSuchThing", &["x"], &["a"], vec![]) },
        NodeProto { domain: "vendor".into(), ..node("Special", &["a"], &["b"], vec![]) },
        node("Relu", &["b"], &["c"], vec![]),
        node("LayerNormalization", &["c", "x"], &["d"], vec![]),
        node("Gather", &["d", "x"], &["e"], vec![int("axis", 1), int("strange", 5)]),
        node("Resize", &["x", "", "x"], &["f"], vec![word("mode", "spline")]),
        node("Conv", &["x", "x"], &["g"], vec![ints("pads", &[-1, 0])]),
        node("BatchNormalization", &["x", "x", "x", "x", "x"], &["h", "", "m"], vec![]),
    ];
    let mut model = model(15, graph(vec![x()], nodes, &["f"]));
    model.opset_import.push(opset("vendor", 3));
    let found: Vec<(String, Reason)> = unsupported(&model).into_iter().map(|i| (i.node, i.reason)).collect();
    let attribute = |name: &str, value: &str| Reason::Attribute { name: name.into(), value: value.into() };
    let wanted = [
        ("first", Reason::Operator),
        ("b", Reason::Operator),
        ("d", Reason::Version { since: 17 }),
        ("e", attribute("strange", "5")),
        ("f", attribute("mode", "spline")),
        ("g", attribute("pads", "[-1, 0]")),
        ("h", Reason::Output(2)),
    ];
    assert_eq!(found, wanted.map(|(node, reason)| (node.to_owned(), reason)));
    let text = ImportError::Unsupported(unsupported(&model)).to_string();
    assert!(text.contains("node b: vendor.Special of opset 3: there is no such operator"), "{text}");
}

#[test]
fn contradictions_name_node_and_attribute() {
    let problem = |node: NodeProto| match try_import(&model(13, graph(vec![x()], vec![node], &["y"]))) {
        Err(ImportError::Node { problem, operator, .. }) => (operator, problem),
        other => panic!("{other:?}"),
    };
    let (operator, found) = problem(node("Concat", &["x"], &["y"], vec![]));
    assert_eq!((operator.as_str(), found), ("Concat", Invalid::MissingAttribute("axis")));
    let (_, found) = problem(node("Concat", &["x"], &["y"], vec![word("axis", "one")]));
    assert_eq!(found, Invalid::AttributeType { name: "axis", expected: "whole number" });
    let (_, found) = problem(node("Add", &["x"], &["y"], vec![]));
    assert_eq!(found, Invalid::MissingInput(1));
    let (_, found) = problem(node("Conv", &["x", "x"], &["y"], vec![ints("strides", &[0])]));
    assert_eq!(found.to_string(), "attribute strides = [0]: must be positive");
    let (_, found) = problem(node("Cast", &["x"], &["y"], vec![int("to", 77)]));
    assert_eq!(found.to_string(), "attribute to = 77: is no element type");
}

#[test]
fn names_must_be_given_once_and_before_use() {
    let unknown = model(13, graph(vec![x()], vec![node("Relu", &["missing"], &["y"], vec![])], &["y"]));
    let error = try_import(&unknown).unwrap_err();
    assert_eq!(error.to_string(), "node y uses the value missing, which nothing gives");
    let twice = vec![node("Relu", &["x"], &["y"], vec![]), node("Neg", &["x"], &["y"], vec![])];
    let error = try_import(&model(13, graph(vec![x()], twice, &["y"]))).unwrap_err();
    assert!(matches!(error, ImportError::DuplicateValue(name) if name == "y"));
    let ring = vec![node("Add", &["x", "b"], &["a"], vec![]), node("Neg", &["a"], &["b"], vec![])];
    let error = try_import(&model(13, graph(vec![x()], ring, &["b"]))).unwrap_err();
    assert!(matches!(error, ImportError::Cycle(_)), "{error}");
    let output = try_import(&model(13, graph(vec![x()], vec![], &["nothing"]))).unwrap_err();
    assert!(matches!(output, ImportError::UnknownValue { .. }));
    assert!(matches!(
        try_import(&ModelProto { ir_version: 9, ..Default::default() }),
        Err(ImportError::NoGraph)
    ));
}

#[test]
fn what_does_not_keep_a_model_from_running_is_a_warning() {
    let nodes = vec![node("Neg", &["a"], &["y"], vec![]), node("Relu", &["x"], &["a"], vec![])];
    let mut graph = graph(vec![x()], nodes, &["y"]);
    graph.value_info.push(info("a", ElementType::F32, vec![dimension(5)]));
    let mut model = model(99, graph);
    model.training_info.push(vec![].into());
    let warnings = imported(&model).warnings;
    assert!(warnings.contains(&Warning::TrainingInfo));
    assert!(warnings.contains(&Warning::Unsorted("graph".into())));
    assert!(warnings.iter().any(|w| matches!(w, Warning::NewerOpset { version: 99, .. })));
    let declared = warnings.iter().find_map(|w| match w {
        Warning::DeclaredType { name, declared, found } => {
            Some((name.clone(), declared.to_string(), found.to_string()))
        }
        _ => None,
    });
    assert_eq!(declared, Some(("a".into(), "float32[5]".into(), "float32[2,2]".into())));
    model.opset_import.clear();
    let warnings = imported(&model).warnings;
    assert!(warnings.contains(&Warning::MissingOpset { domain: String::new(), assumed: 1 }));
}

#[test]
fn declared_shapes_are_held_to_what_shape_arithmetic_gives() {
    let nodes = vec![
        node("Shape", &["x"], &["shape"], vec![]),
        node("ReduceProd", &["shape"], &["size"], vec![int("keepdims", 1)]),
        node("Reshape", &["x", "size"], &["y"], vec![]),
    ];
    let mut graph = graph(vec![x()], nodes, &["y"]);
    graph.output[0] = info("y", ElementType::F32, vec![dimension(2), dimension(2)]);
    graph.value_info.push(info("size", ElementType::I64, vec![dimension(1)]));
    let warnings = imported(&model(13, graph)).warnings;
    let [Warning::DeclaredType { name, declared, found }] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(name, "y");
    assert_eq!((declared.to_string(), found.to_string()), ("float32[2,2]".into(), "float32[4]".into()));
}

#[test]
fn every_operator_of_the_graph_is_read_or_internal() {
    // Made by passes only, or given by whoever loads the model.
    let internal = ["Custom", "ConvertLayout", "ChannelShuffle"];
    let named: std::collections::HashSet<&str> = super::super::operators().map(|(_, name, _)| name).collect();
    // Families and spellings that differ from ONNX's.
    let families = [
        ("Unary", "Relu"),
        ("Binary", "Add"),
        ("Reduce", "ReduceSum"),
        ("ArgReduce", "ArgMax"),
        ("Pool", "MaxPool"),
        ("GlobalPool", "GlobalMaxPool"),
        ("GatherNd", "GatherND"),
        ("ScatterNd", "ScatterND"),
        ("Recurrent", "LSTM"),
        ("Random", "RandomNormal"),
        ("Requantize", "QLinearConv"),
        ("Sequence", "SequenceAt"),
        ("SvmProbabilities", "SVMClassifier"),
        ("Cumulate", "CumSum"),
        ("Dft", "DFT"),
    ];
    for kind in armet_graph::OpKind::ALL {
        let name =
            families.iter().find(|(ours, _)| *ours == kind.name()).map_or(kind.name(), |(_, onnx)| onnx);
        assert!(named.contains(name) || internal.contains(&name), "no reader makes {name}");
    }
}
