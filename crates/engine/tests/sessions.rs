//! Sessions: side by side, with changing shapes, after errors, and apart from each other.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

mod models;

use armet::{
    CompileSettings, Compiled, ElementType, Engine, LoadError, Model, RunError, Session, Tensor, Value,
};

fn engine(threads: usize) -> Engine {
    Engine::builder().threads(threads).build().unwrap()
}

fn compile(engine: &Engine, name: &str) -> Compiled {
    engine.compile(&models::load(name), &CompileSettings::default()).unwrap()
}

/// All outputs as numbers, with their shapes.
fn answers(session: &mut Session, input: &str, value: &Tensor) -> Vec<(Vec<usize>, Vec<f32>)> {
    let outputs = session.run(&[(input, value.into())]).unwrap();
    outputs
        .iter()
        .map(|(_, output)| {
            let view = output.view().unwrap();
            (view.shape().to_vec(), view.values::<f32>().unwrap().into_owned())
        })
        .collect()
}

fn bits(answers: &[(Vec<usize>, Vec<f32>)]) -> Vec<(Vec<usize>, Vec<u32>)> {
    answers.iter().map(|(shape, data)| (shape.clone(), data.iter().map(|v| v.to_bits()).collect())).collect()
}

#[test]
fn sessions_at_once_give_what_one_alone_gives() {
    for threads in [1, 2] {
        let engine = engine(threads);
        for (name, input, shape) in models::MODELS {
            let compiled = compile(&engine, name);
            let given: Vec<Tensor> = (0..4).map(|seed| models::values(shape, seed)).collect();
            let mut alone = compiled.session();
            let expected: Vec<_> = given.iter().map(|v| bits(&answers(&mut alone, input, v))).collect();
            assert!(expected.windows(2).all(|pair| pair[0] != pair[1]), "the values tell the runs apart");
            let packed = compiled.packed_weights();
            assert!(packed > 0);
            std::thread::scope(|scope| {
                for start in 0..2 {
                    let (compiled, given, expected) = (&compiled, &given, &expected);
                    scope.spawn(move || {
                        let mut session = compiled.session();
                        for repeat in 0..12 {
                            let at = (start + repeat) % given.len();
                            assert_eq!(
                                bits(&answers(&mut session, input, &given[at])),
                                expected[at],
                                "{name}"
                            );
                        }
                    });
                }
            });
            assert_eq!(compiled.packed_weights(), packed, "sessions of {name} share its weights");
        }
    }
}

#[test]
fn changing_shapes_give_what_a_fresh_session_gives() {
    let engine = engine(2);
    let pnet = compile(&engine, "pnet");
    let mut session = pnet.session();
    let mut numbers = models::Numbers(7);
    // More shapes than a session keeps plans for, each coming back after the others.
    let shapes: Vec<[usize; 4]> =
        (0..6).map(|i| [1 + i % 2, 12 + numbers.next(40), 12 + numbers.next(40), 3]).collect();
    for round in 0..3 {
        for (seed, shape) in shapes.iter().enumerate() {
            let value = models::values(*shape, seed as u64 + round);
            let fresh = answers(&mut pnet.session(), "input_1", &value);
            assert_eq!(bits(&answers(&mut session, "input_1", &value)), bits(&fresh), "{shape:?}");
        }
    }
    for (name, input, shape) in &models::MODELS[1..] {
        let compiled = compile(&engine, name);
        let mut session = compiled.session();
        for batch in [1, 7, 2, 16, 1, 5, 3, 16, 7] {
            let value = models::values([batch, shape[1], shape[2], 3], batch as u64);
            let fresh = answers(&mut compiled.session(), input, &value);
            assert_eq!(bits(&answers(&mut session, input, &value)), bits(&fresh), "{name}, batch {batch}");
        }
    }
}

#[test]
fn a_batch_is_its_members_one_by_one() {
    let engine = engine(2);
    for (name, input, shape) in models::MODELS {
        let compiled = compile(&engine, name);
        let mut session = compiled.session();
        let all = models::values([5, shape[1], shape[2], 3], 3);
        let together = answers(&mut session, input, &all);
        let one = all.bytes().len() / 5;
        for index in 0..5 {
            let bytes = &all.bytes()[index * one..][..one];
            let member = Tensor::from_bytes(ElementType::F32, [1, shape[1], shape[2], 3], bytes).unwrap();
            for ((_, whole), (_, part)) in together.iter().zip(answers(&mut session, input, &member)) {
                let whole = &whole[index * part.len()..][..part.len()];
                let gap = whole.iter().zip(&part).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(gap < 1e-5, "{name}, member {index}: {gap}");
            }
        }
    }
}

