"""Which inputs each model is held to: `cases(model_id, media)` gives (case name, feed) pairs, or a `Stream`.

A feed maps input names to arrays. A `Stream` is a stateful case: the arrays of `steps` have a leading axis, one entry a
step; those of `start` hold for the first step only and are then replaced by the outputs that `carry` names.
"""
from dataclasses import dataclass, field

import numpy as np

from inputs import HALF, IMAGENET, integers, picture, sound, uniform


@dataclass
class Stream:
    """A stateful case: see the module's text."""

    steps: dict
    start: dict
    carry: dict
    fixed: dict = field(default_factory=dict)

    def length(self):
        return len(next(iter(self.steps.values())))


def classifier(name):
    def build(model, media):
        yield "random", {name: uniform((1, 3, 224, 224), model, -2, 2)}
        yield "batch", {name: uniform((3, 3, 224, 224), model + "/batch", -2, 2)}
        yield "cat", {name: picture(media / "chelsea.png", (224, 224), IMAGENET)}
        yield "coffee", {name: picture(media / "coffee.png", (224, 224), IMAGENET)}
    return build


def yolo(size, pictures):
    def build(model, media):
        yield "random", {"images": uniform((1, 3, size, size), model)}
        for case, file in pictures.items():
            yield case, {"images": picture(media / file, (size, size))}
    return build


def picodet(model, media):
    yield "random", {"image": uniform((1, 3, 800, 608), model, -2, 2)}
    yield "page", {"image": picture(media / "page.png", (800, 608), IMAGENET)}


def text_detector(model, media):
    yield "random", {"x": uniform((1, 3, 160, 224), model, -1, 1)}
    yield "size", {"x": uniform((2, 3, 96, 64), model + "/size", -1, 1)}
    yield "page", {"x": picture(media / "page.png", (192, 384), HALF, bgr=True)}
    yield "text", {"x": picture(media / "text.png", (736, 1920), HALF, bgr=True)}


def text_recogniser(model, media):
    yield "random", {"x": uniform((1, 3, 48, 320), model, -1, 1)}
    yield "size", {"x": uniform((2, 3, 48, 200), model + "/size", -1, 1)}
    yield "line", {"x": picture(media / "page.png", (48, 560), HALF, crop=(4, 10, 296, 35), bgr=True)}


def text_orientation(model, media):
    yield "random", {"x": uniform((1, 3, 48, 192), model, -1, 1)}
    yield "batch", {"x": uniform((4, 3, 48, 192), model + "/batch", -1, 1)}
    yield "line", {"x": picture(media / "page.png", (48, 192), HALF, crop=(4, 10, 296, 35), bgr=True)}


def mtcnn(name, size):
    def build(model, media):
        boxes = [(160, 40, 300, 180), (200, 60, 280, 140), (0, 300, 120, 420)]
        height, width = (60, 80) if size is None else (size, size)
        yield "random", {name: uniform((3, height, width, 3), model, -1, 1)}
        if size is None:
            yield "face", {name: picture(media / "astronaut.png", (128, 128), HALF, order="nhwc")}
        else:
            faces = [picture(media / "astronaut.png", (size, size), HALF, crop=box, order="nhwc") for box in boxes]
            yield "face", {name: np.concatenate(faces)}
    return build


def importance(model, media):
    yield "random", {"input_image": uniform((1, 3, 224, 224), model, -2, 2)}
    yield "astronaut", {"input_image": picture(media / "astronaut.png", (224, 224), IMAGENET)}


# "This is a test of the sentence encoder." and "The weather is lovely today." in BERT's uncased vocabulary.
SENTENCES = [[101, 2023, 2003, 1037, 3231, 1997, 1996, 6251, 4372, 16044, 2099, 1012, 102],
             [101, 1996, 4633, 2003, 8403, 2651, 1012, 102]]


