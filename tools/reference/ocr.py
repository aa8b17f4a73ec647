#!/usr/bin/env python3
"""Text recognition with onnxruntime and OpenCV: the pipeline that `armet ocr` is held to.

    ocr.py DETECTOR CLASSIFIER RECOGNISER PICTURE...
    ocr.py DETECTOR CLASSIFIER RECOGNISER PICTURE... --crops OUT   cuts and scales the pictures into OUT/*.png, reads those

Prints {picture: [[box, text, confidence], ...]} as JSON. Each step does what the package rapidocr-onnxruntime 1.4.4 does
with its default settings (the two were compared on page.png and text.png). Needs numpy, opencv-python-headless 5.0
(older ones cut crops differently), onnxruntime, pyclipper and shapely.
expected.json beside this file holds what it prints for page.png and text.png, rounded.
"""
import argparse
import json
import math
import pathlib

import cv2
import numpy as np
import onnxruntime
import pyclipper
from shapely.geometry import Polygon

# Global
MOST_SIDE, LEAST_SIDE = 2000, 30
LEAST_HEIGHT, WIDEST = 30, 8
LEAST_CONFIDENCE = 0.5
# Detection
SHORT_SIDE = 736
BINARY, LEAST_SCORE, GROWTH, MOST_CONTOURS, LEAST_RECTANGLE = 0.3, 0.5, 1.6, 1000, 3
# Orientation and recognition
BATCH, TURN_CONFIDENCE = 6, 0.9
LINE_HEIGHT, CLASSIFIER_WIDTH, RECOGNISER_WIDTH = 48, 192, 320


def multiple_of_32(length):
    return int(round(length / 32) * 32)


class Reader:
    def __init__(self, detector, classifier, recogniser):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        self.detector, self.classifier, self.recogniser = (
            onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
            for path in (detector, classifier, recogniser)
        )
        characters = self.recogniser.get_modelmeta().custom_metadata_map["character"].splitlines()
        self.characters = ["", *characters, " "]

    @staticmethod
    def run(session, array):
        return session.run(None, {session.get_inputs()[0].name: array})[0]

    def read(self, image):
        """Lines of a BGR picture, as (box, text, confidence)."""
        full_height, full_width = image.shape[:2]
        image, ratio = bounded(image)
        padding = 0
        height, width = image.shape[:2]
        if height <= LEAST_HEIGHT or width / height > WIDEST:
            padding = int(abs(max(int(width / WIDEST), LEAST_HEIGHT) * 2 - height) / 2)
            image = cv2.copyMakeBorder(image, padding, padding, 0, 0, cv2.BORDER_CONSTANT, value=(0, 0, 0))
        boxes = reading_order(self.detect(image))
        crops = self.upright([cut(image, box) for box in boxes])
        lines = []
        for box, (text, confidence) in zip(boxes, self.recognise(crops)):
            box = (box - np.float32([0, padding])) * ratio.astype(np.float32)
            box = np.clip(box, 0, np.float32([full_width, full_height]))
            if confidence >= LEAST_CONFIDENCE:
                lines.append((box.tolist(), text, confidence))
        return lines

    def detect(self, image):
        height, width = image.shape[:2]
        ratio = max(1.0, SHORT_SIDE / min(height, width))
        to = multiple_of_32(int(width * ratio)), multiple_of_32(int(height * ratio))
        scaled = cv2.resize(image, to).astype(np.float32) * (1 / 255)
        array = ((scaled - 0.5) / 0.5).transpose(2, 0, 1)[None].astype(np.float32)
        return boxes_of(self.run(self.detector, array)[0, 0], width, height)

    def upright(self, crops):
        crops = list(crops)
        for batch in batches(crops):
            lines = [normalised(crops[index], CLASSIFIER_WIDTH) for index in batch]
            for index, scores in zip(batch, self.run(self.classifier, np.stack(lines))):
                if scores.argmax() == 1 and scores[1] > TURN_CONFIDENCE:
                    crops[index] = cv2.rotate(crops[index], cv2.ROTATE_180)
        return crops

    def recognise(self, crops):
        results = [("", 0.0)] * len(crops)
        for batch in batches(crops):
            widest = max([RECOGNISER_WIDTH / LINE_HEIGHT, *(proportion(crops[index]) for index in batch)])
            lines = [normalised(crops[index], int(LINE_HEIGHT * widest)) for index in batch]
            for index, steps in zip(batch, self.run(self.recogniser, np.stack(lines))):
                results[index] = self.decode(steps)
        return results

    def decode(self, steps):
        best = steps.argmax(axis=1)
        kept = np.append(True, best[1:] != best[:-1]) & (best != 0)
        confidence = steps.max(axis=1)[kept].astype(float).mean() if kept.any() else 0.0
        return "".join(self.characters[index] for index in best[kept]), float(confidence)


