//! The passes on real models: the same answers by meaning before and after, and types that inference agrees with.

use armet_conformance::resources;
use armet_graph::passes::{self, LayoutChoice, LayoutPreference, PassOptions, PassReport};
use armet_graph::{Graph, NodeId, Numbers, Op, TensorType, Value, evaluate_graph, infer};
use armet_importers::onnx::{ImportOptions, import};
use armet_tensor::{ElementType, Layout, Tensor};
use libtest_mimic::{Arguments, Failed, Trial};

/// What a model is given.
enum Given {
    /// Seeded numbers.
    Random(&'static [usize]),
    /// One whole number.
    Number(i64),
}
use Given::{Number, Random};

/// A model, its inputs, and how far answers may move, as a share of the output's range.
struct Sample {
    model: &'static str,
    inputs: &'static [Given],
    tolerance: f64,
}

/// Small enough to be evaluated by meaning in seconds.
const SAMPLES: &[Sample] = &[
    Sample { model: "mtcnn_pnet", inputs: &[Random(&[1, 40, 48, 3])], tolerance: 1e-5 },
    Sample { model: "mtcnn_rnet", inputs: &[Random(&[2, 24, 24, 3])], tolerance: 1e-5 },
    Sample { model: "mtcnn_onet", inputs: &[Random(&[1, 48, 48, 3])], tolerance: 1e-5 },
    Sample { model: "mobilenet_v2", inputs: &[Random(&[1, 3, 64, 64])], tolerance: 1e-5 },
    Sample { model: "mobilenet_v2_qdq", inputs: &[Random(&[1, 3, 64, 64])], tolerance: 0.0 },
    Sample { model: "mobilenet_v2_qop", inputs: &[Random(&[1, 3, 64, 64])], tolerance: 0.0 },
    Sample { model: "mobilenet_v3_small", inputs: &[Random(&[1, 3, 64, 64])], tolerance: 1e-5 },
    Sample { model: "ppocr2_cls", inputs: &[Random(&[1, 3, 48, 192])], tolerance: 1e-5 },
    Sample { model: "ppocr4_det", inputs: &[Random(&[1, 3, 64, 64])], tolerance: 1e-4 },
    Sample { model: "ppocr4_rec", inputs: &[Random(&[1, 3, 48, 64])], tolerance: 1e-4 },
    Sample {
        model: "silero_vad",
        inputs: &[Random(&[1, 576]), Random(&[2, 1, 128]), Number(16000)],
        tolerance: 1e-4,
    },
    Sample {
        model: "silero_vad_noif",
        inputs: &[Random(&[1, 576]), Number(16000), Random(&[2, 1, 128])],
        tolerance: 1e-4,
    },
    Sample {
        model: "minilm_fp32",
        inputs: &[Random(&[1, 9]), Random(&[1, 9]), Random(&[1, 9])],
        tolerance: 1e-4,
    },
];

fn main() {
    let trials = SAMPLES.iter().map(|sample| Trial::test(sample.model, move || check(sample))).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// A backend that wants channels last wherever pictures are convolved or pooled.
struct Pictures;

impl LayoutPreference for Pictures {
    fn preference(&self, graph: &Graph, node: NodeId) -> LayoutChoice {
        let last = Layout::ChannelsLast;
        match &graph.node(node).op {
            Op::Conv(_) | Op::ConvTranspose(_) | Op::Pool(_) => {
                LayoutChoice::Required { input: last, output: last }
            }
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Concat(_)
            | Op::GlobalPool(_)
            | Op::Resize(_)
            | Op::Pad(_)
            | Op::Slice(_)
            | Op::Split(_)
            | Op::Requantize(_)
            | Op::Cast(_) => LayoutChoice::Any,
            _ => LayoutChoice::PlainOnly,
        }
    }
}

fn check(sample: &Sample) -> Result<(), Failed> {
    let Some(path) = resources::model(sample.model) else {
        resources::skip(sample.model, "models");
        return Ok(());
    };
    let mut graph = import(std::fs::read(path)?.into(), &ImportOptions::default())?.graph;
    let inputs = specialise(&mut graph, sample.inputs);
    infer::infer(&mut graph)?;
    let wanted = evaluate_graph(&graph, &inputs, 1)?;
    let options = PassOptions { layout: Some(&Pictures), ..PassOptions::default() };
    let before = graph.node_count();
    let reports = passes::run_all(&mut graph, &options)?;
    report(sample.model, before, &graph, &reports);
    same_types(&graph)?;
    compare(sample, &wanted, &evaluate_graph(&graph, &inputs, 1)?)?;
    // A second run finds nothing that changes the answers either.
    passes::run_all(&mut graph, &options)?;
    compare(sample, &wanted, &evaluate_graph(&graph, &inputs, 1)?)
}

fn specialise(graph: &mut Graph, given: &[Given]) -> Vec<Value> {
    let mut numbers = Numbers::new(11);
    let ids = graph.inputs().to_vec();
    let mut inputs = Vec::new();
    for (id, given) in ids.into_iter().zip(given) {
        let element = graph.value(id).ty.tensor().expect("models take tensors").element;
        let tensor = match given {
            // Tokens and segments of text models: 0 and 1 are in every vocabulary.
            Random(shape) if element == ElementType::I64 => numbers.ints::<i64>(*shape, 0, 1),
            Random(shape) => numbers.tensor(element, *shape),
            Number(value) => Tensor::scalar(*value),
        };
        graph.value_mut(id).ty = TensorType::fixed(element, tensor.shape()).into();
        inputs.push(tensor.into());
    }
    inputs
}

#[expect(clippy::print_stdout, reason = "what a test reports is shown when it is asked for")]
fn report(model: &str, before: usize, graph: &Graph, reports: &[PassReport]) {
    let time: f64 = reports.iter().map(|r| r.duration.as_secs_f64() * 1e3).sum();
    println!("{model}: {before} -> {} nodes in {time:.1} ms", graph.node_count());
    for r in reports.iter().filter(|r| r.rewrites > 0) {
        let ms = r.duration.as_secs_f64() * 1e3;
        println!("  {:36} {:5} {:5} -> {:<5} {ms:.2} ms", r.name, r.rewrites, r.nodes_before, r.nodes_after);
    }
}

fn same_types(graph: &Graph) -> Result<(), Failed> {
    let mut inferred = graph.clone();
    infer::infer(&mut inferred)?;
    for value in graph.nodes().flat_map(|(_, node)| node.outputs.iter().flatten()) {
        let (kept, found) = (&graph.value(*value).ty, &inferred.value(*value).ty);
        if kept != found {
            return Err(format!("{}: {kept} is said, {found} is right", graph.value(*value).name).into());
        }
    }
    Ok(())
}

fn compare(sample: &Sample, wanted: &[Value], given: &[Value]) -> Result<(), Failed> {
    for (index, (wanted, given)) in wanted.iter().zip(given).enumerate() {
        let (Some(wanted), Some(given)) = (wanted.tensor(), given.tensor()) else {
            return Err("an output is no tensor".into());
        };
        if (wanted.element(), wanted.shape()) != (given.element(), given.shape()) {
            return Err(format!("output {index} was {wanted:?} and is {given:?}").into());
        }
        let (a, b) = (armet_graph::ops::numbers::to_f64(wanted)?, armet_graph::ops::numbers::to_f64(given)?);
        let range = a.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            - a.iter().copied().fold(f64::INFINITY, f64::min);
        let difference = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let share = difference / range.max(1e-6);
        if share.is_nan() || share > sample.tolerance {
            return Err(format!("output {index} moved by {share:e} of its range").into());
        }
    }
    Ok(())
}
