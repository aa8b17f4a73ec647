"""Skeletons of exported models: large weights replaced by recipes."""
import collections
import pickle
import struct
import zlib

import numpy as np
from onnx import numpy_helper

from recipes import RECIPE_FROM, plain, set_recipe


def seeded(model):
    """Random weights with the mean and deviation that each tensor has."""
    for tensor in plain(model).graph.initializer:
        values = numpy_helper.to_array(tensor).astype(np.float64)
        if values.size >= RECIPE_FROM and values.dtype.kind == "f":
            set_recipe(tensor, {"recipe": "fill", "mean": float(values.mean()), "deviation": float(values.std()), "seed": zlib.crc32(tensor.name.encode())})
    return model


class Names(pickle.Unpickler):
    """Reads a state dictionary's structure; any class but the few that name tensors is refused."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, *rest: (storage, offset, size)
        if module == "torch" and name.endswith("Storage"):
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is not expected in a file of weights")

    def persistent_load(self, identity):
        return identity


def torch_offsets(path):
    """Byte offset of each float tensor in a file of torch's format before version 1.6."""
    with open(path, "rb") as file:
        for _ in range(3):
            Names(file).load()
        tensors, keys = Names(file).load(), Names(file).load()
        width = {storage[2]: {"FloatStorage": 4, "LongStorage": 8}[storage[1]] for storage, *_ in tensors.values()}
        start = {}
        for key in keys:
            count = struct.unpack("<q", file.read(8))[0]
            start[key] = file.tell()
            file.seek(count * width[key], 1)
    return {name: start[storage[2]] + offset * 4 for name, (storage, offset, _) in tensors.items() if storage[1] == "FloatStorage"}


def folded(model, weights):
    """Weights from a torch file: each Conv of the graph is, in order, a convolution and batch normalisation of the file."""
    offsets = torch_offsets(weights)
    initializers = {t.name: t for t in plain(model).graph.initializer}
    norms = [name.removesuffix(".running_mean") for name in offsets if name.endswith(".running_mean")]
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    assert len(norms) == len(convolutions)
    for node, norm in zip(convolutions, norms):
        stem, last = norm.rsplit(".", 1)
        source = {"gamma": offsets[norm + ".weight"], "variance": offsets[norm + ".running_var"], "epsilon": 1e-5}
        bias = {"beta": offsets[norm + ".bias"], "mean": offsets[norm + ".running_mean"]}
        set_recipe(initializers[node.input[1]], {"recipe": "fold_weight", "weight": offsets[f"{stem}.{int(last) - 1}.weight"]} | source)
        set_recipe(initializers[node.input[2]], {"recipe": "fold_bias"} | bias | source)
    for name, tensor in initializers.items():
        if name in offsets:
            set_recipe(tensor, {"recipe": "copy", "offset": offsets[name]})
    return model
