//! Attention and what stands around it in transformers, of ONNX's own operator sets.

use armet_graph::ValueId;
use armet_graph::ops::window::AutoPad;
use armet_graph::ops::{
    Attention, Concat, Conv, FlexAttention, LinearAttention, Pad, PadMode, RotaryEmbedding, ScoreStage,
    Slice, UnaryKind,
};
use armet_tensor::ElementType;

use super::{Entry, onnx, preview};
use crate::onnx::error::{Invalid, Reason};
use crate::onnx::node::{NodeReader, Read};

pub(super) const ENTRIES: &[Entry] = &[
    onnx("Attention", 23, attention),
    onnx("RotaryEmbedding", 23, |n| {
        let op = RotaryEmbedding {
            heads: heads(n, "num_heads")?,
            width: n.size_or("rotary_embedding_dim", 0)?,
            interleaved: n.flag("interleaved", false)?,
        };
        let inputs = n.inputs(3)?;
        n.emit(op, inputs)
    }),
    onnx("LinearAttention", 27, linear),
    onnx("CausalConvWithState", 27, causal_conv),
    preview("FlexAttention", flex),
];

/// A number of heads; 0 means that it is not given.
pub(super) fn heads(n: &NodeReader<'_, '_>, name: &'static str) -> Read<Option<usize>> {
    Ok(Some(n.size_or(name, 0)?).filter(|&heads| heads != 0))
}

/// A limit of a window; below zero there is none.
pub(super) fn limit(n: &NodeReader<'_, '_>, name: &'static str) -> Read<Option<usize>> {
    Ok(usize::try_from(n.int_or(name, -1)?).ok())
}

fn precision(n: &NodeReader<'_, '_>) -> Read<Option<ElementType>> {
    let element = n.element("softmax_precision")?;
    if element.is_some_and(|element| !element.is_float()) {
        return Err(n.refuse("softmax_precision", "is no float type").into());
    }
    Ok(element)
}

fn attention(n: &mut NodeReader<'_, '_>) -> Read {
    let stage = match n.int_or("qk_matmul_output_mode", 0)? {
        0 => ScoreStage::Raw,
        1 => ScoreStage::Capped,
        2 => ScoreStage::Biased,
        3 => ScoreStage::Probabilities,
        _ => return Err(n.refuse("qk_matmul_output_mode", "is none of 0 to 3").into()),
    };
    let op = Attention {
        query_heads: heads(n, "q_num_heads")?,
        key_heads: heads(n, "kv_num_heads")?,
        scale: n.float("scale")?,
        causal: n.flag("is_causal", false)?,
        left_window: limit(n, "left_window_size")?,
        right_window: limit(n, "right_window_size")?,
        softcap: n.float_or("softcap", 0.0)?,
        precision: precision(n)?,
        stage,
    };
    let inputs = n.inputs(3)?;
    n.emit(op, inputs)
}

fn linear(n: &mut NodeReader<'_, '_>) -> Read {
    // How long the pieces are that other implementations compute at once.
    n.ignore(&["chunk_size"]);
    let rules = [
        ("linear", (false, false)),
        ("gated", (true, false)),
        ("delta", (false, true)),
        ("gated_delta", (true, true)),
    ];
    let (gated, delta) = n.choice("update_rule", (true, true), &rules)?;
    let given = |heads: Option<usize>, name| heads.ok_or(Invalid::MissingAttribute(name));
    let op = LinearAttention {
        query_heads: given(heads(n, "q_num_heads")?, "q_num_heads")?,
        key_heads: given(heads(n, "kv_num_heads")?, "kv_num_heads")?,
        scale: n.float("scale")?.filter(|scale| *scale != 0.0),
        gated,
        delta,
    };
    let inputs = n.inputs(3)?;
    n.emit(op, inputs)
}

/// A depthwise convolution behind the last elements of the sequence before, of which the last are handed on.
fn causal_conv(n: &mut NodeReader<'_, '_>) -> Read {
    let activation = n.choice(
        "activation",
        None,
        &[
            ("none", None),
            ("silu", Some(UnaryKind::Swish { alpha: 1.0 })),
            ("swish", Some(UnaryKind::Swish { alpha: 1.0 })),
        ],
    )?;
    let (x, weight) = (n.input(0)?, n.input(1)?);
    let (bias, past) = (n.optional(2)?, n.optional(3)?);
    let dims = n.type_of(weight).and_then(|ty| ty.shape());
    let Some(&[channels, 1, kernel]) = dims.as_deref() else {
        return Err(Reason::Input { index: 1, what: "must have a known shape of three axes" }.into());
    };
    let Some(kept) = kernel.checked_sub(1) else {
        return Err(Invalid::Other("the kernel is empty".into()).into());
    };
    let padded = match past {
        Some(past) => n.step("padded", Concat { axis: 2 }, vec![Some(past), Some(x)]),
        None => {
            let pads = n.vector("pads", &[kept as i64, 0]);
            let axes = n.vector("axes", &[2i64]);
            n.step("padded", Pad { mode: PadMode::Constant }, vec![Some(x), Some(pads), None, Some(axes)])
        }
    };
    let op = Conv {
        strides: Vec::new(),
        dilations: Vec::new(),
        pads: Vec::new(),
        auto_pad: AutoPad::NotSet,
        group: channels,
        activation,
    };
    let y = n.output(0)?;
    n.emit_to(op, vec![Some(padded), Some(weight), bias], &[y]);
    if let Some(state) = n.output(1)? {
        // From the end on the last ones; none of them when the kernel has one element.
        let bound = |n: &mut NodeReader<'_, '_>, name: &str, value: i64| n.vector(name, &[value]);
        let start = bound(n, "start", if kept == 0 { i64::MAX } else { -(kept as i64) });
        let end = bound(n, "end", i64::MAX);
        let axes = bound(n, "axis", 2);
        n.emit_to(Slice, vec![Some(padded), Some(start), Some(end), Some(axes)], &[Some(state)]);
    }
    Ok(())
}

fn flex(n: &mut NodeReader<'_, '_>) -> Read {
    let inputs = n.inputs(3)?;
    let element = inputs[0].and_then(|q| n.type_of(q)).map(|ty| ty.element);
    let default = if element == Some(ElementType::F64) { ElementType::F64 } else { ElementType::F32 };
    let precision = precision(n)?.unwrap_or(default);
    let scores = Some(armet_graph::TensorType::unranked(precision).into());
    let mut outside: Vec<Option<ValueId>> = Vec::new();
    let mut graph = |n: &mut NodeReader<'_, '_>, name| -> Read<Option<Box<armet_graph::Graph>>> {
        if !n.has(name) {
            return Ok(None);
        }
        let body = n.body_of_types(name, std::slice::from_ref(&scores))?;
        if body.graph.outputs().len() != 1 {
            return Err(Invalid::Other(format!("{name} must have one result")).into());
        }
        outside.extend(body.captures.iter().map(|(outer, _)| Some(*outer)));
        Ok(Some(Box::new(body.graph)))
    };
    let (score_mod, prob_mod) = (graph(n, "score_mod")?, graph(n, "prob_mod")?);
    let op = FlexAttention { scale: n.float("scale")?, precision, score_mod, prob_mod };
    n.emit(op, inputs.into_iter().chain(outside).collect())
}
