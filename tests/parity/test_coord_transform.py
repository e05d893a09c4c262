"""`fn.coord_transform` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import FLOAT, FLOAT64
from tests.parity.support import assert_both_raise, assert_parity, run_graph

POINTS = [
    np.array([[1, 2], [3, 4], [5, 6.5]], np.float32),
    np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32) * 100,
    np.array([[-7.25, 0]], np.float32),
]


def each(*values) -> list[np.ndarray]:
    return [np.array(v, np.float32) for v in values]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"M": (1.5, 2, -3, 4)},
        {"M": 2.5},
        {"M": (1, 2, 3, 4, 5, 6)},
        {"M": (1, 2)},
        {"T": (1, 2.5)},
        {"T": 1.5},
        {"MT": (1, 2, 3, 4, 5, 6.5)},
        {"MT": (1, 2, 3, 4, 5, 6, 7, 8, 9)},
        {"M": (1.1, 2.2, 3.3, 4.4), "T": (5, 6)},
        {"M": (1, 2, 3, 4, 5, 6), "T": (1, 2, 3)},
        {"M": 0.3, "T": 7},
        {"MT": 2.0},
        {"MT": [2.5]},
    ],
    ids=str,
)
def test_constants(given):
    assert_parity(lambda lib, x: lib.fn.coord_transform(x, **given), POINTS, relative=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_numbers_of_coordinates(n):
    rng = np.random.default_rng(n)
    for m in (1, n, 6):
        assert_parity(
            lambda lib, x, matrix: lib.fn.coord_transform(x, MT=matrix),
            [rng.normal(size=(k, n)).astype(np.float32) for k in (1, 7, 30)],
            [rng.normal(size=(m, n + 1)).astype(np.float32) for _ in range(3)],
        )


def test_arguments_by_sample():
    matrices = each([[1, 2], [3, 4]], [[0, 1], [1, 0]], [[1, 0.5], [-2, 1]])
    offsets = each([1, 2], [0, -1], [0.5, 0.25])

    def graph(lib, x, matrix, offset, single):
        f = lib.fn.coord_transform
        return (
            f(x, M=matrix),
            f(x, T=offset),
            f(x, M=matrix, T=offset),
            f(x, M=single),
            f(x, T=single),
            f(x, M=(1, 2, 3, 4), T=offset),
            f(x, M=matrix, T=(4, 5)),
            f(x, MT=lib.fn.transforms.translation(offset=offset)),
        )

    assert_parity(graph, POINTS, matrices, offsets, each(2, 0.5, -1))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
def test_types(dtype):
    points = [np.array([[1, 2], [3, 4], [200, 90]], dtype)]
    name = {"uint8": "UINT8", "int16": "INT16", "uint16": "UINT16", "int32": "INT32"}

    def graph(lib, x):
        own = getattr(lib.types, name.get(dtype, "FLOAT"))
        f = lib.fn.coord_transform
        return f(x, M=(1, 0.5, 0.25, -1)), f(x, M=(1, 0.5, 0.25, -1), T=0.125, dtype=own)

    assert_parity(graph, points, differing=0)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float16", "bool"])
def test_other_types_are_refused(dtype):
    assert_both_raise(lambda lib, x: lib.fn.coord_transform(x), [np.ones((2, 2), dtype)])


@pytest.mark.parametrize("target", ["UINT8", "INT32", "FLOAT16", "FLOAT64"])
def test_other_outputs_are_refused(target):
    assert_both_raise(
        lambda lib, x: lib.fn.coord_transform(x, dtype=getattr(lib.types, target)),
        POINTS,
        match="`dtype`",
    )


def test_layouts_and_ranks():
    for layout in ("ABC", ""):
        assert_parity(
            lambda lib, x: lib.fn.coord_transform(x, M=(1, 2, 3, 4), T=3.0),
            [np.arange(12, dtype=np.float32).reshape(2, 3, 2)],
            layouts=layout,
        )


def test_frames():
    data = [np.stack([POINTS[0], POINTS[0] + 1]), np.stack([POINTS[0]] * 3)]
    offsets = each([[1, 2], [3, 4]], [[1, 1], [2, 2], [3, 3]])
    matrices = [np.random.default_rng(k).normal(size=(k, 2, 2)).astype("f4") for k in (2, 3)]
    assert_parity(
        lambda lib, x, t, m: (
            lib.fn.coord_transform(x, T=t),
            lib.fn.coord_transform(x, M=m),
            lib.fn.coord_transform(x, M=m, T=t),
            lib.fn.coord_transform(x, MT=lib.fn.transforms.translation(offset=t)),
        ),
        data,
        offsets,
        matrices,
        layouts=["FAB", "F*", "F**"],
    )


@pytest.mark.parametrize(
    "given",
    [
        {"M": (1, 2, 3)},
        {"T": (1, 2, 3)},
        {"MT": (1, 2, 3, 4, 5, 6), "M": 1.0},
        {"MT": (1, 2, 3, 4, 5, 6), "T": 1.0},
        {"M": (1, 2, 3, 4, 5, 6), "T": (1, 2)},
        {"M": 2.0, "T": (1, 2, 3)},
        {"MT": (1, 2, 3, 4)},
        {"M": (1.0,) * 14},
    ],
    ids=str,
)
def test_bad_arguments(given):
    assert_both_raise(lambda lib, x: lib.fn.coord_transform(x, **given), POINTS)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (1, 1), (2, 2, 1)])
def test_bad_matrices(shape):
    assert_both_raise(
        lambda lib, x, m: lib.fn.coord_transform(x, M=m), POINTS[:1], [np.ones(shape, np.float32)]
    )


@pytest.mark.parametrize("shape", [(), (2,), (2, 7)])
def test_bad_points(shape):
    assert_both_raise(lambda lib, x: lib.fn.coord_transform(x, T=3.0), [np.ones(shape, np.float32)])


def test_no_points():
    def graph(lib, x):
        return lib.fn.coord_transform(x, T=3.0)

    for dtype in (np.float32, np.float64):
        empty = [np.zeros((0, 2), dtype)]
        ((output,),) = run_graph("dali", graph, empty)
        assert (output.samples[0].shape, output.dtype) == ((0, 0), FLOAT)
        ((output,),) = run_graph("headrace", graph, empty)
        assert (output.samples[0].shape, output.dtype) == ((0, 2), FLOAT)


def test_float64():
    def graph(lib, x, factor):
        f = lib.fn.coord_transform
        return f(x, MT=2.0), f(x, dtype=lib.types.FLOAT64), f(x, MT=factor)

    feeds = [POINTS[0].astype(np.float64)], [np.float32(2)]
    with pytest.raises(RuntimeError):
        run_graph("dali", graph, *feeds)
    (outputs,) = run_graph("headrace", graph, *feeds)
    assert [o.dtype for o in outputs] == [FLOAT, FLOAT64, FLOAT]
    for output, factor in zip(outputs, (2, 1, 2), strict=True):
        np.testing.assert_array_equal(output.samples[0], POINTS[0] * factor)


@pytest.mark.parametrize("layout", ["", "AB"])
def test_frames_without_a_sequence(layout):
    """Points without frames are mapped once for each frame of the arguments."""
    counts = (3, 1)
    drawn = np.random.default_rng(3).normal
    matrices = [drawn(size=(count, 2, 2)).astype("f4") for count in counts]
    offsets = [drawn(size=(count, 2)).astype("f4") for count in (3, 2)]
    single = [drawn(size=(1, 2)).astype("f4") for _ in counts]
    assert_parity(
        lambda lib, x, m, t, once: (
            lib.fn.coord_transform(x, M=m),
            lib.fn.coord_transform(x, T=t),
            lib.fn.coord_transform(x, M=m, T=once),
            lib.fn.coord_transform(x, MT=lib.fn.transforms.translation(offset=t)),
        ),
        [POINTS[0], POINTS[0][:1] + 1],
        matrices,
        offsets,
        single,
        layouts=[layout, "F**", "F*", "F*"],
    )


def test_frames_of_arguments_must_be_as_many():
    assert_both_raise(
        lambda lib, x, m, t: lib.fn.coord_transform(x, M=m, T=t),
        POINTS[:1],
        [np.ones((3, 2, 2), np.float32)],
        [np.ones((2, 2), np.float32)],
        layouts=["", "F**", "F*"],
        match="frame",
    )
