"""`fn.element_extract` and `fn.sequence_rearrange` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

VIDEOS = [np.arange(n, n + 24, dtype=np.uint8).reshape(4, 2, 3) for n in (0, 100)]
RAGGED = [np.arange(6.0).reshape(2, 3), np.arange(20.0).reshape(4, 5)]
DTYPES = ("uint8", "int16", "uint32", "int64", "float16", "float32", "float64", "bool")


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


def orders(*each, dtype=np.int32):
    return [np.array(order, dtype) for order in each]


@pytest.mark.parametrize("layout", ["", "FHW"])
def test_elements(layout):
    exact(
        lambda lib, x: (
            *lib.fn.element_extract(x, element_map=[0, 2]),
            lib.fn.element_extract(x, element_map=1),
            lib.fn.element_extract(x, element_map=[3]),
            *lib.fn.element_extract(x, element_map=[3, 3, 0]),
            *lib.fn.element_extract(x * 2, element_map=[1, 0]),
        ),
        VIDEOS,
        layouts=layout,
    )


@pytest.mark.parametrize("layout", ["", "FHW"])
def test_orders(layout):
    exact(
        lambda lib, x, each: (
            lib.fn.sequence_rearrange(x, new_order=[3, 0, 0]),
            lib.fn.sequence_rearrange(x, new_order=2),
            lib.fn.sequence_rearrange(x, new_order=[3, 2, 1, 0, 0, 1, 2, 3]),
            lib.fn.sequence_rearrange(x, new_order=each),
            lib.fn.sequence_rearrange(x[:, ::-1], new_order=each),
        ),
        VIDEOS,
        orders([1, 2], [3]),
        layouts=[layout, ""],
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types_and_extents(dtype):
    exact(
        lambda lib, x: (
            *lib.fn.element_extract(x, element_map=[1, 0]),
            lib.fn.sequence_rearrange(x, new_order=[1, 0, 1]),
        ),
        [each.astype(dtype) for each in RAGGED],
        layouts="FX",
    )


def test_no_elements():
    empty = [np.zeros((2, 0, 3), np.float32)] * 2
    exact(
        lambda lib, x: (
            lib.fn.element_extract(x, element_map=[1]),
            lib.fn.sequence_rearrange(x, new_order=[1]),
        ),
        empty,
    )


@pytest.mark.parametrize(
    ("layout", "elements", "match"),
    [
        ("HWC", [0], "sequence"),
        ("HFW", [0], "sequence"),
        ("FHW", [-1], "Negative"),
        ("FHW", [4], "out of bounds"),
        ("FHW", [], "element_map"),
    ],
)
def test_wrong_elements(layout, elements, match):
    assert_both_raise(
        lambda lib, x: lib.fn.element_extract(x, element_map=elements),
        VIDEOS,
        layouts=layout,
        match=match,
    )


@pytest.mark.parametrize(
    ("layout", "order", "match"),
    [
        ("HWC", [0], "sequence"),
        ("HFW", [0], "sequence"),
        ("FHW", [-1], "last frame is 3"),
        ("FHW", [4], "last frame is 3"),
        ("FHW", [], "Empty"),
    ],
)
def test_wrong_orders(layout, order, match):
    assert_both_raise(
        lambda lib, x: lib.fn.sequence_rearrange(x, new_order=order),
        VIDEOS,
        layouts=layout,
        match=match,
    )


def test_wrong_orders_and_data_a_sample():
    def graph(lib, x, each):
        return lib.fn.sequence_rearrange(x, new_order=each)

    for each, match in (
        (orders([1], []), "Empty"),
        (orders([1], [4]), "sample 1"),
        (orders(1, 2), "one dimension"),
        (orders([[1]], [[2]]), "one dimension"),
        (orders([1], [2], dtype=np.float32), "int"),
    ):
        assert_both_raise(graph, VIDEOS, each, layouts=["FHW", ""], match=match)
    for data in (np.int32(1), np.int32([1, 2])):
        assert_both_raise(
            lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[0]), [data], match="dimensions"
        )
        assert_both_raise(
            lambda lib, x: lib.fn.element_extract(x, element_map=[0]), [data], match="dimensions"
        )
