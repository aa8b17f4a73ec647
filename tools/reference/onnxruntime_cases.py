#!/usr/bin/env python3
"""Write cases of ONNX Runtime's own operators to disk: onnxruntime_cases.py OUT

Each case is a model of one node, seeded inputs, and what onnxruntime's CPU kernel makes of them. The layout is that of
onnx_cases.py; `steps` says by how much integers may differ. Where that kernel refuses a case, its outputs follow from the
operator's description, by numpy or by kernels that do run (`described`): in half precision, what the kernel for single
precision makes of the same numbers, rounded. Needs onnx, onnxruntime and numpy.
"""
import json
import pathlib
import shutil
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

CASES = []


def case(name, operator, inputs, outputs=1, constants=(), domain="com.microsoft", rtol=1e-3, atol=1e-5, steps=0,
         half=False, instead=None, always=False, **attributes):
    """Notes a case. `inputs` are arrays or None; `constants` are the places of those that the model holds. With `half`
    there is a second one in half precision. `instead` gives the outputs where onnxruntime refuses, or
    `always`."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    wanted = [True] * outputs if isinstance(outputs, int) else [bool(w) for w in outputs]
    rest = set(constants), domain, attributes
    CASES.append((name, operator, inputs, wanted, *rest, (rtol, atol, steps), instead, always))
    if half:
        narrow = [x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for x in inputs]
        wide = [x.astype(np.float32) if x is not None and x.dtype == np.float16 else x for x in narrow]

        def rounded():
            results = instead() if instead else run(operator, wide, wanted, *rest)
            return [y.astype(np.float16) if y.dtype == np.float32 else y for y in results]

        CASES.append((f"{name}_f16", operator, narrow, wanted, *rest, (1e-2, 1e-2, steps), rounded, False))


def run(operator, inputs, wanted, constants, domain, attributes):
    """What onnxruntime makes of a model of one node."""
    model, given = build(operator, inputs, wanted, constants, domain, attributes)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(given))


def results(operator, inputs, outputs=1, domain="com.microsoft", **attributes):
    """What onnxruntime makes of an operator."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    return run(operator, inputs, [True] * outputs, set(), domain, attributes)


def numbers(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def floats(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def build(operator, inputs, outputs, constants, domain, attributes):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" if wanted else "" for i, wanted in enumerate(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)

    def element(x):
        return helper.np_dtype_to_tensor_dtype(x.dtype)

    given = [(n, x) for i, (n, x) in enumerate(zip(names, inputs)) if x is not None and i not in constants]
    graph = helper.make_graph(
        [node], "case",
        [helper.make_tensor_value_info(n, element(x), list(x.shape)) for n, x in given],
        [onnx.ValueInfoProto(name=n) for n in results if n],
        [numpy_helper.from_array(x, n) for i, (n, x) in enumerate(zip(names, inputs)) if x is not None and i in constants])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), given


def attention_cases():
    B, S, N, H = 2, 5, 3, 4
    D = N * H
    rng = numbers("attention")
    x, w, b = floats(rng, B, S, 7), floats(rng, 7, 3 * D, scale=0.4), floats(rng, 3 * D, scale=0.3)
    masks = {
        "none": None,
        "lengths": np.array([5, 3], np.int32),
        "keys": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32),
        "hidden": np.array([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], np.int32),
        "queries": (rng.random((B, S, S)) > 0.3).astype(np.int32),
    }
    for name, mask in masks.items():
        for causal in (0, 1):
            # Beside the number that hides all keys alike, single precision keeps few digits of their scores.
            case(f"attention_mask_{name}_causal_{causal}", "Attention", [x, w, b, mask], constants=(1, 2), half=name != "hidden",
                 atol=1e-3 if name == "hidden" else 1e-5, num_heads=N, unidirectional=causal)
    case("attention_scale", "Attention", [x, w, b], half=True, num_heads=N, scale=0.3)
    case("attention_filter", "Attention", [x, w, b, masks["keys"]], num_heads=N, mask_filter_value=-3.0)
    case("attention_no_bias", "Attention", [x, w], num_heads=N)
    case("attention_bias", "Attention", [x, w, b, None, None, floats(rng, B, N, S, S)], num_heads=N)
    case("attention_bias_and_mask", "Attention", [x, w, b, masks["keys"], None, floats(rng, 1, N, S, S)], half=True, num_heads=N)
    w2, b2 = floats(rng, 7, 2 * D + 2 * N, scale=0.4), floats(rng, 2 * D + 2 * N)
    case("attention_value_sizes", "Attention", [x, w2, b2], num_heads=N, qkv_hidden_sizes=[D, D, 2 * N])
    for P in (0, 3):
        past = floats(rng, 2, B, N, P, H)
        for causal in (0, 1):
            case(f"attention_past_{P}_causal_{causal}", "Attention", [x, w, b, None, past], outputs=2, num_heads=N, unidirectional=causal)
    case("attention_past_and_mask", "Attention",
         [x, w, b, np.array([[1] * 8, [0, 1, 1] + [1] * 4 + [0]], np.int32), floats(rng, 2, B, N, 3, H)], outputs=2, num_heads=N)
    for kind, weights, scale in (("u8", np.uint8, 0.02), ("s8", np.int8, 0.02)):
        low, high = (0, 255) if weights == np.uint8 else (-128, 127)
        q = rng.integers(0, 255, (B, S, 7)).astype(np.uint8)
        qw = rng.integers(low, high, (7, 3 * D)).astype(weights)
        zero = np.array(3 if weights == np.int8 else 120, weights)
        rest = [b, np.float32(0.013), np.float32(scale), None, np.uint8(110), zero]
        case(f"q_attention_{kind}", "QAttention", [q, qw, *rest], constants=(1, 2), num_heads=N)
        case(f"q_attention_{kind}_mask", "QAttention", [q, qw, b, *rest[1:3], masks["lengths"], *rest[4:]], constants=(1, 2), num_heads=N, unidirectional=1)
    columns = (rng.random(3 * D) * 0.02 + 0.005).astype(np.float32)
    case("q_attention_columns", "QAttention", [q, qw, b, np.float32(0.013), columns, None, np.uint8(110), np.zeros(3 * D, np.int8)], constants=(1, 2), num_heads=N)
    case("q_attention_past", "QAttention", [q, qw, b, np.float32(0.013), np.float32(0.02), None, np.uint8(110), np.int8(3), floats(rng, 2, B, N, 2, H)], outputs=2, num_heads=N, unidirectional=1)


