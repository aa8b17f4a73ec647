//! What every backend is held to.

use armet_tensor::Tensor;

use super::GroupQueryAttention;
use crate::{Case, Numbers, Tolerance};

pub(super) fn cases() -> Vec<Case> {
    let mut numbers = Numbers::new(29);
    let plain = GroupQueryAttention {
        query_heads: 4,
        key_heads: 2,
        scale: None,
        causal: true,
        left_window: None,
        softcap: 0.0,
        smooth: false,
        rotary: false,
        interleaved: false,
    };
    // New positions, length of the past, and last positions of the items.
    let mut case =
        |name: &str, op: &GroupQueryAttention, length: usize, past: usize, last: &[i32], packed: bool| {
            let (batch, size) = (last.len(), 4);
            let total = last.iter().max().map_or(0, |last| last + 1);
            let mut floats = |shape: &[usize]| Some(numbers.floats(shape, -1.0, 1.0));
            let (q, kv) = (op.query_heads * size, op.key_heads * size);
            let mut inputs = if packed {
                vec![floats(&[batch, length, q + 2 * kv]), None, None]
            } else {
                vec![floats(&[batch, length, q]), floats(&[batch, length, kv]), floats(&[batch, length, kv])]
            };
            inputs.extend([
                floats(&[batch, op.key_heads, past, size]),
                floats(&[batch, op.key_heads, past, size]),
            ]);
            inputs.extend([Some(Tensor::vector(last)), Some(Tensor::scalar(total))]);
            if op.rotary {
                inputs.extend([floats(&[16, size / 2]), floats(&[16, size / 2])]);
            }
            let mut case = Case::new(name, op.clone(), []).with_outputs(3).with_constants(&[6]);
            case.inputs = inputs;
            case.with_tolerance(Tolerance::Relative(2e-5))
        };
    let rotary = GroupQueryAttention { rotary: true, ..plain.clone() };
    let pairs = GroupQueryAttention { interleaved: true, ..rotary.clone() };
    let window = GroupQueryAttention { left_window: Some(2), softcap: 3.0, ..plain.clone() };
    let smooth = GroupQueryAttention { smooth: true, scale: Some(0.8), ..plain.clone() };
    vec![
        case("prompt", &plain, 5, 0, &[4, 4], false),
        case("one more position", &rotary, 1, 6, &[6, 3], false),
        case("packed", &pairs, 3, 0, &[2], true),
        case("room in the cache", &rotary, 1, 9, &[5], true),
        case("window", &window, 6, 0, &[5], false),
        case("sinks", &smooth, 2, 4, &[5], false),
    ]
}
