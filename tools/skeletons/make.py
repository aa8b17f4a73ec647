#!/usr/bin/env python3
"""Make the skeletons of crates/cli/src/models/skeletons, and the whole models from them.

usage: make.py OUT --media FOLDER [--weights FILE.pth] [--exports FOLDER] [--skeletons FOLDER]

Without --exports, the skeletons already in the skeletons folder serve for the exported models; the detectors and the
quantised twins are always made anew. Whole models go to OUT. See README.md beside this file.
"""
import argparse
import gzip
import pathlib
import sys

import onnx

from quantise import STATIC, UNIT, dynamic, picture, static
from recipes import build
from strip import folded, seeded
from yolo import BUILDERS, balance

SKELETONS = pathlib.Path(__file__).resolve().parents[2] / "crates/cli/src/models/skeletons"
SEEDED = ["resnet50", "mobilenet_v3_small", "minilm_fp32"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--media", type=pathlib.Path, required=True)
    parser.add_argument("--weights", type=pathlib.Path, required=True, help="mobilenet_v2-b0353104.pth")
    parser.add_argument("--exports", type=pathlib.Path)
    parser.add_argument("--skeletons", type=pathlib.Path, default=SKELETONS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.skeletons.mkdir(parents=True, exist_ok=True)
    source, whole = arguments.weights.read_bytes(), {}

    def finish(name, skeleton, base=None):
        packed = gzip.compress(skeleton.SerializeToString(deterministic=True), 9, mtime=0)
        (arguments.skeletons / f"{name}.onnx.gz").write_bytes(packed)
        whole[name] = build(skeleton, base, source)
        onnx.checker.check_model(whole[name])
        (arguments.out / f"{name}.onnx").write_bytes(whole[name].SerializeToString(deterministic=True))
        print(f"{name}: skeleton {len(packed)} bytes", flush=True)

    def stored(name):
        return onnx.load_model_from_string(gzip.decompress((arguments.skeletons / f"{name}.onnx.gz").read_bytes()))

    for name in SEEDED:
        finish(name, seeded(onnx.load(arguments.exports / f"{name}.onnx")) if arguments.exports else stored(name))
    name = "mobilenet_v2"
    finish(name, folded(onnx.load(arguments.exports / f"{name}.onnx"), arguments.weights) if arguments.exports else stored(name))
    for name, builder in BUILDERS.items():
        finish(name, balance(builder(), picture(arguments.media / "bus.jpg", (640, 640), UNIT)))
    finish("minilm_dynq", dynamic(whole["minilm_fp32"]), whole["minilm_fp32"])
    for name, (base, *_) in STATIC.items():
        finish(name, static(name, whole[base], arguments.media), whole[base])
    return 0


if __name__ == "__main__":
    sys.exit(main())
