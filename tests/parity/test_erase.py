"""`fn.erase` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

BATCHES = {
    "HWC": [(7, 9, 3), (1, 1, 3), (40, 33, 3), (0, 2, 3)],
    "FHWC": [(2, 9, 11, 3), (3, 4, 5, 3)],
    "HW": [(6, 8), (3, 20)],
    "CHW": [(3, 9, 11), (3, 5, 6)],
}
TYPES = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32"),
)
IMAGE = (np.arange(60) + 1).astype(np.uint8).reshape(6, 5, 2)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.sweep
@pytest.mark.parametrize("layout", BATCHES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("relative", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("centered", [False, True])
def test_regions(layout, dtype, relative, centered):
    shapes = BATCHES[layout]
    batch = [(np.arange(np.prod(s)) % 90 + 1).astype(dtype).reshape(s) for s in shapes]
    rng = np.random.default_rng(0)
    options = {
        "normalized_anchor": relative[0],
        "normalized_shape": relative[1],
        "centered_anchor": centered,
    }
    for given, axes in (({}, len(layout.replace("C", ""))), ({"axes": [1, 0]}, 2)):
        size = 2 * axes  # of two regions
        anchors = rng.uniform(-0.3, 1.2, (len(shapes), size)) * (1 if relative[0] else 12)
        extents = rng.uniform(0, 0.9, (len(shapes), size)) * (1 if relative[1] else 12)
        fill = [7.9] if "C" not in layout or given else [1, 2, 3]

        constants = {"anchor": [0.5, 1] * axes, "shape": extents[0].tolist()}

        def graph(lib, x, anchor, shape, given=given, fill=fill, constants=constants):
            every = {**options, **given, "fill_value": fill}
            return (
                lib.fn.erase(x, anchor=anchor, shape=shape, **every),
                lib.fn.erase(x, **constants, **every),
            )

        each = [list(values.astype(np.float32)) for values in (anchors, extents)]
        exact(graph, batch, *each, layouts=(layout, "", ""))


def test_how_arguments_may_be_given():
    for given in (
        {},
        {"shape": (2, 2)},
        {"anchor": (0, 0, 1, 1), "shape": (2, 2, 2, 2), "fill_value": 200},
        {"anchor": 0, "shape": 1, "fill_value": (5, 6), "axis_names": "C"},
        {"anchor": 0, "shape": 2, "axis_names": "W"},
        {"anchor": (0, 0), "shape": (1, 2), "axes": [0, 1], "axis_names": "WH"},
        {"anchor": (float("nan"), 0), "shape": (2, 2)},
        {"anchor": (0.1, 0.1), "shape": (0.5, 0.5), "normalized": True},
        {"anchor": (0, 0), "shape": (2, 2), "fill_value": []},
        {"anchor": (0, 0), "shape": (0, -2)},
    ):
        exact(lambda lib, x, given=given: lib.fn.erase(x, **given), [IMAGE], layouts="HWC")


def test_regions_that_differ_in_number():
    anchors, shapes = [[1, 1], [0, 0, 3, 3]], [[1, 1], [1, 1, 2, 2]]
    for shape in ((-1,), (-1, 2)):
        exact(
            lambda lib, x, a, s: lib.fn.erase(x, anchor=a, shape=s),
            [IMAGE] * 2,
            [np.float32(a).reshape(shape) for a in anchors],
            [np.float32(s).reshape(shape) for s in shapes],
            layouts=("HWC", "", ""),
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"anchor": (0, 0)}, "no `shape`"),
        ({"anchor": (0, 0, 3, 3), "shape": (1, 2)}, "4 numbers and `shape` 2"),
        ({"anchor": (0, 0, 0), "shape": (1, 1, 1)}, "2 for each region"),
        ({"shape": (2, 2), "fill_value": (1, 2, 3)}, "has 3 numbers, but the data 2 channels"),
        ({"shape": (2, 2), "axis_names": "XY"}, "Axis 'X' is not present"),
        ({"shape": (2, 2), "normalized": True, "normalized_anchor": False}, "both given"),
    ],
)
def test_wrong_arguments(given, message):
    assert_both_raise(
        lambda lib, x: lib.fn.erase(x, **given), [IMAGE], layouts="HWC", match=message
    )


@pytest.mark.parametrize("dtype", ["float64", "bool"])
def test_types_that_are_not_taken(dtype):
    assert_both_raise(
        lambda lib, x: lib.fn.erase(x, shape=(1, 1)), [IMAGE.astype(dtype)], layouts="HWC"
    )
