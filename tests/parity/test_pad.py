"""`fn.pad` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

_rng = np.random.default_rng(0)
DTYPES = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "float16", "float32"]
RAGGED = [(2, 3), (4, 1), (1, 6), (3, 3)]


def ragged(*shapes, dtype="float32"):
    return [(_rng.random(s) * 100).astype(dtype) for s in shapes]


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


def each(*values, dtype=np.int32):
    return [np.asarray(v, dtype) for v in values]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"axes": [0]},
        {"axes": [-1]},
        {"axes": []},
        {"axes": [1, 0], "shape": [5, 7]},
        {"shape": [5, 6]},
        {"shape": [5]},
        {"shape": 5},
        {"shape": []},
        {"shape": [-1, 6]},
        {"shape": [0, -2]},
        {"shape": [1, 1]},
        {"axes": [1], "shape": [9]},
        {"align": 4},
        {"align": [4, 3]},
        {"axes": [0], "align": [3]},
        {"align": 4, "shape": [5, 1]},
        {"fill_value": -1.5},
        {"bytes_per_sample_hint": [100]},
    ],
    ids=str,
)
def test_arguments(arguments):
    exact(lambda lib, x: lib.fn.pad(x, **arguments), ragged(*RAGGED))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", [0, 1.5, 2.5, -3, 100, 300.0])
def test_element_types_and_fill_values(dtype, fill):
    exact(
        lambda lib, x: lib.fn.pad(x, fill_value=fill, align=4), ragged((3, 3), (1, 2), dtype=dtype)
    )


def test_booleans():
    rows = [np.array([True, False]), np.array([True])]
    exact(lambda lib, x: (lib.fn.pad(x, fill_value=0.4), lib.fn.pad(x)), rows)


@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("HWC", [(4, 5, 3), (6, 2, 3)]),
        ("CHW", [(3, 4, 5), (3, 6, 2)]),
        ("FHWC", [(2, 4, 5, 3), (5, 1, 7, 3)]),
        ("DHWC", [(2, 4, 5, 1), (1, 3, 3, 2)]),
    ],
)
def test_layouts(layout, shapes):
    rows = ragged(*shapes, dtype="uint8")
    exact(lambda lib, x: lib.fn.pad(x, axis_names="WH", align=[2, 4]), rows, layouts=layout)
    exact(lambda lib, x: lib.fn.pad(x), rows, layouts=layout)


def test_empty_samples_and_single_elements():
    exact(lambda lib, x: lib.fn.pad(x, fill_value=7), ragged((0, 3), (2, 0), (1, 1)))
    exact(lambda lib, x: lib.fn.pad(x), ragged((0,), (0,)))
    exact(lambda lib, x: lib.fn.pad(x, shape=3), ragged((1,)))


def test_arguments_by_sample():
    rows = ragged((2, 3), (4, 1))

    def shapes(lib, x, shape, align, fill, axes):
        return (
            lib.fn.pad(x, shape=shape),
            lib.fn.pad(x, align=align),
            lib.fn.pad(x, shape=5, fill_value=fill),
            lib.fn.pad(x, axes=axes),
            lib.fn.pad(x, axes=axes, shape=[6]),
        )

    exact(
        shapes,
        rows,
        each((3, 4), (5, -1)),
        each((3, 4), (5, 2)),
        each(7, 8, dtype=np.float32),
        each((0,), (1,)),
    )
    exact(lambda lib, x, axes: lib.fn.pad(x, axes=axes), rows, each((0, 1), (1,)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"axes": [2]},
        {"axes": [-3]},
        {"axes": [0, 0]},
        {"axes": [0, -2]},
        {"axis_names": "C"},
        {"axis_names": "HH"},
        {"axis_names": "H", "axes": [0]},
        {"shape": [1, 2, 3]},
        {"align": [1, 2, 3]},
        {"align": 0},
        {"align": -2},
        {"fill_value": "a"},
    ],
    ids=str,
)
def test_errors(arguments):
    assert_both_raise(
        lambda lib, x: lib.fn.pad(x, **arguments), ragged((2, 3), (4, 1)), layouts="HW"
    )


def test_numbers_have_no_axes():
    assert_both_raise(lambda lib, x: lib.fn.pad(x), [np.float32(1)] * 2)
