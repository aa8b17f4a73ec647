//! `run`, `bench` and `inspect` on the embedded models: what they print, what they save, and that options which may not
//! change the numbers do not.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

mod common;

use std::path::Path;

use armet::npy;
use common::{armet, json, words};

/// Model, a shape of its input, names of its outputs.
const MODELS: [(&str, &str, &[&str]); 3] = [
    ("pnet.onnx", "input_1=1,45,38,3", &["conv2d_4", "softmax"]),
    ("rnet.onnx", "input_2=3,24,24,3", &["dense_2", "softmax_1"]),
    ("onet.onnx", "input_3=2,48,48,3", &["dense_5", "dense_6", "softmax_2"]),
];

fn numbers(file: &Path) -> (Vec<usize>, Vec<f32>) {
    let tensor = npy::read(&std::fs::read(file).unwrap()).unwrap();
    (tensor.shape().to_vec(), tensor.values::<f32>().unwrap().into_owned())
}

fn gap(a: &Path, b: &Path) -> f32 {
    let ((a_shape, a), (b_shape, b)) = (numbers(a), numbers(b));
    assert_eq!(a_shape, b_shape);
    assert!(!a.is_empty() && a.iter().chain(&b).all(|v| v.is_finite()));
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn run_prints_and_saves_its_outputs() {
    let folder = common::folder();
    for (model, shape, names) in MODELS {
        let line = format!("run {model} --input random --shape {shape} --output saved --json");
        let found = json(folder.path(), words(&line));
        assert_eq!(found["model"], model);
        let outputs = found["outputs"].as_array().unwrap();
        assert_eq!(outputs.iter().map(|o| o["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
        for (output, name) in outputs.iter().zip(names) {
            assert_eq!(output["type"], "float32");
            let file = Path::new("saved").join(name).with_extension("npy");
            assert_eq!(output["file"].as_str().map(Path::new), Some(file.as_path()));
            let (shape, values) = numbers(&folder.path().join(file));
            assert_eq!(output["shape"], serde_json::json!(shape));
            let largest = values.iter().copied().fold(f32::MIN, f32::max);
            let stated = output["summary"]["max"].as_f64().unwrap();
            assert!((stated - f64::from(largest)).abs() < 1e-6, "{output}");
            assert_eq!(output["summary"]["not_finite"], 0);
        }
        let placement = found["placement"].as_array().unwrap();
        assert!(placement.len() >= 10);
        for step in placement {
            for field in ["node", "operator", "backend", "kernel"] {
                assert!(step[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {step}");
            }
            assert!(step["refused"].is_array(), "{step}");
        }
        for time in ["load_ms", "compile_ms", "run_ms"] {
            assert!(found["timing"][time].as_f64().unwrap() > 0.0, "{time}");
        }
    }
    let call = armet(folder.path(), words("run rnet.onnx --input random"));
    assert_eq!(call.code, 0);
    assert!(
        call.out.starts_with("dense_2: float32[1,4]  min ") && call.out.contains("softmax_1: float32[1,2]")
    );
    assert!(call.err.contains("placement: ") && call.err.contains("timing: load "), "{call:?}");
}

#[test]
fn layers_are_saved_and_the_last_ones_are_the_outputs() {
    let folder = common::folder();
    let at = |name: &str| folder.path().join(name);
    for (model, shape, names) in MODELS {
        let line = format!(
            "run {model} --input random --shape {shape} --output {model}.out --dump-layers {model}.layers"
        );
        let call = armet(folder.path(), words(&line));
        assert_eq!(call.code, 0, "{call:?}");
        let saved = std::fs::read_dir(at(&format!("{model}.layers"))).unwrap().count();
        assert!(saved >= 10, "{saved} values of {model}");
        assert!(call.err.contains(&format!("saved {saved} values in {model}.layers")), "{call:?}");
        for name in names {
            let [layer, output] = ["layers", "out"].map(|kind| at(&format!("{model}.{kind}/{name}.npy")));
            assert_eq!(std::fs::read(&layer).unwrap(), std::fs::read(output).unwrap(), "{name} of {model}");
        }
    }
}

/// Runs each model plainly and with `options`, and gives the largest gap of all outputs.
fn largest_gap(options: &str) -> f32 {
    let folder = common::folder();
    let mut largest = 0.0_f32;
    for (model, shape, names) in MODELS {
        for (options, saved) in [("--threads 1", "plain"), (options, "other")] {
            let line = format!("run {model} --input random --shape {shape} --output {saved} {options}");
            let call = armet(folder.path(), words(&line));
            assert_eq!(call.code, 0, "{call:?}");
        }
        for name in names {
            let [plain, other] =
                ["plain", "other"].map(|saved| folder.path().join(saved).join(name).with_extension("npy"));
            largest = largest.max(gap(&plain, &other));
        }
    }
    largest
}

#[test]
fn backends_agree() {
    let gap = largest_gap("--backend reference");
    assert!(gap < 1e-4, "{gap}");
}

#[test]
fn instruction_sets_and_threads_agree() {
    for options in ["--isa scalar", "--threads 2", "--threads 3"] {
        let gap = largest_gap(options);
        assert!(gap < 1e-5, "{options}: {gap}");
    }
}

#[test]
fn a_pass_changes_no_numbers() {
    assert_eq!(largest_gap("--disable-pass fold_constants"), 0.0);
    let mut none = String::new();
    for pass in armet::PASSES {
        none.push_str("--disable-pass ");
        none.push_str(pass.name);
        none.push(' ');
    }
    let gap = largest_gap(&none);
    assert!(gap < 1e-5, "without any pass: {gap}");
}

#[test]
fn inputs_come_from_files_and_pictures() {
    let folder = common::folder();
    let at = |name: &str| folder.path().join(name);
    let values: Vec<f32> = (0..2 * 24 * 24 * 3).map(|i| (i * 37 % 255) as f32 / 255.0).collect();
    let tensor = armet::Tensor::new([2, 24, 24, 3], &values).unwrap();
    std::fs::write(at("given.npy"), npy::write(&tensor).unwrap()).unwrap();
    for line in [
        "run rnet.onnx --input given.npy --output from-file",
        "run rnet.onnx --input random --dim N=2 --output from-dim",
        "run rnet.onnx --input input_2=random --shape input_2=2,24,24,3 --output from-shape",
    ] {
        let call = armet(folder.path(), words(line));
        assert_eq!(call.code, 0, "{call:?}");
    }
    for name in ["dense_2.npy", "softmax_1.npy"] {
        for other in ["from-dim", "from-shape"] {
            assert_eq!(gap(&at("from-file").join(name), &at(other).join(name)), 0.0, "{name}, {other}");
        }
    }
    let line = "run onet.onnx --input astronaut.jpg --preset mtcnn --json";
    let found = json(folder.path(), words(line));
    assert_eq!(found["outputs"][0]["shape"], serde_json::json!([1, 4]));
    let line = "run pnet.onnx --input astronaut.jpg --preset mtcnn --size 60x40 --json";
    let found = json(folder.path(), words(line));
    // A step of 2, and a window of 12.
    assert_eq!(found["outputs"][0]["shape"], serde_json::json!([1, 15, 25, 4]));
}

#[test]
fn bench_states_all_it_measured() {
    let folder = common::folder();
    let found = json(
        folder.path(),
        words("bench rnet.onnx --seconds 0.2 --threads 2 --shape input_2=2,24,24,3 --json"),
    );
    for field in ["median_ms", "min_ms", "p99_ms", "first_ms", "load_ms"] {
        assert!(found[field].as_f64().unwrap() > 0.0, "{field} of {found}");
    }
    let number = |field: &str| found[field].as_f64().unwrap();
    assert!(number("min_ms") <= number("median_ms") && number("median_ms") <= number("p99_ms"));
    assert!(number("runs") >= 3.0);
    assert!(number("peak_rss_total_kib") >= number("peak_rss_kib"));
    assert_eq!(found["threads"], 2);
    assert_eq!(found["shapes"]["input_2"], serde_json::json!([2, 24, 24, 3]));
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    assert!(found["isa"].as_str().is_some_and(|isa| !isa.is_empty()));
    assert!(found["cpu_features"].is_array());
    for field in ["clock_khz", "temperature_c", "commit", "cpu"] {
        assert!(found.get(field).is_some(), "{field} is not in {found}");
    }
    let call = armet(folder.path(), words("bench rnet.onnx --seconds 0 --threads 1"));
    assert_eq!(call.code, 0);
    assert!(call.out.contains(" ms median, ") && call.out.contains("load and compile "), "{call:?}");
}

#[test]
fn inspect_states_what_a_model_is_and_needs() {
    let folder = common::folder();
    let found = json(folder.path(), words("inspect onet.onnx --json"));
    assert_eq!(found["inputs"], serde_json::json!([{"name": "input_3", "type": "float32[N,48,48,3]"}]));
    assert_eq!(found["outputs"].as_array().unwrap().len(), 3);
    assert_eq!(found["operators"]["Conv"], 4);
    assert_eq!(found["operators"]["Add"], 4);
    assert_eq!(found["operators_after_passes"].get("Add"), None, "biases go into their products");
    let passes = found["passes"].as_array().unwrap();
    for pass in armet::PASSES {
        assert!(passes.iter().any(|p| p["name"] == pass.name), "{} is not in {passes:?}", pass.name);
    }
    let steps = found["steps"].as_array().unwrap();
    let sum = |field: &str| steps.iter().map(|step| step[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(found["operations"], sum("operations"));
    assert_eq!(found["bytes"], sum("bytes"));
    // Multiplications and additions of the first convolution alone: 46 x 46 places, 32 channels, windows of 3 x 3 x 3.
    assert!(found["operations"].as_u64().unwrap() > 46 * 46 * 32 * 27 * 2);
    let memory = |field: &str| found["memory"][field].as_u64().unwrap();
    assert!(memory("lower_bound") <= memory("arena") && memory("arena") < memory("without_reuse"));
    assert!(found["packed_weights"].as_u64().unwrap() > 0);

    let same = json(folder.path(), words("inspect onet.onnx --format json"));
    assert_eq!(same["steps"], found["steps"]);
    let call = armet(folder.path(), words("inspect onet.onnx --format dot"));
    assert_eq!(call.code, 0);
    assert!(
        call.out.starts_with("digraph ") && call.out.trim_end().ends_with('}') && call.out.contains("->")
    );
    let call = armet(folder.path(), words("inspect onet.onnx --steps"));
    assert_eq!(call.code, 0);
    for words in [
        "input   input_3: float32[N,48,48,3]",
        "model   24 nodes: ",
        "passes  ",
        "memory  arena ",
        "work    ",
        "placement: ",
    ] {
        assert!(call.out.contains(words), "{words} is not in {call:?}");
    }
}

#[test]
fn a_graph_can_be_printed_between_passes() {
    let folder = common::folder();
    let call = armet(folder.path(), words("inspect rnet.onnx --dump-after remove_dead_code"));
    assert_eq!(call.code, 0);
    assert!(call.err.contains("# after remove_dead_code\ngraph "), "{call:?}");
    assert!(call.err.contains("input input_2: float32[N,24,24,3]"), "{call:?}");
    assert!(!call.out.contains("# after"));
}

#[test]
fn fallbacks_can_be_refused() {
    let folder = common::folder();
    let call = armet(folder.path(), words("run rnet.onnx --input random --no-fallback"));
    assert_eq!(call.code, 0, "{call:?}");
    let call = armet(folder.path(), words("run rnet.onnx --input random --backend reference --no-fallback"));
    assert_eq!((call.code, call.out.as_str()), (2, ""), "{call:?}");
    assert!(call.err.contains("no backend takes node "), "{call:?}");
    assert!(call.err.contains("only the reference was asked for"), "{call:?}");
}
