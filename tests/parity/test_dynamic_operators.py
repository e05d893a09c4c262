"""Every operator in both libraries' dynamic modes: types, layouts, shapes, values."""

from __future__ import annotations

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import nvidia.dali.types
import pytest

import penstock.experimental.dynamic as ndd
import penstock.types
from tests.dynamic.test_operators import as_array, dynamic_call
from tests.support.dynamic_cases import CASES

COMPARED = [c for c in CASES if c.dali]
LOSSY = ("decoders.", "resize", "rotate", "gaussian_blur", "brightness", "contrast")
assert as_array


@pytest.mark.parametrize("case", COMPARED, ids=str)
def test_results_are_those_of_dali(case):
    expected = dynamic_call(case, dali, nvidia.dali.types)
    actual = dynamic_call(case, ndd, penstock.types)
    assert len(actual) == len(expected)
    for got, want in zip(actual, expected, strict=True):
        assert type(got).__name__ == type(want).__name__
        assert str(got.dtype) == str(want.dtype)
        assert got.layout == want.layout
        assert got.shape == want.shape
        assert got.ndim == want.ndim
        assert got.batch_size == want.batch_size
        for a, b in zip(got.tensors, want.tensors, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            if a.dtype.kind == "f":
                scale = float(np.max(np.abs(b), initial=1.0))
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * scale)
            else:
                levels = 3 if case.name.startswith(LOSSY) else 0
                difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
                assert np.mean(difference > levels) < 0.02
