//! Files that nobody exported: cut, flipped, nested, huge. Every one ends in a graph or an error, soon.

use std::time::{Duration, Instant};

use armet_tensor::Bool;

use super::*;
use crate::Limits;

/// A model with a bit of everything.
fn sample() -> ModelProto {
    let x = info("x", ElementType::F32, vec![dimension(1), dimension(3), dimension(8), dimension(8)]);
    let body = |op: &str| graph(vec![], vec![node(op, &["p"], &["z"], vec![])], &["z"]);
    let nodes = vec![
        node("Conv", &["x", "w", "b"], &["c"], vec![ints("strides", &[2, 2]), ints("pads", &[1, 1, 1, 1])]),
        node("MaxPool", &["c"], &["p"], vec![ints("kernel_shape", &[2, 2]), word("auto_pad", "VALID")]),
        node("Constant", &[], &["k"], vec![tensor_attribute("value", &Tensor::scalar(Bool(1)))]),
        node(
            "If",
            &["k"],
            &["i"],
            vec![graph_attribute("then_branch", body("Relu")), graph_attribute("else_branch", body("Neg"))],
        ),
        node("Reshape", &["i", "s"], &["r"], vec![]),
        node("Gemm", &["r", "m"], &["y"], vec![float("alpha", 0.5), int("transB", 1)]),
    ];
    let mut graph = graph(vec![x], nodes, &["y"]);
    graph.initializer = vec![
        tensor_proto("w", &Tensor::zeros(ElementType::F32, [4, 3, 3, 3]).unwrap()),
        TensorProto {
            name: "b".into(),
            dims: vec![4],
            data_type: 1,
            float_data: vec![1.0; 4],
            ..Default::default()
        },
        TensorProto {
            name: "s".into(),
            dims: vec![2],
            data_type: 7,
            int64_data: vec![1, -1],
            ..Default::default()
        },
        tensor_proto("m", &Tensor::zeros(ElementType::F32, [2, 16]).unwrap()),
    ];
    graph.value_info = vec![info("c", ElementType::F32, vec![dimension(1), dimension(4)])];
    model(13, graph)
}

