//! Subgraphs, functions, names and shapes.

use armet_graph::{Dim, Op};
use armet_tensor::Bool;

use super::super::proto::{FunctionProto, StringStringEntryProto};
use super::*;
use crate::Limits;

fn branch(nodes: Vec<NodeProto>, output: &str) -> GraphProto {
    graph(vec![], nodes, &[output])
}

fn condition() -> ValueInfoProto {
    info("c", ElementType::Bool, vec![])
}

fn vector(name: &str) -> ValueInfoProto {
    info(name, ElementType::F32, vec![dimension(2)])
}

fn both(graph: &Graph, inputs: &[Tensor]) -> [Tensor; 2] {
    [1, 0].map(|c| {
        let mut all = vec![Tensor::scalar(Bool(c))];
        all.extend_from_slice(inputs);
        evaluate(graph, &all).remove(0)
    })
}

#[test]
fn branches_share_one_list_of_captured_values() {
    let then_branch = branch(vec![node("Add", &["b", "a"], &["t"], vec![])], "t");
    let else_branch = branch(vec![node("Mul", &["a", "k"], &["e"], vec![])], "e");
    let choose = node(
        "If",
        &["c"],
        &["y"],
        vec![graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)],
    );
    let mut graph = graph(vec![condition(), vector("a"), vector("b")], vec![choose], &["y"]);
    graph.initializer.push(tensor_proto("k", &f32s(&[2], &[3., 4.])));
    let graph = imported(&model(13, graph)).graph;
    let (_, choose) = graph.nodes().next().unwrap();
    let Op::If(op) = &choose.op else { panic!("{choose:?}") };
    // The constant is copied, so the captured values are b and a, in the order of first use.
    let names: Vec<&str> = choose.inputs.iter().flatten().map(|v| graph.value(*v).name.as_str()).collect();
    assert_eq!(names, ["c", "b", "a"]);
    for branch in [&op.then_branch, &op.else_branch] {
        let names: Vec<&str> = branch.inputs().iter().map(|v| branch.value(*v).name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
    }
    let [yes, no] = both(&graph, &[f32s(&[2], &[1., 2.]), f32s(&[2], &[10., 20.])]);
    assert_close("then", &yes, &f32s(&[2], &[11., 22.]));
    assert_close("else", &no, &f32s(&[2], &[3., 8.]));
}

#[test]
fn an_inner_branch_captures_through_the_outer_one() {
    let inner = |op: &str| branch(vec![node(op, &["a"], &["z"], vec![])], "z");
    let choose = node(
        "If",
        &["c"],
        &["t"],
        vec![graph_attribute("then_branch", inner("Neg")), graph_attribute("else_branch", inner("Abs"))],
    );
    let outer = node(
        "If",
        &["c"],
        &["y"],
        vec![
            graph_attribute("then_branch", branch(vec![choose], "t")),
            // The result of a branch may be a value of the graph outside.
            graph_attribute("else_branch", branch(vec![], "a")),
        ],
    );
    let graph = graph(vec![condition(), vector("a")], vec![outer], &["y"]);
    let graph = imported(&model(16, graph)).graph;
    let [yes, no] = both(&graph, &[f32s(&[2], &[1., -2.])]);
    assert_close("then", &yes, &f32s(&[2], &[-1., 2.]));
    assert_close("else", &no, &f32s(&[2], &[1., -2.]));
}

fn function(domain: &str, name: &str, nodes: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        domain: domain.into(),
        name: name.into(),
        input: vec!["x".into()],
        output: vec!["y".into()],
        attribute: vec!["alpha".into()],
        node: nodes,
        opset_import: vec![opset("", 13), opset("local", 1)],
        ..FunctionProto::default()
    }
}

fn local(name: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto { domain: "local".into(), ..node(name, inputs, outputs, attributes) }
}

