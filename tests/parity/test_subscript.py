"""Indexing of edges against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity
from tests.support.graph_text import graph_of

DATA = [np.arange(n, n + 24, dtype=np.int32).reshape(2, 3, 4) for n in (0, 100)]

# With and without layout; a named new axis needs one.
INDICES = [
    "1",
    "-1",
    "1, 2",
    "1, 2, 3",
    "-2, -3, -4",
    "0:1",
    ":, 1:",
    ":, :-1",
    "::-1",
    ":, 2:0:-1",
    ":, :, ::2",
    ":, :, 3::-2",
    ":, -2:-1",
    ":, 5:9",
    "-9:1",
    "9:-9:-1",
    ":, 2:1",
    "1, :, 2",
    ":",
    ":, :, :",
    ":2.5",
    "None, 0",
    "True",
    "np.int64(1)",
    "np.array(1)",
    "lib.types.Constant(1)",
    "lib.types.Constant(1.5)",
    "np.float32(1.5)",
    "np.array([1])",
    "np.array([1.5])",
    "i, None, i - 1",
    "i : i + 1, i - 2",
    "lib.newaxis, i, :: -i - 1, lib.newaxis",
    "x.shape()[0] - 1, : x.shape()[1] // 2",
    "lib.newaxis",
    "0, 0, 0, lib.newaxis",
    "1:, lib.newaxis, 2",
    ":, :: 2**31 - 1",
]
NAMED = [
    'lib.newaxis("N")',
    ':, lib.newaxis("N")',
    '0, lib.newaxis("N"), :, lib.newaxis("M")',
]


@pytest.mark.parametrize(
    ("index", "layout"),
    [*((i, x) for i in INDICES for x in ("HWC", "")), *((i, "HWC") for i in NAMED)],
)
def test_constant_indices(index, layout):
    each = [np.int32(1), np.int32(0)]
    graph = graph_of(f"x[{index}]", "x", "i")
    assert_parity(graph, DATA, each, layouts=[layout, ""], max_levels=0)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_indices_a_sample(dtype):
    at = [np.array(1, dtype), np.array(0, dtype)]
    high = [np.array(2, dtype), np.array(3, dtype)]

    def graph(lib, x, a, b):
        return x[a], x[:, a], x[a, a, b], x[:, a:b], x[:, :b, ::2], x[a:, :, b], x[:, ::b]

    assert_parity(graph, DATA, at, high, layouts=["HWC", "", ""], max_levels=0)


def test_negative_steps_a_sample():
    step = [np.int32(-1), np.int32(2)]
    assert_parity(lambda lib, x, s: (x[:, ::s], x[:, :, ::s]), DATA, step, max_levels=0)


def test_shapes_and_coordinates():
    def graph(lib, x):
        shape = x.shape()
        return shape[0], shape[:2], shape[-1], x[:, : shape[1] - 1], x[shape[0] - 1]

    assert_parity(graph, DATA, layouts="HWC", max_levels=0)


@pytest.mark.parametrize("dtype", ["INT32", "UINT32", "INT64", "UINT64", "FLOAT", "FLOAT64"])
def test_shape_types(dtype):
    ragged = [DATA[0], DATA[1][:1, 2:]]
    assert_parity(lambda lib, x: x.shape(dtype=getattr(lib.types, dtype)), ragged, layouts="HWC")
    assert_parity(lambda lib, x: x.shape(dtype=getattr(lib.types, dtype)), [np.float32(3)])


@pytest.mark.parametrize("dtype", ["UINT8", "INT8", "FLOAT16", "BOOL"])
def test_errors_shape_types(dtype):
    assert_both_raise(lambda lib, x: x.shape(dtype=getattr(lib.types, dtype)), DATA, match=dtype)


def test_ragged_batches_and_sequences():
    ragged = [np.zeros((n, 2 * n, 3), np.uint8) + n for n in range(1, 5)]
    assert_parity(lambda lib, x: (x[0], x[:, 1::2], x[-1, :, 0]), ragged, layouts="HWC")
    video = [np.arange(120, dtype=np.uint8).reshape(5, 4, 2, 3)] * 2
    assert_parity(lambda lib, x: (x[1], x[:, 1], x[::2], x[1:3, ::-1]), video, layouts="FHWC")


def test_scalars():
    assert_parity(lambda lib, x: x[lib.newaxis], [np.int32(3), np.int32(4)])


@pytest.mark.parametrize(
    ("index", "match"),
    [
        ("2", "out of range"),
        ("0, -4", "out of range"),
        ("::0", "zero"),
        ("0, 0, 0, 0", "Too many"),
        (":, :, :, :", "Too many"),
        ("...", "Ellipsis"),
        ("1.5", "index"),
        ("'a'", "index"),
        ("[0, 1]", "index"),
        ("1:'a'", "index"),
        ("np.array([0, 1])", "index"),
        ("np.array([[1]])", "index"),
        ("0, 1, 2, lib.newaxis, 3", "Too many"),
        ('lib.newaxis("NM")', "single-character"),
        ("lib.newaxis(1)", "single-character"),
        ('lib.newaxis, 0, lib.newaxis("N")', "all axes or none"),
    ],
)
def test_errors(index, match):
    assert_both_raise(graph_of(f"x[{index}]", "x"), DATA, layouts="HWC", match=match)


@pytest.mark.parametrize(
    ("at", "match"),
    [(np.int32(2), "out of range"), (np.int32([1]), "scalar"), (np.float32(1), "takes int")],
)
def test_errors_a_sample(at, match):
    assert_both_raise(lambda lib, x, a: x[a], DATA, [at, at], match=match)


def test_errors_scalars():
    for index in ("0", ":", "0, 0", "lib.newaxis, 0", "::-1"):
        graph = graph_of(f"x[{index}]", "x")
        assert_both_raise(graph, [np.int32(3)], match="index to a scalar|Too many")
