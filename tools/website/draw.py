"""Pictures of what operators return, for pages that are light or dark."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

_COLORS = [(255, 87, 34), (0, 150, 136), (255, 193, 7), (63, 81, 181)]
_INK = "#808080"


def encoded(picture: np.ndarray) -> bytes:
    """PNG of an RGB picture."""
    return cv2.imencode(".png", picture[..., ::-1])[1].tobytes()


def image(sample: np.ndarray, layout: str) -> np.ndarray | None:
    """An image, or a strip of frames or planes, as RGB of bytes; None for what is neither."""
    if not layout and sample.ndim == 3 and sample.dtype == np.uint8:
        layout = "HWC"
    if layout == "HW":
        return _rgb(_levels(sample)[..., None])
    if layout in ("HWC", "WHC") and sample.shape[2] in (1, 3):
        return _rgb(_levels(sample))
    if layout == "CHW":
        return strip([_rgb(plane[..., None]) for plane in _levels(sample)])
    if layout == "FHWC":
        return strip([_rgb(frame) for frame in _levels(sample)])
    return None


def strip(pictures: list[np.ndarray]) -> np.ndarray:
    """Pictures beside one another."""
    height = max(p.shape[0] for p in pictures)
    gap = np.full((height, 4, 3), 128, np.uint8)
    row = []
    for picture in pictures:
        below = ((0, height - picture.shape[0]), (0, 0), (0, 0))
        row += [gap, np.pad(picture, below, constant_values=128)]
    return np.concatenate(row[1:], axis=1)


def boxes(picture: np.ndarray, found: np.ndarray) -> np.ndarray:
    """`picture`, enlarged, with boxes ltrb from 0 to 1."""
    picture = _twice(picture)
    height, width = picture.shape[:2]
    for k, (left, top, right, bottom) in enumerate(found.reshape(-1, 4)):
        start = (round(float(left) * width) + 1, round(float(top) * height) + 1)
        end = (round(float(right) * width) - 2, round(float(bottom) * height) - 2)
        cv2.rectangle(picture, start, end, _COLORS[k % len(_COLORS)], 3)
    return picture


def points(picture: np.ndarray, found: np.ndarray) -> np.ndarray:
    """`picture`, enlarged, with points (x, y) in pixels."""
    picture = _twice(picture)
    for k, (x, y) in enumerate(found.reshape(-1, 2)):
        place = (round(2 * float(x)), round(2 * float(y)))
        cv2.circle(picture, place, 6, _COLORS[k % len(_COLORS)], -1, cv2.LINE_AA)
    return picture


def flow(sample: np.ndarray) -> np.ndarray:
    """Motion `FHWC` of two channels: hue is its direction, brightness its length."""
    length, angle = cv2.cartToPolar(sample[..., 0].ravel(), sample[..., 1].ravel())
    hsv = np.full((*sample.shape[:3], 3), 255, np.uint8)
    hsv[..., 0] = (angle.reshape(sample.shape[:3]) * 90 / np.pi).astype(np.uint8)
    scale = 255 / max(float(np.percentile(length, 99)), 1e-6)
    hsv[..., 2] = np.clip(length * scale, 0, 255).reshape(sample.shape[:3]).astype(np.uint8)
    return strip([cv2.cvtColor(frame, cv2.COLOR_HSV2RGB) for frame in hsv])


def spectrogram(sample: np.ndarray, layout: str) -> bytes:
    """Time to the right, frequency or number of the filter upwards."""
    return _plot(
        lambda axes: axes.imshow(
            sample if layout == "ft" else sample.T,
            origin="lower",
            aspect="auto",
            interpolation="nearest",
        ),
        "window",
        "",
    )


def signal(sample: np.ndarray) -> bytes:
    """Values over their numbers."""
    return _plot(lambda axes: axes.plot(sample, linewidth=0.5, color="#009688"), "element", "")


def histogram(sample: np.ndarray) -> bytes:
    """How often each value comes."""
    values = sample.ravel()
    whole = len(np.unique(values)) < 12
    bins = sorted({b for v in np.unique(values) for b in (v - 0.2, v + 0.2)}) if whole else 50
    return _plot(lambda axes: axes.hist(values, bins=bins, color="#009688"), "value", "count")


def _plot(drawn: Callable[[Any], object], x: str, y: str) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 2.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    drawn(axes)
    axes.set_xlabel(x, color=_INK)
    axes.set_ylabel(y, color=_INK)
    axes.tick_params(colors=_INK)
    for side in axes.spines.values():
        side.set_color(_INK)
    file = io.BytesIO()
    figure.savefig(file, format="png", transparent=True)
    return file.getvalue()


def _levels(sample: np.ndarray) -> np.ndarray:
    if sample.dtype == np.uint8:
        return sample if sample.max(initial=0) > 1 else sample * np.uint8(255)
    low, high = float(sample.min()), float(sample.max())
    return np.uint8((sample.astype(np.float64) - low) * (255 / max(high - low, 1e-6)))


def _rgb(picture: np.ndarray) -> np.ndarray:
    return np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture


def _twice(picture: np.ndarray) -> np.ndarray:
    return cv2.resize(picture, None, fx=2, fy=2, interpolation=cv2.INTER_LINEAR)