/// Small limits, so that a flipped length cannot make a test slow.
fn attempt(bytes: Vec<u8>) -> bool {
    let limits =
        Limits { decoded_bytes: 16 << 20, tensor_bytes: 16 << 20, nodes: 10_000, ..Limits::default() };
    import(bytes.into(), &ImportOptions { limits, ..Default::default() }).is_ok()
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_a_model() {
    let bytes = sample().encode_to_vec();
    assert!(attempt(bytes.clone()));
    let survived = (0..bytes.len()).filter(|&end| attempt(bytes[..end].to_vec())).count();
    // Only cuts between the last top-level fields leave a model.
    assert!(survived < 20, "{survived}");
}

#[test]
fn flipped_bits_are_an_error_or_a_model() {
    let bytes = sample().encode_to_vec();
    let begin = Instant::now();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut failed = 0;
    for round in 0..6_000 {
        let mut flipped = bytes.clone();
        for _ in 0..=round % 4 {
            let at = next() % flipped.len();
            flipped[at] ^= 1 << (next() % 8);
        }
        failed += usize::from(!attempt(flipped));
    }
    assert!(failed > 600, "flipping {failed} times made no difference");
    assert!(begin.elapsed() < Duration::from_mins(1));
}

#[test]
fn every_byte_as_every_extreme() {
    let bytes = sample().encode_to_vec();
    for at in 0..bytes.len() {
        for value in [0x00, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            attempt(changed);
        }
    }
}

#[test]
fn noise_is_no_model() {
    let mut state = 1u32;
    for len in 0..600 {
        let noise = (0..len).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        assert!(!attempt(noise.collect()));
    }
    assert!(!attempt(b"<!DOCTYPE html><html><body>Not Found</body></html>".to_vec()));
    assert!(!attempt(b"\x1c\0\0\0TFL3\x14\0 \0".to_vec()));
}

/// A length-delimited field.
fn field(number: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    prost::encoding::encode_varint(body.len() as u64, &mut out);
    out.extend_from_slice(body);
    out
}

#[test]
fn nesting_does_not_reach_the_stack() {
    // Graphs in attributes of nodes, types in sequences: a hundred thousand deep, each a few bytes around the last.
    let mut bytes = Vec::new();
    for _ in 0..20_000 {
        bytes = field(1, &field(5, &field(6, &bytes)));
    }
    assert!(!attempt(field(7, &bytes)));
    let mut bytes = Vec::new();
    for _ in 0..20_000 {
        bytes = field(4, &field(1, &bytes));
    }
    assert!(!attempt(field(7, &field(11, &field(2, &bytes)))));
}

#[test]
fn many_small_things_do_not_fill_the_memory() {
    for (number, body) in [(1u8, field(2, b"")), (5, vec![]), (11, vec![]), (15, vec![])] {
        let one = field(number, &body);
        let graph: Vec<u8> = one.iter().copied().cycle().take(one.len() * 500_000).collect();
        assert!(!attempt(field(7, &graph)), "{number}");
    }
}

#[test]
fn huge_dimensions_are_refused() {
    let cases: [(Vec<i64>, i32); 5] = [
        (vec![i64::MAX], 1),
        (vec![1 << 32, 1 << 32], 1),
        (vec![1 << 62, 4], 2),
        (vec![i64::MIN], 1),
        (vec![1 << 40], 8),
    ];
    for (dims, data_type) in cases {
        let mut model = sample();
        let graph = model.graph.as_mut().unwrap();
        graph.initializer[0] = TensorProto { name: "w".into(), dims, data_type, ..TensorProto::default() };
        assert!(matches!(try_import(&model), Err(ImportError::Tensor { .. })));
    }
    // Declared dimensions are only names of what may come; no memory belongs to them.
    let x =
        info("x", ElementType::F32, vec![DimensionProto { dim_value: Some(i64::MAX), dim_param: None }; 4]);
    let nodes = vec![node("Relu", &["x"], &["a"], vec![]), node("Flatten", &["a"], &["y"], vec![])];
    assert!(try_import(&model(13, graph(vec![x], nodes, &["y"]))).is_ok());
}

#[test]
fn extreme_attributes_do_not_overflow() {
    let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
    let x = || info("x", ElementType::F32, vec![dimension(1), dimension(2), dimension(3), dimension(3)]);
    for (op, name) in [
        ("Concat", "axis"),
        ("Softmax", "axis"),
        ("Flatten", "axis"),
        ("Gather", "axis"),
        ("DepthToSpace", "blocksize"),
        ("Split", "num_outputs"),
        ("Shape", "start"),
        ("Shape", "end"),
        ("Hardmax", "axis"),
        ("LRN", "size"),
        ("GroupNormalization", "num_groups"),
        ("Conv", "group"),
        ("LSTM", "hidden_size"),
        ("TopK", "axis"),
        ("LpPool", "p"),
        ("EyeLike", "k"),
        ("QuantizeLinear", "axis"),
        ("Add", "axis"),
    ] {
        for value in extremes {
            let attributes = vec![int(name, value), int("broadcast", 1)];
            let one = node(op, &["x", "x", "x"], &["y"], attributes);
            for version in [1, 6, 12, 18, 22] {
                let _ = try_import(&model(version, graph(vec![x()], vec![one.clone()], &["y"])));
            }
        }
    }
    for (op, name) in [
        ("Conv", "pads"),
        ("Conv", "strides"),
        ("Conv", "dilations"),
        ("MaxPool", "kernel_shape"),
        ("Pad", "pads"),
        ("Transpose", "perm"),
        ("Slice", "starts"),
        ("Unsqueeze", "axes"),
        ("Squeeze", "axes"),
        ("ReduceMax", "axes"),
        ("Reshape", "shape"),
        ("ConvTranspose", "output_padding"),
        ("ConvTranspose", "output_shape"),
        ("Split", "split"),
    ] {
        for value in extremes {
            let attributes = vec![ints(name, &[value; 4])];
            let one = node(op, &["x", "x"], &["y"], attributes);
            for version in [1, 2, 11, 13] {
                let _ = try_import(&model(version, graph(vec![x()], vec![one.clone()], &["y"])));
            }
        }
    }
}

#[test]
fn dimensions_that_double_stay_small() {
    let x = DimensionProto { dim_value: None, dim_param: Some("n".into()) };
    let (mut nodes, mut last) = (vec![], ["x".to_owned(), "x".to_owned()]);
    for round in 0..60 {
        last = ["a", "b"].map(|chain| {
            let before = if round == 0 { "x".to_owned() } else { format!("{chain}{}", round - 1) };
            let after = format!("{chain}{round}");
            nodes.push(node("Concat", &[&before, &before], &[&after], vec![int("axis", 0)]));
            after
        });
    }
    nodes.push(node("Add", &[&last[0], &last[1]], &["y"], vec![]));
    // A long chain, too: what is long must not be walked over by recursion.
    for round in 0..9_000 {
        let before = if round == 0 { "x".to_owned() } else { format!("c{}", round - 1) };
        nodes.push(node("Concat", &[&before, "x"], &[&format!("c{round}")], vec![int("axis", 0)]));
    }
    let graph = graph(vec![info("x", ElementType::F32, vec![x])], nodes, &["y"]);
    let begin = Instant::now();
    assert!(try_import(&model(13, graph)).is_ok());
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn ranks_and_names_do_not_multiply() {
    let many = vec![dimension(1); 100_000];
    let mut nodes = vec![node("Relu", &["x"], &["r0"], vec![])];
    nodes.extend((1..2_000).map(|i| node("Relu", &[&format!("r{}", i - 1)], &[&format!("r{i}")], vec![])));
    let begin = Instant::now();
    assert!(try_import(&model(13, graph(vec![info("x", ElementType::F32, many)], nodes, &["r9"]))).is_ok());
    // Many steps of one node with a long name, and many helpers with the same name.
    let names: Vec<String> = (0..5_000).map(|_| "x".to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let long = NodeProto { name: "n".repeat(1 << 20), ..node("Max", &names, &["y"], vec![]) };
    let x = || info("x", ElementType::F32, vec![dimension(1)]);
    assert!(try_import(&model(13, graph(vec![x()], vec![long], &["y"]))).is_ok());
    let same =
        |i: usize| NodeProto { name: "n".into(), ..node("Mean", &["x", "x"], &[&format!("m{i}")], vec![]) };
    let nodes = (0..20_000).map(same).collect();
    assert!(try_import(&model(13, graph(vec![x()], nodes, &["m1"]))).is_ok());
    assert!(begin.elapsed() < Duration::from_mins(1));
    let deep = TensorProto { name: "w".into(), dims: vec![1; 65], data_type: 1, ..TensorProto::default() };
    let mut graph = graph(vec![], vec![], &["w"]);
    graph.initializer.push(deep);
    assert!(matches!(try_import(&model(13, graph)), Err(ImportError::Tensor { .. })));
}

#[test]
fn loops_inside_each_other_are_typed_in_a_time_that_grows_with_their_number() {
    // Each body makes its value longer before and behind the loop inside it, so that no first guess of a type holds.
    let mut inner: Option<GraphProto> = None;
    for _ in 0..20 {
        let scalar = |name: &str, element| info(name, element, vec![]);
        let mut nodes = vec![node("Concat", &["v", "v"], &["longer"], vec![int("axis", 0)])];
        if let Some(body) = inner.take() {
            nodes.push(node("Loop", &["", "go", "longer"], &["looped"], vec![graph_attribute("body", body)]));
        } else {
            nodes.push(node("Neg", &["longer"], &["looped"], vec![]));
        }
        nodes.push(node("Concat", &["looped", "v"], &["next"], vec![int("axis", 0)]));
        nodes.push(node("Size", &["next"], &["size"], vec![]));
        nodes.push(node("Less", &["size", "i"], &["go_on"], vec![]));
        inner = Some(graph(
            vec![scalar("i", ElementType::I64), scalar("go", ElementType::Bool), untyped("v")],
            nodes,
            &["go_on", "next"],
        ));
    }
    let inputs = vec![info("go", ElementType::Bool, vec![]), info("x", ElementType::F32, vec![dimension(2)])];
    let outer = node("Loop", &["", "go", "x"], &["y"], vec![graph_attribute("body", inner.unwrap())]);
    let started = Instant::now();
    let graph = imported(&model(16, graph(inputs, vec![outer], &["y"]))).graph;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let y = graph.value(graph.outputs()[0].value).ty.to_string();
    assert_eq!(y, "float32[..]");
}
