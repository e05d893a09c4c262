"""`fn.transpose` against DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
DTYPES += ("float16", "float32", "float64", "bool")


def numbered(*shape: int, dtype: str = "int32") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 120).astype(dtype).reshape(shape)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.parametrize("shape", [(5,), (4, 7), (4, 7, 3), (3, 20, 5), (2, 4, 5, 3)])
def test_all_permutations(shape):
    letters = "ABCD"[: len(shape)]
    exact(
        lambda lib, x: tuple(
            lib.fn.transpose(x, perm=list(p)) for p in itertools.permutations(range(len(shape)))
        ),
        [numbered(*shape), numbered(*(2 * s + 1 for s in shape))],
        layouts=letters,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype):
    exact(
        lambda lib, x: (
            lib.fn.transpose(x, perm=[2, 0, 1]),
            lib.fn.transpose(x, perm=[1, 2, 0]),
            lib.fn.transpose(x, perm=[1, 0, 2]),
            lib.fn.transpose(x),
        ),
        [numbered(6, 11, 3, dtype=dtype), numbered(3, 9, 40, dtype=dtype)],
        layouts="HWC",
    )


@pytest.mark.sweep
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"transpose_layout": False},
        {"output_layout": "XYZ"},
        {"output_layout": "XYZ", "transpose_layout": False},
        {"perm": [2, 0, 1]},
        {"perm": [2, 0, 1], "transpose_layout": False},
        {"perm": [2, 0, 1], "output_layout": "ABC"},
        {"perm": [0, 1, 2], "output_layout": "CHW"},
    ],
)
@pytest.mark.parametrize("layout", ["HWC", ""])
def test_layouts(layout, arguments):
    exact(lambda lib, x: lib.fn.transpose(x, **arguments), [numbered(4, 5, 3)] * 2, layouts=layout)


@pytest.mark.parametrize(
    "shape", [(2, 0, 4), (1, 1, 1), (1, 5, 3), (5, 1, 3), (5, 4, 1), (1, 1, 3), (0, 0, 0)]
)
def test_empty_and_tiny_samples(shape):
    exact(
        lambda lib, x: tuple(
            lib.fn.transpose(x, perm=list(p)) for p in itertools.permutations(range(3))
        ),
        [numbered(*shape)],
        layouts="HWC",
    )


def test_many_axes_and_none():
    exact(lambda lib, x: lib.fn.transpose(x), [numbered(1, 2, 1, 3, 1, 2, 2, 2)])
    exact(
        lambda lib, x: lib.fn.transpose(x, perm=[6, 0, 5, 1, 4, 2, 3]),
        [numbered(2, 3, 1, 3, 1, 2, 4)],
    )
    exact(lambda lib, x: lib.fn.transpose(x), [np.array(3, np.int32)])
    exact(lambda lib, x: lib.fn.transpose(x, perm=0), [numbered(4)])


def test_windows_and_mirror_images():
    exact(
        lambda lib, x: tuple(
            lib.fn.transpose(f(x), perm=perm)
            for perm in ([2, 0, 1], [1, 0, 2], [2, 1, 0])
            for f in (
                lambda x: lib.fn.crop(x, crop=(5, 4)),
                lambda x: lib.fn.flip(x, horizontal=0, vertical=1),
                lambda x: lib.fn.slice(x, start=[1], end=[3], axes=[2]),
                lambda x: lib.fn.transpose(x, perm=[0, 2, 1]),
            )
        ),
        [numbered(9, 8, 3), numbered(6, 12, 3)],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"perm": [-1, 0, 1]},
        {"perm": [2, 0]},
        {"perm": [1, 0]},
        {"perm": [2, 0, 0]},
        {"perm": [3, 0, 1]},
        {"perm": []},
        {"perm": 2},
        {"perm": [2, 0, 1], "output_layout": "AB"},
        {"perm": [2, 0, 1], "output_layout": ""},
    ],
)
def test_errors(arguments):
    word = "output_layout" if "output_layout" in arguments else "perm"
    assert_both_raise(
        lambda lib, x: lib.fn.transpose(x, **arguments),
        [numbered(4, 5, 3)],
        layouts="HWC",
        match=word,
    )