/// What one run leaves in memory must not reach another: neither of the same session, nor of another model.
#[test]
fn nothing_is_seen_of_other_runs_and_models() {
    let poison =
        |shape: [usize; 4], with: f32| Tensor::new(shape, &vec![with; shape.iter().product()]).unwrap();
    let shared = engine(2);
    for (name, input, shape) in models::MODELS {
        let value = models::values(shape, 11);
        let expected = bits(&answers(&mut compile(&engine(2), name).session(), input, &value));
        let compiled = compile(&shared, name);
        let mut session = compiled.session();
        for bad in [f32::NAN, f32::INFINITY, 3e38] {
            // Other models on the same engine, filled with values that spread to all they meet.
            for (other, other_input, other_shape) in models::MODELS {
                let mut other = compile(&shared, other).session();
                other.run(&[(other_input, (&poison(other_shape, bad)).into())]).unwrap();
            }
            session.run(&[(input, (&poison(shape, bad)).into())]).unwrap();
            assert_eq!(bits(&answers(&mut session, input, &value)), expected, "{name} after {bad}");
            assert_eq!(bits(&answers(&mut compiled.session(), input, &value)), expected, "{name}, fresh");
        }
    }
}

#[test]
fn wrong_inputs_are_typed_errors_and_the_session_lives_on() {
    for (name, input, shape) in models::MODELS {
        let compiled = compile(&engine(2), name);
        let mut session = compiled.session();
        let good = models::values(shape, 5);
        let expected = bits(&answers(&mut compiled.session(), input, &good));
        let [n, h, w, c] = shape;
        let mut refused = |given: &[(&str, &Tensor)]| {
            let given: Vec<_> = given.iter().map(|(name, value)| (*name, (*value).into())).collect();
            let error = session.run(&given).map(|_| ()).unwrap_err();
            assert_eq!(bits(&answers(&mut session, input, &good)), expected, "{name} after: {error}");
            error
        };

        assert_eq!(refused(&[]), RunError::MissingInput(input.into()));
        let unknown = RunError::UnknownInput { given: "pixels".into(), expected: input.into() };
        assert_eq!(refused(&[("pixels", &good)]), unknown);
        assert_eq!(refused(&[(input, &good), ("pixels", &good)]), unknown);
        assert_eq!(refused(&[(input, &good), (input, &good)]), RunError::RepeatedInput(input.into()));

        let bytes = Tensor::zeros(ElementType::U8, shape).unwrap();
        let is_type = |error: &RunError, actual: &str| matches!(error, RunError::InputType { name, actual: found, .. } if name == input && found == actual);
        let error = refused(&[(input, &bytes)]);
        assert!(is_type(&error, &format!("uint8[{n},{h},{w},{c}]")), "{error:?}");
        let flat = good.reshape([n, h, w * c]).unwrap();
        let error = refused(&[(input, &flat)]);
        assert!(is_type(&error, &format!("float32[{n},{h},{}]", w * c)), "{error:?}");

        // Planes before rows: a rank that fits, lengths that no kernel of the model can take.
        let planes = models::values([n, c, h, w], 5);
        let error = refused(&[(input, &planes)]);
        assert!(matches!(error, RunError::Compile(_) | RunError::InputType { .. }), "{error:?}");
    }
}

#[test]
fn a_value_that_is_no_tensor_is_refused() {
    let mut session = compile(&engine(1), "rnet").session();
    let sequence = Value::Sequence(Vec::new());
    let error = session.run(&[("input_2", (&sequence).into())]).map(|_| ()).unwrap_err();
    assert!(matches!(error, RunError::InputType { .. }), "{error:?}");
}

#[test]
fn models_that_cannot_be_loaded_are_typed_errors() {
    let missing = Model::load("there is no such file.onnx").unwrap_err();
    assert!(matches!(missing, LoadError::Read { .. }), "{missing:?}");
    let text = Model::from_bytes(&b"no model"[..]).unwrap_err();
    assert!(matches!(text, LoadError::Import(_)), "{text:?}");
}

#[test]
fn a_model_and_its_engine_may_go_before_the_session() {
    let value = models::values([1, 24, 24, 3], 1);
    let mut session = {
        let engine = engine(2);
        let model = models::load("rnet");
        engine.compile(&model, &CompileSettings::default()).unwrap().session()
    };
    let expected = answers(&mut compile(&engine(1), "rnet").session(), "input_2", &value);
    let found = answers(&mut session, "input_2", &value);
    for ((_, a), (_, b)) in expected.iter().zip(&found) {
        let gap = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(gap < 1e-5, "{gap}");
    }
}
