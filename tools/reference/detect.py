#!/usr/bin/env python3
"""Object and layout detection with onnxruntime and OpenCV: the pipeline that `armet detect` is held to.

    detect.py MODEL PICTURE... [--head yolov8|yolov5|picodet|end-to-end] [--score S] [--overlap O]

Prints {picture: [[label, score, [left, top, right, bottom]], ...]} as JSON, best first. The heads are told by the shapes
of the outputs. YOLO models get what ultralytics' predictor does (letterbox on grey 114, score 0.25, overlap 0.7 within a
class; 0.45 for version 5), PicoDet and NMS-free (end-to-end) ones what the package rapid-layout 1.2.1 does. Needs numpy,
opencv-python-headless and onnxruntime.
expected.json beside this file holds what it prints for two models on page.png and text.png, rounded.
"""
import argparse
import ast
import json
import pathlib

import cv2
import numpy as np
import onnxruntime

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
DEFAULTS = {"yolov8": (0.25, 0.7), "yolov5": (0.25, 0.45), "end-to-end": (0.2, None), "picodet": (0.5, 0.5)}
MOST = 300


def head_of(shapes):
    if len(shapes) > 1 and len(shapes) % 2 == 0 and all(len(shape) == 3 for shape in shapes):
        return "picodet"
    if len(shapes) == 1 and len(shapes[0]) == 3:
        _, first, last = shapes[0]
        if last == 6 and first <= 1000:
            return "end-to-end"
        return "yolov8" if first < last else "yolov5"
    raise SystemExit(f"outputs of shapes {shapes} belong to no head known here")


def letterbox(image, width, height):
    ratio = min(height / image.shape[0], width / image.shape[1])
    scaled = round(image.shape[1] * ratio), round(image.shape[0] * ratio)
    across, down = (width - scaled[0]) / 2, (height - scaled[1]) / 2
    if scaled != (image.shape[1], image.shape[0]):
        image = cv2.resize(image, scaled, interpolation=cv2.INTER_LINEAR)
    sides = round(down - 0.1), round(down + 0.1), round(across - 0.1), round(across + 0.1)
    return cv2.copyMakeBorder(image, *sides, cv2.BORDER_CONSTANT, value=(114,) * 3), ratio, sides[2], sides[0]


def suppress(boxes, scores, overlap, epsilon=0.0):
    """Indices kept, best first: a box goes where it overlaps a better one by more than `overlap`."""
    order = np.argsort(-scores, kind="stable")
    areas = np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1)
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        corner = np.maximum(boxes[best, :2], boxes[order, :2])
        shared = np.clip(np.minimum(boxes[best, 2:], boxes[order, 2:]) - corner, 0, None).prod(axis=1)
        order = order[shared / (areas[best] + areas[order] - shared + epsilon) <= overlap]
    return kept


def yolo(session, image, head, least_score, overlap):
    height, width = session.get_inputs()[0].shape[2:]
    boxed, ratio, left, top = letterbox(image, width, height)
    array = (boxed[:, :, ::-1].transpose(2, 0, 1)[None] / 255).astype(np.float32)
    output = session.run(None, {session.get_inputs()[0].name: array})[0][0]
    if head == "end-to-end":
        boxes, scores, classes = output[:, :4], output[:, 4], output[:, 5].astype(int)
    else:
        rows = output.T if head == "yolov8" else output
        classes_of = rows[:, 4:] if head == "yolov8" else rows[:, 5:] * rows[:, 4:5]
        scores, classes = classes_of.max(axis=1), classes_of.argmax(axis=1)
        half = rows[:, 2:4] / 2
        boxes = np.concatenate([rows[:, :2] - half, rows[:, :2] + half], axis=1)
    found = scores > least_score
    boxes, scores, classes = boxes[found], scores[found], classes[found]
    if overlap is not None:
        kept = [np.flatnonzero(classes == c)[suppress(boxes[classes == c], scores[classes == c], overlap)]
                for c in np.unique(classes)]
        kept = np.concatenate(kept) if kept else np.zeros(0, int)
        boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
    boxes = (boxes - np.float32([left, top, left, top])) / np.float32(ratio)
    boxes = np.clip(boxes, 0, np.float32([image.shape[1], image.shape[0]] * 2))
    return list(zip(classes.tolist(), scores.tolist(), boxes.tolist()))


def picodet(session, image, least_score, overlap):
    height, width = session.get_inputs()[0].shape[2:]
    scaled = cv2.resize(image, (width, height)).astype(np.float32) * (1 / 255)
    array = ((scaled - MEAN) / STD).transpose(2, 0, 1)[None].astype(np.float32)
    outputs = session.run(None, {session.get_inputs()[0].name: array})
    levels = len(outputs) // 2
    boxes, scores = [], []
    for level in range(levels):
        stride = 8 << level
        score, distribution = outputs[level][0], outputs[level + levels][0]
        rows, columns = np.mgrid[0 : -(-height // stride), 0 : -(-width // stride)]
        centre = (np.stack([columns, rows, columns, rows], axis=-1).reshape(-1, 4) + 0.5) * stride
        exponents = distribution.reshape(len(score), 4, -1)
        exponents = np.exp(exponents - exponents.max(axis=-1, keepdims=True))
        shares = exponents / exponents.sum(axis=-1, keepdims=True)
        distance = (shares * np.arange(shares.shape[-1])).sum(axis=-1) * stride
        best = np.argsort(-score.max(axis=1), kind="stable")[:1000]
        boxes.append((centre + distance * [-1, -1, 1, 1])[best])
        scores.append(score[best])
    boxes, scores = np.concatenate(boxes), np.concatenate(scores)
    found = []
    for index in range(scores.shape[1]):
        likely = np.flatnonzero(scores[:, index] > least_score)
        likely = likely[np.argsort(-scores[likely, index], kind="stable")][:200]
        for kept in suppress(boxes[likely], scores[likely, index], overlap, 1e-5)[:100]:
            box = np.clip(boxes[likely[kept]], 0, [width, height, width, height])
            ratio = np.float32([width / image.shape[1], height / image.shape[0]] * 2)
            found.append((index, float(scores[likely[kept], index]), (box / ratio).tolist()))
    return found


def labels_of(session):
    metadata = session.get_modelmeta().custom_metadata_map
    if "names" in metadata:
        return {int(index): name for index, name in ast.literal_eval(metadata["names"]).items()}
    return dict(enumerate(metadata.get("character", "").splitlines()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("pictures", type=pathlib.Path, nargs="+")
    parser.add_argument("--head", choices=DEFAULTS)
    parser.add_argument("--score", type=float)
    parser.add_argument("--overlap", type=float)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(arguments.model), options, ["CPUExecutionProvider"])
    head = arguments.head or head_of([output.shape for output in session.get_outputs()])
    score, overlap = DEFAULTS[head]
    score = score if arguments.score is None else arguments.score
    overlap = overlap if arguments.overlap is None else arguments.overlap
    labels = labels_of(session)
    answer = {}
    for picture in arguments.pictures:
        image = cv2.imread(str(picture), cv2.IMREAD_COLOR)
        if image is None:
            parser.error(f"{picture} is not a picture")
        found = picodet(session, image, score, overlap) if head == "picodet" else yolo(session, image, head, score, overlap)
        found = sorted(found, key=lambda item: -item[1])[:MOST]
        answer[picture.name] = [[labels.get(index, str(index)), score, box] for index, score, box in found]
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