#[test]
fn functions_are_written_out() {
    let reference = AttributeProto { ref_attr_name: "alpha".into(), ..attribute("alpha", kind::FLOAT) };
    let leaky = function(
        "local",
        "Leaky",
        vec![node("LeakyRelu", &["x"], &["t"], vec![reference.clone()]), node("Neg", &["t"], &["y"], vec![])],
    );
    let forwarded = AttributeProto { name: "alpha".into(), ..reference };
    let twice = function(
        "local",
        "Twice",
        vec![
            local("Leaky", &["x"], &["t"], vec![forwarded.clone()]),
            local("Leaky", &["t"], &["y"], vec![forwarded]),
        ],
    );
    let nodes = vec![
        local("Twice", &["a"], &["t"], vec![float("alpha", 0.5)]),
        local("Twice", &["t"], &["y"], vec![float("alpha", 0.25)]),
    ];
    let mut model = model(13, graph(vec![vector("a")], nodes, &["y"]));
    model.functions = vec![leaky, twice];
    let graph = imported(&model).graph;
    assert_eq!(graph.node_count(), 8);
    let y = evaluate(&graph, &[f32s(&[2], &[8., -8.])]).remove(0);
    // Each Leaky is x -> -x for positive x and -alpha * x otherwise.
    assert_close("functions", &y, &f32s(&[2], &[8. * 0.5 * 0.25, -8. * 0.5 * 0.25]));
}

#[test]
fn functions_that_use_themselves_are_refused() {
    let forever = function("local", "Forever", vec![local("Forever", &["x"], &["y"], vec![])]);
    let mut model =
        model(13, graph(vec![vector("a")], vec![local("Forever", &["a"], &["y"], vec![])], &["y"]));
    model.functions = vec![forever];
    assert!(matches!(try_import(&model), Err(ImportError::TooLarge { .. })));
}

#[test]
fn functions_cannot_blow_up() {
    let layer = |n: usize| {
        let next = format!("f{}", n + 1);
        let uses = (0..20).map(|i| local(&next, &["x"], &[if i == 0 { "y" } else { "" }], vec![])).collect();
        function("local", &format!("f{n}"), uses)
    };
    let mut model = model(13, graph(vec![vector("a")], vec![local("f0", &["a"], &["y"], vec![])], &["y"]));
    model.functions = (0..15).map(layer).collect();
    model.functions.push(function("local", "f15", vec![node("Neg", &["x"], &["y"], vec![])]));
    for limits in
        [Limits { nodes: 5_000, ..Limits::default() }, Limits { decoded_bytes: 1 << 20, ..Limits::default() }]
    {
        let options = ImportOptions { limits, ..Default::default() };
        let result = import(model.encode_to_vec().into(), &options);
        assert!(matches!(result, Err(ImportError::TooLarge { .. })), "{result:?}");
    }
}

#[test]
fn names_and_dimensions_are_the_models() {
    let unnamed = || DimensionProto::default();
    let named = |name: &str| DimensionProto { dim_value: None, dim_param: Some(name.into()) };
    let zero = dimension(0);
    let negative = DimensionProto { dim_value: Some(-1), dim_param: None };
    let dims = vec![named("batch"), unnamed(), dimension(3), named("?"), zero, negative];
    let graph = graph(
        vec![info("images", ElementType::F32, dims), info_like("w", &f32s(&[1], &[2.]))],
        vec![node("Mul", &["images", "w"], &["y"], vec![])],
        &["y"],
    );
    let mut model = model(13, graph);
    let weights = tensor_proto("w", &f32s(&[1], &[2.]));
    model.graph.as_mut().unwrap().initializer.push(weights);
    model.metadata_props.push(StringStringEntryProto { key: "stride".into(), value: "32".into() });
    model.producer_name = "exporter".into();
    let found = imported(&model);
    let graph = &found.graph;
    assert_eq!(graph.inputs().len(), 1, "an initializer is no input");
    let input = graph.value(graph.inputs()[0]);
    let dims = input.ty.tensor().unwrap().dims.clone().unwrap();
    let symbol = Dim::symbol;
    let wanted = [
        symbol("batch"),
        symbol("images_1"),
        3.into(),
        symbol("images_3"),
        symbol("images_4"),
        symbol("images_5"),
    ];
    assert_eq!(dims.as_slice(), wanted);
    assert_eq!((input.name.as_str(), graph.outputs()[0].name.as_str()), ("images", "y"));
    assert_eq!(found.metadata["stride"], "32");
    assert_eq!(found.producer.name, "exporter");
    assert_eq!(found.opsets[""], 13);
}

