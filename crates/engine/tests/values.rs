//! Inputs and outputs that are lists, optional values and text, and loops in sessions.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

mod onnx;

use std::time::Duration;

use armet::{
    CompileSettings, Engine, Model, Probe, RunError, Session, StepReport, StepResult, Tensor, Value, ValueRef,
};
use onnx::{FLOAT, TEXT, graph, list, model, node, optional, tensor};

fn session(model: &Model) -> Session {
    let engine = Engine::builder().threads(1).build().unwrap();
    engine.compile(model, &CompileSettings::default()).unwrap().session()
}

fn run(session: &mut Session, inputs: &[(&str, Value)]) -> Result<Vec<Value>, RunError> {
    let inputs: Vec<(&str, ValueRef<'_>)> =
        inputs.iter().map(|(name, value)| (*name, value.into())).collect();
    let outputs = session.run(&inputs)?;
    Ok(outputs.iter().map(|(_, value)| value.to_value()).collect())
}

fn vector(values: &[f32]) -> Value {
    Tensor::vector(values).into()
}

#[test]
fn lists_go_in_and_come_out() {
    let item = || tensor(FLOAT, &[]);
    let model = model(&graph(
        &[
            node("SequenceInsert", &["xs", "x"], &["more"], &[]),
            node("SequenceLength", &["more"], &["count"], &[]),
            node("SequenceAt", &["more", "count_before"], &["last"], &[]),
            node("SequenceLength", &["xs"], &["count_before"], &[]),
            node("Neg", &["last"], &["against"], &[]),
        ],
        &[("xs", list(&item())), ("x", tensor(FLOAT, &["n"]))],
        &[("more", list(&item())), ("count", tensor(7, &[])), ("against", tensor(FLOAT, &["n"]))],
    ));
    let mut session = session(&model);
    for items in [vec![], vec![vector(&[1.0]), vector(&[2.0, 3.0])]] {
        let inputs = [("xs", Value::Sequence(items.clone())), ("x", vector(&[4.0, 5.0, 6.0]))];
        let found = run(&mut session, &inputs).unwrap();
        let count = items.len() as i64 + 1;
        let more: Vec<Value> = items.into_iter().chain([vector(&[4.0, 5.0, 6.0])]).collect();
        let wanted = [Value::Sequence(more), Tensor::scalar(count).into(), vector(&[-4.0, -5.0, -6.0])];
        assert_eq!(found, wanted);
    }
    let wrong = [("xs", vector(&[1.0])), ("x", vector(&[1.0]))];
    assert!(matches!(run(&mut session, &wrong), Err(RunError::InputType { name, .. }) if name == "xs"));
    let texts = Tensor::from_strings([1], vec!["a".into()]).unwrap();
    let wrong = [("xs", Value::Sequence(vec![texts.into()])), ("x", vector(&[1.0]))];
    assert!(matches!(run(&mut session, &wrong), Err(RunError::InputType { name, .. }) if name == "xs"));
}

#[test]
fn optional_values_are_there_or_not() {
    let inside = |name: &str, op: &str, inputs: &[&str]| {
        graph(&[node(op, inputs, &[name], &[])], &[], &[(name, tensor(FLOAT, &["n"]))])
    };
    let then_branch = graph(
        &[node("OptionalGetElement", &["maybe"], &["given"], &[]), node("Neg", &["given"], &["yes"], &[])],
        &[],
        &[("yes", tensor(FLOAT, &["n"]))],
    );
    let branches =
        [onnx::body("then_branch", &then_branch), onnx::body("else_branch", &inside("no", "Abs", &["x"]))];
    let model = model(&graph(
        &[node("OptionalHasElement", &["maybe"], &["has"], &[]), node("If", &["has"], &["y"], &branches)],
        &[("maybe", optional(&tensor(FLOAT, &["n"]))), ("x", tensor(FLOAT, &["m"]))],
        &[("y", tensor(FLOAT, &["k"]))],
    ));
    let mut session = session(&model);
    let maybe = |value: Option<Value>| Value::Optional(value.map(Box::new));
    for _ in 0..2 {
        let found = run(&mut session, &[("maybe", maybe(None)), ("x", vector(&[-1.0]))]).unwrap();
        assert_eq!(found, [vector(&[1.0])]);
        let given = maybe(Some(vector(&[2.0, 3.0])));
        let found = run(&mut session, &[("maybe", given), ("x", vector(&[-1.0]))]).unwrap();
        assert_eq!(found, [vector(&[-2.0, -3.0])]);
    }
    // What is given for an optional value may be the value itself.
    let found = run(&mut session, &[("maybe", vector(&[4.0])), ("x", vector(&[-1.0]))]).unwrap();
    assert_eq!(found, [vector(&[-4.0])]);
}

#[test]
fn text_keeps_its_contents_through_shapes_and_movement() {
    let model = model(&graph(
        &[
            node("Unsqueeze", &["x", "axis"], &["column"], &[]),
            node("Concat", &["column", "column"], &["both"], &[onnx::int("axis", 1)]),
            node("Shape", &["x"], &["length"], &[]),
            node("Size", &["length"], &["axis_scalar"], &[]),
            node("Reshape", &["axis_scalar", "length_one"], &["axis"], &[]),
            node("Shape", &["length"], &["length_one"], &[]),
        ],
        &[("x", tensor(TEXT, &["n"]))],
        &[("both", tensor(TEXT, &["n", "m"])), ("x", tensor(TEXT, &["n"]))],
    ));
    let mut session = session(&model);
    for texts in [vec!["a", "b"], vec!["\u{e9}", "", "c"], vec![]] {
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let given = Tensor::from_strings([texts.len()], texts.clone()).unwrap();
        // A tensor may be given as it is or as a value.
        let outputs = session.run(&[("x", (&given).into())]).unwrap();
        let both = outputs.tensor("both").unwrap();
        let twice: Vec<String> = texts.iter().flat_map(|t| [t.clone(), t.clone()]).collect();
        assert_eq!((both.shape().to_vec(), both.strings()), (vec![texts.len(), 2], &twice[..]));
        assert_eq!(outputs.tensor("x").unwrap(), given);
    }
}

/// Asks to stop when some steps have run.
struct Stop(usize);

impl Probe for Stop {
    fn wants_results(&self) -> bool {
        false
    }

    fn wants_stop(&self) -> bool {
        self.0 == 0
    }

    fn step(&mut self, _: &StepReport, _: Duration, _: &[StepResult<'_>]) {
        self.0 -= 1;
    }
}

#[test]
fn a_run_can_be_stopped_in_the_middle_of_a_loop() {
    let mut session = session(&onnx::recurrence());
    let (first, rows) = (Tensor::vector(&[0.5f32]), Tensor::new([1000, 1], &[0.25f32; 1000]).unwrap());
    let inputs = [("first", (&first).into()), ("rows", (&rows).into())];
    let stopped = session.run_with(&inputs, &mut Stop(100)).map(|_| ());
    assert_eq!(stopped, Err(RunError::Stopped));
    let outputs = session.run(&inputs).unwrap();
    assert_eq!(outputs.tensor("all").unwrap().shape().dims(), [1000, 1]);
}

#[test]
fn a_scan_follows_the_length_of_its_sequence() {
    let mut session = session(&onnx::recurrence());
    for length in [3usize, 0, 5, 3] {
        let rows: Vec<f32> = (0..length * 2).map(|i| i as f32 / 10.0).collect();
        let mut state = [0.5f32, -0.5];
        let mut all = Vec::new();
        for row in rows.chunks_exact(2) {
            state = [(state[0] + row[0]).tanh(), (state[1] + row[1]).tanh()];
            all.extend_from_slice(&state);
        }
        let inputs =
            [("first", vector(&[0.5, -0.5])), ("rows", Tensor::new([length, 2], &rows).unwrap().into())];
        let found = run(&mut session, &inputs).unwrap();
        let near = |found: &Value, shape: &[usize], wanted: &[f32]| {
            let found = found.tensor().unwrap();
            assert_eq!(found.shape().dims(), shape);
            let values = found.values::<f32>().unwrap();
            assert!(values.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{values:?} {wanted:?}");
        };
        near(&found[0], &[2], &state);
        near(&found[1], &[length, 2], &all);
    }
}
