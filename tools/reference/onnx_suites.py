#!/usr/bin/env python3
"""Write the onnx package's model suites to disk: onnx_suites.py OUT

For each of simple, light, pytorch-operator and pytorch-converted: OUT/<suite>/<case>/model.onnx, its
{input,output}_<n>.pb, and OUT/<suite>/index.json in the form of onnx_cases.py. The light models are classifiers whose
weights are a formula; they come with outputs only, for the inputs that the package's own runner generates. Needs onnx and
numpy.
"""
import json
import pathlib
import shutil
import sys

import onnx
from onnx import numpy_helper
from onnx.backend.test import data
from onnx.backend.test.runner import Runner

SUITES = ("simple", "light", "pytorch-operator", "pytorch-converted")
RTOL, ATOL = 1e-3, 1e-7  # of the package's own loader


def entry(model, count_of, rtol=RTOL, atol=ATOL):
    return {"rtol": rtol, "atol": atol, "inputs": count_of("input"), "outputs": count_of("output"),
            "opset": {each.domain: each.version for each in model.opset_import},
            "operators": sorted({node.op_type for node in model.graph.node})}


def counter(folder):
    return lambda side: len(list(folder.glob(f"{side}_*.pb")))


def copied(source, folder):
    """A case with its values beside it; the package has one set of them for each."""
    shutil.copy(source / "model.onnx", folder)
    sets = sorted(source.glob("test_data_set_*"))
    if len(sets) != 1:
        raise RuntimeError(f"{source.name} has {len(sets)} sets of values")
    for path in sets[0].glob("*.pb"):
        shutil.copy(path, folder)
    settings = source / "data.json"
    settings = json.loads(settings.read_text()) if settings.exists() else {}
    model = onnx.load(folder / "model.onnx")
    return entry(model, counter(folder), settings.get("rtol", RTOL), settings.get("atol", ATOL))


def light(path, folder):
    shutil.copy(path, folder / "model.onnx")
    model = onnx.load(path)
    stored = {tensor.name for tensor in model.graph.initializer}
    for number, value in enumerate(value for value in model.graph.input if value.name not in stored):
        dummy = Runner.generate_dummy_data(value, seed=0, name=path.stem, random=False)
        (folder / f"input_{number}.pb").write_bytes(numpy_helper.from_array(dummy, value.name).SerializeToString())
    for number in range(len(model.graph.output)):
        shutil.copy(path.with_name(f"{path.stem}_output_{number}.pb"), folder / f"output_{number}.pb")
    return entry(model, counter(folder))


def main():
    out = pathlib.Path(sys.argv[1])
    partial = out.with_name(out.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    root = pathlib.Path(next(iter(data.__path__)))
    for suite in SUITES:
        index = {}
        sources = sorted((root / suite).glob("*.onnx")) if suite == "light" else sorted(p.parent for p in (root / suite).glob("*/model.onnx"))
        for source in sources:
            folder = partial / suite / source.stem
            folder.mkdir(parents=True)
            index[source.stem] = light(source, folder) if suite == "light" else copied(source, folder)
        (partial / suite / "index.json").write_text(json.dumps({"onnx": onnx.__version__, "cases": index}, indent=1) + "\n")
        print(f"{suite}: {len(index)} cases")
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)


if __name__ == "__main__":
    main()
