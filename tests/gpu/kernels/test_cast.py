"""Conversions of elements on the device: those of the CPU, bit by bit."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from headrace.kernels.cpu.cast import converter
from headrace.kernels.gpu.cast import cast_to
from headrace.kernels.gpu.pointwise_terms import Call
from headrace.kernels.gpu.program import C_TYPES
from tests.support.gpu.every_function import EveryFunction, Function

TYPES = list(C_TYPES)


def function(source: np.dtype, target: np.dtype) -> Function:
    term = cast_to(source, target)
    assert isinstance(term, Call)
    return Function(term.function, (source,), target)


@functools.cache
def conversions_from(source: np.dtype) -> EveryFunction:
    return EveryFunction("cast.cuh", [function(source, target) for target in TYPES])


def numbers(dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.itemsize <= 2:
        return np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype)
    bits = rng.integers(0, 256, 2000 * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        limits = [int(v) for t in TYPES if t.kind in "iu" for v in _around(np.iinfo(t))]
        edges = [v for v in limits if info.min <= v <= info.max]
        return np.concatenate([np.array([*edges, 0, 1], dtype), bits])
    edges = [0.0, 0.4, 0.49999997, 0.49999999999999994, 0.5, 0.50000006, 1.5, 2.5, np.nan, np.inf]
    edges += [float(v) for t in TYPES if t.kind in "iu" for v in _around(np.iinfo(t))]
    edges += [v + 0.5 for v in edges] + [2.0**k + 0.5 for k in range(20, 54)]
    edges += [65504.0, 65519.9, 65520.0, 6e-8, 2.9e-8, 3.4e38, 3.5e38, 1e300, 5e-324, 1e-40]
    with np.errstate(all="ignore"):
        table = np.array(edges, dtype)
        near = [np.nextafter(table, dtype.type(d)) for d in (-np.inf, np.inf)]
        usual = (rng.standard_normal(500) * np.geomspace(0.1, 1e6, 500)).astype(dtype)
    return np.concatenate([table, -table, *near, bits, usual])


def _around(info: np.iinfo) -> list[int]:
    return [info.min - 1, info.min, info.min + 1, info.max - 1, info.max, info.max + 1]


@pytest.mark.sweep
@pytest.mark.parametrize("target", TYPES, ids=str)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_as_on_the_cpu(source, target):
    values = numbers(source)
    want = np.empty(values.shape, target)
    with np.errstate(all="ignore"):
        converter(source, target)(values, want)
    got, _ = conversions_from(source)(function(source, target), values)
    np.testing.assert_array_equal(got, want)
