"""The same operator on both devices: the same values, or the same error."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import HeadraceError, OperatorError
from tests.support.gpu.run_operator import Batch, run_cpu_operator_on_batch, run_gpu_operator


def random_rows(*shapes: tuple[int, ...], dtype: Any = np.uint8, seed: int = 0) -> Batch:
    """A sample of each shape; integers from all of their range."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return [rng.uniform(-300, 300, shape).astype(dtype) for shape in shapes]
    limits = np.iinfo(dtype)
    return [rng.integers(limits.min, limits.max, s, dtype, endpoint=True) for s in shapes]


def each(*values: Any, dtype: Any = np.float32) -> Batch:
    """A per-sample argument."""
    return [np.asarray(value, dtype) for value in values]


def check_alike(name: str, *inputs: list[np.ndarray], **options: Any) -> Any:
    """Check that both devices give the same values, bit for bit; return those of the GPU.

    Parameters are those of `run_gpu_operator`.
    """
    found = run_gpu_operator(name, *inputs, **options)
    for only_there in ("scattered", "runtime"):
        options.pop(only_there, None)
    expected = run_cpu_operator_on_batch(name, *inputs, **options)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for got_rows, wanted_rows in pairs:
        for index, (got, wanted) in enumerate(zip(got_rows, wanted_rows, strict=True)):
            assert got.dtype == wanted.dtype
            assert got.shape == wanted.shape, f"sample {index}"
            np.testing.assert_array_equal(got, wanted, f"sample {index}")
    return found


def check_same_error(
    name: str, *inputs: list[np.ndarray], sample: int | None = None, **options: Any
) -> HeadraceError:
    """Check that both devices raise the same error; return it.

    On the GPU it must name `sample`, unless that is not given.
    """
    try:
        run_cpu_operator_on_batch(name, *inputs, **options)
    except HeadraceError as error:
        expected = error
    else:
        raise AssertionError(f"`{name}` raises nothing on the CPU")
    try:
        run_gpu_operator(name, *inputs, **options)
    except HeadraceError as error:
        got: Any = error
    else:
        raise AssertionError(f"`{name}` raises nothing on the GPU")
    if isinstance(got, OperatorError):
        assert got.where.sample == sample
        got = got.__cause__
    else:
        assert sample is None, "the error does not tell the sample"
    assert type(got) is type(expected)
    assert str(got) == str(expected)
    return expected
