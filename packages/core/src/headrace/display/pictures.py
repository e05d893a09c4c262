"""One sample as pixels: images, sequences of frames, signals, spectrograms."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu.opencv import cv2

_COLORS = (1, 3, 4)
_INK = np.array([40, 80, 150], np.uint8)
_PAPER = 246
_SQUARE = 8
"""Pixels of a square of what shows through transparent images."""
_FEW_NUMBERS = 8
"""Elements of an array that is written below a picture."""


class Kind(enum.Enum):
    """Form in which samples are shown."""

    FRAMES = "images"
    SIGNAL = "signals"
    SPECTROGRAM = "spectrograms"
    NUMBERS = "numbers"
    NOTHING = "nothing that can be seen"


class ValueRange(NamedTuple):
    """Values shown as black and white; the same for all samples of an output."""

    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[np.ndarray], kind: Kind) -> ValueRange:
        """For images 0 .. 1 or 0 .. 255, if the values are within these, else their own range."""
        dtype = samples[0].dtype
        if dtype == np.bool_ or (dtype == np.uint8 and kind is Kind.FRAMES):
            return cls(0, 1 if dtype == np.bool_ else 255)
        finite = [sample[np.isfinite(sample)] for sample in samples]
        low = min((float(s.min()) for s in finite if s.size), default=0.0)
        high = max((float(s.max()) for s in finite if s.size), default=1.0)
        if kind is Kind.SIGNAL:
            high = max(abs(low), abs(high))
            return cls(-high, high)
        if kind is Kind.FRAMES and low >= 0 and high <= 255:
            return cls(0, 1 if dtype.kind == "f" and high <= 1 else 255)
        return cls(low, high)

    def levels(self, array: np.ndarray) -> np.ndarray:
        """`array` as uint8, from `low` to `high`."""
        if array.dtype == np.uint8 and self == (0, 255):
            return array
        span = self.high - self.low
        with np.errstate(invalid="ignore"):
            levels = (array.astype(np.float32) - self.low) * (255 / span if span else 1)
        levels = np.nan_to_num(levels, nan=0.0, posinf=255.0, neginf=0.0)
        return np.asarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8))


def kind_and_layout(sample: np.ndarray, layout: str) -> tuple[Kind, str]:
    """Return the form in which a sample is shown, and its layout, guessed from the shape if
    absent.
    """
    if "f" in layout and sample.ndim == 2:
        return Kind.SPECTROGRAM, layout
    if layout[:1] == "t" and sample.ndim <= 2:
        return Kind.SIGNAL, layout
    if "H" in layout and "W" in layout and set(layout) <= set("NFDHWC"):
        return Kind.FRAMES, layout
    if sample.ndim < 2:
        few = sample.size <= _FEW_NUMBERS
        bytes_ = sample.dtype == np.uint8
        return Kind.NUMBERS if few else Kind.NOTHING if bytes_ else Kind.SIGNAL, "t"
    if sample.size <= _FEW_NUMBERS:
        return Kind.NUMBERS, layout
    guess = _guessed_layout(sample)
    return Kind.SIGNAL if guess == "tc" else Kind.FRAMES if guess else Kind.NOTHING, guess


def _guessed_layout(sample: np.ndarray) -> str:
    shape = sample.shape
    if sample.ndim == 2:
        many = shape[1] <= _FEW_NUMBERS and shape[0] >= 64 * shape[1]
        return "tc" if many and sample.dtype != np.uint8 else "HW"
    if sample.ndim == 3:
        return _with_channels(shape, ("HWC", "CHW")) or "FHW"
    if sample.ndim == 4:
        return _with_channels(shape, ("FHWC", "FCHW", "CFHW"))
    return ""


def _with_channels(shape: tuple[int, ...], layouts: Sequence[str]) -> str:
    """The first of `layouts` whose axis C has the extent of colours; rarely that is 4."""
    for extents in ((1, 3), (4,)):
        for layout in layouts:
            if shape[layout.index("C")] in extents:
                return layout
    return ""


def frames(sample: np.ndarray, layout: str, scale: ValueRange, most: int) -> list[np.ndarray]:
    """RGB pictures, uint8 ``(height, width, 3)``: one, or the first frames, slices or channels.

    What has neither one, three nor four channels is shown channel by channel.
    """
    order = [axis for axis in "NFDHWC" if axis in layout]
    planes = sample.transpose([layout.index(axis) for axis in order])
    if "C" in layout and planes.shape[-1] not in _COLORS:
        planes = np.moveaxis(planes, -1, -3)[..., None]
    elif "C" not in layout:
        planes = planes[..., None]
    pictures = planes.reshape(math.prod(planes.shape[:-3]), *planes.shape[-3:])
    return [_rgb(scale.levels(picture)) for picture in pictures[:most]]


def _rgb(image: np.ndarray) -> np.ndarray:
    channels = image.shape[-1]
    if channels != 4:
        return np.broadcast_to(image, (*image.shape[:2], 3)) if channels == 1 else image
    rows, columns = np.indices(image.shape[:2]) // _SQUARE
    backdrop = np.where((rows + columns) % 2, 204, 255)[..., None]
    alpha = image[..., 3:] / 255
    return np.rint(image[..., :3] * alpha + backdrop * (1 - alpha)).astype(np.uint8)


def spectrogram(sample: np.ndarray, layout: str, scale: ValueRange) -> np.ndarray:
    """RGB, uint8: time to the right, low frequencies at the bottom, bright where there is much."""
    rows = sample if layout.index("f") == 0 else sample.T
    levels = np.ascontiguousarray(scale.levels(rows[::-1]))
    return np.asarray(cv2().applyColorMap(levels, cv2().COLORMAP_MAGMA)[..., ::-1])


def signal(sample: np.ndarray, scale: ValueRange, width: int, height: int) -> np.ndarray:
    """RGB, uint8 ``(height, width, 3)``: the envelope of each channel, one below the other."""
    channels = sample.reshape(len(sample), -1).T
    parts = np.array_split(np.arange(height), len(channels))
    return np.concatenate(
        [_envelope(c, scale, width, len(p)) for c, p in zip(channels, parts, strict=True)]
    )


def _envelope(values: np.ndarray, scale: ValueRange, width: int, height: int) -> np.ndarray:
    picture = np.full((height, width, 3), _PAPER, np.uint8)
    picture[height // 2] = 220
    if not values.size:
        return picture
    begins = np.arange(width) * len(values) // width
    levels = np.nan_to_num(values.astype(np.float32))
    top, bottom = np.maximum.reduceat(levels, begins), np.minimum.reduceat(levels, begins)
    unit = (height - 1) / ((scale.high - scale.low) or 1)
    first = np.floor((scale.high - top) * unit)
    last = np.ceil((scale.high - bottom) * unit)
    rows = np.arange(height)[:, None]
    picture[(rows >= first) & (rows <= last)] = _INK
    return picture


def fitted(picture: np.ndarray, size: int, longest: int = 0) -> np.ndarray:
    """`picture` with its longer side at most `size`; small ones are enlarged by whole factors."""
    height, width = picture.shape[:2]
    longer = max(height, width, longest)
    if not min(height, width):
        return np.full((1, 1, 3), _PAPER, np.uint8)
    if longer > size:
        extents = (max(1, width * size // longer), max(1, height * size // longer))
        whole = np.ascontiguousarray(picture)
        return np.asarray(cv2().resize(whole, extents, interpolation=cv2().INTER_AREA))
    factor = size // longer
    return picture.repeat(factor, axis=0).repeat(factor, axis=1)
