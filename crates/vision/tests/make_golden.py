#!/usr/bin/env python3
"""Writes tests/answers/*.json: what OpenCV, Pillow, pyclipper and NumPy answer to small made-up inputs.

The inputs come from a linear congruential generator that the tests repeat, so only answers are stored: long ones as a
64-bit FNV-1a hash of their bytes, short ones as they are. Needs numpy, opencv-python-headless 5.0, pillow 13,
pyclipper 1.4, shapely 2 and onnxruntime (which the pipelines import; no model is run). Run it without arguments; it replaces the files.
"""

import json
import pathlib
import sys
import types

import cv2
import numpy as np
import pyclipper
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).parents[3] / "tools" / "reference"))
import detect as detect_pipeline
import faces as faces_pipeline
import ocr as ocr_pipeline

ANSWERS = pathlib.Path(__file__).parent / "answers"


class Generator:
    """The same numbers as `Generator` in tests/golden/common.rs."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return self.state >> 8

    def below(self, limit):
        return self.next() % limit

    def ratio(self):
        return self.next() / 2**24

    def bytes(self, *shape):
        count = int(np.prod(shape))
        return np.array([self.next() >> 16 for _ in range(count)], dtype=np.uint8).reshape(shape)


def fnv(array):
    value = 0xCBF29CE484222325
    for byte in np.ascontiguousarray(array).tobytes():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return f"{value:016x}"


def write(name, cases):
    ANSWERS.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (ANSWERS / f"{name}.json").write_text(f"[\n{lines}\n]\n")


def resize():
    sizes = [(37, 23, 91, 60), (120, 64, 60, 32), (64, 48, 16, 12), (101, 77, 33, 20), (50, 90, 20, 12), (9, 9, 1, 1)]
    sizes += [(1, 1, 7, 5), (40, 17, 13, 40), (17, 40, 40, 13), (30, 21, 30, 7)]
    for seed, (width, height, to_width, to_height) in enumerate(sizes):
        for channels in (1, 3):
            pixels = Generator(seed).bytes(height, width, channels)
            to = (to_width, to_height)
            flat = pixels[:, :, 0] if channels == 1 else pixels
            yield {
                "seed": seed,
                "size": [width, height, channels],
                "to": to,
                "linear": fnv(cv2.resize(pixels, to, interpolation=cv2.INTER_LINEAR)),
                "area": fnv(cv2.resize(pixels, to, interpolation=cv2.INTER_AREA)),
                "antialiased": fnv(np.asarray(Image.fromarray(flat).resize(to, Image.BILINEAR))),
                "area_f64": cv2.resize(pixels.astype(np.float64), to, interpolation=cv2.INTER_AREA).ravel()[:5].tolist(),
            }


def letterbox(image, width, height):
    ratio = min(height / image.shape[0], width / image.shape[1])
    scaled = round(image.shape[1] * ratio), round(image.shape[0] * ratio)
    across, down = (width - scaled[0]) / 2, (height - scaled[1]) / 2
    image = cv2.resize(image, scaled, interpolation=cv2.INTER_LINEAR)
    sides = round(down - 0.1), round(down + 0.1), round(across - 0.1), round(across + 0.1)
    return cv2.copyMakeBorder(image, *sides, cv2.BORDER_CONSTANT, value=(114,) * 3)


def imagenet(image):
    height, width = image.shape[:2]
    size = (256, int(256 * height / width)) if width <= height else (int(256 * width / height), 256)
    scaled = Image.fromarray(image).resize(size, Image.BILINEAR)
    left, top = round((size[0] - 224) / 2), round((size[1] - 224) / 2)
    return np.asarray(scaled.crop((left, top, left + 224, top + 224)))


def presets():
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    for seed, (width, height) in enumerate([(30, 20), (19, 41), (320, 250)]):
        rgb = Generator(seed).bytes(height, width, 3)
        bgr = rgb[:, :, ::-1]
        ratio = 736 / min(width, height)
        to = tuple(round(int(side * ratio) / 32) * 32 for side in (width, height))
        prepared = {
            "yolo": letterbox(rgb, 96, 64).transpose(2, 0, 1) / 255,
            "imagenet": ((imagenet(rgb) / 255 - mean) / std).transpose(2, 0, 1),
            "picodet": ((cv2.resize(bgr, (608, 800)) / 255 - mean) / std).transpose(2, 0, 1),
            "ppocr-det": (cv2.resize(bgr, to) / 255 - 0.5).transpose(2, 0, 1) / 0.5,
            "mtcnn": (cv2.resize(rgb, (17, 15), interpolation=cv2.INTER_AREA) - 127.5) / 128,
            "raw": cv2.resize(rgb, (17, 15)).transpose(2, 0, 1).astype(float),
        }
        for name, values in prepared.items():
            # The 8-bit pixels behind the numbers are what matters: the numbers follow by one division.
            yield {
                "seed": seed,
                "picture": [width, height],
                "preset": name,
                "shape": [1, *values.shape],
                "sum": float(values.sum()),
                "first": values.ravel()[:4].tolist(),
                "last": values.ravel()[-4:].tolist(),
            }


def head_outputs(head, generator, width, height):
    """Made-up outputs of a head; the numbers are exact in single precision."""
    if head == "picodet":
        cells = [-(-width // stride) * -(-height // stride) for stride in (8, 16, 32, 64)]
        scores = [np.array([generator.ratio() for _ in range(3 * n)]).reshape(1, n, 3) for n in cells]
        logits = [np.array([generator.below(4096) / 512 - 4 for _ in range(32 * n)]).reshape(1, n, 32) for n in cells]
        return scores + logits
    rows = []
    for _ in range(150):
        x, y = generator.below(16 * width) / 16, generator.below(16 * height) / 16
        w, h = (4 + generator.below(16 * 36) / 16 for _ in range(2))
        scores = [generator.ratio() for _ in range(4)]
        if head == "end-to-end":
            rows.append([x, y, x + w, y + h, scores[0], generator.below(5)])
        else:
            rows.append([x, y, w, h, *scores])
    output = np.array(rows)[None]
    return [output.transpose(0, 2, 1) if head == "yolov8" else output]


def detect():
    width, height = 96, 64
    for seed, (head, picture) in enumerate(
        [("yolov8", (200, 70)), ("yolov8", (31, 90)), ("yolov5", (96, 64)), ("end-to-end", (50, 90)), ("picodet", (77, 61))]
    ):
        outputs = [output.astype(np.float32) for output in head_outputs(head, Generator(seed), width, height)]
        session = types.SimpleNamespace(
            get_inputs=lambda: [types.SimpleNamespace(name="images", shape=[1, 3, height, width])],
            run=lambda *_: outputs,
        )
        image = np.zeros((picture[1], picture[0], 3), np.uint8)
        score, overlap = (0.6, 0.4) if head != "end-to-end" else (0.6, None)
        if head == "picodet":
            found = detect_pipeline.picodet(session, image, score, overlap)
        else:
            found = detect_pipeline.yolo(session, image, head, score, overlap)
        found = sorted(found, key=lambda item: -item[1])
        rounded = [[index, round(score, 6), *(round(side, 3) for side in box)] for index, score, box in found]
        yield {"seed": seed, "head": head, "picture": picture, "found": rounded}


def contours():
    for seed, (width, height, percent) in enumerate([(9, 7, 50), (40, 30, 30), (40, 30, 60), (33, 50, 85), (1, 5, 70), (6, 1, 70)]):
        generator = Generator(seed)
        mask = np.array([generator.below(100) < percent for _ in range(width * height)], np.uint8).reshape(height, width)
        found, _ = cv2.findContours(mask * 255, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        flat = np.concatenate([np.array([len(found)]), *([len(c), *c.ravel()] for c in found)]).astype("<i4")
        yield {
            "seed": seed,
            "size": [width, height],
            "percent": percent,
            "contours": len(found),
            "first": found[0].reshape(-1, 2).tolist(),
            "hash": fnv(flat),
            "dilated": fnv(cv2.dilate(mask, np.ones((2, 2), np.uint8))),
        }


def rectangles():
    for seed in range(40):
        generator = Generator(seed)
        limit = (4, 20, 300)[seed % 3]
        points = np.array([generator.below(limit) for _ in range(2 * (1 + seed % 11))], np.int32).reshape(-1, 1, 2)
        centre, size, angle = cv2.minAreaRect(points)
        yield {
            "seed": seed,
            "limit": limit,
            "hull": cv2.convexHull(points, clockwise=False).reshape(-1, 2).tolist(),
            "rectangle": [*centre, *size, angle],
            "corners": cv2.boxPoints((centre, size, angle)).ravel().tolist(),
        }


def turned_box(generator, largest, turned=True):
    centre = [20 + generator.below(4000) / 64 for _ in range(2)]
    size = [3 + generator.below(64 * largest) / 64 for _ in range(2)]
    angle = generator.below(1800) / 20 - 45 if turned else 0
    return cv2.boxPoints((centre, size, angle)), size


def growing():
    for seed in range(40):
        box, (width, height) = turned_box(Generator(seed), (6, 30, 200)[seed % 3], seed % 4)
        distance = width * height * 1.6 / (2 * (width + height))
        offset = pyclipper.PyclipperOffset()
        offset.AddPath(box, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
        (grown,) = offset.Execute(distance)
        yield {"polygon": box.astype(int).tolist(), "distance": distance, "grown": grown}


def filling():
    for seed in range(40):
        generator = Generator(seed)
        if seed % 2:
            polygon = np.array([generator.below(70) - 10 for _ in range(8)], np.int32).reshape(4, 2)
        else:
            polygon = (turned_box(generator, 40)[0] - 25).astype(np.int32)
        size = [1 + generator.below(50), 1 + generator.below(50)]
        mask = np.zeros(size[::-1], np.uint8)
        cv2.fillPoly(mask, [polygon], 1)
        yield {"polygon": polygon.tolist(), "size": size, "filled": fnv(mask)}


def cutting():
    width, height = 90, 70
    picture = Generator(1).bytes(height, width, 3)
    boxes = [turned_box(Generator(seed + 100), 40, seed % 3)[0][[1, 2, 3, 0]] for seed in range(12)]
    # Two sides that meet in the origin: the transform's last coefficient is nought.
    boxes.append(np.array([[0, 36], [50, 0], [70, 0], [0, 56]]))
    for box in boxes:
        quad = np.clip(box.astype(int), 0, [width - 1, height - 1]).astype(np.float32)
        crop = ocr_pipeline.cut(picture, quad)
        yield {"quad": quad.tolist(), "size": [crop.shape[1], crop.shape[0]], "pixels": fnv(crop)}


def text_map(generator, columns, rows):
    """Noise with a few bright turned bars in it."""
    level = np.array([generator.below(64) for _ in range(columns * rows)]).reshape(rows, columns)
    y, x = np.mgrid[:rows, :columns]
    for _ in range(6):
        left, top, across, down, length, thickness, value = (
            generator.below(limit) for limit in (columns, rows, 16, 9, 300, 40, 140)
        )
        along = (x - left) * (across + 4) + (y - top) * (down - 4)
        aside = (y - top) * (across + 4) - (x - left) * (down - 4)
        level[(abs(along) <= length + 100) & (abs(aside) <= thickness + 20)] = 110 + value
    return (level / 256).astype(np.float32)


def text_boxes():
    for seed, (width, height) in enumerate([(160, 128), (200, 130), (90, 60), (480, 330)]):
        boxes = ocr_pipeline.boxes_of(text_map(Generator(seed), 160, 128), width, height)
        boxes = [box.astype(int).tolist() for box in ocr_pipeline.reading_order(boxes)]
        yield {"seed": seed, "picture": [width, height], "boxes": boxes}


def lines():
    reader = ocr_pipeline.Reader.__new__(ocr_pipeline.Reader)
    reader.characters = ["", "a", "b", "\u6587", " "]
    for seed in range(4):
        generator = Generator(seed)
        steps = np.array([generator.below(6 if seed else 1) / 8 for _ in range(20 * 5)], np.float32).reshape(20, 5)
        text, confidence = reader.decode(steps)
        sizes = [(3 + generator.below(200), 3 + generator.below(40)) for _ in range(8)]
        crops = [generator.bytes(height, width, 3)[:, :, ::-1] for width, height in sizes]
        prepared = [ocr_pipeline.normalised(crops[index], 480) for index in (0, 1)]
        yield {
            "seed": seed,
            "text": text,
            "confidence": confidence,
            "batches": [batch.tolist() for batch in ocr_pipeline.batches(crops)],
            "lines": [fnv(line.astype("<f4")) for line in prepared],
        }


def faces():
    for seed, (width, height) in enumerate([(70, 50), (40, 90), (20, 21), (130, 100)]):
        image = Generator(seed).bytes(height, width, 3)
        generator, sums = Generator(seed + 50), []

        def shifts(count):
            return np.array([(generator.below(200) - 100) / 512 for _ in range(4 * count)], np.float32)

        def proposer(array):
            sums.append(float(array.astype(float).sum()))
            columns, rows = ((side - 10) // 2 for side in array.shape[1:3])
            moves = shifts(columns * rows).reshape(1, columns, rows, 4)
            likely = [generator.below(128) for _ in range(columns * rows)]
            likely = np.array([(90 + value % 38) / 128 if value < 8 else 0 for value in likely], np.float32)
            return moves, np.stack([1 - likely, likely], axis=-1).reshape(1, columns, rows, 2)

        def refiner(array):
            sums.append(float(array.astype(float).sum()))
            moves = shifts(len(array)).reshape(-1, 4)
            likely = np.array([generator.below(128) / 128 for _ in array], np.float32)
            return moves, np.stack([1 - likely, likely], axis=-1)

        def finisher(array):
            moves, scores = refiner(array)
            points = np.array([generator.below(256) / 256 for _ in range(10 * len(array))], np.float32)
            return moves, points.reshape(-1, 10), scores

        boxes, points = faces_pipeline.find(image, proposer, refiner, finisher)
        found = [[*box, *marks.ravel()] for box, marks in zip(boxes, points)]
        found = [[round(float(value), 4) for value in face] for face in found]
        yield {"seed": seed, "picture": [width, height], "inputs": sums, "faces": found}


def main():
    write("resize", resize())
    write("presets", presets())
    write("detect", detect())
    for part in (contours, rectangles, growing, filling, cutting, text_boxes, lines, faces):
        write(part.__name__, part())


if __name__ == "__main__":
    main()