def bounded(image):
    """The picture with its sides within bounds, and by what its coordinates must be multiplied to undo that."""
    ratio = np.ones(2)
    for wanted, limit, choose in ((lambda side: side > MOST_SIDE, MOST_SIDE, max),
                                  (lambda side: side < LEAST_SIDE, LEAST_SIDE, min)):
        height, width = image.shape[:2]
        if wanted(choose(height, width)):
            scale = limit / choose(height, width)
            to = multiple_of_32(int(width * scale)), multiple_of_32(int(height * scale))
            image = cv2.resize(image, to)
            ratio = np.array([width / to[0], height / to[1]])
    return image, ratio


def boxes_of(probabilities, width, height):
    """Boxes of text in a picture of this size, from the detector's map of probabilities."""
    mask = cv2.dilate((probabilities > BINARY).astype(np.uint8), np.ones((2, 2), np.uint8)) * 255
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    boxes = []
    for contour in contours[:MOST_CONTOURS]:
        corners, side = smallest_rectangle(contour)
        if side < LEAST_RECTANGLE or mean_inside(probabilities, corners) < LEAST_SCORE:
            continue
        corners, side = smallest_rectangle(grown(corners))
        if side < LEAST_RECTANGLE + 2:
            continue
        rows, columns = probabilities.shape
        corners[:, 0] = np.clip(np.round(corners[:, 0] / columns * width), 0, width)
        corners[:, 1] = np.clip(np.round(corners[:, 1] / rows * height), 0, height)
        box = clockwise(corners.astype(np.int32))
        box[:, 0] = np.clip(box[:, 0], 0, width - 1)
        box[:, 1] = np.clip(box[:, 1], 0, height - 1)
        if min(int(np.linalg.norm(box[0] - box[1])), int(np.linalg.norm(box[0] - box[3]))) > 3:
            boxes.append(box)
    return boxes


def smallest_rectangle(points):
    rectangle = cv2.minAreaRect(points)
    corners = np.array(sorted(cv2.boxPoints(rectangle), key=lambda corner: corner[0]))
    left = [0, 1] if corners[1][1] > corners[0][1] else [1, 0]
    right = [2, 3] if corners[3][1] > corners[2][1] else [3, 2]
    return corners[[left[0], right[0], right[1], left[1]]], min(rectangle[1])


def mean_inside(probabilities, corners):
    rows, columns = probabilities.shape
    left, right = (int(np.clip(side, 0, columns - 1))
                   for side in (np.floor(corners[:, 0].min()), np.ceil(corners[:, 0].max())))
    top, bottom = (int(np.clip(side, 0, rows - 1))
                   for side in (np.floor(corners[:, 1].min()), np.ceil(corners[:, 1].max())))
    mask = np.zeros((bottom - top + 1, right - left + 1), np.uint8)
    cv2.fillPoly(mask, [(corners - np.float32([left, top])).astype(np.int32)], 1)
    return cv2.mean(probabilities[top : bottom + 1, left : right + 1], mask)[0]


