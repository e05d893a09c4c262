from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace.kernels.cpu.flip import flip_into
from tests.support.views import SHAPES, views


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "float32", "float64", "uint64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_flip(shape, dtype):
    for source in views(shape, dtype):
        for count in range(len(shape) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                out = np.empty(shape, dtype)
                flip_into(source, axes, out)
                np.testing.assert_array_equal(out, np.flip(source, axes))
