"""`fn.one_hot` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

TYPES = ("UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64")
TYPES += ("FLOAT", "FLOAT64")
NUMPY = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
NUMPY += ("float32", "float64")
NUMBERS = [np.int32(k) for k in (0, 2, 5)]
RAGGED = [np.int32([0, 1, 2]), np.int32([3, -1]), np.int32([]), np.int32([1])]
SINGLE = [np.int32([k]) for k in (0, 1, 4)]
MASKS = [np.int32([[0, 1, 2], [3, 0, 1]]), np.int32([[2], [7]])]


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.parametrize("labels", [NUMBERS, RAGGED, SINGLE, MASKS], ids=str)
def test_axes(labels):
    ndim = labels[0].ndim
    exact(
        lambda lib, x: (
            *(lib.fn.one_hot(x, num_classes=4, axis=axis) for axis in range(-1, ndim + 1)),
            lib.fn.one_hot(x, num_classes=1),
            lib.fn.one_hot(x),
        ),
        labels,
    )


def test_names_of_axes():
    for labels, layout, last in ((RAGGED, "X", 1), (MASKS, "HW", 2)):
        exact(
            lambda lib, x, last=last: (
                *(
                    lib.fn.one_hot(x, num_classes=3, axis=axis, axis_name="C")
                    for axis in range(-1, last + 1)
                ),
                lib.fn.one_hot(x, num_classes=3),
                lib.fn.one_hot(x, num_classes=3, axis_name="C"),
            ),
            labels,
            layouts=layout,
        )
    for labels, layout in ((SINGLE, "X"), ([np.int32([[k]]) for k in (2, 0, 5)], "HW")):
        # Where each sample has a single element the new axis is the only one.
        exact(
            lambda lib, x: (
                lib.fn.one_hot(x, num_classes=3, axis_name="C"),
                lib.fn.one_hot(x, num_classes=3, axis=None, axis_name="C") * 2,
                lib.fn.one_hot(x, num_classes=3),
            ),
            labels,
            layouts=layout,
        )
    for labels in (NUMBERS, SINGLE):
        exact(lambda lib, x: lib.fn.one_hot(x, num_classes=3, axis_name="C"), labels)
    exact(
        lambda lib, x: lib.fn.one_hot(x, num_classes=3, axis=-1, axis_name="C"),
        SINGLE,
        layouts="X",
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_values(dtype):
    exact(
        lambda lib, x: tuple(
            lib.fn.one_hot(
                x, num_classes=3, dtype=getattr(lib.types, dtype), on_value=on, off_value=off
            )
            for on, off in ((0.6, -1.4), (300.5, 2.5), (1, 0), (-7, 100000))
        ),
        RAGGED,
    )


@pytest.mark.parametrize("dtype", NUMPY)
def test_types_of_labels(dtype):
    exact(
        lambda lib, x: (lib.fn.one_hot(x, num_classes=3), lib.fn.one_hot(x, num_classes=3, axis=0)),
        [np.array([0, 1, 2]).astype(dtype), np.array([200, 120]).astype(dtype)],
    )


def test_labels_that_are_no_class():
    for labels in (
        np.float32([0.5, 1.9, -0.5, np.nan, np.inf, -np.inf, 1e20, 2.0, -1.0, 3.0]),
        np.float64([0.5, 1.9, -0.99, np.nan, 2.0**31, -(2.0**31), 2.0**32]),
        np.uint64([2**64 - 1, 2**63, 2**32, 2**32 + 1]),
        np.int64([-1, 2**32, 2**32 + 1, -(2**32) + 2]),
        np.uint32([2**32 - 1, 2**31, 1]),
    ):
        exact(lambda lib, x: lib.fn.one_hot(x, num_classes=3), [labels, labels[:1]])


def test_batches_of_different_kinds():
    """Whether samples have a single element is found out for each batch."""

    def graph(lib):
        own = iter([SINGLE, RAGGED[:3], SINGLE])
        return lib.fn.one_hot(lib.fn.external_source(source=lambda: next(own)), num_classes=3)

    exact(graph, batch_size=3, iterations=3, prefetch_queue_depth=1)


@pytest.mark.parametrize(
    ("labels", "layout", "arguments", "match"),
    [
        (RAGGED, "", {"axis": 2}, "axis"),
        (RAGGED, "", {"axis": -2}, "axis"),
        (NUMBERS, "", {"axis": 1}, "axis"),
        (RAGGED, "X", {"axis_name": "AB"}, "single character"),
        (RAGGED, "X", {"axis_name": ""}, "single character"),
        (RAGGED, "", {"axis_name": "C", "axis": 0}, "layout"),
        (RAGGED, "", {"axis_name": "C"}, "layout"),
        (SINGLE, "", {"axis_name": "C", "axis": -1}, "layout"),
        (RAGGED, "", {"dtype": "FLOAT16"}, "FLOAT16"),
        (RAGGED, "", {"dtype": "BOOL"}, "BOOL"),
        (RAGGED, "", {"num_classes": -1}, "num_classes"),
        ([np.float16([1])], "", {}, "FLOAT16"),
        ([np.bool_([1])], "", {}, "BOOL"),
    ],
)
def test_errors(labels, layout, arguments, match):
    def graph(lib, x):
        given = {"num_classes": 3, **arguments}
        if "dtype" in given:
            given["dtype"] = getattr(lib.types, given["dtype"])
        return lib.fn.one_hot(x, **given)

    assert_both_raise(graph, labels, layouts=layout, match=match)
