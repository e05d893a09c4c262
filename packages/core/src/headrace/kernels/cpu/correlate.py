"""Weighted sums of neighbourhoods, by OpenCV; small ones of bytes by a loop of its arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from headrace.kernels.cpu import correlate_loops
from headrace.kernels.cpu.bits import MAX_CHANNELS
from headrace.kernels.cpu.opencv import cv2
from headrace.kernels.cpu.rows import read_only

_TAKEN = {"u1", "u2", "i2", "f4"}
"""Element types of inputs and, if they are those of the inputs or float32, outputs of OpenCV."""


_SMALL = 49
"""Weights of a small filter: OpenCV multiplies spectra for large ones."""


def mirrored(position: int, extent: int, border: str) -> int:
    """Index of the element that stands at `position` of an axis, or -1 outside, where the border is
    constant.
    """
    if 0 <= position < extent:
        return position
    if border == "constant":
        return -1
    if border == "clamp":
        return min(max(position, 0), extent - 1)
    if border == "wrap":
        return position % extent
    if extent == 1:
        return 0
    period = 2 * extent - (2 if border == "reflect_101" else 0)
    position %= period
    return position if position < extent else period - position - (border == "reflect_1001")


@lru_cache(maxsize=1024)
def _positions(first: int, count: int, extent: int, border: str) -> np.ndarray:
    """Results of `mirrored` for so many positions from `first` on."""
    found = np.array([mirrored(first + k, extent, border) for k in range(count)], np.int64)
    found.flags.writeable = False
    return found


def correlate(
    data: np.ndarray,
    weights: np.ndarray,
    anchor: Sequence[int],
    border: str,
    fill: float,
    first: int,
    count: int,
    out: np.ndarray,
) -> None:
    """Fill `out` with sums of `data` times `weights`."""
    if out.size == 0:
        return
    if data.dtype.str[1:] not in _TAKEN:
        single = np.empty(out.shape, np.float32)
        correlate(data.astype(np.float32), weights, anchor, border, fill, first, count, single)
        if out.dtype.kind == "i":
            np.clip(np.rint(single, out=single), -128, 127, out=single)
        with np.errstate(over="ignore"):
            np.copyto(out, single, casting="unsafe")
        return
    channels = math.prod(data.shape[first + count :])
    extents = data.shape[first : first + count]
    planes = np.ascontiguousarray(data).reshape(-1, *extents, channels)
    targets = out.reshape(-1, *out.shape[first : first + count], channels)
    weights = np.ascontiguousarray(weights)
    for plane, target in zip(planes, targets, strict=True):
        if count == 3:
            _volume(plane, weights, anchor, border, fill, target)
        elif (
            data.dtype == out.dtype == np.uint8
            and weights.size <= _SMALL
            and (border != "constant" or fill == 0)
        ):
            _bytes(plane, weights, anchor, border, target)
        else:
            _image(plane, weights, anchor, border, fill, target)


def _bytes(
    data: np.ndarray, weights: np.ndarray, anchor: Sequence[int], border: str, out: np.ndarray
) -> None:
    """`_image` of bytes, with a small filter; constants outside are zeros."""
    height, width, channels = data.shape
    (y, x), (down, across) = anchor, weights.shape
    correlate_loops.correlate_bytes(
        read_only(data.reshape(-1)),
        width * channels,
        _positions(-y, out.shape[0] + down - 1, height, border),
        _positions(-x, out.shape[1] + across - 1, width, border),
        x,
        channels,
        read_only(weights),
        out.reshape(out.shape[0], -1),
    )


def _image(
    data: np.ndarray,
    weights: np.ndarray,
    anchor: Sequence[int],
    border: str,
    fill: float,
    out: np.ndarray,
) -> None:
    cv = cv2()
    kinds = {
        "reflect_101": cv.BORDER_REFLECT_101,
        "reflect_1001": cv.BORDER_REFLECT,
        "clamp": cv.BORDER_REPLICATE,
        "wrap": cv.BORDER_WRAP,
        "constant": cv.BORDER_CONSTANT,
    }
    depth = cv.CV_32F if out.dtype == np.float32 else -1
    kind, (y, x) = kinds[border], anchor
    pads = border == "wrap" or (border == "constant" and fill != 0)
    limit = 4 if pads else MAX_CHANNELS
    if data.shape[2] > limit:
        for k in range(0, data.shape[2], limit):
            part = np.ascontiguousarray(data[..., k : k + limit])
            made = np.empty((*out.shape[:2], part.shape[2]), out.dtype)
            _image(part, weights, anchor, border, fill, made)
            out[..., k : k + limit] = made
        return
    top = left = 0
    if pads:  # the filter itself cannot
        top, left = y, x
        bottom = max(out.shape[0] - 1 + weights.shape[0] - y - data.shape[0], 0)
        right = max(out.shape[1] - 1 + weights.shape[1] - x - data.shape[1], 0)
        data = cv.copyMakeBorder(data, top, bottom, left, right, kind, value=[fill] * 4)
        kind = cv.BORDER_REPLICATE
    same = data.shape == out.shape and top == left == 0
    made = cv.filter2D(
        data, depth, weights, out if same else None, anchor=(x, y), delta=0, borderType=kind
    )
    if same and (made is out or np.shares_memory(made, out)):
        return
    made = made.reshape(*made.shape[:2], -1)
    np.copyto(out, made[top : top + out.shape[0], left : left + out.shape[1]])


def _volume(
    data: np.ndarray,
    weights: np.ndarray,
    anchor: Sequence[int],
    border: str,
    fill: float,
    out: np.ndarray,
) -> None:
    """Slice by slice: a sum of images that are filtered by the slices of the filter."""
    depth = data.shape[0]
    single = np.empty(out.shape[1:], np.float32)
    total = np.empty(out.shape[1:], np.float32)
    for z in range(out.shape[0]):
        total[:] = 0
        for k, own in enumerate(weights):
            at = mirrored(z + k - anchor[0], depth, border)
            if at < 0:
                total += np.float32(fill) * own.sum()
                continue
            _image(data[at], own, anchor[1:], border, fill, single)
            total += single
        if out.dtype == np.float32:
            out[z] = total
        else:
            limits = np.iinfo(out.dtype)
            np.copyto(out[z], np.clip(np.rint(total), limits.min, limits.max), casting="unsafe")
