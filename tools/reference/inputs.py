"""Inputs of the reference cases: seeded numbers, pictures, sound.

Everything here is deterministic: the numbers come from a fixed integer generator, so the same case has the same bytes on
every machine and with every version of numpy.
"""
import wave
import zlib

import numpy as np
from PIL import Image

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
UNIT = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def words(count, label):
    """`count` 64-bit numbers that depend only on `label` (splitmix64)."""
    with np.errstate(over="ignore"):
        golden = np.uint64(0x9E3779B97F4A7C15)
        z = (np.arange(1, count + 1, dtype=np.uint64) + (np.uint64(zlib.crc32(label.encode())) << np.uint64(20))) * golden
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(shape, label, low=0.0, high=1.0):
    """Evenly spread float32 numbers in [low, high)."""
    unit = (words(int(np.prod(shape)), label) >> np.uint64(40)).astype(np.float64) / float(1 << 24)
    return (low + (high - low) * unit).astype(np.float32).reshape(shape)


def integers(shape, label, low, high, dtype=np.int64):
    """Evenly spread integers in [low, high)."""
    return (words(int(np.prod(shape)), label) % np.uint64(high - low) + np.uint64(low)).astype(dtype).reshape(shape)


def picture(path, size, normal=UNIT, crop=None, order="nchw", bgr=False):
    """A picture as float32 [1,3,H,W] (or NHWC): cropped, resized to size = (height, width), scaled to 0..1, normalised."""
    image = Image.open(path).convert("RGB")
    if crop:
        image = image.crop(crop)
    image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    mean, deviation = (np.array(part, dtype=np.float64) for part in normal)
    pixels = ((np.asarray(image, dtype=np.float64) / 255.0 - mean) / deviation).astype(np.float32)
    if bgr:
        pixels = pixels[..., ::-1]
    if order == "nchw":
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels[None])


def sound(path):
    """A 16-bit mono WAVE file as float32 in -1..1."""
    with wave.open(str(path)) as recording:
        frames = recording.readframes(recording.getnframes())
    return np.frombuffer(frames, dtype="<i2").astype(np.float32) / np.float32(32768.0)
