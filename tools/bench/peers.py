#!/usr/bin/env python3
"""Time one model side by side in several inference engines, fairly enough to quote a ratio.

Every engine runs in a process of its own, in turn, round after round, and the order is reversed every other round, so
that a drift of the machine's speed hits all alike. A round's figure is that process's median milliseconds per inference
after warm-up; ratios are paired by round and their median is reported. All engines get the same number of threads, are
asked for float32 precision, and get the same inputs: the files given, otherwise numbers that depend only on the shape.
The time to load and compile, the first inference and the growth of resident memory start after the engine's own libraries
are in memory.

  peers.py MODEL [--engines armet,ort,openvino] [--threads 1] [--rounds 5] [--seconds 1.0]
           [--shape input=1,3,640,640 ...] [--input NAME=FILE.npy ...] [--armet PROGRAM] [--json FILE]

`armet` is timed by `armet bench MODEL --threads N --seconds S --json [--shape ...] [--input ...]`. The others need numpy
and their own Python package. An engine that cannot run the model is reported with its reason and left out of the ratios.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

IMPORTS = {"ort": "onnxruntime", "openvino": "openvino"}
TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64", "tensor(int64)": "int64",
         "tensor(int32)": "int32", "tensor(int8)": "int8", "tensor(uint8)": "uint8", "tensor(bool)": "bool"}


def value(shape, dtype):
    """Floats in 0..1, integers and booleans alternating between 0 and 1."""
    import numpy as np
    steps = np.arange(int(np.prod(shape)), dtype=np.int64) * 37 % 255
    dtype = np.dtype(dtype)
    return (steps / 255.0 if dtype.kind == "f" else steps % 2).astype(dtype).reshape(shape)


class Inputs:
    """What the command line says of the model's inputs."""

    def __init__(self, shapes, files):
        import numpy as np
        self.arrays = {name: np.load(path) for name, path in (text.rsplit("=", 1) for text in files)}
        self.shapes = {name: [int(d) for d in sizes.split(",") if d] for name, sizes in (text.rsplit("=", 1) for text in shapes)}
        self.shapes |= {name: list(array.shape) for name, array in self.arrays.items()}

    def shape(self, name, declared):
        return self.shapes.get(name, [d if isinstance(d, int) and d > 0 else 1 for d in declared])

    def value(self, name, declared, dtype):
        return self.arrays[name] if name in self.arrays else value(self.shape(name, declared), dtype)


def load_ort(model, threads, inputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {i.name: inputs.value(i.name, i.shape, TYPES[i.type]) for i in session.get_inputs()}
    return lambda: session.run(None, feed)


def load_openvino(model, threads, inputs):
    import openvino
    core = openvino.Core()
    network = core.read_model(model)
    known = lambda i: [d.get_length() if d.is_static else -1 for d in i.partial_shape]
    network.reshape({i: openvino.PartialShape(inputs.shape(i.any_name, known(i))) for i in network.inputs})
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(network, "CPU", settings)
    request = compiled.create_infer_request()
    for i in compiled.inputs:
        request.set_tensor(i, openvino.Tensor(inputs.value(i.any_name, list(i.shape), i.element_type.to_dtype())))
    return request.infer


def resident_kib():
    with open("/proc/self/status") as status:
        return int(next(line.split()[1] for line in status if line.startswith("VmRSS")))


def worker(engine, model, threads, seconds, inputs):
    __import__(IMPORTS[engine])
    before, start = resident_kib(), time.perf_counter()
    run = globals()["load_" + engine](model, threads, inputs)
    loaded = time.perf_counter()
    run()
    first = time.perf_counter()
    run()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times) < 3:
        step = time.perf_counter()
        run()
        times.append((time.perf_counter() - step) * 1e3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({"median_ms": statistics.median(times), "runs": len(times), "load_ms": (loaded - start) * 1e3,
                      "first_ms": (first - loaded) * 1e3, "peak_rss_kib": peak}))


def once(engine, arguments):
    common = [arguments.model, "--threads", str(arguments.threads), "--seconds", str(arguments.seconds)]
    common += [word for shape in arguments.shape for word in ("--shape", shape)]
    common += [word for file in arguments.input for word in ("--input", file)]
    own = [arguments.armet, "bench", "--json"] if engine == "armet" else [sys.executable, __file__, "--worker", engine]
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    process = subprocess.run(own + common, capture_output=True, text=True, timeout=600, env=environment, check=False)
    if process.returncode:
        words = (process.stderr.strip() or "no output").splitlines()
        raise RuntimeError(words[-1][:200])
    return json.loads(process.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--engines", default="armet,ort,openvino")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,3,224,224")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy")
    parser.add_argument("--armet", default="target/release/armet")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        inputs = Inputs(arguments.shape, arguments.input)
        worker(arguments.worker, arguments.model, arguments.threads, arguments.seconds, inputs)
        return 0
    engines, rounds, failed = arguments.engines.split(","), {}, {}
    for turn in range(arguments.rounds):
        for engine in engines if turn % 2 == 0 else reversed(engines):
            if engine in failed:
                continue
            try:
                rounds.setdefault(engine, []).append(once(engine, arguments))
            except Exception as error:  # one engine's failure must not hide the others
                failed[engine] = str(error)
                rounds.pop(engine, None)
    base = next((engine for engine in engines if engine in rounds), None)
    report = {"model": pathlib.Path(arguments.model).stem, "threads": arguments.threads, "engines": {}, "failed": failed}
    for engine, found in rounds.items():
        ratios = [mine["median_ms"] / other["median_ms"] for mine, other in zip(found, rounds[base])]
        middle = lambda key: statistics.median(float(r.get(key) or 0) for r in found)
        report["engines"][engine] = {
            "ms": middle("median_ms"), "load_ms": middle("load_ms"), "first_ms": middle("first_ms"), "peak_rss_kib": middle("peak_rss_kib"),
            f"ratio_to_{base}": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")
    print(f"{report['model']}: {arguments.threads} thread(s), median of {arguments.rounds} rounds")
    for engine, row in sorted(report["engines"].items(), key=lambda item: item[1]["ms"]):
        print(f"  {engine:9} {row['ms']:9.3f} ms  x{row[f'ratio_to_{base}']:.2f} ({row['ratio_min']:.2f}..{row['ratio_max']:.2f}) of {base}"
              f"  load {row['load_ms']:7.1f} ms  first {row['first_ms']:7.1f} ms  memory {row['peak_rss_kib'] / 1024:6.0f} MiB")
    for engine, reason in failed.items():
        print(f"  {engine:9} did not run: {reason}")
    return 0 if report["engines"] else 1


if __name__ == "__main__":
    sys.exit(main())