fn scalar(name: &str, element: ElementType) -> ValueInfoProto {
    info(name, element, vec![])
}

#[test]
fn bodies_inside_functions_use_the_functions_attributes_and_values() {
    // y = x, made leaky twice inside a loop, the slope being the function's.
    let slope = AttributeProto { ref_attr_name: "alpha".into(), ..attribute("alpha", kind::FLOAT) };
    let body = graph(
        vec![scalar("i", ElementType::I64), scalar("go", ElementType::Bool), vector("v")],
        vec![
            node("LeakyRelu", &["v"], &["leaked"], vec![slope]),
            node("Add", &["leaked", "x"], &["next"], vec![]),
            node("Identity", &["go"], &["go_on"], vec![]),
        ],
        &["go_on", "next"],
    );
    let nodes = vec![
        node("Constant", &[], &["two"], vec![int("value_int", 2)]),
        node("Loop", &["two", "", "x"], &["y"], vec![graph_attribute("body", body)]),
    ];
    let repeated = function("local", "Repeated", nodes);
    let mut model = model(
        13,
        graph(vec![vector("a")], vec![local("Repeated", &["a"], &["y"], vec![float("alpha", 0.5)])], &["y"]),
    );
    model.functions = vec![repeated];
    let y = evaluate(&imported(&model).graph, &[f32s(&[2], &[1., -4.])]).remove(0);
    // 1 -> 2 -> 3, and -4 -> -2 - 4 = -6 -> -3 - 4 = -7.
    assert_close("loop in a function", &y, &f32s(&[2], &[3., -7.]));
}

#[test]
fn scans_run_along_any_axis_in_either_direction() {
    let body = || {
        graph(
            vec![vector("state"), vector("column")],
            vec![
                node("Add", &["state", "column"], &["next"], vec![]),
                node("Neg", &["next"], &["out"], vec![]),
            ],
            &["next", "out"],
        )
    };
    let attributes = |backward: i64| {
        vec![
            graph_attribute("body", body()),
            int("num_scan_inputs", 1),
            ints("scan_input_axes", &[-1]),
            ints("scan_input_directions", &[backward]),
            ints("scan_output_axes", &[1]),
            ints("scan_output_directions", &[backward]),
        ]
    };
    let x = f32s(&[2, 3], &[1., 2., 3., 10., 20., 30.]);
    let start = f32s(&[2], &[0., 0.]);
    for (backward, sums) in [(0, [1., 3., 6., 10., 30., 60.]), (1, [6., 5., 3., 60., 50., 30.])] {
        let scan = node("Scan", &["start", "x"], &["end", "all"], attributes(backward));
        let graph = graph(vec![info_like("start", &start), info_like("x", &x)], vec![scan], &["end", "all"]);
        let found = evaluate(&imported(&model(16, graph)).graph, &[start.clone(), x.clone()]);
        assert_close("end", &found[0], &f32s(&[2], &[6., 60.]));
        assert_close("all", &found[1], &f32s(&[2, 3], &sums.map(|v: f32| -v)));
    }
}

#[test]
fn bodies_with_the_wrong_number_of_inputs_are_refused() {
    let body = graph(vec![scalar("i", ElementType::I64)], vec![], &["i"]);
    let repeat = node("Loop", &["n", ""], &[], vec![graph_attribute("body", body)]);
    let error =
        try_import(&model(16, graph(vec![scalar("n", ElementType::I64)], vec![repeat], &[]))).unwrap_err();
    assert!(error.to_string().contains("body has 1 inputs, the node gives it 2"), "{error}");
}
