"""An operator gives the same on both devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.gpu.run_operator import Rows, run_cpu_operator_on_batch, run_gpu_operator


def random_rows(*shapes: tuple[int, ...], dtype: Any = np.uint8, seed: int = 0) -> Rows:
    """A sample of each shape; integers from all of their range."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return [rng.uniform(-300, 300, shape).astype(dtype) for shape in shapes]
    limits = np.iinfo(dtype)
    return [rng.integers(limits.min, limits.max, s, dtype, endpoint=True) for s in shapes]


def each(*values: Any, dtype: Any = np.float32) -> Rows:
    """A per-sample argument."""
    return [np.asarray(value, dtype) for value in values]


def assert_same_values(name: str, rows: Rows, layout: str, **arguments: Any) -> Any:
    """Check shapes, types and values; the GPU's outputs."""
    found = run_gpu_operator(name, rows, layout=layout, **arguments)
    expected = run_cpu_operator_on_batch(name, rows, layout=layout, **arguments)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for got_rows, wanted_rows in pairs:
        for got, wanted in zip(got_rows, wanted_rows, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
    return found
