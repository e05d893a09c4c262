"""`normalize` by moments that are worked out in one go gives what the steps one by one give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace.operators.generic.normalize as module
from tests.support.run_operator import run_operator

RNG = np.random.default_rng(0)
AXES = [None, (0,), (1,), (0, 1), (1, 2), (0, 2)]
SHAPES = [(128, 101), (3, 5), (1, 1), (7,), (100, 3), (40, 300), (4, 2500), (5, 60, 3), (4, 1, 9)]


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "int32"])
@pytest.mark.parametrize(
    "extra",
    [{}, {"ddof": 1}, {"ddof": 1000}, {"epsilon": 0.5, "scale": 3.0, "shift": 2.0}],
    ids=str,
)
def test_same_bits(dtype, extra, monkeypatch):
    for shape, axes in itertools.product(SHAPES, AXES):
        if axes is not None and max(axes) >= len(shape):
            continue
        data = (RNG.standard_normal(shape) * 30).astype(dtype)
        arguments = {**extra, **({} if axes is None else {"axes": axes})}
        found = run_operator("normalize", data, **arguments)
        with monkeypatch.context() as patch:
            patch.setattr(module, "normalize_by_own_moments", lambda samples, *_, **__: [0])
            expected = run_operator("normalize", data, **arguments)
        np.testing.assert_array_equal(found, expected, f"{shape}, axes {axes}")


def test_what_is_not_finite(monkeypatch):
    data = np.ones((4, 100), np.float32)
    data[1, 7], data[2, 9], data[3] = np.nan, np.inf, 3e38
    with np.errstate(all="ignore"):
        found = run_operator("normalize", data, axes=[1])
        monkeypatch.setattr(module, "normalize_by_own_moments", lambda samples, *_, **__: [0])
        expected = run_operator("normalize", data, axes=[1])
    np.testing.assert_array_equal(found, expected)
