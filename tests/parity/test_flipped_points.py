"""`fn.coord_flip` and `fn.bb_flip` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ShapeError
from tests.parity.support import assert_both_raise, assert_parity, run_graph

_rng = np.random.default_rng(4)
FLIPS = [np.int32(k) for k in (1, 0, 2, -1)]
CENTERS = [np.float32(k) for k in (0.5, 3, -1.25, 0)]


def rows(columns: int, counts=(7, 1, 0, 30)) -> list[np.ndarray]:
    return [(_rng.random((n, columns)) * 2 - 0.5).astype(np.float32) for n in counts]


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, relative=0, absolute=0, **options)


def test_points():
    for columns, layouts in ((1, ("x",)), (2, ("xy", "yx", "xyz", "zyx")), (3, ("xyz", "zxy"))):
        exact(
            lambda lib, x, f, c: tuple(
                lib.fn.coord_flip(x, **given)
                for given in (
                    {},
                    {"flip_x": 0},
                    {"flip_x": 0, "flip_y": 1, "center_y": -3.7},
                    {"flip_y": 2, "flip_z": -1, "center_x": 100.3, "center_z": 1},
                    {"flip_x": f, "flip_y": 1 - f, "flip_z": f, "center_x": c, "center_z": c * 2},
                    *({"layout": order, "flip_y": f, "center_y": c} for order in layouts),  # noqa: B023
                )
            ),
            rows(columns),
            FLIPS,
            CENTERS,
        )
    exact(lambda lib, x: lib.fn.coord_flip(x), [np.float32([[np.inf, 1], [-np.inf, np.nan]])])
    exact(lambda lib, x: lib.fn.coord_flip(x), [np.zeros((2, 0), np.float32)])


def test_boxes():
    exact(
        lambda lib, x, f: tuple(
            lib.fn.bb_flip(x, ltrb=ltrb, **given)
            for ltrb in (False, True)
            for given in (
                {},
                {"horizontal": 0},
                {"horizontal": 0, "vertical": 1},
                {"vertical": -2},
                {"horizontal": f, "vertical": 1 - f},
            )
        ),
        rows(4),
        FLIPS,
    )
    for shape in ((8,), (2, 1, 4), (2, 2), (0,)):
        data = [_rng.random(shape).astype(np.float32)]
        exact(lambda lib, x: lib.fn.bb_flip(x, vertical=1), data)


def test_errors():
    for dtype in ("float64", "float16", "int32", "uint8"):
        for name in ("coord_flip", "bb_flip"):
            ones = [np.ones((2, 4 if name == "bb_flip" else 2), dtype)]
            assert_both_raise(lambda lib, x: getattr(lib.fn, name)(x), ones, match="type")  # noqa: B023
    for shape in ((), (2,), (2, 3, 2), (2, 4)):
        ones = [np.ones(shape, np.float32)]
        assert_both_raise(lambda lib, x: lib.fn.coord_flip(x), ones, match="Points")
    for columns, layout in ((1, "y"), (2, "xa"), (2, "zx"), (2, "XY"), (3, "xy")):
        assert_both_raise(
            lambda lib, x: lib.fn.coord_flip(x, layout=layout),  # noqa: B023
            rows(columns),
            match="`layout`",
        )
    for name in ("coord_flip", "bb_flip"):
        argument = "flip_x" if name == "coord_flip" else "vertical"
        assert_both_raise(
            lambda lib, x, f: getattr(lib.fn, name)(x, **{argument: f}),  # noqa: B023
            [np.ones((2, 2), np.float32)],
            [np.int32([1, 0])],
            match=argument,
        )


def test_what_dali_refuses_or_reads_beyond_its_memory():
    def outputs(graph, *feeds, layouts=""):
        return [o.samples for o in run_graph("headrace", graph, *feeds, layouts=layouts)[0]]

    mixed = [np.full((1, n), 0.25, np.float32) for n in (2, 3)]
    (found,) = outputs(lambda lib, x: lib.fn.coord_flip(x, flip_y=1, center_x=1), mixed)
    for sample, wanted in zip(found, ([1.75, 0.75], [1.75, 0.75, 0.25]), strict=True):
        np.testing.assert_array_equal(sample, [wanted])
    boxes = [np.float32([[0.25, 0.5, 0.5, 0.25]])]
    graph = lambda lib, x: (lib.fn.bb_flip(x), lib.fn.coord_flip(lib.fn.slice(x, 0, 2, axes=[1])))  # noqa: E731
    for (found,), wanted in zip(
        outputs(graph, boxes, layouts="AB"), ([0.25, 0.5, 0.5, 0.25], [0.75, 0.5]), strict=True
    ):
        np.testing.assert_array_equal(found, [wanted])
    for shape in ((), (6,), (2, 3)):
        with pytest.raises(ShapeError, match="multiple of 4"):
            outputs(lambda lib, x: lib.fn.bb_flip(x), [np.ones(shape, np.float32)])
