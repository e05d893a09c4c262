"""`fn.slice` against DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

DTYPES = (
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
)
POLICIES = ("pad", "edge", "reflect_1001", "reflect_101", "wrap", "trim_to_shape")
COUNT = 300


def numbered(*shape: int, dtype: str = "int32") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 120).astype(dtype).reshape(shape)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


def lines(rng: np.random.Generator) -> list[np.ndarray]:
    return [np.arange(n, dtype=np.int32) for n in rng.integers(1, 300, COUNT)]


def halves(rng: np.random.Generator, extents: np.ndarray) -> np.ndarray:
    """Fractions of extents that hit integers and the halves between them."""
    steps = rng.integers(0, 300, len(extents)) % extents + 0.5 * rng.integers(0, 2, len(extents))
    return (steps / extents).astype(np.float32)


NAMED = itertools.product(
    (None, "start", "rel_start"), (None, "end", "rel_end", "shape", "rel_shape")
)


@pytest.mark.parametrize(("start", "end"), [pair for pair in NAMED if any(pair)])
def test_rounding_of_named_arguments(start, end):
    rng = np.random.default_rng(5)
    data = lines(rng)
    extents = np.array([len(d) for d in data])
    named = {}
    first = np.zeros(COUNT)
    if start == "start":
        named[start] = rng.integers(-50, 300, COUNT).astype(np.int32)
        if end is None:
            named[start] = np.minimum(named[start], extents.astype(np.int32))
        first = named[start]
    elif start == "rel_start":
        named[start] = halves(rng, extents) * rng.choice(np.float32([1, 1, -1]), COUNT)
        first = np.ceil(named[start] * extents)
    if end == "end":
        named[end] = (np.maximum(first, 0) + rng.integers(0, 50, COUNT)).astype(np.int32)
    elif end == "rel_end":
        named[end] = (halves(rng, extents) + np.maximum(first / extents, 0) + 0.01).astype("f")
    elif end == "shape":
        named[end] = rng.integers(0, 50, COUNT).astype(np.int32)
    elif end == "rel_shape":
        named[end] = halves(rng, extents) + np.float32(0.01)
    exact(
        lambda lib, x, *values: lib.fn.slice(
            x,
            axes=[0],
            out_of_bounds_policy="pad",
            fill_values=-1,
            **dict(zip(named, values, strict=True)),
        ),
        data,
        *[[v.reshape(()) for v in column.reshape(-1, 1)] for column in named.values()],
        layouts=[""] * (1 + len(named)),
    )


@pytest.mark.parametrize("normalized_shape", [True, False])
@pytest.mark.parametrize("normalized_anchor", [True, False])
def test_rounding_of_positional_inputs(normalized_anchor, normalized_shape):
    rng = np.random.default_rng(6)
    data = lines(rng)
    extents = np.array([len(d) for d in data])
    anchor, shape = halves(rng, extents), halves(rng, extents)
    if not normalized_anchor:
        anchor = (anchor * extents).astype(np.float32)
    if not normalized_shape:
        shape = (shape * extents).astype(np.float32)
    exact(
        lambda lib, x, a, s: lib.fn.slice(
            x,
            a,
            s,
            axes=[0],
            normalized_anchor=normalized_anchor,
            normalized_shape=normalized_shape,
            out_of_bounds_policy="pad",
            fill_values=-1,
        ),
        data,
        list(anchor.reshape(-1, 1)),
        list(shape.reshape(-1, 1)),
        layouts=("", "", ""),
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_are_absolute(dtype):
    exact(
        lambda lib, x, a, s: (
            lib.fn.slice(x, a, s),
            lib.fn.slice(x, a, s, axis_names="HW"),
            lib.fn.slice(x, a, s, axes=[2, 0], normalized_anchor=False),
        ),
        [numbered(9, 8, 4), numbered(7, 11, 4)],
        [np.array([1, 2], dtype), np.array([0, 3], dtype)],
        [np.array([2, 4], dtype), np.array([3, 1], dtype)],
        layouts=("HWC", "", ""),
    )


def test_constants_and_axes():
    def graph(lib, x):
        slice_ = lib.fn.slice
        return (
            slice_(x, start=[2, 1]),
            slice_(x, start=2),
            slice_(x, start=[2]),
            slice_(x, start=2, shape=[1, 2]),
            slice_(x, end=[3, 4]),
            slice_(x, start=[2, 1], end=[3, 4], axes=[0, 1]),
            slice_(x, start=[1], end=[2], axes=[-1]),
            slice_(x, start=[1, 0], end=[2, 4], axes=[-1, 0]),
            slice_(x, start=[2], axis_names="H"),
            slice_(x, start=[1, 2, 3], shape=[1, 1, 1], axis_names="CHW"),
            slice_(x, start=[1, 2, 1], end=[6, 6, 2], axes=[]),
            slice_(x, start=1, axis_names=""),
            slice_(x, rel_start=0.5, rel_end=[0.75, 1.0]),
            slice_(x, rel_start=[0.1, 0.2], rel_shape=[0.3, 0.4]),
            slice_(x, start=[1, 1], rel_end=[0.99, 0.51]),
            slice_(x, start=[2, 1], shape=0),
            slice_(x, start=7, shape=0, axes=[0]),
            slice_(x, start=7, axes=[0]),
            # An empty list is none.
            slice_(x, start=[], end=[], axes=[]),
            slice_(x, start=[], shape=[], axes=[0]),
            slice_(x, rel_start=[], end=[1, 2], axes=[0, 1]),
        )

    exact(graph, [numbered(7, 9, 3)], layouts="HWC")


def test_arguments_for_each_sample():
    def graph(lib, x, start, end, axes, scalar):
        return (
            lib.fn.slice(x, start=start, end=end, axes=[0, 1]),
            lib.fn.slice(x, start=start, axes=axes),
            lib.fn.slice(x, start=scalar, axes=[0, 1]),
            lib.fn.slice(x, start=[1, 2], end=end, axes=[0, 1]),
            lib.fn.slice(x, start=start, shape=[1, 2], axis_names="HW"),
        )

    def ints(*rows):
        return [np.array(r, np.int32) for r in rows]

    exact(
        graph,
        [numbered(7, 9, 3), numbered(11, 8, 3), numbered(6, 6, 3)],
        ints([1, 2], [0, 0], [2, 2]),
        ints([5, 6], [3, 8], [6, 4]),
        ints([0, 2], [1, 0], [-1, -2]),
        ints(1, 2, 3),
        layouts=("HWC", "", "", "", ""),
    )


@pytest.mark.parametrize("shape", [(40,), (12, 9), (9, 8, 3), (4, 6, 5, 3)])
def test_ranks_without_layout(shape):
    exact(
        lambda lib, x: (
            lib.fn.slice(x, start=1, axes=[]),
            lib.fn.slice(x, rel_start=0.25, rel_end=0.8, axes=[]),
            lib.fn.slice(x, start=[1], end=[2], axes=[-1]),
        ),
        [numbered(*shape)],
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype):
    exact(
        lambda lib, x: (
            lib.fn.slice(x, start=[1, 2], shape=[3, 4]),
            lib.fn.slice(
                x, start=[-1, 2], shape=[3, 9], out_of_bounds_policy="pad", fill_values=2.6
            ),
            lib.fn.slice(x, start=[1, 2], shape=[3, 4], dtype=lib.types.FLOAT),
            lib.fn.slice(x, start=[1, 2], shape=[3, 4], dtype=lib.types.FLOAT16),
            lib.fn.slice(x, start=[1, 2], shape=[3, 4], dtype=lib.types.UINT8),
        ),
        [numbered(7, 9, 3, dtype=dtype)],
        layouts="HWC",
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_policies(policy):
    rng = np.random.default_rng(1)
    count = 40
    data = [numbered(*rng.integers(1, 7, 2), 3) for _ in range(count)]
    start = [rng.integers(-9, 9, 2).astype(np.int32) for _ in data]
    shape = [rng.integers(0, 12, 2).astype(np.int32) for _ in data]
    exact(
        lambda lib, x, a, s: (
            lib.fn.slice(x, start=a, shape=s, out_of_bounds_policy=policy, fill_values=(7, 8, 9)),
            lib.fn.slice(
                x,
                start=a,
                shape=s,
                out_of_bounds_policy=policy,
                fill_values=3.5,
                dtype=lib.types.FLOAT,
            ),
            lib.fn.slice(x, start=a, shape=s, axes=[2, 1], out_of_bounds_policy=policy),
        ),
        data,
        start,
        shape,
        layouts=("HWC", "", ""),
    )


def test_fill_values_of_channels_made_by_the_slice():
    exact(
        lambda lib, x: lib.fn.slice(
            x,
            start=[2, 1, 0],
            shape=[3, 2, 4],
            axis_names="HWC",
            out_of_bounds_policy="pad",
            fill_values=[1, 2, 3, 4],
        ),
        [numbered(6, 7, 3)],
        layouts="HWC",
    )
    exact(
        lambda lib, x: lib.fn.slice(
            x, start=[-2, 1], axes=[0, 1], out_of_bounds_policy="pad", fill_values=[1, 2, 3]
        ),
        [numbered(6, 7, 3)],
    )
    exact(
        lambda lib, x: lib.fn.slice(
            x, start=[-2, 1], out_of_bounds_policy="pad", fill_values=[1, 2, 3]
        ),
        [numbered(3, 6, 7)],
        layouts="CHW",
    )


def test_trimming_to_nothing():
    exact(
        lambda lib, x: (
            lib.fn.slice(x, start=12, shape=3, axes=[0], out_of_bounds_policy="trim_to_shape"),
            lib.fn.slice(x, start=-5, shape=3, axes=[0], out_of_bounds_policy="trim_to_shape"),
            lib.fn.slice(x, rel_start=-1.5, axes=[0], out_of_bounds_policy="trim_to_shape"),
        ),
        [numbered(10)],
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "inputs"),
        ({"start": [-2, 0]}, "out_of_bounds_policy"),
        ({"start": 5, "end": 3}, "end"),
        ({"start": 5, "shape": -1}, "shape"),
        ({"start": 50}, "end"),
        ({"start": 0, "rel_shape": -0.5}, "rel_shape"),
        ({"start": 1, "rel_start": 0.2}, "rel_start"),
        ({"end": 1, "rel_end": 0.2}, "rel_end"),
        ({"end": 1, "shape": 2}, "shape"),
        ({"shape": 1, "rel_shape": 0.2}, "rel_shape"),
        ({"start": [1, 2, 3]}, "start"),
        ({"start": [1], "axes": [3]}, "axes"),
        ({"start": [1], "axes": [-4]}, "axes"),
        ({"start": [1, 1], "axes": [0, -3]}, "axes"),
        ({"start": [1, 1], "axis_names": "HH"}, "axes"),
        ({"start": [1], "axis_names": "D"}, "axis_names"),
        ({"start": [1], "axis_names": "H", "axes": [0]}, "axis_names"),
        ({"start": [1, 1], "out_of_bounds_policy": "zero"}, "out_of_bounds_policy"),
    ],
)
def test_errors(arguments, word):
    assert_both_raise(
        lambda lib, x: lib.fn.slice(x, **arguments), [numbered(7, 9, 3)], layouts="HWC", match=word
    )


@pytest.mark.parametrize(
    ("anchor", "shape", "arguments"),
    [
        (np.int32([2, 1]), np.float32([0.1, 0.2]), {}),
        (np.int32([2, 1]), np.int64([2, 1]), {}),
        (np.float64([0.2, 0.1]), np.float64([0.1, 0.2]), {}),
        (np.uint8([2, 1]), np.uint8([2, 1]), {}),
        (np.float16([0.2, 0.1]), np.float16([0.1, 0.2]), {}),
        (np.int32([2, 1]), np.int32([2, 1, 1]), {}),
        (np.int32([2, 1, 1]), np.int32([2, 1, 1]), {}),
        (np.int32([2, 1]), np.int32([-2, 1]), {}),
        (np.float32([np.nan, 1]), np.float32([0.1, 0.1]), {}),
        (np.int32([2, 1]), np.int32([2, 1]), {"start": [1, 1]}),
        (np.int32([2, 1]), np.int32([2, 1]), {"end": [1, 1]}),
    ],
)
def test_errors_of_positional_inputs(anchor, shape, arguments):
    assert_both_raise(
        lambda lib, x, a, s: lib.fn.slice(x, a, s, **arguments),
        [numbered(7, 9, 3)],
        [anchor],
        [shape],
        layouts=("HWC", "", ""),
    )


def test_an_anchor_needs_a_shape():
    assert_both_raise(
        lambda lib, x, a: lib.fn.slice(x, a),
        [numbered(7, 9, 3)],
        [np.int32([1, 1])],
        layouts=("HWC", ""),
        match="shape",
    )


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 4), (3, 5, 6, 4)])
def test_data_without_a_layout(shape):
    def graph(lib, x, anchor, extent):
        slice_ = lib.fn.slice
        flat = lib.fn.reshape(lib.fn.reshape(x, shape=[-1]), x.shape())
        return (
            slice_(x, rel_start=(0.2, 0.1), rel_shape=(0.5, 0.25)),
            slice_(x, start=1),
            slice_(x, start=[1, 2], axis_names="HW"),
            slice_(x, anchor, extent),
            slice_(flat, start=[1, 2]),
        )

    exact(
        graph,
        [numbered(*shape)] * 2,
        [np.float32([0.1, 0.2]), np.float32([0.3, 0.4])],
        [np.float32([0.5, 0.25]), np.float32([0.3, 0.6])],
        layouts=["", "", ""],
    )


@pytest.mark.parametrize(("shape", "name"), [((5,), "W"), ((5, 6), "C"), ((3, 5, 6, 4), "F")])
def test_names_that_data_without_a_layout_does_not_have(shape, name):
    assert_both_raise(
        lambda lib, x: lib.fn.slice(x, start=[1], axis_names=name),
        [numbered(*shape)],
        match="axis_names",
    )
