"""The published YOLOv5s and YOLOv8n architectures as skeletons, written from their descriptions.

The graphs are spelled the way a PyTorch export spells them (SiLU as Sigmoid and Mul, constants as nodes, shape chains
left in), since that is what an engine meets. Weights are seeded numbers, `balance`d so that every convolution's output
has a standard deviation of one on a real picture: right for speed, memory and agreement between engines, not for meaning.
"""
import json
import zlib

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from recipes import RECIPE_FROM, build, set_recipe


class Graph:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 0

    def op(self, kind, inputs, outputs=1, **attributes):
        names = [f"{kind}_{self.count}_output_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{self.count}", **attributes))
        self.count += 1
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype):
        return self.op("Constant", [], value=numpy_helper.from_array(np.array(value, dtype=dtype)))

    def ints(self, *values):
        return self.constant(values, np.int64)

    def weight(self, name, shape, deviation):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        set_recipe(tensor, {"recipe": "fill", "mean": 0.0, "deviation": deviation, "seed": zlib.crc32(name.encode())})
        self.initializers.append(tensor)
        return name

    def conv(self, name, x, inputs, outputs, kernel=1, stride=1, pad=None):
        weight = self.weight(f"{name}.weight", (outputs, inputs, kernel, kernel), 1.0)
        bias = self.weight(f"{name}.bias", (outputs,), 0.1)
        pad = kernel // 2 if pad is None else pad
        return self.op("Conv", [x, weight, bias], dilations=[1, 1], group=1, kernel_shape=[kernel] * 2, pads=[pad] * 4, strides=[stride] * 2)

    def conv_silu(self, name, x, inputs, outputs, kernel=1, stride=1, pad=None):
        y = self.conv(name + ".conv", x, inputs, outputs, kernel, stride, pad)
        return self.op("Mul", [y, self.op("Sigmoid", [y])])

    def concat(self, inputs, axis=1):
        return self.op("Concat", inputs, axis=axis)

    def pool_pyramid(self, name, x, channels):
        x = self.conv_silu(name + ".cv1", x, channels, channels // 2)
        pools = [x]
        for _ in range(3):
            pools.append(self.op("MaxPool", [pools[-1]], ceil_mode=0, kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
        return self.conv_silu(name + ".cv2", self.concat(pools), channels * 2, channels)

    def double(self, x):
        scales = self.constant([1, 1, 2, 2], np.float32)
        return self.op("Resize", [x, "", scales], coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.75, mode="nearest", nearest_mode="floor")

    def expand_as_exported(self, x, shape):
        """torch's `expand`: the target shape with its -1 entries replaced by ones, computed in the graph."""
        target = self.ints(*shape)
        ones = self.op("ConstantOfShape", [self.ints(len(shape))], value=numpy_helper.from_array(np.array([1], dtype=np.int64)))
        minus = self.op("Mul", [ones, self.constant(-1, np.int64)])
        return self.op("Expand", [x, self.op("Where", [self.op("Equal", [target, minus]), ones, target])])

    def grid(self, size, offset, axis):
        """Cell positions (x, y) of a size x size grid, stacked on a new axis."""
        shape = self.ints(size, size)
        steps = np.arange(size) + offset
        ys = self.op("Expand", [self.constant(steps[:, None], np.float32), shape])
        xs = self.op("Expand", [self.constant(steps[None, :], np.float32), shape])
        return self.concat([self.op("Unsqueeze", [xs, self.ints(axis)]), self.op("Unsqueeze", [ys, self.ints(axis)])], axis=axis)

    def model(self, output, shape):
        self.nodes[-1].output[0] = output
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "main_graph", [info("images", TensorProto.FLOAT, [1, 3, 640, 640])],
                                  [info(output, TensorProto.FLOAT, shape)], self.initializers)
        model = helper.make_model(graph, producer_name="armet skeletons", opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 7
        return model


def yolov5s():
    g = Graph()

    def c3(name, x, inputs, outputs, repeats, shortcut=True):
        half = outputs // 2
        y = g.conv_silu(name + ".cv1", x, inputs, half)
        for k in range(repeats):
            z = g.conv_silu(f"{name}.m.{k}.cv1", y, half, half)
            z = g.conv_silu(f"{name}.m.{k}.cv2", z, half, half, 3)
            y = g.op("Add", [y, z]) if shortcut else z
        return g.conv_silu(name + ".cv3", g.concat([y, g.conv_silu(name + ".cv2", x, inputs, half)]), outputs, outputs)

    x = g.conv_silu("stem", "images", 3, 32, 6, 2, 2)
    x = c3("b1", g.conv_silu("d1", x, 32, 64, 3, 2), 64, 64, 1)
    p3 = x = c3("b2", g.conv_silu("d2", x, 64, 128, 3, 2), 128, 128, 2)
    p4 = x = c3("b3", g.conv_silu("d3", x, 128, 256, 3, 2), 256, 256, 3)
    x = c3("b4", g.conv_silu("d4", x, 256, 512, 3, 2), 512, 512, 1)
    t5 = g.conv_silu("t5", g.pool_pyramid("sppf", x, 512), 512, 256)
    x = c3("u4", g.concat([g.double(t5), p4]), 512, 256, 1, False)
    t4 = g.conv_silu("t4", x, 256, 128)
    n3 = c3("u3", g.concat([g.double(t4), p3]), 256, 128, 1, False)
    n4 = c3("n4", g.concat([g.conv_silu("e4", n3, 128, 128, 3, 2), t4]), 256, 256, 1, False)
    n5 = c3("n5", g.concat([g.conv_silu("e5", n4, 256, 256, 3, 2), t5]), 512, 512, 1, False)
    anchors = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]
    heads = []
    for level, (x, channels) in enumerate([(n3, 128), (n4, 256), (n5, 512)]):
        stride, size = 8 << level, 80 >> level
        y = g.conv(f"head.{level}", x, channels, 255)
        y = g.op("Transpose", [g.op("Reshape", [y, g.ints(1, 3, 85, size, size)])], perm=[0, 1, 3, 4, 2])
        cells = g.expand_as_exported(g.grid(size, 0, 2), (1, 3, size, size, 2))
        cells = g.op("Sub", [cells, g.constant(0.5, np.float32)])
        anchor = np.array(anchors[level], dtype=np.float32).reshape(1, 3, 1, 1, 2)
        g.initializers.append(numpy_helper.from_array(anchor, f"head.{level}.anchors"))
        anchor = g.expand_as_exported(f"head.{level}.anchors", (1, 3, size, size, 2))
        xy, wh, rest = g.op("Split", [g.op("Sigmoid", [y]), g.ints(2, 2, 81)], 3, axis=4)
        two = lambda: g.constant(2, np.float32)
        xy = g.op("Mul", [g.op("Add", [g.op("Mul", [xy, two()]), cells]), g.constant(stride, np.float32)])
        wh = g.op("Mul", [g.op("Pow", [g.op("Mul", [wh, two()]), two()]), anchor])
        heads.append(g.op("Reshape", [g.concat([xy, wh, rest], 4), g.ints(1, 3 * size * size, 85)]))
    g.concat(heads)
    return g.model("output0", [1, 25200, 85])


def yolov8n():
    g = Graph()

    def c2f(name, x, inputs, outputs, repeats, shortcut=False):
        half = outputs // 2
        parts = g.op("Split", [g.conv_silu(name + ".cv1", x, inputs, outputs), g.ints(half, half)], 2, axis=1)
        for k in range(repeats):
            y = g.conv_silu(f"{name}.m.{k}.cv1", parts[-1], half, half, 3)
            y = g.conv_silu(f"{name}.m.{k}.cv2", y, half, half, 3)
            parts.append(g.op("Add", [parts[-1], y]) if shortcut else y)
        return g.conv_silu(name + ".cv2", g.concat(parts), half * (2 + repeats), outputs)

    x = g.conv_silu("stem", "images", 3, 16, 3, 2)
    x = c2f("b1", g.conv_silu("d1", x, 16, 32, 3, 2), 32, 32, 1, True)
    p3 = x = c2f("b2", g.conv_silu("d2", x, 32, 64, 3, 2), 64, 64, 2, True)
    p4 = x = c2f("b3", g.conv_silu("d3", x, 64, 128, 3, 2), 128, 128, 2, True)
    x = c2f("b4", g.conv_silu("d4", x, 128, 256, 3, 2), 256, 256, 1, True)
    p5 = g.pool_pyramid("sppf", x, 256)
    t4 = c2f("u4", g.concat([g.double(p5), p4]), 384, 128, 1)
    n3 = c2f("u3", g.concat([g.double(t4), p3]), 192, 64, 1)
    n4 = c2f("n4", g.concat([g.conv_silu("e4", n3, 64, 64, 3, 2), t4]), 192, 128, 1)
    n5 = c2f("n5", g.concat([g.conv_silu("e5", n4, 128, 128, 3, 2), p5]), 384, 256, 1)
    levels = [(n3, 64), (n4, 128), (n5, 256)]

    def branch(name, width):
        flat = []
        for level, (x, channels) in enumerate(levels):
            y = g.conv_silu(f"{name}.{level}.0", x, channels, width, 3)
            y = g.conv(f"{name}.{level}.2", g.conv_silu(f"{name}.{level}.1", y, width, width, 3), width, width)
            flat.append(g.op("Reshape", [y, g.ints(1, width, -1)]))
        return g.concat(flat, -1)

    boxes, classes = branch("box", 64), branch("class", 80)
    cells = [g.op("Reshape", [g.grid(size, 0.5, -1), g.ints(-1, 2)]) for size in (80, 40, 20)]
    cells = g.op("Transpose", [g.concat(cells, 0)], perm=[1, 0])
    sides = g.op("Transpose", [g.op("Reshape", [boxes, g.ints(1, 4, 16, 8400)])], perm=[0, 2, 1, 3])
    bins = np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)
    assert bins.size < RECIPE_FROM
    g.initializers.append(numpy_helper.from_array(bins, "bins"))
    sides = g.op("Conv", [g.op("Softmax", [sides], axis=1), "bins"], dilations=[1, 1], group=1, kernel_shape=[1, 1], pads=[0] * 4, strides=[1, 1])
    sides = g.op("Reshape", [sides, g.ints(1, 4, 8400)])
    cells = g.op("Unsqueeze", [cells, g.ints(0)])
    # torch's `chunk(2, 1)`: the half of the axis is computed from the shape at run time.
    one = g.ints(1)
    extent = g.op("Gather", [g.op("Shape", [sides]), one], axis=0)
    half = g.op("Div", [g.op("Add", [extent, g.ints(1)]), g.ints(2)])
    middle, end = g.op("Mul", [half, g.ints(1)]), g.op("Mul", [half, g.ints(2)])
    low = g.op("Sub", [cells, g.op("Slice", [sides, g.ints(0), middle, one])])
    high = g.op("Add", [cells, g.op("Slice", [sides, middle, end, one])])
    centre = g.op("Div", [g.op("Add", [low, high]), g.constant(2, np.float32)])
    box = g.concat([centre, g.op("Sub", [high, low])])
    strides = np.concatenate([np.full(6400, 8), np.full(1600, 16), np.full(400, 32)])[None]
    box = g.op("Mul", [box, g.constant(strides, np.float32)])
    g.concat([box, g.op("Sigmoid", [classes])])
    return g.model("output0", [1, 84, 8400])


BUILDERS = {"yolov5s": yolov5s, "yolov8n": yolov8n}


def balance(skeleton, image):
    """Sets each convolution's weight deviation so that its output has a deviation of one; earlier layers first."""
    recipes = {t.name: t for t in skeleton.graph.initializer if t.doc_string}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for node in [node for node in skeleton.graph.node if node.op_type == "Conv" and node.input[1] in recipes]:
        model = build(skeleton)
        del model.graph.output[:]
        model.graph.output.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None))
        runner = onnxruntime.InferenceSession(model.SerializeToString(), options)
        spread = float(runner.run(None, {"images": image})[0].std())
        recipe = json.loads(recipes[node.input[1]].doc_string)
        recipe["deviation"] = float(f"{recipe['deviation'] / spread:.4g}")
        set_recipe(recipes[node.input[1]], recipe)
    return skeleton
