#!/usr/bin/env python3
"""Write the operator cases of the onnx package to disk: onnx_cases.py OUT

Written is OUT/<case>/model.onnx, OUT/<case>/{input,output}_<n>.pb (TensorProto, SequenceProto or OptionalProto, by the
graph's types; a missing optional has no file) and OUT/index.json: per case its tolerances `rtol` and `atol`, the opset,
the operators, and the numbers of inputs and outputs. Needs onnx and numpy.
"""
import json
import pathlib
import shutil
import sys
import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def serialised(value, info):
    """A value as the message that its type in the graph asks for."""
    kind = info.type.WhichOneof("value")
    if isinstance(value, onnx.TensorProto):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    return numpy_helper.from_array(value, info.name)


def write(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    graph, (inputs, outputs) = case.model.graph, case.data_sets[0]
    for side, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
        for number, (value, info) in enumerate(zip(values, infos, strict=True)):
            (folder / f"{side}_{number}.pb").write_bytes(serialised(value, info).SerializeToString())
    return {"rtol": case.rtol, "atol": case.atol, "inputs": len(inputs), "outputs": len(outputs),
            "opset": {entry.domain: entry.version for entry in case.model.opset_import},
            "operators": sorted({node.op_type for node in graph.node})}


def main():
    warnings.filterwarnings("ignore")
    out = pathlib.Path(sys.argv[1])
    partial = out.with_name(out.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    index, failed = {}, []
    for case in collect_testcases(None):
        try:
            index[case.name] = write(case, partial / case.name)
        except Exception as error:  # one case that its own package cannot write must not hide the others
            failed.append(f"{case.name}: {type(error).__name__}: {error}")
            shutil.rmtree(partial / case.name)
    (partial / "index.json").write_text(json.dumps({"onnx": onnx.__version__, "cases": index, "failed": failed}, indent=1) + "\n")
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)
    print(f"{len(index)} cases written, {len(failed)} could not be")
    for line in failed:
        print("FAILED", line, file=sys.stderr)


if __name__ == "__main__":
    main()
