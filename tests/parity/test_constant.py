"""Constants and filled tensors against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity
from tests.support.graph_text import graph_of

TYPES = (
    *("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"),
    *("FLOAT16", "FLOAT", "BOOL"),
)
FEED = [np.zeros((2, 3), np.uint8)] * 2


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.parametrize("dtype", TYPES)
def test_conversion(dtype):
    whole = [300, -1, 0, 2**31, -(2**31) - 5, 2**40, 127, -128]
    real = [300.0, -1, 0, 1.5, 2.5, -2.5, 0.4, -0.5, 0.5, 70000]

    def graph(lib, _):
        kind = getattr(lib.types, dtype)
        return lib.fn.constant(idata=whole, dtype=kind), lib.fn.constant(fdata=real, dtype=kind)

    exact(graph, FEED)


def test_shapes():
    def graph(lib, _):
        c = lib.fn.constant
        return (
            c(idata=1),
            c(idata=[1, 2]),
            c(fdata=1.5),
            c(idata=3, shape=[2, 2], layout="HW"),
            c(idata=[3, 4, 5, 6], shape=[2, 2]),
            c(fdata=[3.0], shape=[]),
            c(idata=[3], shape=4),
            c(idata=[3], shape=[0]),
            c(idata=[]),
            c(fdata=[]),
            c(fdata=[1], layout="W"),
        )

    exact(graph, FEED)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"idata": 1, "fdata": 2.0},
        {"idata": [3, 4], "shape": [2, 2]},
        {"idata": [3], "shape": [-1]},
        {"idata": [3, 4], "layout": "HW"},
    ],
    ids=str,
)
def test_errors(args):
    assert_both_raise(lambda lib, _: lib.fn.constant(**args), FEED)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["zeros", "ones"])
@pytest.mark.parametrize("dtype", [*TYPES, "FLOAT64"])
def test_zeros_and_ones(name, dtype):
    shapes = [np.int32([1, 2]), np.int32([3, 0])]

    def graph(lib, x, shape):
        make, like = getattr(lib.fn, name), getattr(lib.fn, f"{name}_like")
        kind = getattr(lib.types, dtype)
        return (
            make(),
            make(dtype=kind),
            make(shape=[2, 3], dtype=kind, layout="HW"),
            make(shape=4, dtype=kind),
            make(shape=shape, dtype=kind, layout="HW"),
            like(x),
            like(x, dtype=kind),
        )

    exact(graph, FEED, shapes, layouts=["HW", ""])


def test_full():
    row = [np.float32([1, 2, 3])] * 2

    def graph(lib, x, v):
        full, like = lib.fn.full, lib.fn.full_like
        return (
            full(v, shape=[2, 3]),
            full(v, shape=[2, 3], layout="HW"),
            full(3, shape=[2]),
            full([1.0, 2.0], shape=[4, 2]),
            full(5),
            like(x, v),
            like(x, np.float32([5.5, -1, 300])),
            like(x, np.int32([5, -1, 300])),
            like(v, 2),
        )

    exact(graph, FEED, row, layouts=["HW", "W"])


@pytest.mark.parametrize(
    "text",
    [
        'lib.fn.zeros(shape=3, layout="HW")',
        'lib.fn.ones(layout="H")',
        "lib.fn.zeros(shape=[-3])",
        "lib.fn.zeros(dtype=lib.types.STRING)",
        "lib.fn.full(x, shape=[2, 2])",
        "lib.fn.full_like(x, np.float32([1, 2]))",
    ],
)
def test_errors_of_filled(text):
    assert_both_raise(graph_of(text, "x"), FEED)


def test_constants_in_expressions_and_as_arguments():
    def graph(lib, x):
        constant = lib.types.Constant
        return (
            x + constant([1, 2, 3]),
            x * constant(np.float32([[0.5], [2]])),
            constant(7, shape=[2], layout="W"),
            lib.fn.cast(constant([1.5, 2.5, -3.5]), dtype=lib.types.INT8),
            constant(np.array([1, 2**20], np.int64)),
            constant([1.5, 2], dtype=lib.types.UINT8),
        )

    exact(graph, FEED, layouts="HW")
