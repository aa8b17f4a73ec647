//! Custom operators in Rust: found, held to what they announce, and named where they fail.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

#[path = "../examples/custom_operator.rs"]
mod example;
#[expect(dead_code, reason = "other tests build models with more of it")]
mod onnx;

use armet::{
    CUSTOM, CompileError, CompileSettings, CustomFailure, CustomNode, CustomOperator, CustomOperators,
    CustomProblem, Engine, EvaluateError, InferError, InferInputs, LoadError, LoadOptions, Model, RunError,
    Tensor, Unsupported, ValueType,
};
use onnx::{FLOAT, tensor};

/// Does what the attribute `does` says.
#[derive(Debug)]
struct Trial;

#[expect(clippy::panic_in_result_fn, reason = "what happens when it panics is tried")]
impl CustomOperator for Trial {
    fn infer(&self, node: &CustomNode, inputs: &InferInputs<'_>) -> Result<Vec<ValueType>, InferError> {
        match node.int("does") {
            Some(5) => Err(InferError::Mismatch("not of this type".into())),
            Some(6) => panic!("no idea"),
            _ => Ok(vec![inputs.tensor(0)?.clone().into()]),
        }
    }

    fn run(&self, node: &CustomNode, inputs: &[Option<&Tensor>]) -> Result<Vec<Tensor>, CustomFailure> {
        let input = inputs.first().copied().flatten().ok_or("the input is missing")?;
        let negated: Vec<f32> = input.values::<f32>()?.iter().map(|x| -x).collect();
        match node.int("does") {
            Some(1) => Err("it would not".into()),
            Some(2) => panic!("it broke"),
            Some(3) => Ok(vec![Tensor::vector(&[1.0f32; 7])]),
            Some(4) => Ok(vec![Tensor::new(input.shape().clone(), &vec![f32::NAN; input.len()])?]),
            Some(7) => Ok(Vec::new()),
            _ => Ok(vec![Tensor::new(input.shape().clone(), &negated)?]),
        }
    }
}

/// `y = Abs(operator(Relu(x)))`.
fn bytes(domain: &str, operator: &str, does: i64) -> Vec<u8> {
    let custom = onnx::node(operator, &["a"], &["b"], &[onnx::int("does", does as u64)]).with(7, domain);
    onnx::file(&onnx::graph(
        &[onnx::node("Relu", &["x"], &["a"], &[]), custom, onnx::node("Abs", &["b"], &["y"], &[])],
        &[("x", tensor(FLOAT, &["n"]))],
        &[("y", tensor(FLOAT, &["n"]))],
    ))
}

fn load(domain: &str, operator: &str, does: i64, operators: CustomOperators) -> Result<Model, LoadError> {
    Model::from_bytes_with(
        bytes(domain, operator, does),
        &LoadOptions { operators, ..LoadOptions::default() },
    )
}

fn all() -> CustomOperators {
    CustomOperators::new().with("mine", "Trial", Trial)
}

fn run(model: &Model, values: &[f32]) -> Result<Vec<f32>, RunError> {
    let engine = Engine::builder().threads(1).build().unwrap();
    let compiled = engine.compile(model, &CompileSettings::default())?;
    let mut session = compiled.session();
    let given = Tensor::vector(values);
    let outputs = session.run(&[("x", (&given).into())])?;
    Ok(outputs.tensor("y").unwrap().values::<f32>().unwrap().into_owned())
}

#[test]
fn the_example_runs() {
    assert_eq!(example::run().unwrap(), [-0.5, 0.0, 0.75]);
}

#[test]
fn it_runs_between_kernels_and_is_no_fallback() {
    let model = load("mine", "Trial", 0, all()).unwrap();
    for backend in ["cpu", "reference"] {
        let engine = Engine::builder().threads(1).backend(backend).build().unwrap();
        let settings = CompileSettings { forbid_reference: backend == "cpu", ..Default::default() };
        let compiled = engine.compile(&model, &settings).unwrap();
        let mut session = compiled.session();
        for length in [3_usize, 5, 0, 3] {
            let values: Vec<f32> = (0..length).map(|i| i as f32 - 1.0).collect();
            let given = Tensor::vector(&values);
            let outputs = session.run(&[("x", (&given).into())]).unwrap();
            let expected: Vec<f32> = values.iter().map(|v| v.max(0.0)).collect();
            assert_eq!(outputs.tensor("y").unwrap().values::<f32>().unwrap(), expected);
        }
        let stages = session.stages();
        let step = stages[0].placement.steps.iter().find(|s| s.operator == "Custom").unwrap();
        assert_eq!(step.backend, CUSTOM);
        assert!(
            step.kernel.starts_with("mine.Trial of ") && step.kernel.ends_with("Trial"),
            "{}",
            step.kernel
        );
        assert!(step.refused.iter().all(|r| r.reason == Unsupported::Custom));
    }
}

#[test]
fn it_is_taken_for_unknown_names_only_unless_told() {
    assert!(matches!(load("mine", "Trial", 0, CustomOperators::new()), Err(LoadError::Import(_))));
    let other_version = CustomOperators::new().with_opsets("mine", "Trial", 2..=4, Trial);
    assert!(matches!(load("mine", "Trial", 0, other_version), Err(LoadError::Import(_))));
    // The engine's own refuses the attribute; the one that overrides takes it.
    let neg = || CustomOperators::new().with("", "Neg", Trial);
    assert!(load("", "Neg", 0, neg()).is_err());
    assert_eq!(run(&load("", "Neg", 0, neg().overriding()).unwrap(), &[2.0]).unwrap(), [2.0]);
}

#[test]
fn what_goes_wrong_is_named() {
    let run = |does| run(&load("mine", "Trial", does, all()).unwrap(), &[1.0, 2.0]).unwrap_err();
    let problem = |does| match run(does) {
        RunError::Evaluate { source: EvaluateError::Custom(error), .. } => {
            assert_eq!(error.operator, "mine.Trial");
            assert!(error.source_name.ends_with("Trial"));
            error.problem
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(problem(1), CustomProblem::Failed("it would not".into()));
    assert_eq!(problem(2), CustomProblem::Panicked("it broke".into()));
    let expected = "float32[2]".to_owned();
    assert_eq!(problem(3), CustomProblem::WrongType { output: 0, expected, found: "float32[7]".into() });
    assert_eq!(problem(4), CustomProblem::NotANumber { output: 0, index: 0 });
    assert_eq!(problem(7), CustomProblem::Count { expected: 1, found: 0 });
    for (does, what) in [(5, "not of this type"), (6, "mine.Trial")] {
        let error = run(does);
        assert!(matches!(
            error,
            RunError::Compile(CompileError::Graph(_) | CompileError::Unplannable { .. })
        ));
        assert!(error.to_string().contains(what), "{error}");
    }
}