def grown(corners):
    polygon = Polygon(corners)
    offset = pyclipper.PyclipperOffset()
    offset.AddPath(corners, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    paths = offset.Execute(polygon.area * GROWTH / polygon.length)
    return np.array(paths, dtype=np.int32).reshape(-1, 1, 2)


def clockwise(corners):
    """The corners from the upper left one on."""
    by_column = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = by_column[:2], by_column[2:]
    left, right = (side[np.argsort(side[:, 1], kind="stable")] for side in (left, right))
    return np.array([left[0], right[0], right[1], left[1]], np.float32)


def reading_order(boxes):
    boxes = sorted(boxes, key=lambda box: (box[0][1], box[0][0]))
    for end in range(1, len(boxes)):
        for place in range(end, 0, -1):
            before, after = boxes[place - 1], boxes[place]
            if abs(after[0][1] - before[0][1]) >= 10 or after[0][0] >= before[0][0]:
                break
            boxes[place - 1], boxes[place] = after, before
    return boxes


def cut(image, box):
    side = lambda a, b: np.linalg.norm(box[a] - box[b])
    width, height = int(max(side(0, 1), side(2, 3))), int(max(side(0, 3), side(1, 2)))
    target = np.float32([[0, 0], [width, 0], [width, height], [0, height]])
    transform = cv2.getPerspectiveTransform(box, target)
    crop = cv2.warpPerspective(
        image, transform, (width, height), borderMode=cv2.BORDER_REPLICATE, flags=cv2.INTER_CUBIC
    )
    return np.rot90(crop) if height / width >= 1.5 else crop


def proportion(crop):
    return crop.shape[1] / crop.shape[0]


def batches(crops):
    """Indices of the crops, in groups of like proportions."""
    order = np.argsort([proportion(crop) for crop in crops], kind="stable")
    return [order[start : start + BATCH] for start in range(0, len(order), BATCH)]


def normalised(crop, width):
    scaled_width = min(math.ceil(LINE_HEIGHT * proportion(crop)), width)
    scaled = cv2.resize(crop, (scaled_width, LINE_HEIGHT)).astype(np.float32) / 255
    array = np.zeros((3, LINE_HEIGHT, width), np.float32)
    array[:, :, :scaled_width] = ((scaled - 0.5) / 0.5).transpose(2, 0, 1)
    return array


def crops_and_scales(picture, image):
    """(name, picture) of parts of a picture, at several sizes and turned."""
    height, width = image.shape[:2]
    name = picture.stem
    yield f"{name}-whole-150", cv2.resize(image, None, fx=1.5, fy=1.5, interpolation=cv2.INTER_CUBIC)
    yield f"{name}-whole-70", cv2.resize(image, None, fx=0.7, fy=0.7, interpolation=cv2.INTER_AREA)
    yield f"{name}-stretched", cv2.resize(image, (width * 2, height), interpolation=cv2.INTER_LINEAR)
    yield f"{name}-half-turn", cv2.rotate(image, cv2.ROTATE_180)
    yield f"{name}-quarter-turn", cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE)
    yield f"{name}-top", image[: height // 3]
    yield f"{name}-bottom", image[height // 2 :]
    yield f"{name}-left", image[:, : width // 2]
    yield f"{name}-strip", image[height // 16 : height // 16 + 30]
    yield f"{name}-inverted-300", cv2.resize(255 - image, None, fx=3, fy=3, interpolation=cv2.INTER_LINEAR)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("detector", type=pathlib.Path)
    parser.add_argument("classifier", type=pathlib.Path)
    parser.add_argument("recogniser", type=pathlib.Path)
    parser.add_argument("pictures", type=pathlib.Path, nargs="+")
    parser.add_argument("--crops", type=pathlib.Path, help="folder for crops and scales of the pictures; reads those")
    arguments = parser.parse_args()
    reader = Reader(arguments.detector, arguments.classifier, arguments.recogniser)
    pictures = {picture: cv2.imread(str(picture), cv2.IMREAD_COLOR) for picture in arguments.pictures}
    for picture, image in pictures.items():
        if image is None:
            parser.error(f"{picture} is not a picture")
    if arguments.crops:
        arguments.crops.mkdir(parents=True, exist_ok=True)
        parts = dict(part for item in pictures.items() for part in crops_and_scales(*item))
        pictures = {arguments.crops / f"{name}.png": image for name, image in parts.items()}
        for picture, image in pictures.items():
            cv2.imwrite(str(picture), image)
    lines = {picture.name: reader.read(image) for picture, image in pictures.items()}
    print(json.dumps(lines, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
