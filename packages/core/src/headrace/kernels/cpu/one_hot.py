"""Labels as vectors with one element set."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit

_FARTHEST = np.float64(2**31)


def class_numbers(labels: np.ndarray) -> np.ndarray:
    """Labels of any type as int32, 1-D, as C converts them: what is no such number is negative."""
    labels = labels.reshape(-1)
    if labels.dtype.kind == "f":
        near = np.abs(labels) < _FARTHEST
        return np.where(near, labels, -1).astype(np.int32)
    return labels.astype(np.int32)


@njit(nogil=True)
def set_classes(
    labels: np.ndarray,
    sizes: np.ndarray,
    inner: np.ndarray,
    classes: int,
    off: np.ndarray,
    on: np.ndarray,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Fill samples with ``off[0]``, and with ``on[0]`` where a label says.

    `labels`: int32: those of all samples, one sample after the other. `sizes`, `inner`: int64
    ``(samples,)``: how many labels a sample has, and how many follow one another in the output
    before the next class begins. `out`, `begins`: the output, flat, and the element with which each
    sample begins.
    """
    first = 0
    for k in range(len(sizes)):
        begin, step = begins[k], inner[k]
        out[begin : begin + sizes[k] * classes] = off[0]
        for i in range(sizes[k]):
            label = labels[first + i]
            if 0 <= label < classes:
                out[begin + (i // step * classes + label) * step + i % step] = on[0]
        first += sizes[k]
