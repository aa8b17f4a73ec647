//! What every backend is held to.

use armet_tensor::{ElementType, Tensor};

use super::{Attention, ScoreStage};
use crate::{Case, Numbers, Tolerance};

pub(super) fn cases() -> Vec<Case> {
    let mut numbers = Numbers::new(23);
    let plain = Attention::PLAIN;
    let flat = |query_heads, key_heads| Attention {
        query_heads: Some(query_heads),
        key_heads: Some(key_heads),
        ..Attention::PLAIN
    };
    let mut case = |name: &str, op: Attention, shapes: &[&[usize]]| {
        let inputs: Vec<Tensor> = shapes.iter().map(|s| numbers.floats(*s, -1.5, 1.5)).collect();
        Case::new(name, op, inputs).with_tolerance(Tolerance::Relative(2e-5))
    };
    let (square, long, narrow): (&[usize], &[usize], &[usize]) =
        (&[2, 3, 5, 8], &[1, 1, 67, 8], &[1, 2, 7, 4]);
    let mut cases = vec![
        case("plain", plain.clone(), &[square, square, square]),
        case("long", plain.clone(), &[&[1, 2, 37, 16], &[1, 2, 70, 16], &[1, 2, 70, 16]]),
        case("other sizes", plain.clone(), &[&[1, 2, 3, 7], &[1, 2, 6, 7], &[1, 2, 6, 11]]),
        case("causal", Attention { causal: true, ..plain.clone() }, &[square, square, square]),
        case("causal, long", Attention { causal: true, ..plain.clone() }, &[long; 3]),
        case("flat", flat(2, 2), &[&[2, 5, 16], &[2, 9, 16], &[2, 9, 10]]),
        case("flat groups with a mask", flat(4, 2), &[&[2, 5, 32], &[2, 6, 16], &[2, 6, 16], &[5, 6]]),
        case("groups", plain.clone(), &[&[1, 6, 4, 8], &[1, 2, 4, 8], &[1, 2, 4, 8]]),
        case("mask for heads", plain.clone(), &[square, square, square, &[3, 5, 5]]),
        case("short mask", plain.clone(), &[square, square, square, &[2, 1, 1, 3]]),
        case(
            "soft limit and scale",
            Attention { softcap: 2.0, scale: Some(0.7), ..plain.clone() },
            &[square; 3],
        ),
        case(
            "window",
            Attention { left_window: Some(1), right_window: Some(2), ..plain.clone() },
            &[narrow; 3],
        ),
        case(
            "past",
            Attention { causal: true, ..plain.clone() },
            &[&[2, 2, 3, 4], &[2, 2, 3, 4], &[2, 2, 3, 4], &[1, 1, 3, 8], &[2, 2, 5, 4], &[2, 2, 5, 4]],
        )
        .with_outputs(3),
        case("no keys", plain.clone(), &[&[1, 1, 2, 4], &[1, 1, 0, 4], &[1, 1, 0, 4]]),
        case("nothing", plain.clone(), &[&[0, 1, 2, 4], &[0, 1, 2, 4], &[0, 1, 2, 4]]),
    ];
    for stage in [ScoreStage::Raw, ScoreStage::Capped, ScoreStage::Biased, ScoreStage::Probabilities] {
        let op = Attention { softcap: 1.0, stage, ..Attention::PLAIN };
        let name = format!("scores {stage:?}");
        cases.push(case(&name, op, &[square, square, square, &[5, 5]]).with_outputs(4));
    }
    let mut padded = case("padded", Attention { causal: true, ..plain.clone() }, &[square; 3]);
    padded.inputs.resize(6, None);
    padded.inputs.push(Some(Tensor::vector(&[3i64, 5])));
    cases.push(padded);
    let mut sink = case("sinks", plain.clone(), &[square; 3]);
    sink.inputs.resize(7, None);
    sink.inputs.push(Some(Tensor::vector(&[0.5f32, -1.0, 3.0])));
    cases.push(sink);
    let hidden = numbers.tensor(ElementType::Bool, [5, 5]);
    let mut boolean =
        Case::new("truth mask", plain.clone(), [square; 3].map(|s| numbers.floats(s, -1.0, 1.0)));
    boolean.inputs.push(Some(hidden));
    cases.push(boolean);
    let half = [(); 3].map(|()| numbers.tensor(ElementType::F16, [1, 2, 3, 4]));
    let single = Attention { precision: Some(ElementType::F32), ..plain };
    cases.push(Case::new("float16", single, half).with_tolerance(Tolerance::Relative(1e-2)));
    cases
}
