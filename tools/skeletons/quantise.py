"""Quantised twins of whole models, as skeletons whose integer weights are recipes over the float model.

The integers of the skeleton's recipes are recomputed from the float model, so only scales and zero points are stored.
"""
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from recipes import RECIPE_FROM, plain, set_recipe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reference"))
from inputs import IMAGENET, UNIT, picture  # noqa: E402

PICTURES = ["chelsea.png", "coffee.png", "rocket.jpg", "astronaut.png", "bus.jpg", "china.jpg", "flower.jpg", "zidane.jpg"]
STATIC = {  # id: (float twin, format, activations, picture size, normalisation)
    "mobilenet_v2_qdq": ("mobilenet_v2", QuantFormat.QDQ, QuantType.QUInt8, 224, IMAGENET),
    "mobilenet_v2_qop": ("mobilenet_v2", QuantFormat.QOperator, QuantType.QUInt8, 224, IMAGENET),
    "resnet50_qdq": ("resnet50", QuantFormat.QDQ, QuantType.QInt8, 224, IMAGENET),
    "yolov5s_qdq": ("yolov5s", QuantFormat.QDQ, QuantType.QUInt8, 640, UNIT),
}


class Pictures(CalibrationDataReader):
    def __init__(self, name, media, size, normal):
        self.feeds = iter([{name: picture(media / file, (size, size), normal)} for file in PICTURES])

    def get_next(self):
        return next(self.feeds, None)


def decoding(model):
    """The nodes behind a detector's last convolutions: boxes are decoded in float."""
    below, names = set(), []
    for node in model.graph.node:
        if node.op_type == "Reshape" and any(i.startswith("Conv_") for i in node.input) or below & set(node.input):
            below.update(node.output)
            names.append(node.name)
    return names


def static(model_id, base, media):
    _, form, activations, size, normal = STATIC[model_id]
    name = base.graph.input[0].name
    with tempfile.TemporaryDirectory() as folder:
        whole, prepared, out = (str(pathlib.Path(folder) / part) for part in ("whole.onnx", "prepared.onnx", "out.onnx"))
        onnx.save(base, whole)
        quant_pre_process(whole, prepared, skip_symbolic_shape=True, skip_optimization=True)
        exclude = decoding(onnx.load(prepared)) if model_id.startswith("yolo") else []
        symmetric = {"ActivationSymmetric": True} if activations == QuantType.QInt8 else {}
        quantize_static(prepared, out, Pictures(name, media, size, normal), quant_format=form, per_channel=True,
                        activation_type=activations, weight_type=QuantType.QInt8, nodes_to_exclude=exclude, extra_options=symmetric)
        return recipes(onnx.load(out), base)


def dynamic(base):
    with tempfile.TemporaryDirectory() as folder:
        whole, out = (str(pathlib.Path(folder) / part) for part in ("whole.onnx", "out.onnx"))
        onnx.save(base, whole)
        quantize_dynamic(whole, out, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gather"], extra_options={"MatMulConstBOnly": True})
        return recipes(onnx.load(out), base)


def bias_scales(model):
    """For each int32 bias, the names of the two scales whose product is its own."""
    made_by = {output: node for node in model.graph.node for output in node.output}
    scales = {}
    for node in model.graph.node:
        if node.op_type == "QLinearConv" and len(node.input) > 8:
            scales[node.input[8]] = [node.input[1], node.input[4]]
        if node.op_type == "QGemm" and len(node.input) > 6:
            scales[node.input[6]] = [node.input[1], node.input[4]]
        if node.op_type in ("Conv", "Gemm") and len(node.input) > 2 and all(i in made_by for i in node.input):
            sources = [made_by[i] for i in node.input]
            if all(source.op_type == "DequantizeLinear" for source in sources):
                scales[sources[2].input[0]] = [sources[0].input[1], sources[1].input[1]]
    return scales


def recipes(model, base):
    """Replaces what follows from the float model by recipes, and puts the initializers in the order that they need."""
    plain(model)
    originals = {t.name: t for t in base.graph.initializer}
    initializers = {t.name: t for t in model.graph.initializer}
    biases = bias_scales(model)
    order = {name: 0 for name in initializers}

    def replace(name, rank, recipe):
        set_recipe(initializers[name], recipe)
        order[name] = rank

    def size(name):
        return int(np.prod(initializers[name].dims))

    for name, tensor in list(initializers.items()):
        stem = name.removesuffix("_quantized")
        if name in originals:
            if size(name) >= RECIPE_FROM and tensor.raw_data == originals[name].raw_data:
                replace(name, 3, {"recipe": "same", "from": name})
        elif name in biases:
            replace(name, 3, {"recipe": "quantise", "from": stem, "scales": biases[name], "zero_point": None})
            if size(name) > 1 and f"{name}_scale" in initializers:
                replace(f"{name}_scale", 2, {"recipe": "product", "of": biases[name]})
        elif stem in originals and size(name) >= RECIPE_FROM:
            if size(f"{stem}_scale") > 1:
                replace(f"{stem}_scale", 1, {"recipe": "scale", "from": stem})
            zero = f"{stem}_zero_point"
            replace(name, 3, {"recipe": "quantise", "from": stem, "scales": [f"{stem}_scale"], "zero_point": zero})
    ordered = sorted(initializers.values(), key=lambda tensor: order[tensor.name])
    del model.graph.initializer[:]
    model.graph.initializer.extend(ordered)
    return model
