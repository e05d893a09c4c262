"""Targets of default boxes: matching by intersection over union."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit

_FORCED = np.float32(2.0)
_NONE = np.float32(-1.0)


@njit(nogil=True, error_model="numpy")
def encode(
    boxes: np.ndarray,
    labels: np.ndarray,
    anchors: np.ndarray,
    encoded: np.ndarray,
    criteria: np.float32,
    offset: bool,
    scale: np.float32,
    means: np.ndarray,
    stds: np.ndarray,
    out: np.ndarray,
    classes: np.ndarray,
) -> None:
    """Fill `out` and `classes` with the boxes that anchors stand for, and their labels.

    `boxes`, `anchors`: float32 ``(n, 4)``: left, top, right, bottom. `labels`: int32 ``(n,)``.
    `encoded`: float32 ``(anchors, 4)``: middles, widths and heights of the anchors.
    """
    count = len(anchors)
    overlaps = np.full(count, _NONE)
    matches = np.zeros(count, np.int32)
    for b in range(len(boxes)):
        left, top, right, bottom = boxes[b]
        area = (right - left) * (bottom - top)
        best, largest = -1, _NONE
        for a in range(count):
            width = min(right, anchors[a, 2]) - max(left, anchors[a, 0])
            height = min(bottom, anchors[a, 3]) - max(top, anchors[a, 1])
            common = max(width, np.float32(0)) * max(height, np.float32(0))
            own = (anchors[a, 2] - anchors[a, 0]) * (anchors[a, 3] - anchors[a, 1])
            overlap = common / (area + own - common)
            # Of equal ones, the last counts.
            if overlap >= largest:
                best, largest = a, overlap
            if overlap >= overlaps[a]:
                overlaps[a], matches[a] = overlap, b
        if best >= 0:
            overlaps[best], matches[best] = _FORCED, b
    for a in range(count):
        if not overlaps[a] > criteria:
            classes[a] = 0
            for k in range(4):
                out[a, k] = np.float32(0) if offset else encoded[a, k]
            continue
        left, top, right, bottom = boxes[matches[a]]
        x, y = (left + right) * np.float32(0.5), (top + bottom) * np.float32(0.5)
        w, h = right - left, bottom - top
        classes[a] = labels[matches[a]]
        if offset:
            wide, high = encoded[a, 2] * scale, encoded[a, 3] * scale
            x = (x * scale - encoded[a, 0] * scale) / wide
            y = (y * scale - encoded[a, 1] * scale) / high
            w, h = np.log(w * scale / wide), np.log(h * scale / high)
            x, y = (x - means[0]) / stds[0], (y - means[1]) / stds[1]
            w, h = (w - means[2]) / stds[2], (h - means[3]) / stds[3]
        out[a, 0], out[a, 1], out[a, 2], out[a, 3] = x, y, w, h
