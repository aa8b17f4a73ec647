"""Skeletons: ONNX files whose large initializers are recipes instead of numbers.

A recipe is a JSON object in the initializer's doc_string; `build` turns a skeleton into the whole model. The `armet`
command does the same in Rust (crates/cli/src/models/made.rs), from the same files; this version is the one that the
scripts beside it use, and the two are compared by the sha256 in the table of models. Every step is exact: integer
arithmetic, and float64 operations that IEEE 754 rounds alike everywhere.

    {"recipe": "fill", "mean": m, "deviation": d, "seed": s}
        seeded numbers: the sum of the four 16-bit parts of splitmix64, centred and scaled, so within 3.5 deviations
    {"recipe": "copy", "offset": o}
        float32 numbers of the source file, from byte o
    {"recipe": "fold_weight", "weight": o, "gamma": o, "variance": o, "epsilon": e}
    {"recipe": "fold_bias", "beta": o, "gamma": o, "mean": o, "variance": o, "epsilon": e}
        a convolution of the source file with the batch normalisation after it folded in
    {"recipe": "quantise", "from": name, "scales": [names], "zero_point": name or null}
        an initializer of the base model divided by the product of the scales, rounded half to even, plus the zero point
    {"recipe": "same", "from": name}
        an initializer of the base model
    {"recipe": "scale", "from": name}
        per index of the first axis, the largest magnitude in an initializer of the base model, over 127
    {"recipe": "product", "of": [names]}
        the product of float32 initializers

Recipes name only initializers that come before them in the file.
"""
import json

import numpy as np
import onnx
from onnx import numpy_helper

# Standard deviation of a sum of four independent even numbers in 0..65535: sqrt(4 * (65536**2 - 1) / 12).
DEVIATION_OF_SUM = np.float64(37837.22780583546)
RECIPE_FROM = 256  # initializers with fewer elements keep their numbers


def normal(count, seed):
    with np.errstate(over="ignore"):
        golden = np.uint64(0x9E3779B97F4A7C15)
        z = (np.arange(1, count + 1, dtype=np.uint64) + (np.uint64(seed) << np.uint64(28))) * golden
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    parts = sum((z >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    return (parts.astype(np.int64) - 131070).astype(np.float64) / DEVIATION_OF_SUM


def numbers(source, offset, count):
    return np.frombuffer(source, dtype="<f4", count=count, offset=offset).astype(np.float64)


def per_channel(values, shape):
    """One value, or one for each index of the first axis."""
    return values.reshape((-1,) + (1,) * (len(shape) - 1)) if values.size > 1 else values.reshape(())


def cook(recipe, tensor, initializers, base, source):
    shape = tuple(tensor.dims)
    count = int(np.prod(shape))
    kind = recipe["recipe"]
    if kind == "fill":
        return recipe["mean"] + recipe["deviation"] * normal(count, recipe["seed"]).reshape(shape)
    if kind == "copy":
        return numbers(source, recipe["offset"], count).reshape(shape)
    if kind in ("fold_weight", "fold_bias"):
        channels = shape[0]
        part = lambda key: numbers(source, recipe[key], channels)
        factor = part("gamma") / np.sqrt(part("variance") + recipe["epsilon"])
        if kind == "fold_bias":
            return part("beta") - part("mean") * factor
        return numbers(source, recipe["weight"], count).reshape(shape) * per_channel(factor, shape)
    if kind == "quantise":
        scale = np.float64(1)
        for name in recipe["scales"]:
            scale = scale * per_channel(numpy_helper.to_array(initializers[name]).astype(np.float64), shape)
        values = np.rint(numpy_helper.to_array(base[recipe["from"]]).astype(np.float64).reshape(shape) / scale)
        if recipe["zero_point"]:
            values = values + per_channel(numpy_helper.to_array(initializers[recipe["zero_point"]]).astype(np.float64), shape)
        return values
    if kind == "same":
        return numpy_helper.to_array(base[recipe["from"]])
    if kind == "scale":
        magnitudes = np.abs(numpy_helper.to_array(base[recipe["from"]]).astype(np.float64)).reshape(shape[0], -1)
        return magnitudes.max(axis=1) / 127
    if kind == "product":
        factors = [numpy_helper.to_array(initializers[name]).astype(np.float64) for name in recipe["of"]]
        return np.broadcast_to(np.prod(np.broadcast_arrays(*factors), axis=0), shape)
    raise ValueError(f"unknown recipe {kind!r}")


def build(skeleton, base=None, source=None):
    """The whole model; `base` is the ONNX model that quantised tensors come from, `source` the bytes of a weights file."""
    model = onnx.ModelProto()
    model.CopyFrom(skeleton)
    initializers = {t.name: t for t in model.graph.initializer}
    base = {t.name: t for t in base.graph.initializer} if base is not None else {}
    for tensor in model.graph.initializer:
        if tensor.doc_string.startswith('{"recipe"'):
            values = cook(json.loads(tensor.doc_string), tensor, initializers, base, source)
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            if np.issubdtype(dtype, np.integer):
                values = np.clip(values, np.iinfo(dtype).min, np.iinfo(dtype).max)
            tensor.raw_data = np.ascontiguousarray(values.astype(dtype)).tobytes()
            tensor.ClearField("doc_string")
    return model


def set_recipe(tensor, recipe):
    for field in ("raw_data", "float_data", "int32_data", "int64_data"):
        tensor.ClearField(field)
    tensor.doc_string = json.dumps(recipe)


def plain(model):
    """Every initializer's numbers as raw_data, and the names that a reader of the graph does not need removed."""
    for tensor in model.graph.initializer:
        if not tensor.doc_string:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    del model.graph.value_info[:]
    del model.metadata_props[:]
    return model
