"""`experimental.dilate`, `erode` and `median_blur` on the GPU against the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gpu.alike import check_alike, check_same_error

_rng = np.random.default_rng(0)


def images(dtype, *shapes):
    return [
        (_rng.random(shape) * 200 - (np.dtype(dtype).kind != "u") * 90).astype(dtype)
        for shape in shapes
    ]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_largest_and_smallest(dtype):
    rows = images(dtype, (20, 31, 3), (9, 14, 3), (1, 1, 1), (5, 7, 6), (0, 4, 3))
    sizes = [np.int32([1 + k, 5 - k]) for k in range(5)]
    for name in ("experimental.dilate", "experimental.erode"):
        check_alike(name, rows, layout="HWC")
        check_alike(name, rows, layout="HWC", mask_size=sizes, anchor=0, border_mode="wrap")
    planes = [row.transpose(2, 0, 1).copy() for row in rows]
    for border in ("replicate", "reflect", "reflect_101", "wrap"):
        options = {"mask_size": [6, 3], "anchor": [5, 1], "iterations": 2, "border_mode": border}
        check_alike("experimental.dilate", planes, layout="CHW", **options)
    sequences = images(dtype, (3, 8, 9, 2), (1, 4, 5, 2))
    frames = [np.int32([[3 + k, 2] for k in range(len(s))]) for s in sequences]
    check_alike(
        "experimental.erode",
        sequences,
        layout="FHWC",
        mask_size=frames,
        arg_layouts={"mask_size": "F"},
    )
    wrong = [np.int32([3, k]) for k in (1, 0, 3, 3, 3)]
    check_same_error("experimental.dilate", rows, layout="HWC", mask_size=wrong, sample=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float32])
def test_medians(dtype):
    rows = images(dtype, (20, 31, 3), (9, 14, 3), (1, 1, 1), (5, 7, 6), (0, 4, 3))
    windows = [np.int32([1 + 2 * k, 5]) for k in range(5)]
    check_alike("experimental.median_blur", rows, layout="HWC")
    check_alike("experimental.median_blur", rows, layout="HWC", window_size=windows)
    planes = [row.transpose(2, 0, 1).copy() for row in rows]
    check_alike("experimental.median_blur", planes, layout="CHW", window_size=[3, 1])
    sequences = images(dtype, (3, 8, 9, 2), (1, 4, 5, 2))
    check_alike("experimental.median_blur", sequences, layout="FHWC", window_size=5)
    wrong = [np.int32([3, 3 - (k == 2)]) for k in range(5)]
    check_same_error("experimental.median_blur", rows, layout="HWC", window_size=wrong, sample=2)