def sentences(model, _media):
    ids = integers((1, 16), model, 1000, 30000)
    yield "random", {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    width = max(map(len, SENTENCES))
    ids = np.array([row + [0] * (width - len(row)) for row in SENTENCES], dtype=np.int64)
    mask = (ids != 0).astype(np.int64)
    yield "padded", {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def magika(model, media):
    yield "random", {"bytes": integers((1, 2048), model, 0, 257, np.int32)}
    contents = (media / "page.png").read_bytes(), (media / "bus.jpg").read_bytes(), b"#!/bin/sh\necho hello\n"
    rows = [list(c[:1024]) + [256] * max(0, 1024 - len(c)) + [256] * max(0, 1024 - len(c)) + list(c[-1024:]) for c in contents]
    yield "files", {"bytes": np.array(rows, dtype=np.int32)}


def chinese_tagger(model, _media):
    yield "random", {"token_ids": integers((1, 12), model, 1, 5000), "length": np.array([12], dtype=np.int64)}
    yield "long", {"token_ids": integers((1, 40), model + "/long", 1, 5000), "length": np.array([40], dtype=np.int64)}


def piper(model, _media):
    # Both noise scales are zero: the model draws random numbers and multiplies them by these.
    for case, length in (("random", 24), ("short", 9)):
        ids = integers((1, length), model + case, 1, 100)
        yield case, {"input": ids, "input_lengths": np.array([length], dtype=np.int64), "scales": np.array([0, 1, 0], dtype=np.float32)}


def notes(model, media):
    name = "serving_default_input_2:0"
    yield "random", {name: uniform((1, 43844, 1), model, -0.5, 0.5)}
    yield "speech", {name: sound(media / "arctic_a0007.wav")[:43844].reshape(1, 43844, 1)}


def mel(model, media):
    yield "random", {"input": uniform((1, 16000), model, -20000, 20000)}
    yield "speech", {"input": sound(media / "arctic_a0007.wav")[None, :40000] * np.float32(32768)}


def embedding(model, _media):
    yield "random", {"input_1": uniform((1, 76, 32, 1), model, -2, 6)}
    yield "batch", {"input_1": uniform((5, 76, 32, 1), model + "/batch", -2, 6)}


def wake_word(model, _media):
    yield "random", {"x.1": uniform((1, 16, 96), model, -20, 20)}


def speech_chunks(media, context=64, chunk=512):
    """The recording as overlapping rows: each chunk after the last `context` samples of the one before it."""
    samples = sound(media / "arctic_a0007.wav")
    samples = np.concatenate([np.zeros(context, dtype=np.float32), samples[: len(samples) // chunk * chunk]])
    return np.stack([samples[i : i + context + chunk] for i in range(0, len(samples) - context, chunk)])


def voice(with_rate):
    def build(_model, media):
        state = {"state": np.zeros((2, 1, 128), dtype=np.float32)}
        rate = {"sr": np.array(16000, dtype=np.int64)} if with_rate else {}
        rows = speech_chunks(media)[:, None, :]
        yield "stream", Stream({"input": rows}, state, {"stateN": "state"}, rate)
        if with_rate:
            # The branch for 8 kHz has its own weights and sizes: 32 samples of context and chunks of 256.
            rows = speech_chunks(media, 32, 256)[:40, None, :]
            yield "stream_8k", Stream({"input": rows}, state, {"stateN": "state"}, {"sr": np.array(8000, dtype=np.int64)})
    return build


def voice_sequence(_model, media):
    zero = np.zeros((1, 1, 128), dtype=np.float32)
    rows = speech_chunks(media)
    yield "whole", {"input": rows, "h": zero, "c": zero}
    blocks = rows[: len(rows) // 10 * 10].reshape(-1, 10, rows.shape[1])
    yield "stream", Stream({"input": blocks}, {"h": zero, "c": zero}, {"hn": "h", "cn": "c"})


CASES = {
    "basic_pitch": notes, "lac_gru": chinese_tagger, "magika": magika,
    "minilm_dynq": sentences, "minilm_fp32": sentences, "minilm_int8": sentences,
    "mobilenet_v2": classifier("input"), "mobilenet_v2_qdq": classifier("input"), "mobilenet_v2_qop": classifier("input"),
    "mobilenet_v3_small": classifier("input"), "resnet50": classifier("input"), "resnet50_qdq": classifier("input"),
    "mtcnn_pnet": mtcnn("input_1", None), "mtcnn_rnet": mtcnn("input_2", 24), "mtcnn_onet": mtcnn("input_3", 48),
    "oww_mel": mel, "oww_embed": embedding, "oww_jarvis": wake_word, "piper_joe": piper,
    "picodet_cdla": picodet, "ppocr2_cls": text_orientation, "ppocr4_det": text_detector, "ppocr4_rec": text_recogniser,
    "silero_vad": voice(True), "silero_vad_noif": voice(True), "silero_vad_half": voice(False), "silero_vad_seq": voice_sequence,
    "vit_s_focus": importance,
    "yolov5s": yolo(640, {"bus": "bus.jpg"}), "yolov5s_qdq": yolo(640, {"bus": "bus.jpg"}), "yolov8n": yolo(640, {"bus": "bus.jpg"}),
    "yolov8n_doclaynet": yolo(1024, {"page": "page.png"}),
}
