#!/usr/bin/env python3
"""Make reference outputs of the real models with onnxruntime, its optimisations off.

usage: make.py MODELS OUT [--only ID ...] [--again]

MODELS is the folder that `armet models fetch` filled (with its media/). Written is, for each model and case,

    OUT/<id>/meta.json
    OUT/<id>/<case>/inputs/<input name>.npy
    OUT/<id>/<case>/outputs/<output name>.npy

where `/` and `:` in a name become `_`. meta.json has
    model, sha256   the file and its sum: a reference holds for these bytes only
    runtime         what made the outputs
    quantised       whether the graph computes in integers (then compare by cosine and top-1, not by absolute gap)
    cases           by name: inputs and outputs (name, file, type, shape; outputs also min, max, spread, cosine, last_bit)
                    and, for a stateful case, stream
`spread` is the largest absolute gap between the runtime's unoptimised and optimised runs, `cosine` the cosine between
the two: no tolerance of ours can be finer than the reference's own. `last_bit`, of quantised models, is how far rounding
alone carries them: the lowest cosine between the reference and the same run of a few copies of the model whose float32
weights and scales were moved by at most one unit in the last place. Where one more step at a tie is amplified by all the
layers behind it, arithmetic that is exact differs from the reference as much.

A case with `stream: {steps, carry, each_step}` is stateful. The inputs named in each_step have a leading axis of that
many steps; `carry` maps outputs to the inputs they become in the next step, whose files hold the values of step 0; all
other inputs are the same in every step. Outputs have the leading axis too.

Needs numpy, pillow, onnx and onnxruntime. A model whose reference is complete and of the same file is left alone unless
--again is given.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from cases import CASES, Stream

INTEGER_OPERATORS = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger")
COPIES = 4  # of a quantised model, with other last bits
# Float inputs of other operators decide sizes or limits, which one bit must not change.
ROUNDED_OPERATORS = ("Conv", "Gemm", "MatMul", "Add", "Sub", "Mul", "Div", "QuantizeLinear", "DequantizeLinear", "QLinearConv",
                     "QLinearMatMul", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm")
LAYOUT = 2  # raised when what this script writes changes, so that older references are made again


def file_name(name):
    return name.replace("/", "_").replace(":", "_") + ".npy"


def session(model, optimised):
    """A session of a file, or of a model's bytes."""
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(model, case):
    """Outputs by name; those of a stream have a leading axis of steps."""
    names = [output.name for output in model.get_outputs()]
    if not isinstance(case, Stream):
        return dict(zip(names, model.run(names, case)))
    carried, steps = dict(case.start), []
    for step in range(case.length()):
        feed = {name: value[step] for name, value in case.steps.items()} | carried | case.fixed
        outputs = dict(zip(names, model.run(names, feed)))
        carried = {target: outputs[source] for source, target in case.carry.items()}
        steps.append(outputs)
    return {name: np.stack([step[name] for step in steps]) for name in names}


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length else 1.0


def with_other_last_bits(data, seed):
    """The model with its float32 weights and scales moved by at most one unit in the last place."""
    model = onnx.load_model_from_string(data)
    random = np.random.default_rng(seed)
    wanted = {name for node in model.graph.node if node.op_type in ROUNDED_OPERATORS for name in node.input}
    tensors = [tensor for tensor in model.graph.initializer if tensor.name in wanted]
    tensors += [attribute.t for node in model.graph.node if node.op_type == "Constant" and node.output[0] in wanted
                for attribute in node.attribute if attribute.name == "value"]
    for tensor in tensors:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        value = numpy_helper.to_array(tensor)
        target = np.where(random.integers(0, 2, value.shape) == 1, np.float32(np.inf), np.float32(-np.inf))
        # Very large values stand for infinity, and zero has no last place worth the name.
        moves = (random.integers(0, 3, value.shape) > 0) & (value != 0) & (np.abs(value) < 1e30)
        moved = np.where(moves, np.nextafter(value, target), value).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
    return model.SerializeToString()


def describe(name, value):
    return {"name": name, "file": file_name(name), "type": str(value.dtype), "shape": list(value.shape)}


def save(folder, values):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        np.save(folder / file_name(name), value)


def operators(graph):
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from operators(attribute.g)


def make(model_id, path, out, media):
    folder = out / model_id
    partial = out / (model_id + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    data = path.read_bytes()
    kinds = set(operators(onnx.load_model_from_string(data).graph))
    meta = {"layout": LAYOUT, "model": path.name, "sha256": hashlib.sha256(data).hexdigest(),
            "runtime": f"onnxruntime {onnxruntime.__version__}, graph optimisations off, 1 thread",
            "quantised": bool(kinds & set(INTEGER_OPERATORS)), "cases": {}}
    plain, optimised = session(str(path), False), session(str(path), True)
    copies = [session(with_other_last_bits(data, seed), False) for seed in range(COPIES if meta["quantised"] else 0)]
    for name, case in CASES[model_id](model_id, media):
        outputs = run(plain, case)
        moved = [run(copy, case) for copy in copies]
        again, other = run(plain, case), run(optimised, case)
        for output, value in outputs.items():
            if not np.array_equal(value, again[output], equal_nan=True):
                raise RuntimeError(f"{model_id}/{name}: two runs of the reference differ in {output}")
        inputs = case.steps | case.start | case.fixed if isinstance(case, Stream) else case
        save(partial / name / "inputs", inputs)
        save(partial / name / "outputs", outputs)
        entry = {"inputs": [describe(k, v) for k, v in inputs.items()], "outputs": []}
        for output, value in outputs.items():
            gap = np.abs(value.astype(np.float64) - other[output].astype(np.float64))
            entry["outputs"].append(describe(output, value) | {
                "min": float(value.min()), "max": float(value.max()), "spread": float(gap.max()), "cosine": cosine(value, other[output]),
                "last_bit": min((cosine(value, copy[output]) for copy in moved), default=1.0)})
        if isinstance(case, Stream):
            entry["stream"] = {"steps": case.length(), "each_step": list(case.steps), "carry": case.carry}
        meta["cases"][name] = entry
    (partial / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(partial, folder)
    return meta


def fresh(folder, path):
    try:
        meta = json.loads((folder / "meta.json").read_text())
    except (OSError, ValueError):
        return False
    return meta.get("layout") == LAYOUT and meta.get("sha256") == hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", metavar="ID")
    parser.add_argument("--again", action="store_true", help="make also what is there already")
    arguments = parser.parse_args()
    made, kept, failed = 0, 0, []
    for model_id in arguments.only or CASES:
        path = arguments.models / (model_id + ".onnx")
        if not path.exists():
            failed.append(f"{model_id}: {path} is missing (`armet models fetch` brings it)")
        elif not arguments.again and fresh(arguments.out / model_id, path):
            kept += 1
        else:
            try:
                meta = make(model_id, path, arguments.out, arguments.models / "media")
            except Exception as error:  # one model's failure must not hide the others
                failed.append(f"{model_id}: {type(error).__name__}: {error}")
                continue
            made += 1
            spread = max(o["spread"] for c in meta["cases"].values() for o in c["outputs"])
            print(f"{model_id}: {', '.join(meta['cases'])}; own spread {spread:.1e}", flush=True)
    print(f"{made} made, {kept} already there, {len(failed)} failed")
    for line in failed:
        print("FAILED", line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
