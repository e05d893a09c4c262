"""`erase` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from headrace.errors import ShapeError
from tests.support.gpu.alike import check_alike
from tests.support.gpu.run_operator import run_gpu_operator

same = partial(check_alike, "erase", layout="HWC")

SHAPES = [(9, 21, 3), (1, 1, 3), (0, 5, 3)]


def images(dtype="uint8", shapes=SHAPES):
    return [(np.arange(np.prod(s)) % 90 + 1).reshape(s).astype(dtype) for s in shapes]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
def test_regions_of_constants(dtype):
    data = images(dtype)
    same(data)
    same(data, anchor=(1, 2), shape=(3, 40), fill_value=7)
    same(data, anchor=(0.1, 0.2, 0.5, 0.5), shape=(0.3, 0.3, 0.2, 1), normalized=True)
    same(data, anchor=(-1, 2), shape=(3, 4), fill_value=(1, 2, 3), axis_names="WC")
    same([data[0]] * 3, shape=(2, 2), fill_value=(1, 2, 3), centered_anchor=True)


def test_regions_by_sample():
    regions = [[1, 1], [0, 0, 2, 3, 1, 1], [0, 0]]
    anchors = [np.float32(each) for each in regions]
    shapes = [np.full(len(each), 2, np.float32) for each in regions]
    fills = [np.float32([k]) for k in range(3)]
    same(images(), anchor=anchors, shape=shapes, fill_value=fills)
    shapes[1] = np.float32([1])
    with pytest.raises(ShapeError, match=r"6 numbers and `shape` 1[^$]*sample 1"):
        run_gpu_operator("erase", images(), layout="HWC", anchor=anchors, shape=shapes)


def test_layouts():
    for layout, shape in (("CHW", (3, 5, 6)), ("FHWC", (2, 5, 6, 3)), ("W", (7,))):
        data = [np.ones(shape, np.uint8)] * 2
        count = len(layout.replace("C", ""))
        same(data, layout=layout, anchor=[1] * count, shape=[1] * count, fill_value=9)