def multi_head_cases():
    B, S, L, N, H = 2, 4, 6, 3, 4
    D = N * H
    rng = numbers("multi head")
    q, k, v = floats(rng, B, S, D), floats(rng, B, L, D), floats(rng, B, L, D)
    bias = floats(rng, 3 * D)
    op = "MultiHeadAttention"
    case("mha", op, [q, k, v], half=True, num_heads=N)
    case("mha_bias", op, [q, k, v, bias], half=True, num_heads=N)
    case("mha_causal", op, [q, k[:, :S], v[:, :S]], num_heads=N, unidirectional=1)
    case("mha_scale", op, [q, k, v], num_heads=N, scale=0.7)
    case("mha_value_sizes", op, [q, k, floats(rng, B, L, 2 * N)], num_heads=N)
    case("mha_mask_lengths", op, [q, k, v, None, np.array([6, 2], np.int32)], half=True, num_heads=N)
    case("mha_mask_keys", op, [q, k, v, None, np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]], np.int32)], num_heads=N)
    case("mha_mask_queries", op, [q, k, v, None, (rng.random((B, S, L)) > 0.3).astype(np.int32)], num_heads=N)
    for batch in (1, B):
        for heads in (1, N):
            case(f"mha_bias_{batch}_{heads}", op, [q, k, v, None, None, floats(rng, batch, heads, S, L)], num_heads=N)
    case("mha_mask_and_bias", op, [q, k, v, bias, np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]], np.int32), floats(rng, 1, 1, S, L)], num_heads=N, mask_filter_value=-50.0)
    past = floats(rng, B, N, 3, H), floats(rng, B, N, 3, H)
    case("mha_past", op, [q, q + 1, q - 1, None, None, None, *past], outputs=3, num_heads=N)
    case("mha_past_causal", op, [q, q + 1, q - 1, bias, None, None, *past], half=True, outputs=3, num_heads=N, unidirectional=1)
    case("mha_past_bias", op, [q, q + 1, q - 1, None, None, floats(rng, 1, 1, S, S + 3), *past], half=True, outputs=3, num_heads=N)
    case("mha_present", op, [q, k, v], outputs=3, num_heads=N)
    case("mha_keys_by_head", op, [q, floats(rng, B, N, L, H), floats(rng, B, N, L, H)], num_heads=N)
    case("mha_keys_by_head_bias", op, [q, floats(rng, B, N, L, H), floats(rng, B, N, L, H), np.concatenate([bias[:D], np.zeros(2 * D, np.float32)])], num_heads=N)
    all_three, both = floats(rng, B, S, N, 3, H), floats(rng, B, L, N, 2, H)

    def apart(packed):
        return [packed[:, :, :, i].reshape(B, packed.shape[1], D) for i in range(packed.shape[3])]

    case("mha_packed", op, [all_three], instead=lambda: results(op, apart(all_three), num_heads=N), num_heads=N)
    case("mha_packed_keys", op, [q, both], instead=lambda: results(op, [q, *apart(both)], num_heads=N), num_heads=N)


