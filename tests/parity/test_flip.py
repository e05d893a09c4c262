"""`fn.flip` against DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

SHAPES = {
    "HWC": (7, 9, 3),
    "CHW": (3, 7, 9),
    "DHWC": (4, 7, 9, 2),
    "CDHW": (2, 4, 7, 9),
    "FHWC": (4, 7, 9, 3),
    "FCHW": (4, 3, 7, 9),
    "FDHWC": (3, 4, 5, 6, 2),
    "FCDHW": (3, 2, 4, 5, 6),
}


def numbered(*shape: int, dtype: str = "int32") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 120).astype(dtype).reshape(shape)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.parametrize("layout", SHAPES)
def test_layouts_and_directions(layout):
    exact(
        lambda lib, x: (
            lib.fn.flip(x),
            *(
                lib.fn.flip(x, horizontal=h, vertical=v, depthwise=d)
                for h, v, d in itertools.product((0, 1), repeat=3)
            ),
        ),
        [numbered(*SHAPES[layout])] * 2,
        layouts=layout,
    )


@pytest.mark.parametrize("shape", [(7, 9, 3), (4, 5, 6, 3), (2, 4, 5, 6, 3)])
def test_layouts_by_default(shape):
    exact(lambda lib, x: lib.fn.flip(x, vertical=1, depthwise=1), [numbered(*shape)])


@pytest.mark.sweep
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "int64", "float64"])
def test_element_types_and_channels(dtype, channels):
    exact(
        lambda lib, x: (lib.fn.flip(x), lib.fn.flip(x, vertical=1)),
        [numbered(6, 11, channels, dtype=dtype), numbered(1, 1, channels, dtype=dtype)],
        layouts="HWC",
    )


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "uint64"])
def test_more_element_types(dtype):
    exact(lambda lib, x: lib.fn.flip(x), [numbered(6, 11, 3, dtype=dtype)], layouts="HWC")


def test_directions_for_each_sample():
    def ints(*values):
        return [np.int32(v) for v in values]

    exact(
        lambda lib, x, h, v: lib.fn.flip(x, horizontal=h, vertical=v),
        [numbered(6, 5, 3), numbered(4, 8, 3), numbered(3, 3, 3), numbered(1, 7, 3)],
        ints(0, 1, -1, 2),
        ints(0, 0, 1, 1),
        layouts=("HWC", "", ""),
    )


def test_empty_and_tiny_samples():
    exact(
        lambda lib, x: lib.fn.flip(x, vertical=1),
        [numbered(0, 8, 3), numbered(1, 1, 3), numbered(1, 9, 3), numbered(5, 0, 3)],
        layouts="HWC",
    )


def test_flips_of_windows():
    exact(
        lambda lib, x: lib.fn.flip(
            lib.fn.flip(lib.fn.crop(x, crop=(4, 5)), horizontal=0, vertical=1), horizontal=1
        ),
        [numbered(9, 8, 3), numbered(6, 11, 3)],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    ("shape", "layout"), [((4, 5), "HW"), ((4, 5), ""), ((3, 2, 4, 5), "CFHW")]
)
def test_layouts_that_are_not_taken(shape, layout):
    assert_both_raise(lambda lib, x: lib.fn.flip(x), [numbered(*shape)], layouts=layout)
