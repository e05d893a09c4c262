"""`filter` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

BORDERS = ["reflect_101", "reflect_1001", "clamp", "wrap", "constant"]
SHAPES = [(9, 21, 3), (1, 1, 3), (2, 3, 3), (0, 5, 3)]


def noise(*shape, dtype="uint8"):
    return (np.random.default_rng(len(shape)).random(shape) * 200).astype(dtype)


def weights(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def same(*inputs, layout="HWC", **arguments):
    layouts = (layout, *("",) * (len(inputs) - 1))
    layouts = arguments.pop("layouts", layouts)
    found = run_gpu_operator("filter", *inputs, layout=layouts, **arguments)
    expected = run_cpu_operator_on_batch("filter", *inputs, layout=layouts, **arguments)
    for got, wanted in zip(found, expected, strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        if got.dtype.kind == "f":
            tolerance = 1e-2 if got.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * 200)
        else:
            difference = np.abs(got.astype(int) - wanted)
            assert difference.max(initial=0) <= 1
            assert np.count_nonzero(difference) <= 0.01 * difference.size


def test_borders_modes_and_anchors():
    images, filters = [noise(*s) for s in SHAPES], [weights(2, 3)] * 4
    for border in BORDERS:
        same(images, filters, border=border)
    same(images, filters, [np.uint8(7)] * 4, border="constant")
    same(images, filters, anchor=[np.int32(a) for a in ([0, 0], [1, 2], [1, 0], [0, 1])])
    own = [weights(*s) for s in ((3, 3), (2, 1), (1, 3), (1, 1))]
    same(images[:1] * 4, own, mode="valid")


def test_windows_inside_of_images_and_at_their_borders():
    images = [noise(64, 40, 3), noise(5, 900, 1)]
    for border in ("reflect_101", "constant"):
        same(images, [weights(5, 5)] * 2, border=border)
    same(images, [weights(3, 4)] * 2, mode="valid")


def test_filters_larger_than_data():
    for border in BORDERS:
        same([noise(3, 2, 1), noise(1, 1, 1)], [weights(9, 7)] * 2, border=border)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32"])
def test_element_types(dtype):
    data, filters = [noise(5, 7, dtype=dtype)], [weights(3, 3)]
    same(data, filters, layout="HW")
    same(data, filters, layout="HW", dtype=DALIDataType.FLOAT)


@pytest.mark.parametrize(
    ("layout", "shape", "window"),
    [
        ("CHW", (3, 6, 7), (3, 3)),
        ("FHWC", (2, 6, 7, 3), (3, 3)),
        ("DHW", (4, 6, 7), (3, 2, 3)),
        ("DHWC", (4, 6, 7, 2), (3, 2, 3)),
        ("FCDHW", (2, 2, 3, 4, 5), (2, 2, 2)),
    ],
)
def test_layouts(layout, shape, window):
    for border in ("reflect_101", "constant"):
        same([noise(*shape)] * 2, [weights(*window)] * 2, layout=layout, border=border)


def test_a_filter_for_each_frame():
    data, filters = [noise(2, 6, 7, 3), noise(3, 4, 5, 3)], [weights(2, 3, 3), weights(3, 2, 3)]
    same(data, filters, layouts=("FHWC", "FHW"))
    anchors = [np.int32([[0, 0], [1, 1]]), np.int32([[0, 1]] * 3)]
    same(data, filters, layouts=("FHWC", "FHW"), anchor=anchors, arg_layouts={"anchor": "F"})