def group_query_cases():
    rng = numbers("group query")
    op, N, H = "GroupQueryAttention", 4, 16
    angles = rng.random((20, H // 2)) * 6
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def make(name, B, S, P, last, total, packed=False, rotary=0, tail=(), M=2, **attributes):
        if packed:
            data = [floats(rng, B, S, (N + 2 * M) * H), None, None]
        else:
            data = [floats(rng, B, S, N * H), floats(rng, B, S, M * H), floats(rng, B, S, M * H)]
        past = [floats(rng, B, M, P, H), floats(rng, B, M, P, H)]
        inputs = [*data, *past, np.array(last, np.int32), np.array(total, np.int32)]
        if rotary or tail:
            inputs += [cos, sin] if rotary else [None, None]
        case(f"gqa_{name}", op, [*inputs, *tail], outputs=3, half=True, rtol=2e-3, num_heads=N, kv_num_heads=M, do_rotary=rotary, **attributes)

    make("prompt", 2, 5, 0, [4, 4], 5)
    make("prompt_rotary", 2, 5, 0, [4, 4], 5, rotary=1)
    make("prompt_interleaved", 1, 5, 0, [4], 5, rotary=1, rotary_interleaved=1)
    make("prompt_packed", 2, 4, 0, [3, 3], 4, packed=True, rotary=1)
    make("decode", 2, 1, 6, [6, 6], 7)
    make("decode_rotary", 2, 1, 6, [6, 4], 7, rotary=1)
    make("decode_packed", 1, 1, 6, [6], 7, packed=True, rotary=1)
    make("decode_room", 1, 1, 12, [6], 7, rotary=1)
    make("prompt_room", 1, 4, 12, [3], 4, rotary=1)
    make("prompt_lengths", 2, 5, 0, [4, 2], 5, rotary=1)
    make("one_head_of_keys", 2, 4, 0, [3, 3], 4, M=1)
    make("equal_heads", 1, 1, 6, [6], 7, M=4, rotary=1)
    make("decode_softcap", 1, 1, 6, [6], 7, softcap=2.0)
    make("decode_bias", 1, 1, 6, [6], 7, tail=[None, floats(rng, 1, 4, 1, 7)])
    make("chunk", 1, 3, 5, [7], 8, rotary=1)
    make("chunk_window", 1, 3, 5, [7], 8, rotary=1, local_window_size=4)
    for window in (1, 2, 3, 6):
        make(f"window_{window}", 1, 6, 0, [5], 6, local_window_size=window)
        make(f"decode_window_{window}", 1, 1, 6, [6], 7, local_window_size=window)
    make("softcap", 2, 4, 0, [3, 3], 4, softcap=1.5)
    make("scale", 2, 4, 0, [3, 3], 4, scale=0.2)
    make("smooth", 2, 4, 0, [3, 3], 4, smooth_softmax=1)
    make("not_causal", 1, 4, 0, [3], 4, causal=0)
    make("bias", 1, 4, 0, [3], 4, tail=[None, floats(rng, 1, 1, 4, 4)])
    make("sinks", 1, 4, 0, [3], 4, tail=[None, None, floats(rng, N)])
    make("positions", 2, 1, 6, [6, 4], 7, rotary=1, tail=[np.array([[6], [4]], np.int64)])
    make("positions_prompt", 1, 4, 0, [3], 4, rotary=1, tail=[np.array([[0, 1, 2, 3]], np.int64)])


def rotary_cases():
    rng = numbers("rotary")
    B, S, N, H = 2, 3, 2, 8
    angles = rng.random((10, H // 2)) * 6
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    for interleaved in (0, 1):
        each = np.array([[0, 1, 2], [7, 3, 9]], np.int64)
        for name, positions in (("first", np.array([4], np.int64)), ("each", each)):
            case(f"rotary_{name}_{interleaved}", "RotaryEmbedding", [floats(rng, B, S, N * H), positions, cos, sin], half=True, interleaved=interleaved)
            case(f"rotary_by_head_{name}_{interleaved}", "RotaryEmbedding", [floats(rng, B, N, S, H), positions, cos, sin], half=True, interleaved=interleaved)
        case(f"rotary_part_{interleaved}", "RotaryEmbedding", [floats(rng, B, S, N * 12), each, cos, sin], half=True, interleaved=interleaved, num_heads=N, rotary_embedding_dim=H)


def normalization_cases():
    rng = numbers("normalization")
    B, S, D = 2, 3, 8
    x, skip, g, b, bias = floats(rng, B, S, D), floats(rng, B, S, D), floats(rng, D), floats(rng, D), floats(rng, D)
    op = "SkipLayerNormalization"
    case("skip_layer", op, [x, skip, g, b], half=True, epsilon=1e-5)
    case("skip_layer_bias", op, [x, skip, g, b, bias])
    case("skip_layer_no_beta", op, [x, skip, g])
    case("skip_layer_broadcast", op, [x, floats(rng, 1, S, D), g, b, bias])
    case("skip_layer_rows", op, [x, floats(rng, S, D), g, b])
    case("skip_layer_sum", op, [x, skip, g, b, bias], half=True, outputs=[1, 0, 0, 1])
    op = "SkipSimplifiedLayerNormalization"
    case("skip_rms", op, [x, skip, g], half=True, epsilon=1e-6)
    case("skip_rms_bias", op, [x, skip, g, bias])
    case("skip_rms_sum", op, [x, skip, g, bias], half=True, outputs=[1, 0, 0, 1])
    case("simplified_layer", "SimplifiedLayerNormalization", [x, g], half=True, domain="", epsilon=1e-5, axis=-1)
    words, places, kinds = floats(rng, 11, D), floats(rng, 9, D), floats(rng, 2, D)
    ids, segments = rng.integers(0, 11, (B, S)).astype(np.int32), rng.integers(0, 2, (B, S)).astype(np.int32)
    mask = np.array([[1, 1, 1], [1, 0, 0]], np.int32)
    op = "EmbedLayerNormalization"
    case("embed", op, [ids, segments, words, places, kinds, g, b, mask], half=True, outputs=[1, 1, 1], epsilon=1e-6)
    case("embed_no_mask", op, [ids, segments, words, places, kinds, g, b], outputs=2)
    case("embed_no_segments", op, [ids, None, words, places, None, g, b], outputs=2)
    case("embed_positions", op, [ids, segments, words, places, kinds, g, b, mask, np.array([[3, 1, 0], [8, 8, 2]], np.int32)], outputs=2)

    def quantized(x):
        scale = np.float32((x.max() - x.min()) / 255)
        zero = np.uint8(np.clip(round(float(-x.min() / scale)), 0, 255))
        return np.clip(np.round(x / scale) + zero, 0, 255).astype(np.uint8), scale, zero

    tables = [quantized(t) for t in (words, places, kinds, g, b)]
    columns = [[t[i] for t in tables] for i in range(3)]
    case("q_embed", "QEmbedLayerNormalization", [ids, segments, *columns[0], mask, *columns[1], *columns[2]], outputs=2)


def activation_cases():
    rng = numbers("activation")
    x, bias = floats(rng, 2, 3, 8, scale=2), floats(rng, 8)
    for op in ("Gelu", "QuickGelu", "FastGelu"):
        case(op.lower(), op, [x], half=True)
    case("quickgelu_alpha", "QuickGelu", [x], alpha=1.1)
    case("biasgelu", "BiasGelu", [x, bias], half=True)
    case("fastgelu_bias", "FastGelu", [x, bias], half=True)
    case("quickgelu_silu", "QuickGelu", [x], half=True, alpha=1.0)
    wide = floats(rng, 2, 3, 12), floats(rng, 12)

    def split():
        left, right = np.split(wide[0] + wide[1], 2, axis=-1)
        return [left * results("Gelu", [right])[0]]

    case("bias_split_gelu", "BiasSplitGelu", wide, instead=split)
    case("bias_add", "BiasAdd", [x, bias, x * 0.5], instead=lambda: [x + bias + x * np.float32(0.5)])


def product_cases():
    rng = numbers("product")
    a, b = floats(rng, 2, 3, 4), floats(rng, 2, 4, 5)
    case("fused_matmul", "FusedMatMul", [a, b], half=True, alpha=0.5)
    case("fused_matmul_a", "FusedMatMul", [a.swapaxes(1, 2).copy(), b], transA=1)
    case("fused_matmul_b", "FusedMatMul", [a, b.swapaxes(1, 2).copy()], transB=1, alpha=2.0)
    case("fused_matmul_both", "FusedMatMul", [floats(rng, 4, 3), floats(rng, 5, 4)], transA=1, transB=1, alpha=-1.5)
    case("fused_matmul_vector", "FusedMatMul", [floats(rng, 4), b])
    for transposed in (0, 1):
        # The first axis of A stands before its last two, that of B too.
        mixed = np.moveaxis(a.swapaxes(1, 2) if transposed else a, -2, 0).copy()
        case(f"fused_matmul_batch_a_{transposed}", "FusedMatMul", [mixed, b], transBatchA=1, transA=transposed)
        mixed = np.moveaxis(b.swapaxes(1, 2) if transposed else b, -2, 0).copy()
        case(f"fused_matmul_batch_b_{transposed}", "FusedMatMul", [a, mixed], transBatchB=1, transB=transposed)
    case("transpose_matmul", "TransposeMatMul", [a, b.swapaxes(1, 2).copy()], transB=1)
    for activation, extra in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {}), ("Sigmoid", {})):
        case(f"fused_gemm_{activation.lower()}", "FusedGemm", [a[0], b[0], floats(rng, 5)], activation=activation, alpha=0.7, beta=1.3, **extra)
    x, w, c = floats(rng, 1, 4, 6, 6), floats(rng, 6, 2, 3, 3), floats(rng, 6)
    for activation, extra in (("Relu", {}), ("LeakyRelu", {"activation_params": [0.3]}), ("Clip", {"activation_params": [-0.5, 0.8]}),
                              ("HardSigmoid", {"activation_params": [0.3, 0.4]}), ("Sigmoid", {}), ("Tanh", {})):
        case(f"fused_conv_{activation.lower()}", "FusedConv", [x, w, c], constants=(1, 2), activation=activation, group=2, pads=[1, 1, 1, 1], **extra)
    case("fused_conv_sum", "FusedConv", [x, w, c, floats(rng, 1, 6, 6, 6)], constants=(1, 2), activation="Relu", group=2, pads=[1, 1, 1, 1])
    for kind in (np.uint8, np.int8):
        low, high = (0, 256) if kind == np.uint8 else (-128, 128)
        qa, qb = rng.integers(0, 256, (2, 5)).astype(np.uint8), rng.integers(low, high, (5, 3)).astype(kind)
        name = np.dtype(kind).name
        zero = np.array(7, kind)
        case(f"matmul_integer_to_float_{name}", "MatMulIntegerToFloat", [qa, qb, np.float32(0.02), np.float32(0.03), np.uint8(120), zero, floats(rng, 3)])
        case(f"matmul_integer_to_float_columns_{name}", "MatMulIntegerToFloat", [qa, qb, np.float32(0.02), (rng.random(3) * 0.1).astype(np.float32), np.uint8(120), np.full(3, 7, kind)])
        case(f"dynamic_quantize_matmul_{name}", "DynamicQuantizeMatMul", [floats(rng, 2, 5), qb, np.float32(0.03), zero, floats(rng, 3)])
        case(f"q_gemm_{name}", "QGemm", [qa, np.float32(0.02), np.uint8(120), qb, np.float32(0.03), zero,
                                        rng.integers(-900, 900, 3).astype(np.int32), np.float32(0.2), np.uint8(100)], constants=range(1, 9), steps=1)
        case(f"q_gemm_real_{name}", "QGemm", [qa, np.float32(0.02), np.uint8(120), qb, np.float32(0.03), zero], constants=(1, 2, 3, 4, 5), alpha=0.5)
        case(f"q_gemm_transposed_{name}", "QGemm", [qa, np.float32(0.02), np.uint8(120), qb.T.copy(), (rng.random(3) * 0.1).astype(np.float32), np.full(3, 7, kind),
                                                   rng.integers(-900, 900, 3).astype(np.int32), np.float32(0.3), np.uint8(100)], constants=range(1, 9), transB=1, steps=1)


def quantized_cases():
    rng = numbers("quantized")
    for kind in (np.uint8, np.int8):
        low, high = (0, 256) if kind == np.uint8 else (-128, 128)
        name = np.dtype(kind).name

        def tensor(*shape):
            return rng.integers(low, high, shape).astype(kind)

        def zero(value):
            return np.array(value if kind == np.uint8 else value - 128, kind)

        s = np.float32
        a, b = tensor(2, 3, 4), tensor(2, 3, 4)
        one = {"steps": 1}  # where a result lies between two
        case(f"qlinear_add_{name}", "QLinearAdd", [a, s(0.02), zero(120), b, s(0.05), zero(130), s(0.06), zero(125)], constants=(1, 2, 4, 5, 6, 7), **one)
        case(f"qlinear_add_row_{name}", "QLinearAdd", [a, s(0.02), zero(120), tensor(4), s(0.05), zero(130), s(0.06), zero(125)], constants=(1, 2, 4, 5, 6, 7), **one)
        case(f"qlinear_mul_{name}", "QLinearMul", [a, s(0.02), zero(120), b, s(0.05), zero(130), s(0.1), zero(125)], constants=(1, 2, 4, 5, 6, 7), **one)
        case(f"qlinear_mul_open_{name}", "QLinearMul", [a, s(0.02), zero(120), b, s(0.05), zero(130), s(0.1), zero(125)], **one)
        case(f"qlinear_sigmoid_{name}", "QLinearSigmoid", [a, s(0.05), zero(120), s(1 / 256), zero(0)], constants=(1, 2, 3, 4), **one)
        case(f"qlinear_leaky_{name}", "QLinearLeakyRelu", [a, s(0.05), zero(120), s(0.04), zero(100)], constants=(1, 2, 3, 4), alpha=0.2, **one)
        for opset, axis in ((13, -1), (13, 1), (11, 1)):
            case(f"qlinear_softmax_{name}_{opset}_{axis}", "QLinearSoftmax", [a, s(0.05), zero(120), s(1 / 256), zero(0)], constants=(1, 2, 3, 4), axis=axis, opset=opset, **one)
        case(f"qlinear_concat_{name}", "QLinearConcat", [s(0.05), zero(100), a, s(0.02), zero(120), b, s(0.05), zero(130)], constants=(0, 1, 3, 4, 6, 7), axis=1, **one)
        case(f"qlinear_concat_mixed_{name}", "QLinearConcat", [s(0.05), zero(100), a, s(0.02), zero(120), tensor(2, 1, 4), s(0.05), zero(100), b, s(0.03), zero(7)],
             constants=(0, 1, 3, 4, 6, 7, 9, 10), axis=-2, **one)
        case(f"qlinear_concat_open_{name}", "QLinearConcat", [s(0.05), zero(100), a, s(0.02), zero(120), b, s(0.05), zero(130)], axis=0, **one)
        case(f"qlinear_add_number_{name}", "QLinearAdd", [a, s(0.02), zero(120), tensor(1), s(0.05), zero(130), s(0.06), zero(125)], constants=(1, 2, 4, 5, 6, 7), **one)
        case(f"qlinear_add_first_{name}", "QLinearAdd", [tensor(3, 1), s(0.02), zero(120), b, s(0.05), zero(130), s(0.06), zero(125)], constants=(0, 1, 2, 4, 5, 6, 7), **one)
        case(f"qlinear_mul_channels_{name}", "QLinearMul", [a, s(0.02), zero(120), tensor(2, 3, 1), s(0.05), zero(130), s(0.1), zero(125)], constants=(1, 2, 4, 5, 6, 7), **one)
        case(f"qlinear_sigmoid_open_{name}", "QLinearSigmoid", [a, s(0.05), zero(120), s(1 / 256), zero(0)], constants=(1, 2, 3, 4), **one)
        case(f"qlinear_where_row_{name}", "QLinearWhere", [np.array([[True], [False], [True]]), a, s(0.02), zero(120), tensor(4), s(0.05), zero(130), s(0.05), zero(120)], constants=(2, 3, 5, 6, 7, 8), **one)

        def mean(axes, keep, a=a, zeros=(float(zero(120)), float(zero(130))), kind=kind, low=low, high=high):
            y = ((a.astype(np.float64) - zeros[0]) * 0.02).mean(axes, keepdims=keep) / 0.01
            return [np.clip(np.round(y) + zeros[1], low, high - 1).astype(kind)]

        for axes, keep in (((1,), 1), ((0, 2), 0)):
            label = "_".join(map(str, axes))
            case(f"qlinear_mean_{label}_{name}", "QLinearReduceMean", [a, s(0.02), zero(120), s(0.01), zero(130)], constants=(1, 2, 3, 4), axes=axes, keepdims=keep,
                 instead=lambda axes=axes, keep=keep, mean=mean: mean(axes, bool(keep)), **one)
        picture = tensor(2, 3, 5, 6)
        case(f"qlinear_average_ceil_{name}", "QLinearAveragePool", [picture, s(0.05), zero(120), s(0.04), zero(110)], constants=(1, 2, 3, 4), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, **one)
        case(f"qlinear_average_same_{name}", "QLinearAveragePool", [picture, s(0.05), zero(120), s(0.05), zero(120)], constants=(1, 2, 3, 4), kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER", **one)
        case(f"qlinear_global_average_{name}", "QLinearGlobalAveragePool", [picture, s(0.05), zero(120), s(0.03), zero(110)], constants=(1, 2, 3, 4), **one)
        case(f"qlinear_global_average_last_{name}", "QLinearGlobalAveragePool", [picture, s(0.05), zero(120), s(0.03), zero(110)], constants=(1, 2, 3, 4), channels_last=1, **one)
        for last in (0, 1):
            case(f"qlinear_average_{name}_{last}", "QLinearAveragePool", [picture, s(0.05), zero(120), s(0.04), zero(110)], constants=(1, 2, 3, 4),
                 kernel_shape=[3, 2] if not last else [2, 2], strides=[2, 1], pads=[1, 0, 1, 1], channels_last=last, **one)
        case(f"qlinear_average_pads_{name}", "QLinearAveragePool", [picture, s(0.05), zero(120), s(0.04), zero(110)], constants=(1, 2, 3, 4),
             kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1, **one)
        case(f"qlinear_where_{name}", "QLinearWhere", [rng.random((2, 3, 4)) > 0.5, a, s(0.02), zero(120), b, s(0.05), zero(130), s(0.05), zero(120)], constants=(2, 3, 5, 6, 7, 8), **one)
        case(f"qlinear_conv_last_{name}", "QLinearConv", [tensor(1, 5, 6, 3), s(0.05), zero(120), tensor(4, 3, 3, 3), s(0.02), zero(128), s(0.3), zero(100), rng.integers(-500, 500, 4).astype(np.int32)],
             constants=range(1, 9), pads=[1, 1, 1, 1], channels_last=1, **one)
        case(f"quantize_{name}", "QuantizeLinear", [floats(rng, 2, 3, 4, scale=3), s(0.05), zero(120)])
        case(f"quantize_axis_{name}", "QuantizeLinear", [floats(rng, 2, 3, 4, scale=3), (rng.random(3) * 0.1 + 0.01).astype(s), np.full(3, zero(120), kind)], axis=1)
        case(f"dequantize_{name}", "DequantizeLinear", [a, s(0.05), zero(120)])
        case(f"dequantize_axis_{name}", "DequantizeLinear", [a, (rng.random(4) * 0.1 + 0.01).astype(s), np.full(4, zero(120), kind)], axis=2)
        case(f"nhwc_max_{name}", "NhwcMaxPool", [tensor(2, 5, 6, 3)], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])


    for kind, low, high, zero in ((np.uint16, 0, 65536, 30000), (np.int16, -32768, 32768, -5)):
        name = np.dtype(kind).name
        scale, zero = np.float32(0.001), np.array(zero, kind)
        case(f"quantize_{name}", "QuantizeLinear", [floats(rng, 2, 3, 4, scale=3), scale, zero])
        case(f"dequantize_{name}", "DequantizeLinear", [rng.integers(low, high, (2, 3, 4)).astype(kind), scale, zero])


def recurrent_cases():
    T, B, I, H = 5, 2, 3, 4
    rng = numbers("recurrent")
    x = floats(rng, T, B, I)
    for directions, direction in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
        for kind in (np.uint8, np.int8):
            for columns in (False, True):
                if columns and kind == np.uint8:
                    continue
                low, high, middle = (0, 256, 125) if kind == np.uint8 else (-127, 128, 0)
                w, r = (rng.integers(low, high, (directions, n, 4 * H)).astype(kind) for n in (I, H))
                shape = (directions, 4 * H) if columns else (directions,)
                scales = [(rng.random(shape) * 0.004 + 0.002).astype(np.float32) for _ in "wr"]
                zeros = [np.full(shape, middle, kind) for _ in "wr"]
                bias = floats(rng, directions, 8 * H, scale=0.3)
                state = [floats(rng, directions, B, H, scale=0.5) for _ in "hc"]
                holes = floats(rng, directions, 3 * H, scale=0.3)
                packed = [scales[0], zeros[0], scales[1], zeros[1]]

                def real(i, given):
                    wide = [z[..., None, :] if columns else z[:, None, None] for z in (zeros[i], scales[i])]
                    return np.swapaxes((given.astype(np.float32) - wide[0].astype(np.float32)) * wide[1], 1, 2).copy()

                name = f"{direction}_{np.dtype(kind).name}" + ("_columns" if columns else "")
                for tail, rest in (("plain", [None] * 5), ("bias", [bias] + [None] * 4), ("all", [bias, np.array([5, 3], np.int32), *state, holes])):
                    attributes = {"direction": direction, "hidden_size": H}
                    # Data are rounded to eight bits in every step there, and are not here.
                    case(f"dynamic_lstm_{name}_{tail}", "DynamicQuantizeLSTM", [x, w, r, *rest, *packed], outputs=3,
                         constants=(1, 2, 3, 7, 8, 9, 10, 11), rtol=2e-2, atol=2e-2, **attributes)
                    exact = results("LSTM", [x, real(0, w), real(1, r), *rest], outputs=3, domain="", **attributes)
                    case(f"dynamic_lstm_{name}_{tail}_real", "DynamicQuantizeLSTM", [x, w, r, *rest, *packed], outputs=3,
                         constants=(1, 2, 3, 7, 8, 9, 10, 11), always=True, instead=lambda exact=exact: exact, **attributes)


def block_cases():
    rng = numbers("blocks")
    for bits in (4, 8, 2):
        for K, N, block in ((64, 5, 32), (128, 17, 16), (40, 3, 16), (192, 6, 64), (256, 8, 128)):
            blocks = -(-K // block)
            w = rng.integers(0, 256, (N, blocks, block * bits // 8)).astype(np.uint8)
            scales = (rng.random((N, blocks)) * 0.05 + 0.01).astype(np.float32)
            zeros = rng.integers(0, 256, (N, -(-blocks * bits // 8))).astype(np.uint8)
            attributes = {"K": K, "N": N, "bits": bits, "block_size": block}
            name = f"matmul_n_bits_{bits}_{K}_{N}_{block}"
            for rows in ((1,), (2, 3)):
                x = floats(rng, *rows, K)
                label = "x".join(map(str, rows))
                case(f"{name}_{label}", "MatMulNBits", [x, w, scales], constants=(1, 2), half=True, **attributes)
                case(f"{name}_{label}_zeros", "MatMulNBits", [x, w, scales, zeros], constants=(1, 2, 3), **attributes)
            case(f"{name}_flat", "MatMulNBits", [x, w, scales.reshape(-1), zeros.reshape(-1)], constants=(1, 2, 3), **attributes)
            real = (rng.random((N, blocks)) * 9).astype(np.float32)

            def product(x=x, w=w, scales=scales, real=real, K=K, N=N, bits=bits):
                each = 8 // bits
                numbers = np.stack([(w >> (bits * i)) & ((1 << bits) - 1) for i in range(each)], -1)
                numbers = numbers.reshape(*scales.shape, -1).astype(np.float64)
                weights = ((numbers - real[..., None]) * scales[..., None]).reshape(N, -1)[:, :K]
                return [(x.astype(np.float64) @ weights.T).astype(np.float32)]

            case(f"{name}_real_zeros", "MatMulNBits", [x, w, scales, real], constants=(1, 2, 3), instead=product, **attributes)
            case(f"{name}_accuracy", "MatMulNBits", [x, w, scales], constants=(1, 2), accuracy_level=1, **attributes)
            case(f"{name}_bias", "MatMulNBits", [x, w, scales, None, None, floats(rng, N)], constants=(1, 2, 5), **attributes)
    for kind in (0, 1):
        for K, N, block in ((32, 5, 16), (64, 3, 64)):
            w = rng.integers(0, 256, K * N // 2).astype(np.uint8)
            case(f"matmul_bnb4_{kind}_{K}_{N}", "MatMulBnb4", [floats(rng, 3, K), w, (rng.random(-(-K * N // block)) + 0.1).astype(np.float32)], constants=(1, 2), K=K, N=N, block_size=block, quant_type=kind)
    indices = np.array([[0, 3], [2, 6]], np.int64)
    for bits in (4, 8):
        table = rng.integers(0, 256, (7, 64 * bits // 8)).astype(np.uint8)
        for block in (16, 64):
            scales = (rng.random((7, 64 // block)) * 0.1).astype(np.float32)
            zeros = rng.integers(0, 256, (7, -(-64 // block * bits // 8))).astype(np.uint8)
            attributes = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
            case(f"gather_block_{bits}_{block}", "GatherBlockQuantized", [table, indices, scales], constants=(0, 2), half=True, **attributes)
            case(f"gather_block_{bits}_{block}_zeros", "GatherBlockQuantized", [table, indices, scales, zeros], constants=(0, 2, 3), **attributes)


def other_cases():
    rng = numbers("other")
    x = floats(rng, 2, 3, 4)
    case("inverse", "Inverse", [floats(rng, 2, 3, 3)], half=True)
    case("inverse_one", "Inverse", [floats(rng, 4, 4)])
    for axis in (0, 1, -1):
        case(f"expand_dims_{axis}", "ExpandDims", [x, np.array(axis, np.int32)], constants=(1,))
    case("range", "Range", [np.float32(1), np.float32(4), np.float32(0.5)], constants=(0, 1, 2))
    case("range_whole", "Range", [np.int64(1), np.int64(6)], constants=(0, 1))
    case("trilu", "Trilu", [x, np.int64(1)], constants=(1,))
    case("trilu_lower", "Trilu", [x], upper=0)
    case("gather_nd", "GatherND", [x, np.array([[0, 1], [1, 2]], np.int64)])
    case("pad", "Pad", [x, np.array([0, 1, 0, 0, 2, 1], np.int64), np.array([0.5], np.float32)], constants=(1, 2))
    for metric in ("euclidean", "sqeuclidean"):
        case(f"cdist_{metric}", "CDist", [floats(rng, 4, 6), floats(rng, 3, 6)], metric=metric)
    case("dynamic_pads", "ConvTransposeWithDynamicPads", [floats(rng, 1, 2, 4, 4), floats(rng, 2, 3, 3, 3), np.array([1, 0, 1, 0], np.int64), floats(rng, 3)], constants=(1, 2, 3), strides=[2, 2], kernel_shape=[3, 3])
    case("unique", "Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], outputs=3)


def write(folder, operator, inputs, wanted, constants, domain, attributes, tolerances, instead, always):
    model, given = build(operator, inputs, wanted, constants, domain, attributes)
    described = always
    if not always:
        try:
            outputs = run(operator, inputs, wanted, constants, domain, attributes)
        except Exception:
            if instead is None:
                raise
            described = True
    if described:
        outputs = [np.asarray(y) for y in instead()]
    # What came tells the types of the results, which the model's own message left open.
    for info, result in zip(model.graph.output, outputs, strict=True):
        info.CopyFrom(helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(result.dtype), list(result.shape)))
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for number, (name, value) in enumerate(given):
        (folder / f"input_{number}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    for number, (info, value) in enumerate(zip(model.graph.output, outputs, strict=True)):
        (folder / f"output_{number}.pb").write_bytes(numpy_helper.from_array(value, info.name).SerializeToString())
    rtol, atol, steps = tolerances
    return {"rtol": rtol, "atol": atol, "steps": steps, "described": described, "inputs": len(given), "outputs": len(outputs),
            "opset": {entry.domain: entry.version for entry in model.opset_import}, "operators": [operator]}


def main():
    out = pathlib.Path(sys.argv[1])
    for add in (attention_cases, multi_head_cases, group_query_cases, rotary_cases, normalization_cases, activation_cases,
                product_cases, quantized_cases, recurrent_cases, block_cases, other_cases):
        add()
    partial = out.with_name(out.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    index, failed = {}, []
    for name, *rest in CASES:
        try:
            index[name] = write(partial / name, *rest)
        except Exception as error:  # told, and an error of this script
            failed.append(f"{name}: {str(error).splitlines()[0][:200]}")
            shutil.rmtree(partial / name, ignore_errors=True)
    header = {"onnxruntime": onnxruntime.__version__, "cases": index}
    (partial / "index.json").write_text(json.dumps(header, indent=1) + "\n")
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)
    described = sum(case["described"] for case in index.values())
    print(f"{len(index)} cases written, {described} of them by description; {len(failed)} could not be")
    print("".join(f"{line}\n" for line in failed), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
